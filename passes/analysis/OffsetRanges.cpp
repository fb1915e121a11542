//===- OffsetRanges.cpp - ranges between offsets that tensors hold --------===//
#include "passes/analysis/OffsetRanges.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tk {

bool isLoadedBound(Value bound) {
  Operation *op = bound.getDefiningOp();
  if (auto load = dyn_cast_or_null<LoadOp>(op))
    return !getIterationIndices(load).empty();
  return isa_and_nonnull<arith::MaxSIOp, arith::MinSIOp, arith::IndexCastOp, arith::ExtSIOp,
                         arith::SubIOp>(op) &&
         llvm::any_of(op->getOperands(), isLoadedBound);
}

std::optional<double> meanOfRanges(ComputeOp compute, Value limit) {
  double rows = 1;
  for (Value extent : compute.getExtents()) {
    const int64_t upper = getUpperBound(extent);
    if (upper < 0)
      return std::nullopt;
    rows *= double(std::max<int64_t>(upper, 1));
  }
  const int64_t terms = getUpperBound(limit);
  return terms < 0 ? std::nullopt : std::optional(double(terms) / rows);
}

std::optional<double> meanOfShifted(ReduceOp reduce) {
  auto compute = dyn_cast<ComputeOp>(reduce->getParentOp());
  auto least = compute && reduce.getNumIndices() == 1
                   ? reduce.getUpper()[0].getDefiningOp<arith::MinSIOp>()
                   : arith::MinSIOp();
  auto length = least ? least.getLhs().getDefiningOp<arith::SubIOp>() : arith::SubIOp();
  if (!length || !isLoadedBound(length.getLhs()) || !isLoadedBound(length.getRhs()))
    return std::nullopt;
  return meanOfRanges(compute, least.getRhs());
}

/// Which ends of a range the comparisons in a condition say.
static void findEnds(Value condition, Value index, bool &isBegin, bool &isEnd) {
  if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
    findEnds(both.getLhs(), index, isBegin, isEnd);
    findEnds(both.getRhs(), index, isBegin, isEnd);
  }
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return;
  const bool isLeft = compare.getLhs() == index;
  if (!(isLeft || compare.getRhs() == index) ||
      !isLoadedBound(isLeft ? compare.getRhs() : compare.getLhs()))
    return;
  const auto predicate = compare.getPredicate();
  const bool isLess =
      predicate == arith::CmpIPredicate::slt || predicate == arith::CmpIPredicate::sle;
  const bool isMore =
      predicate == arith::CmpIPredicate::sgt || predicate == arith::CmpIPredicate::sge;
  isEnd |= isLeft ? isLess : isMore;
  isBegin |= isLeft ? isMore : isLess;
}

std::optional<double> meanOfMasked(ReduceOp reduce) {
  auto compute = dyn_cast<ComputeOp>(reduce->getParentOp());
  if (!compute || reduce.getNumIndices() != 1)
    return std::nullopt;
  for (Value term : reduce.getYield().getValues()) {
    auto choice = term.getDefiningOp<arith::SelectOp>();
    bool isBegin = false, isEnd = false;
    if (choice)
      findEnds(choice.getCondition(), reduce.getIndex(0), isBegin, isEnd);
    if (!isBegin || !isEnd)
      return std::nullopt;
  }
  return meanOfRanges(compute, reduce.getUpper()[0]);
}

} // namespace tk
