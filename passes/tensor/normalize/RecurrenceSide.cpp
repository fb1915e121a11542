//===- RecurrenceSide.cpp - the terms up to an index ----------------------===//
#include "passes/tensor/normalize/RecurrenceSide.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tk;

/// The side of `place` on which `condition` holds for the index of the sum.
static std::optional<RecurrenceSide> sideOf(Value condition, ReduceOp reduce, ComputeOp compute) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare || !compare.getLhs().getType().isIndex())
    return std::nullopt;
  using Predicate = arith::CmpIPredicate;
  const Predicate predicate = compare.getPredicate();
  Value low = compare.getLhs(), high = compare.getRhs();
  if (predicate == Predicate::sge || predicate == Predicate::sgt)
    std::swap(low, high);
  bool isIncluded = predicate == Predicate::sle || predicate == Predicate::sge;
  if (!isIncluded && predicate != Predicate::slt && predicate != Predicate::sgt)
    return std::nullopt;
  if (auto next = high.getDefiningOp<arith::AddIOp>();
      next && !isIncluded && isConstantIntValue(next.getRhs(), 1)) {
    high = next.getLhs();
    isIncluded = true;
  }
  const bool isBackward = high == reduce.getIndex(0);
  auto place = dyn_cast<BlockArgument>(isBackward ? low : high);
  if (!place || place.getOwner() != compute.getBlock() ||
      (!isBackward && low != reduce.getIndex(0)))
    return std::nullopt;
  return RecurrenceSide{place, isBackward, isIncluded, condition};
}

/// `value` as an index of the compute op, or as the one behind it.
static std::pair<BlockArgument, bool> indexOrNext(Value value, ComputeOp compute) {
  bool isNext = false;
  if (auto next = value.getDefiningOp<arith::AddIOp>();
      next && isConstantIntValue(next.getRhs(), 1)) {
    value = next.getLhs();
    isNext = true;
  }
  auto index = dyn_cast<BlockArgument>(value);
  return {index && index.getOwner() == compute.getBlock() ? index : BlockArgument(), isNext};
}

void tk::collectChoices(Value term, SmallVectorImpl<arith::SelectOp> &choices) {
  if (auto product = term.getDefiningOp<arith::MulFOp>())
    for (Value factor : product->getOperands())
      collectChoices(factor, choices);
  if (auto choice = term.getDefiningOp<arith::SelectOp>(); choice && isZero(choice.getFalseValue()))
    choices.push_back(choice);
}

std::optional<RecurrenceSide> RecurrenceSide::of(ReduceOp reduce, ComputeOp compute) {
  Value lower = reduce.getLower()[0], upper = reduce.getUpper()[0];
  auto extentOf = [&](BlockArgument index) { return compute.getExtents()[index.getArgNumber()]; };
  SmallVector<arith::SelectOp> choices;
  collectChoices(reduce.getYield().getValues()[0], choices);
  for (arith::SelectOp choice : choices)
    if (std::optional<RecurrenceSide> found = sideOf(choice.getCondition(), reduce, compute)) {
      const bool isWhole =
          isConstantIntValue(lower, 0) && isSameExtent(upper, extentOf(found->place));
      return isWhole ? found : std::nullopt;
    }
  const bool isBackward = !isConstantIntValue(lower, 0);
  auto [index, isNext] = indexOrNext(isBackward ? lower : upper, compute);
  if (!index || (isBackward && !isSameExtent(upper, extentOf(index))))
    return std::nullopt;
  return RecurrenceSide{index, isBackward, isBackward != isNext, Value()};
}
