//===- JoinEnds.cpp - a window's two boundary tiles as one ----------------===//
//
// Each row of a window attends to as many keys as the others, one key further on than the row
// before. If an iteration has as many keys as a tile has rows, the first and the last iteration
// each use half of their keys. The keys that a row uses in one are those that it does not use in
// the other. One tile of scores can serve both, which saves an iteration:
//
//        keys of the first iteration    of the last one
//   row 0   . x x x                       x . . .
//   row 1   . . x x                       x x . .
//   row 2   . . . x                       x x x .
//   row 3   . . . .                       x x x x
//
// The pass takes the consumers of kernels with two warpgroups, each with half of the rows, whose
// tiles overlap (tk-overlap-tiles):
//
// 1. The last iteration comes first, then the first one, then the others. Producer and consumers
//    use this order, so that the circular buffers proceed. Iterations are counted backwards from
//    the last one.
// 2. A warpgroup uses three of the four halves of these two iterations. Half of its first scores
//    are those of the half that all its rows use. The other half is a tile that takes each element
//    from one of the two other halves, by where the row ends. No element needs a mask.
// 3. The softmax numerators of the mixed half are separated: those before the row's end and those
//    after it, with zeros elsewhere. The first iteration of the loop adds three products: of these
//    two, and of the whole half.
// 4. A tile that an end of the sequence cuts begins with the last iteration, masked, and does not
//    begin under the tile before.
// 5. Keys and values share one circular buffer (JoinedRings.cpp).
//
//   for %j = %first to %end {          %s = select below, dot %q, %k[last], dot %q, %k[first]
//     %s = dot %q, %k[%j]              %p = f(%s)
//     %p = f(mask %s)             →    dot below(%p), %v[last]; dot beyond(%p), %v[first]
//     dot %p, %v[%j]                   for %j = %first + 1 to last { ... }
//   }
//
// The window's length must be known to be a multiple of an iteration's keys, and at least 384.
// Launches find that out (passes/analysis/ScalarCases.cpp). Speed with the pass relative to
// without, 16384 keys, heads of 128, H100: 1.07 to 1.12 for windows of 384 to 1024, 1.03 for 4096,
// and 0.9 for 256 (lab/results/2026-11-26-h200-windows-joined-ends.md).
//
//===----------------------------------------------------------------------===//
#include "passes/pipeline/JoinEnds.h"

#include "passes/Passes.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarCases.h"
#include "passes/layout/Branches.h"
#include "passes/layout/BulkBox.h"

#include "dialects/tkgpu/TkGpuLayout.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_JOINENDS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// Steps that end with the one whose terms begin with the last of those that all rows have.
StepRange EndJoiner::createRange(Location loc, const RowRange &ofRows) {
  auto isEqual = [&](Value a, Value b) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, a, b);
  };
  auto difference = [&](Value a, Value b) -> Value {
    return arith::SubIOp::create(builder, loc, a, b);
  };
  StepRange range;
  Value step = constant(loc, rows);
  range.last = difference(ofRows.upper, constant(loc, 1));
  Value terms =
      arith::MaxSIOp::create(builder, loc, difference(range.last, ofRows.lower), constant(loc, 0));
  Value count = arith::CeilDivSIOp::create(builder, loc, terms, step);
  range.first =
      difference(range.last, arith::MulIOp::create(builder, loc, count, step).getResult());
  // Rows that an end of the sequence cuts do not begin, or end, one behind the other.
  Value rise = constant(loc, rows - 1);
  range.isJoined =
      arith::AndIOp::create(builder, loc, isEqual(difference(ofRows.lowerMost, ofRows.lower), rise),
                            isEqual(difference(ofRows.upperMost, ofRows.upper), rise));
  return range;
}

/// Half of the weights of a step, as the left operand of a product.
RankedTensorType EndJoiner::typeOfHalf(RankedTensorType whole) {
  auto function = tiles->getParentOfType<FuncOp>();
  LayoutAttr scores =
      warpgroupAccumulatorLayout(whole.getContext(), rows, rows / 2, function.getNumWarps());
  return RankedTensorType::get(
      {rows, rows / 2}, whole.getElementType(),
      warpgroupOperandLayout(scores, rows / 2, whole.getElementType().getIntOrFloatBitWidth()));
}

/// Has the weights that `weights` yields be those below rows' ends, in the half that is of two
/// steps, and returns the others, of the first step. Both have zeros for the other's.
Value EndJoiner::splitWeights(OpOperand &weights, const RowMask &rowMask, const StepRange &range,
                              bool isKnown) {
  auto whole = cast<RankedTensorType>(weights.get().getType());
  RankedTensorType half = typeOfHalf(whole);
  Location loc = weights.get().getLoc();
  builder.setInsertionPointAfterValue(weights.get());
  Value fromEnds = ofWarpgroup(constant(loc, 0), constant(loc, rows / 2));
  Value ends = ExtractOp::create(builder, loc, half, weights.get(), ArrayRef<int64_t>{0, 0});
  Value all = ExtractOp::create(builder, loc, half, weights.get(), ArrayRef<int64_t>{0, rows / 2});
  Value terms = arith::AddIOp::create(builder, loc, range.last, fromEnds);
  Value below = createBelow(terms, rowMask.upper, /*isBelow=*/true, half);
  Value zeros = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(half));
  Value before = choose(below, ends, zeros), beyond = choose(below, zeros, ends);
  if (!isKnown)
    before = choose(range.isJoined, before, ends);
  auto split = JoinOp::create(builder, loc, whole, ValueRange{before, all});
  split.setAxis(1);
  weights.set(split);
  return beyond;
}

/// Hands the weights of first steps on as far as those of last steps are.
void EndJoiner::carryBeyond(Value ofOwn, Value ofNext) {
  IRRewriter rewriter(tiles);
  Value zeros =
      arith::ConstantOp::create(rewriter, tiles.getLoc(), rewriter.getZeroAttr(ofOwn.getType()));
  auto larger = tiles.replaceWithAdditionalYields(
      rewriter, zeros, /*replaceInitOperandUsesInLoop=*/false,
      [](OpBuilder &, Location, ArrayRef<BlockArgument> carried) -> SmallVector<Value> {
        return {carried.front()};
      });
  tiles = cast<scf::ForOp>(*larger);
  addResult(begun, tiles.getRegionIterArgs().back(), ofOwn);
  addResult(closing, ofNext, zeros);
  addResult(branch, closing.getResults().back(), zeros);
  Operation *yield = tiles.getBody()->getTerminator();
  yield->setOperand(yield->getNumOperands() - 1, branch.getResults().back());
  beyond = begun.getResults().back();
}

/// The step behind joined ends, whose weights are of three products.
void EndJoiner::createSecondStep(Block *block, const StepRange &range) {
  Location loc = steps.getLoc();
  builder.setInsertionPointToStart(block);
  IRMapping mapping;
  mapping.map(steps.getInductionVar(), range.last);
  mapping.map(steps.getRegionIterArgs(), steps.getInitArgs());
  Value begin = constant(loc, 0);
  Value middle = constant(loc, rows / 2);
  Value fromEnds = ofWarpgroup(begin, middle), fromWhole = ofWarpgroup(middle, begin);
  Value weights = mapping.lookup(sums.getA());
  auto whole = cast<RankedTensorType>(weights.getType());
  Value before =
      ExtractOp::create(builder, loc, typeOfHalf(whole), weights, ArrayRef<int64_t>{0, 0});
  Value all =
      ExtractOp::create(builder, loc, typeOfHalf(whole), weights, ArrayRef<int64_t>{0, rows / 2});
  RingPosition ofKeys = {mapping.lookup(keys.stage.getStage()),
                         mapping.lookup(keys.enter.getParity())};
  RingPosition at = advance(loc, ofKeys), second = advance(loc, ofKeys, 2);
  RingPosition behind = advance(loc, ofKeys, 3);
  mapping.map(values.stage.getStage(), at.slot);
  mapping.map(values.enter.getParity(), at.parity);
  Value sum;
  for (Operation &op : steps.getBody()->without_terminator()) {
    if (&op == values.stage || &op == mask.branch)
      continue;
    if (&op == scoresWait) {
      constexpr int64_t kProducts = 3;
      auto wait = WarpgroupWaitOp::create(builder, op.getLoc(), mapping.lookup(scores.getResult()),
                                          kProducts);
      mapping.map(scoresWait.getResult(0), wait.getResult(0));
      mapping.map(mask.branch.getResult(0), wait.getResult(0));
      continue;
    }
    if (&op == sums) {
      createEnter(values, second);
      sum = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(sums.getType()));
      Value ofWhole = ofWarpgroup(second.slot, at.slot);
      for (auto [part, slot, from] :
           {std::tuple(before, at.slot, fromEnds), std::tuple(beyond, second.slot, fromEnds),
            std::tuple(all, ofWhole, fromWhole)})
        sum = WarpgroupDotOp::create(builder, op.getLoc(), sums.getType(), part,
                                     createHalf(values, slot, from), sum,
                                     /*accumulate=*/Value(), sums.getPrecision());
      mapping.map(sums.getResult(), sum);
      continue;
    }
    builder.clone(op, mapping);
    if (&op == values.leave)
      createLeave(values, second);
  }
  mapping.map(keys.nextSlot.getResult(), behind.slot);
  mapping.map(keys.nextParity.getResult(), behind.parity);
  SmallVector<Value> yielded;
  for (Value value : steps.getYieldedValues())
    yielded.push_back(mapping.lookupOrDefault(value));
  scf::YieldOp::create(builder, loc, yielded);
}

void EndJoiner::joinSecondStep(const StepRange &range) {
  Location loc = steps.getLoc();
  builder.setInsertionPoint(steps);
  auto choice = scf::IfOp::create(builder, loc, steps.getInitArgs().getTypes(), range.isJoined,
                                  /*withElseRegion=*/true);
  createSecondStep(choice.thenBlock(), range);
  builder.setInsertionPointToStart(choice.elseBlock());
  scf::YieldOp::create(builder, loc, steps.getInitArgs());
  builder.setInsertionPoint(steps);
  Value behind = arith::AddIOp::create(builder, loc, range.first, constant(loc, 2 * rows));
  steps.setLowerBound(choose(range.isJoined, behind, range.first));
  steps.setUpperBound(range.last);
  steps.getInitArgsMutable().assign(choice.getResults());
  // All of the rows' ends lie behind these steps.
  mask.branch.getConditionMutable().assign(mask.beforeLower.getResult());
}

void EndJoiner::apply() {
  slots = keys.stage.getSource().getType().getShape()[0] +
          values.stage.getSource().getType().getShape()[0] + (results ? 1 : 0);
  valuesSlot = values.stage.getStage(), valuesParity = values.enter.getParity();
  orderCopies();
  builder.setInsertionPoint(branch);
  StepRange range =
      createRange(branch.getLoc(), {own.mask.beforeLower.getLhs(), own.mask.beforeLower.getRhs(),
                                    own.mask.behindUpper.getRhs(), steps.getUpperBound()});
  shareClosing();
  const RowMask ofOwn = own.mask, ofNext = next.mask;
  StepRange nextRange = joinNext();
  joinOpening(own, range, /*isKnown=*/false);
  Value beyondOwn = splitWeights(begun.elseYield()->getOpOperand(weightsOfBegun), ofOwn, range,
                                 /*isKnown=*/false);
  Value beyondNext = splitWeights(closing.thenYield()->getOpOperand(weightsOfClosing), ofNext,
                                  nextRange, /*isKnown=*/true);
  carryBeyond(beyondOwn, beyondNext);
  joinSecondStep(range);
  if (results)
    placeResults();
  shareSteps();
  shareStages();
}

namespace {

struct JoinEnds : tk::impl::JoinEndsBase<JoinEnds> {
  void runOnOperation() override {
    SmallVector<std::pair<scf::ForOp, WarpRolesOp>> loops;
    getOperation().walk([&](WarpRolesOp roles) {
      for (scf::ForOp loop : roles.getConsumer().getOps<scf::ForOp>())
        loops.emplace_back(loop, roles);
    });
    for (auto [loop, roles] : loops) {
      std::optional<WindowSteps> window = matchWindowSteps(loop, roles);
      if (!window)
        continue;
      auto arguments = LaunchArguments::of(roles->getParentOfType<FuncOp>());
      if (!areWholeSteps(*window, kLeastWindow / window->rows)) {
        if (arguments)
          note(
              arguments->getLaunch(), "tk-join-ends", Verdict::Declined,
              "a window's boundary tiles stay apart: its length is not known to be a multiple of " +
                  Twine(window->rows) + ", and at least " + Twine(kLeastWindow));
        continue;
      }
      EndJoiner(*window).apply();
      ++numLoops;
      if (arguments)
        note(arguments->getLaunch(), "tk-join-ends", Verdict::Derived,
             "a window's boundary tiles of " + Twine(window->rows) +
                 " elements are computed as one");
    }
  }
};

} // namespace
