//===- SplitMaskedSteps.cpp - steps that need no mask have their own loop --===//
//
// A branch in a step of products of warpgroups, which masks scores at the ends of a row's range,
// ends a block of instructions between one product's beginning and its wait; ptxas then waits at
// once where the blocks meet, and nothing runs under that product. Most steps take the branch
// that does nothing. In a loop with products in flight whose branch asks where the step is:
//
// 1. The steps that lie behind all lower bounds and before all upper ones become a loop without the
//    branch.
// 2. The steps before them, if there are lower bounds, and those behind them stay in loops with it.
//
//   for %j = %a to %b {                    for %j = %a to min(%b, %x) { ...; if ... { mask s } }
//     s = dot; o = dot; wait s             for %j = next to min(%b, %y - 31) { ...; wait s; ... }
//     if %j < %x or %j + 32 > %y {    →    for %j = next to %b { ...; if ... { mask s } }
//       mask s
//     } ...; wait o
//   }
//
// It brings nothing where four warpgroups take turns, whose work runs under others' products, nor
// for a few steps, nor where a step computes long functions: its code does not stay in the cache.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/LongFunctions.h"
#include "passes/memory/LoopSteps.h"

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

/// Measured: with three warpgroups or fewer, and more steps than this, it pays.
static constexpr int64_t kMostWarps = 12, kFewSteps = 4;

namespace {

/// Where a step needs no mask: from `lower` on, and if `length` places from it on end by `upper`.
struct Bounds {
  SmallVector<Value> lower;
  SmallVector<std::pair<Value, int64_t>> upper;
};

} // namespace

/// Collects the comparisons of a step with bounds, one of which holds where it is masked.
static bool collectBounds(Value condition, scf::ForOp loop, Bounds &bounds) {
  Operation *op = condition.getDefiningOp();
  if (auto either = dyn_cast_or_null<arith::OrIOp>(op))
    return collectBounds(either.getLhs(), loop, bounds) &&
           collectBounds(either.getRhs(), loop, bounds);
  auto compare = dyn_cast_or_null<arith::CmpIOp>(op);
  if (!compare || !loop.isDefinedOutsideOfLoop(compare.getRhs()))
    return false;
  Value step = compare.getLhs();
  if (compare.getPredicate() == arith::CmpIPredicate::slt && step == loop.getInductionVar()) {
    bounds.lower.push_back(compare.getRhs());
    return true;
  }
  auto end = step.getDefiningOp<arith::AddIOp>();
  APInt length;
  if (compare.getPredicate() != arith::CmpIPredicate::sgt || !end ||
      end.getLhs() != loop.getInductionVar() || !matchPattern(end.getRhs(), m_ConstantInt(&length)))
    return false;
  bounds.upper.push_back({compare.getRhs(), length.getSExtValue()});
  return true;
}

/// The branch between a product's beginning and its wait that masks some steps.
static scf::IfOp findMask(scf::ForOp loop, Bounds &bounds) {
  scf::IfOp mask;
  bool isInFlight = false;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (auto wait = dyn_cast<WarpgroupWaitOp>(op))
      isInFlight = wait.getPending() > 0;
    auto branch = dyn_cast<scf::IfOp>(op);
    if (!branch || branch.getElseRegion().empty() || !isMemoryEffectFree(branch))
      continue;
    if (mask || !isInFlight || branch.getNumResults() == 0 ||
        !branch.elseBlock()->without_terminator().empty())
      return {};
    mask = branch;
  }
  return mask && collectBounds(mask.getCondition(), loop, bounds) ? mask : scf::IfOp();
}

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
  Bounds bounds;
  scf::IfOp mask = findMask(loop, bounds);
  mask->replaceAllUsesWith(mask.elseYield().getOperands());
  mask->erase();
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

static bool split(scf::ForOp loop) {
  Bounds bounds;
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
  return true;
}

namespace {

struct SplitMaskedSteps : tk::impl::SplitMaskedStepsBase<SplitMaskedSteps> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    for (FuncOp function : getOperation().getOps<FuncOp>())
      if (function.getBlockWarps() <= kMostWarps)
        function.walk([&](scf::ForOp loop) {
          if (!loop.getOps<WarpgroupDotOp>().empty())
            loops.push_back(loop);
        });
    for (scf::ForOp loop : loops)
      if (split(loop))
        ++numLoops;
  }
};

} // namespace
