//===- OffsetRanges.cpp - ranges between offsets that tensors hold --------===//
#include "passes/analysis/OffsetRanges.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"

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

std::optional<double> meanOfRanges(ComputeOp compute, Value lower, Value limit) {
  double rows = 1;
  for (auto [p, extent] : llvm::enumerate(compute.getExtents())) {
    if (!Dependence{ValueRange{compute.getIndex(p)}}.on(lower))
      continue;
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
  return meanOfRanges(compute, length.getRhs(), least.getRhs());
}

/// The load that a bound follows from, if there is one.
static LoadOp loadOf(Value bound) {
  Operation *op = bound.getDefiningOp();
  if (auto load = dyn_cast_or_null<LoadOp>(op))
    return load;
  if (isa_and_nonnull<arith::MaxSIOp, arith::MinSIOp, arith::IndexCastOp, arith::ExtSIOp>(op))
    for (Value operand : op->getOperands())
      if (LoadOp load = loadOf(operand))
        return load;
  return {};
}

/// Are two bounds neighbours in a table?
static bool areNeighbours(LoadOp first, LoadOp end) {
  if (!first || !end || first.getTensor() != end.getTensor() || first.getIndices().empty())
    return false;
  auto next = end.getIndices().back().getDefiningOp<arith::AddIOp>();
  return next && getConstantIndex(next.getRhs()) == 1 &&
         ScalarEquality().equal(next.getLhs(), first.getIndices().back());
}

LoadOp offsetOfRange(ReduceOp reduce) {
  if (reduce.getNumIndices() != 1)
    return {};
  LoadOp first = loadOf(reduce.getLower()[0]), end = loadOf(reduce.getUpper()[0]);
  return areNeighbours(first, end) ? first : LoadOp();
}

bool dividesTerms(ReduceOp reduce, Value index) {
  LoadOp first = offsetOfRange(reduce);
  return first && Dependence{ValueRange{index}}.on(first);
}

/// Which ends of a range the comparisons in a condition say.
static void findEnds(Value condition, Value index, Value &begin, Value &end) {
  if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
    findEnds(both.getLhs(), index, begin, end);
    findEnds(both.getRhs(), index, begin, end);
  }
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return;
  const bool isLeft = compare.getLhs() == index;
  Value bound = isLeft ? compare.getRhs() : compare.getLhs();
  if (!(isLeft || compare.getRhs() == index) || !isLoadedBound(bound))
    return;
  const auto predicate = compare.getPredicate();
  const bool isLess =
      predicate == arith::CmpIPredicate::slt || predicate == arith::CmpIPredicate::sle;
  const bool isMore =
      predicate == arith::CmpIPredicate::sgt || predicate == arith::CmpIPredicate::sge;
  if (isLeft ? isLess : isMore)
    end = bound;
  if (isLeft ? isMore : isLess)
    begin = bound;
}

BlockArgument rowOfMask(Value condition) {
  auto both = condition.getDefiningOp<arith::AndIOp>();
  auto first = both ? both.getLhs().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  if (!first)
    return {};
  for (Value index : first->getOperands()) {
    Value begin, end;
    if (isa<BlockArgument>(index))
      findEnds(condition, index, begin, end);
    if (!begin || !end || !areNeighbours(loadOf(begin), loadOf(end)))
      continue;
    return dyn_cast<BlockArgument>(loadOf(begin).getIndices().back());
  }
  return {};
}

std::optional<double> meanOfMasked(ReduceOp reduce) {
  auto compute = dyn_cast<ComputeOp>(reduce->getParentOp());
  if (!compute || reduce.getNumIndices() != 1)
    return std::nullopt;
  Value begin, end;
  for (Value term : reduce.getYield().getValues()) {
    auto choice = term.getDefiningOp<arith::SelectOp>();
    begin = end = Value();
    if (choice)
      findEnds(choice.getCondition(), reduce.getIndex(0), begin, end);
    if (!begin || !end)
      return std::nullopt;
  }
  return meanOfRanges(compute, begin, reduce.getUpper()[0]);
}

bool dividesTermsOrAround(ReduceOp reduce, Value row, Value term) {
  // Rows of one document have its terms in common: `ptr[d[r]]..ptr[d[r] + 1]`.
  auto isOfRow = [&](LoadOp first) { return first && first.getIndices().back() == row; };
  return dividesTerms(reduce, row) ||
         llvm::any_of(getEnclosingReductions(reduce), [&](ReduceOp around) {
           if (!llvm::is_contained(around.getBlock()->getArguments(), term))
             return false;
           if (!meanOfShifted(around))
             return isOfRow(offsetOfRange(around));
           auto length = around.getUpper()[0].getDefiningOp()->getOperand(0);
           return isOfRow(loadOf(length.getDefiningOp<arith::SubIOp>().getRhs()));
         });
}

bool isSumOfShortRow(ReduceOp reduce, int64_t longest) {
  auto around = dyn_cast<ReduceOp>(reduce->getParentOp());
  if (!around || !isa<ComputeOp>(around->getParentOp()) || around.getNumIndices() != 1 ||
      reduce.isOnline() || reduce.getNumIndices() != 1 || reduce.getKind(0) != ReduceKind::Sum ||
      getConstantIndex(reduce.getLower()[0]) != 0)
    return false;
  auto kernel = reduce->getParentOfType<KernelOp>();
  std::optional<int64_t> upper = getSizeFact(kernel, reduce.getUpper()[0]).upper;
  return upper && *upper <= longest;
}

} // namespace tk
