//===- ShiftRanges.cpp - let short loaded ranges begin at 0 ---------------===//
//
// The terms of a row of a sparse matrix lie between two offsets that a tensor holds:
// `sum[t in ptr[r]..ptr[r + 1]](v[t])`. A block takes several rows if they are short. Its loop then
// runs from the first offset of its rows to the last one, and each row masks the terms of all
// others. If each range begins at 0, the loop runs as often as the longest row has terms.
//
// This pass moves the ranges of a reduction if
//
// * both of its bounds are loaded, and its compute op has the row's index;
// * the sizes say that the ranges have few terms on average;
// * its terms lie side by side: it is no contraction, and its loads use the index in their last
//   axis. Terms of very short ranges may also be rows of a tensor, whose columns are results or are
//   summed in each term.
//
//   %s = tk.reduce [sum] ["t"] from (%lo) to (%hi) {v[t]}
//     =>
//   %s = tk.reduce [sum] ["t"] from (0) to (min(%hi - %lo, %N)) {v[%lo + t]}
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/OffsetRanges.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/limits/Operands.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tk {
#define GEN_PASS_DEF_SHIFTRANGES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

using namespace limits::shift_ranges;

/// The extent that a bound cannot exceed: an operand of the minimum that it is.
static Value limitOf(Value bound) {
  if (auto least = bound.getDefiningOp<arith::MinSIOp>())
    for (Value operand : least->getOperands()) {
      Operation *op = operand.getDefiningOp();
      Block *block = op ? op->getBlock() : cast<BlockArgument>(operand).getOwner();
      if (isa<KernelOp>(block->getParentOp()))
        return operand;
    }
  return {};
}

/// Is every load that uses `index` along it in memory?
static bool runsAlong(ReduceOp reduce) {
  BlockArgument index = reduce.getIndex(0);
  Dependence onIndex(ValueRange{index});
  bool isAlong = true;
  reduce.getBody().walk([&](LoadOp load) {
    for (auto [axis, place] : llvm::enumerate(load.getIndices())) {
      const bool isLast = axis + 1 == load.getIndices().size();
      isAlong &= !onIndex.on(place) || isLast;
    }
  });
  return isAlong;
}

/// Is `reduce` a product whose tiles have several rows? Rows among which a table of offsets divides
/// the terms have none in common.
static bool isProductOfRows(ReduceOp reduce) {
  if (!isMatrixProduct(reduce))
    return false;
  Operation *product = reduce.getYield().getValues()[0].getDefiningOp();
  SmallVector<BlockArgument> ofLeft = getIterationIndices(product->getOperand(0)),
                             ofRight = getIterationIndices(product->getOperand(1));
  auto hasOwn = [&](ArrayRef<BlockArgument> indices, ArrayRef<BlockArgument> others) {
    return llvm::any_of(indices, [&](BlockArgument index) {
      return index.getOwner() != reduce.getBlock() && !llvm::is_contained(others, index) &&
             !dividesTerms(reduce, index);
    });
  };
  return hasOwn(ofLeft, ofRight) && hasOwn(ofRight, ofLeft);
}

/// Are the terms of `reduce` in `compute` rows of a tensor? Of those that a table divides among the
/// rows, short ones may be summed. Others may be seen by several rows of a product's tile.
static bool areTermsRows(ReduceOp reduce, ComputeOp compute) {
  if (runsAlong(reduce))
    return false;
  LoadOp first = offsetOfRange(reduce);
  const bool areDivided = first && isa<BlockArgument>(first.getIndices().back());
  return !compute
              .walk([&](ReduceOp other) {
                return other->getBlock() == compute.getBlock() ||
                               (areDivided && isSumOfShortRow(other, longestSummedRow))
                           ? WalkResult::advance()
                           : WalkResult::interrupt();
              })
              .wasInterrupted();
}

static bool shift(ReduceOp reduce) {
  auto compute = dyn_cast<ComputeOp>(reduce->getParentOp());
  if (!compute || reduce.getNumIndices() != 1 || reduce.isOnline() ||
      !isLoadedBound(reduce.getLower()[0]) || !isLoadedBound(reduce.getUpper()[0]) ||
      isProductOfRows(reduce))
    return false;
  const bool areRows = areTermsRows(reduce, compute);
  if (!areRows && (isMatrixProduct(reduce) || !runsAlong(reduce)))
    return false;
  Value limit = limitOf(reduce.getUpper()[0]);
  std::optional<double> mean =
      limit ? meanOfRanges(compute, reduce.getLower()[0], limit) : std::nullopt;
  if (!mean || *mean > (areRows ? mostTermsAcross : mostTerms))
    return false;
  OpBuilder builder(reduce);
  Location loc = reduce.getLoc();
  Value lower = reduce.getLower()[0], upper = reduce.getUpper()[0];
  Value length = arith::SubIOp::create(builder, loc, upper, lower);
  length = arith::MinSIOp::create(builder, loc, length, limit);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  reduce->setOperands({zero, length});
  builder.setInsertionPointToStart(reduce.getBlock());
  BlockArgument index = reduce.getIndex(0);
  Value place = arith::AddIOp::create(builder, loc, lower, index);
  index.replaceAllUsesExcept(place, place.getDefiningOp());
  note(reduce, "tk-shift-ranges", Verdict::Derived,
       "the range of the " + describe(reduce) + " begins at 0 in each row");
  return true;
}

namespace {
struct ShiftRangesPass : tk::impl::ShiftRangesBase<ShiftRangesPass> {
  void runOnOperation() override {
    getOperation()->walk([&](ReduceOp reduce) { numShifted += shift(reduce); });
  }
};
} // namespace
