//===- UnrollLoops.cpp - several loads in flight --------------------------===//
//
// A loop that reduces what it reads, with one access of a thread in an iteration, waits for each
// access. If several iterations start their accesses together, they wait once.
//
// 1. The pass takes innermost loops of kernels without matrix products whose threads do not
//    synchronise.
// 2. Pattern `windows`: a loop whose loaded tile slides along an axis, of which a thread has
//    several places, is unrolled completely, so that equal loads of several iterations become one.
//    The number of iterations must be known. The pass declines if that would write out more than
//    128 loads, or 2048 instructions of divisions, exponentials and the like.
// 3. Pattern `small-loads`: a loop is unrolled such that a thread reads about 64 bytes an
//    iteration. The factor is a power of two, at most 4. It is smaller if a thread computes several
//    elements from each one that it loads, with many divisions or exponentials.
// 4. The loads of an iteration, and the arithmetic of their addresses, move to where it begins. A
//    range that ends before it begins gets its beginning as its end, because the unrolled trip
//    count is unsigned.
//
// Before: scf.for %i = %a to %b step %s {%x = load %p[%i]; %c = add %carried, %x}
// After:  scf.for %i = %a to %m step 4 s {%x0 = load %p[%i]; %x1 = load %p[%i + s]; ...; add ...}
//         scf.for %i = %m to %b step %s {...}
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuRecurrenceOps.h"
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/analysis/Declines.h"
#include "passes/layout/SlidingLoads.h"
#include "passes/layout/TileComponents.h"
#include "passes/machine/limits/Rows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

namespace tk {
#define GEN_PASS_DEF_UNROLLLOOPS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::unroll_loops;

/// Bytes that a thread reads in an iteration; nothing if the loop is not one of those looked at.
static std::optional<int64_t> bytesOfIteration(scf::ForOp loop) {
  int64_t bytes = 0;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (op.getNumRegions() > 0 || !isMemoryEffectFree(&op) || isReduction(&op) ||
        isa<gpu::ScanOp, RecurrenceOp, ConvertLayoutOp>(op))
      return std::nullopt;
    auto load = dyn_cast<gpu::LoadOp>(op);
    LayoutAttr layout = load ? getLayout(load.getType()) : LayoutAttr();
    if (layout)
      bytes += layout.getNumRegisters() *
               getElementTypeOrSelf(load.getType()).getIntOrFloatBitWidth() / 8;
  }
  return bytes > 0 ? std::optional(bytes) : std::nullopt;
}

/// How many instructions an iteration spends, about, on what takes a dozen or more each.
static int64_t countCostly(scf::ForOp loop) {
  constexpr int64_t instructions = 12;
  int64_t count = 0;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (!isa<arith::DivFOp, ExpDiffOp, math::ExpOp, math::Exp2Op, math::ExpM1Op, math::LogOp,
             math::Log2Op, math::Log1pOp, math::TanhOp, math::ErfOp, math::SinOp, math::CosOp,
             math::PowFOp>(op))
      continue;
    LayoutAttr layout = getLayout(op.getResult(0).getType());
    count += (layout ? layout.getNumRegisters() : 1) * instructions;
  }
  return count;
}

/// Has a thread several terms for each element that it loads?
static bool sharesLoads(scf::ForOp loop) {
  int64_t loaded = 0, terms = 0;
  for (Operation &op : loop.getBody()->without_terminator())
    for (Value result : op.getResults())
      if (LayoutAttr layout = getLayout(result.getType())) {
        int64_t &most = isa<gpu::LoadOp>(op) ? loaded : terms;
        most = std::max<int64_t>(most, layout.getNumRegisters());
      }
  return terms > loaded;
}

/// Unrolls the loop of a window whole, if `loop` is one.
static bool unrollWindow(scf::ForOp loop) {
  std::optional<APInt> count = loop.getStaticTripCount();
  int64_t loads = 0;
  bool slides = false;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (op.getNumRegions() > 0 || !isMemoryEffectFree(&op) || isReduction(&op) ||
        isa<gpu::ScanOp, RecurrenceOp, ConvertLayoutOp>(op))
      return false;
    auto load = dyn_cast<gpu::LoadOp>(op);
    loads += load ? 1 : 0;
    slides |= load && slidesInRegisters(load, loop);
  }
  constexpr StringLiteral pass = "tk-unroll-loops:windows";
  if (!slides)
    return decline(loop, pass, "no load slides along the loop in registers");
  if (!count)
    return decline(loop, pass, "the number of iterations is not known");
  if (count->getSExtValue() * loads > mostLoads ||
      count->getSExtValue() * countCostly(loop) > mostCostly)
    return decline(loop, pass, "written out, the loop would be too long");
  for (gpu::LoadOp load : loop.getBody()->getOps<gpu::LoadOp>())
    if (slidesInRegisters(load, loop))
      addCacheHint(load, CacheAttr::get(loop.getContext(), /*once=*/false, /*common=*/true, 0));
  return succeeded(loopUnrollFull(loop));
}

/// Moves the loads of a loop that do not follow from what it carries to its beginning.
static void beginLoads(scf::ForOp loop) {
  Block *body = loop.getBody();
  llvm::SetVector<Operation *> ahead;
  auto collect = [&](auto &self, Operation *op) -> bool {
    if (op->getBlock() != body || ahead.contains(op))
      return true;
    for (Value operand : op->getOperands()) {
      auto argument = dyn_cast<BlockArgument>(operand);
      if (argument && argument.getOwner() == body && argument != loop.getInductionVar())
        return false;
      if (Operation *def = operand.getDefiningOp(); def && !self(self, def))
        return false;
    }
    ahead.insert(op);
    return true;
  };
  for (gpu::LoadOp load : body->getOps<gpu::LoadOp>())
    collect(collect, load);
  Operation *last = nullptr;
  for (Operation *op : ahead) {
    if (last)
      op->moveAfter(last);
    else
      op->moveBefore(body, body->begin());
    last = op;
  }
}

/// Makes the number of a loop's iterations its length over its step, rounded up.
static void endAfterBeginning(scf::ForOp loop) {
  OpBuilder builder(loop);
  loop.setUpperBound(builder.createOrFold<arith::MaxSIOp>(loop.getLoc(), loop.getLowerBound(),
                                                          loop.getUpperBound()));
}

namespace {

struct UnrollLoops : tk::impl::UnrollLoopsBase<UnrollLoops> {
  using UnrollLoopsBase::UnrollLoopsBase;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    SmallVector<scf::ForOp> loops;
    for (FuncOp function : getOperation().getOps<FuncOp>())
      if (!hasProducts(function))
        function.walk([&](scf::ForOp loop) { loops.push_back(loop); });
    patterns.run("windows", [&] {
      llvm::erase_if(loops, [&](scf::ForOp loop) {
        const bool isWindow = unrollWindow(loop);
        numUnrolled += isWindow;
        return isWindow;
      });
    });
    patterns.run("small-loads", [&] {
      for (scf::ForOp loop : loops)
        numUnrolled += unrollSmallLoads(loop);
    });
  }

private:
  /// Unrolls a loop that loads little in an iteration; true if it did.
  static bool unrollSmallLoads(scf::ForOp loop) {
    constexpr StringLiteral pass = "tk-unroll-loops:small-loads";
    std::optional<int64_t> bytes = bytesOfIteration(loop);
    if (!bytes)
      return decline(loop, pass, "an iteration does more than load and compute");
    if (*bytes * 2 > bytesAtOnce)
      return decline(loop, pass, "an iteration has enough bytes in flight");
    int64_t factor = std::min<int64_t>(mostIterations, llvm::PowerOf2Ceil(bytesAtOnce / *bytes));
    while (factor > 1 && sharesLoads(loop) && factor * countCostly(loop) > mostCostlyTogether)
      factor /= 2;
    if (factor == 1)
      return decline(loop, pass, "its terms take the time, not its loads");
    endAfterBeginning(loop);
    FailureOr<UnrolledLoopInfo> unrolled = loopUnrollByFactor(loop, factor);
    if (failed(unrolled))
      return false;
    if (unrolled->mainLoopOp)
      beginLoads(*unrolled->mainLoopOp);
    return true;
  }
};

} // namespace
