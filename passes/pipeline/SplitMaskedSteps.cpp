//===- SplitMaskedSteps.cpp - loops without masks -------------------------===//
//
// An iteration of an attention loop may have a branch that masks scores at the ends of a row's
// range. The branch ends a basic block between the issue of a product and its wait. ptxas then
// waits where the basic blocks meet, so that nothing runs under the product. Most iterations do not
// need the mask. The pass takes loops with products in flight whose branch depends only on where
// the iteration is.
//
// 1. Pattern `plain-loops`: the iterations after all lower bounds and before all upper bounds
//    become a loop without the branch.
// 2. The iterations before them, if there are lower bounds, and those after them stay in loops with
//    the branch.
// 3. Pattern `window-ends`: with bounds on both sides (a window), the loops with the branch have
//    few iterations, and most of them need the mask. If tiles overlap (tk-overlap-tiles), the mask
//    takes the branch's place in these loops, and in the iteration before them.
//
//   for %j = %a to %b {                    for %j = %a to min(%b, %x) { ...; if ... { mask s } }
//     s = dot; o = dot; wait s             for %j = next to min(%b, %y - 31) { ...; wait s; ... }
//     if %j < %x or %j + 32 > %y {    →    for %j = next to %b { ...; if ... { mask s } }
//       mask s
//     } ...; wait o
//   }
//
// The pass declines loops that are known to have at most 4 iterations, and loops with long
// functions such as tanh, whose code would not stay in the instruction cache. For four ordered
// warpgroups, the work on scores runs under other warpgroups' products, and the gain comes from
// deferred rescaling (tk-keep-references). Causal attention over 512 to 4096 keys, heads of 64,
// gains 1.07 to 1.13 on an H200 (lab/results/2026-11-28-h200-masks-and-references.md).
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/analysis/LongFunctions.h"
#include "passes/machine/limits/Loops.h"
#include "passes/pipeline/LoopSteps.h"
#include "passes/pipeline/StepMasks.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_SPLITMASKEDSTEPS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::split_masked_steps;

/// Has `loop` end at `end`, and what `loop` was go on there; returns the latter.
static scf::ForOp divide(OpBuilder &builder, scf::ForOp loop, Value end) {
  Location loc = loop.getLoc();
  builder.setInsertionPointAfter(loop);
  Value from = createStepBehind(builder, loc, loop.getLowerBound(), end, loop.getStep());
  auto rest = cast<scf::ForOp>(builder.clone(*loop));
  rest.setLowerBound(from);
  loop->replaceAllUsesWith(rest);
  rest.getInitArgsMutable().assign(loop.getResults());
  loop.setUpperBound(end);
  return rest;
}

/// Takes the branch out of a loop whose steps it leaves as they are.
static void dropMask(scf::ForOp loop) {
  StepBounds bounds;
  scf::IfOp mask = findMask(loop, bounds);
  mask->replaceAllUsesWith(mask.elseYield().getOperands());
  mask->erase();
}

/// Puts a mask in place of the branch with it: it changes nothing where none is needed.
static void maskAlways(scf::IfOp mask) {
  Operation *yield = mask.thenYield();
  mask->replaceAllUsesWith(yield->getOperands());
  mask->getBlock()->getOperations().splice(mask->getIterator(), mask.thenBlock()->getOperations(),
                                           mask.thenBlock()->begin(), yield->getIterator());
  mask->erase();
}

/// Masks what is left of a range with two ends without asking: steps in loops for its ends, and
/// tiles' first steps, of which nearly all need it. That is so where those stand twice, once under
/// the end of the tile before (tk-overlap-tiles).
static void maskEnds(scf::ForOp loop) {
  auto tiles = loop->getParentOfType<scf::ForOp>();
  if (!tiles)
    return;
  SmallVector<scf::IfOp> masks;
  tiles.walk([&](scf::IfOp branch) {
    if (isMaskOfEnds(branch))
      masks.push_back(branch);
  });
  auto isFirst = [](scf::IfOp mask) { return !isa<scf::ForOp>(mask->getParentOp()); };
  if (llvm::count_if(masks, isFirst) > 1)
    llvm::for_each(masks, maskAlways);
}

/// Is the loop known to have few steps? It begins with the second one of a range from zero on.
static bool areFew(scf::ForOp loop) {
  APInt step, end;
  auto upper = loop.getUpperBound().getDefiningOp<arith::MinSIOp>();
  return upper && matchPattern(upper.getRhs(), m_ConstantInt(&end)) &&
         matchPattern(loop.getStep(), m_ConstantInt(&step)) &&
         end.getSExtValue() <= kFewSteps * step.getSExtValue();
}

static bool haveLongFunctions(scf::ForOp loop) {
  return llvm::any_of(loop.getOps(), [](Operation &op) { return isLongFunction(&op); });
}

/// Adds the loop to `windows` where it has bounds on both sides.
static bool split(scf::ForOp loop, SmallVector<scf::ForOp> &windows) {
  StepBounds bounds;
  if (areFew(loop) || haveLongFunctions(loop) || !findMask(loop, bounds))
    return false;
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  Value end = loop.getUpperBound(), plainEnd = end;
  for (auto [bound, length] : bounds.upper) {
    // A step ends by the bound if it begins before this.
    Value last = arith::SubIOp::create(builder, loc, bound,
                                       arith::ConstantIndexOp::create(builder, loc, length - 1));
    plainEnd = arith::MinSIOp::create(builder, loc, plainEnd, last);
  }
  Value lower;
  for (Value bound : bounds.lower)
    lower = lower ? arith::MaxSIOp::create(builder, loc, lower, bound).getResult() : bound;
  if (lower)
    loop = divide(builder, loop, arith::MinSIOp::create(builder, loc, end, lower));
  if (!bounds.upper.empty())
    divide(builder, loop, plainEnd);
  dropMask(loop);
  if (bounds.areBoth())
    windows.push_back(loop);
  return true;
}

namespace {

struct SplitMaskedSteps : tk::impl::SplitMaskedStepsBase<SplitMaskedSteps> {
  using SplitMaskedStepsBase::SplitMaskedStepsBase;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    SmallVector<scf::ForOp> loops;
    for (FuncOp function : getOperation().getOps<FuncOp>())
      function.walk([&](scf::ForOp loop) {
        if (!loop.getOps<WarpgroupDotOp>().empty())
          loops.push_back(loop);
      });
    SmallVector<scf::ForOp> windows;
    patterns.run("plain-loops", [&] {
      for (scf::ForOp loop : loops)
        if (split(loop, windows))
          ++numLoops;
    });
    patterns.run("window-ends", [&] {
      for (scf::ForOp loop : windows)
        maskEnds(loop);
    });
  }
};

} // namespace
