//===- WarpArrivals.cpp - arrivals that speak for a warp ------------------===//
//
// Each lane of a consumer warp waits for a stage by itself, and lane 0 alone arrives for the warp
// when the stage has been read. A lane that still waits then would miss its phase: the producer may
// fill the stage twice before the lane asks, and the parity is again what it was. So all lanes have
// to meet between their waits and the arrival. A product of a warpgroup makes them meet. Where a
// path without one leads from a wait to the arrival, as through a loop without iterations, the
// warp has to be synchronised.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/WarpArrivals.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace tk::cuda {

namespace {

/// What the way back from an operation comes to first, on the path that matters most.
enum class Reached { Neither, Meeting, Wait };

using PhaseSet = llvm::SmallPtrSet<Value, 2>;

} // namespace

/// The phases that the copies complete whose stages are left by arrivals at `phases`.
static PhaseSet findFull(gpu::WarpRolesOp roles, Value phases) {
  PhaseSet full;
  roles.getProducer().walk([&](gpu::PhaseWaitOp wait) {
    if (wait.getPhases() != phases)
      return;
    bool isFound = false;
    for (Operation *op = wait->getNextNode(); op && !isFound; op = op->getNextNode())
      op->walk([&](gpu::PhaseExpectOp expect) {
        full.insert(expect.getPhases());
        isFound = true;
      });
  });
  return full;
}

/// Do all lanes of a warp meet in `op`?
static bool isMeeting(Operation *op) {
  if (auto turn = dyn_cast<gpu::TurnOp>(op))
    return turn.getStep() == gpu::TurnStep::Take;
  return isa<gpu::WarpgroupDotOp, gpu::BarrierOp, gpu::NoneNegativeOp>(op);
}

static bool isKnownToRun(scf::ForOp loop) {
  std::optional<int64_t> first = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> end = getConstantIntValue(loop.getUpperBound());
  return first && end && *first < *end;
}

static Reached scanBack(Block &block, const PhaseSet &full);

static Reached scanInside(Operation *op, const PhaseSet &full) {
  bool isWait = false, isMeetingInAll = op->getNumRegions() > 0;
  for (Region &region : op->getRegions()) {
    Reached inside = region.empty() ? Reached::Neither : scanBack(region.front(), full);
    isWait |= inside == Reached::Wait;
    isMeetingInAll &= inside == Reached::Meeting;
  }
  if (auto loop = dyn_cast<scf::ForOp>(op))
    isMeetingInAll &= isKnownToRun(loop);
  if (isWait)
    return Reached::Wait;
  return isMeetingInAll ? Reached::Meeting : Reached::Neither;
}

/// Goes back from `op`, without it, to where its block begins.
static Reached scanBefore(Operation *op, const PhaseSet &full) {
  for (op = op->getPrevNode(); op; op = op->getPrevNode()) {
    if (isMeeting(op))
      return Reached::Meeting;
    auto wait = dyn_cast<gpu::PhaseWaitOp>(op);
    if (wait && (full.empty() || full.contains(wait.getPhases())))
      return Reached::Wait;
    if (Reached inside = scanInside(op, full); inside != Reached::Neither)
      return inside;
  }
  return Reached::Neither;
}

static Reached scanBack(Block &block, const PhaseSet &full) {
  return scanBefore(block.getTerminator(), full);
}

bool canLanesWaitBefore(Operation *arrive, Value phases) {
  auto roles = arrive->getParentOfType<gpu::WarpRolesOp>();
  if (!roles)
    return true;
  const PhaseSet full = findFull(roles, phases);
  for (Operation *op = arrive; op != roles; op = op->getParentOp()) {
    Reached before = scanBefore(op, full);
    if (before != Reached::Neither)
      return before == Reached::Wait;
    // The iteration before.
    if (auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
        loop && scanBack(*loop.getBody(), full) == Reached::Wait)
      return true;
  }
  return false;
}

} // namespace tk::cuda
