//===- PairSums.cpp - two partial sums in flight --------------------------===//
//
// A contraction with scales of blocks starts a new sum for each block, waits for it, scales it, and
// adds it to the result. The matrix unit has no work of a warpgroup while that adds. The other
// warpgroup of the block must then fill it alone. This pass computes two blocks in an iteration, so
// that the first sum is scaled and added under the second contraction.
//
// 1. Take a loop with one contraction that starts a new sum and is waited for in its iteration. TMA
//    must bring both operands. The circular buffer must have at least three stages, and a thread
//    registers for two sums.
// 2. A loop over pairs of iterations has two copies of the body. The second contraction, its wait
//    for the stage and what these need move before the wait for the first contraction. That wait
//    leaves one contraction in flight.
// 3. The loop as it was computes the last iteration if their number is odd.
//
//   for %b = 0 to %n, %o {                    for %b = 0 to %n / 2 * 2 step 2, %o {
//     %s = dot %x[%b], %w[%b]                   %s = dot %x[%b], %w[%b]
//     %s1 = wait %s                             %t = dot %x[%b + 1], %w[%b + 1]
//     yield %o + %s1 * %f[%b]            →      %s1 = wait %s pending 1; %o1 = %o + %s1 * %f[%b]
//   }                                           %t1 = wait %t
//                                               yield %o1 + %t1 * %f[%b + 1]
//                                             }
//
// The next iteration's contraction cannot be in flight across iterations: ptxas then lets no
// contraction run beside arithmetic on the accumulators of another one (C7514).
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/layout/TileComponents.h"
#include "passes/machine/limits/Loops.h"
#include "passes/pipeline/ProductWaits.h"

#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace tk {
#define GEN_PASS_DEF_PAIRSUMS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::pair_sums;

namespace {

class SumPair {
public:
  SumPair(scf::ForOp loop, int64_t registers) : loop(loop), registers(registers) {}

  bool analyse();
  void apply();

private:
  bool isKnownEarly(Value value, llvm::SmallPtrSetImpl<Operation *> &visited);
  bool fitsRegisters();
  SmallVector<Value> cloneBody(OpBuilder &builder, IRMapping &mapping);
  void issueEarly(WarpgroupDotOp second, ArrayRef<PhaseWaitOp> stages, WarpgroupWaitOp first);

  scf::ForOp loop;
  int64_t registers; ///< of a thread
  WarpgroupDotOp dot;
  WarpgroupWaitOp wait;
  SmallVector<PhaseWaitOp> phases; ///< before the contraction
};

struct PairSums : tk::impl::PairSumsBase<PairSums> {
  void runOnOperation() override {
    SmallVector<std::pair<scf::ForOp, int64_t>> loops;
    getOperation().walk([&](WarpRolesOp roles) {
      int64_t registers = roles.getConsumerRegisters().value_or(0);
      roles.getConsumer().walk([&](scf::ForOp loop) { loops.emplace_back(loop, registers); });
    });
    for (auto [loop, registers] : loops) {
      SumPair pair(loop, registers);
      if (!pair.analyse())
        continue;
      pair.apply();
      ++numLoops;
    }
  }
};

} // namespace

/// Does `value` not wait for the contraction of its iteration, nor for one before?
bool SumPair::isKnownEarly(Value value, llvm::SmallPtrSetImpl<Operation *> &visited) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() != loop.getBody() || argument == loop.getInductionVar())
      return true;
    Value next = loop.getTiedLoopYieldedValue(argument)->get();
    return next == value || isKnownEarly(next, visited);
  }
  Operation *op = value.getDefiningOp();
  if (op->getBlock() != loop.getBody() || !visited.insert(op).second)
    return true;
  return op->getNumRegions() == 0 && (isMemoryEffectFree(op) || isa<StageOp>(op)) &&
         !isa<WarpgroupWaitOp, WarpgroupDotOp, gpu::LoadOp, LocalLoadOp>(op) &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return isKnownEarly(operand, visited); });
}

bool SumPair::fitsRegisters() {
  int64_t sum = 2 * registersOfTile(dot.getType()) + otherRegisters;
  for (Value carried : loop.getRegionIterArgs())
    sum += isTile(carried) ? registersOfTile(carried.getType()) : 1;
  return sum <= registers;
}

bool SumPair::analyse() {
  APInt step;
  Block *body = loop.getBody();
  auto dots = llvm::to_vector(body->getOps<WarpgroupDotOp>());
  if (dots.size() != 1 || !llvm::hasSingleElement(body->getOps<WarpgroupWaitOp>()) ||
      !matchPattern(loop.getStep(), m_ConstantInt(&step)))
    return false;
  dot = dots.front();
  wait = findPlainWait(dot);
  if (!wait || dot.getAccumulate() || isa<RankedTensorType>(dot.getA().getType()) ||
      !loop.isDefinedOutsideOfLoop(dot.getAcc()))
    return false;
  auto stage = dot.getB().getDefiningOp<StageOp>();
  if (!stage || stage.getSource().getType().getShape().front() < leastStages || !fitsRegisters())
    return false;
  for (Operation &op : *body) {
    // An operand that threads write in the iteration is not there early.
    const bool isOfRing =
        isa<PhaseWaitOp, PhaseArriveOp, StageOp, WarpgroupDotOp, WarpgroupWaitOp, gpu::LoadOp>(op);
    if (op.getNumRegions() > 0 || !(isOfRing || isMemoryEffectFree(&op)))
      return false;
    if (auto phase = dyn_cast<PhaseWaitOp>(op); phase && phase->isBeforeInBlock(dot))
      phases.push_back(phase);
  }
  llvm::SmallPtrSet<Operation *, 16> visited;
  auto areKnown = [&](Operation *op) {
    return llvm::all_of(op->getOperands(),
                        [&](Value operand) { return isKnownEarly(operand, visited); });
  };
  return areKnown(dot) && llvm::all_of(phases, areKnown);
}

SmallVector<Value> SumPair::cloneBody(OpBuilder &builder, IRMapping &mapping) {
  for (Operation &op : loop.getBody()->without_terminator())
    builder.clone(op, mapping);
  return llvm::map_to_vector(loop.getBody()->getTerminator()->getOperands(),
                             [&](Value value) { return mapping.lookupOrDefault(value); });
}

/// Moves the second contraction, and all that it needs, before the wait for the first one.
void SumPair::issueEarly(WarpgroupDotOp second, ArrayRef<PhaseWaitOp> stages,
                         WarpgroupWaitOp first) {
  Block *block = first->getBlock();
  llvm::SmallPtrSet<Operation *, 16> needed;
  SmallVector<Operation *> work(stages.begin(), stages.end());
  work.push_back(second);
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    if (op->getBlock() != block || op->isBeforeInBlock(first) || !needed.insert(op).second)
      continue;
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        work.push_back(producer);
  }
  SmallVector<Operation *> ordered;
  for (Operation &op : *block)
    if (needed.contains(&op))
      ordered.push_back(&op);
  for (Operation *op : ordered)
    op->moveBefore(first);
}

void SumPair::apply() {
  Location loc = loop.getLoc();
  OpBuilder builder(loop);
  Value lower = loop.getLowerBound(), step = loop.getStep();
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value two = arith::ConstantIndexOp::create(builder, loc, 2);
  Value steps = arith::MulIOp::create(builder, loc, step, two);
  Value terms = arith::SubIOp::create(builder, loc, loop.getUpperBound(), lower);
  terms = arith::MaxSIOp::create(builder, loc, terms, zero);
  // A last iteration may be partial, and counts.
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value padded =
      arith::AddIOp::create(builder, loc, terms, arith::SubIOp::create(builder, loc, step, one));
  Value count = arith::DivSIOp::create(builder, loc, padded, step);
  Value pairs = arith::DivSIOp::create(builder, loc, count, two);
  Value covered = arith::MulIOp::create(builder, loc, pairs, steps);
  Value end = arith::AddIOp::create(builder, loc, lower, covered);
  auto paired = scf::ForOp::create(builder, loc, lower, end, steps, loop.getInitArgs());
  builder.setInsertionPointToStart(paired.getBody());
  IRMapping first, second;
  first.map(loop.getInductionVar(), paired.getInductionVar());
  for (auto [argument, carried] :
       llvm::zip_equal(loop.getRegionIterArgs(), paired.getRegionIterArgs()))
    first.map(argument, carried);
  SmallVector<Value> between = cloneBody(builder, first);
  second.map(loop.getInductionVar(),
             arith::AddIOp::create(builder, loc, paired.getInductionVar(), step));
  for (auto [argument, carried] : llvm::zip_equal(loop.getRegionIterArgs(), between))
    second.map(argument, carried);
  SmallVector<Value> results = cloneBody(builder, second);
  scf::YieldOp::create(builder, loc, results);
  auto copyOf = [](IRMapping &mapping, Operation *op) {
    return cast<WarpgroupWaitOp>(mapping.lookup(op->getResult(0)).getDefiningOp());
  };
  SmallVector<PhaseWaitOp> stages;
  for (PhaseWaitOp phase : phases)
    stages.push_back(cast<PhaseWaitOp>(second.lookup(phase.getOperation())));
  auto later = cast<WarpgroupDotOp>(second.lookup(dot.getOperation()));
  WarpgroupWaitOp earlier = copyOf(first, wait);
  issueEarly(later, stages, earlier);
  earlier.setPending(1);
  loop.setLowerBound(end);
  loop.getInitArgsMutable().assign(paired.getResults());
}
