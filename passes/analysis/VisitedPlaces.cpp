//===- VisitedPlaces.cpp - places that elements of a tensor name ----------===//
#include "passes/analysis/VisitedPlaces.h"

#include "passes/analysis/ChangedElements.h"
#include "passes/analysis/Conditions.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/SortCost.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <cmath>

using namespace mlir;
using namespace tk;

/// `value` before conversions that keep its number, as sizes and places have few bits.
static Value withoutCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The constant that is added to `index` in `value`; nothing if `value` is something else.
static std::optional<int64_t> offsetFrom(Value value, Value index) {
  value = withoutCasts(value);
  if (value == index)
    return 0;
  auto sum = value.getDefiningOp<arith::AddIOp>();
  if (sum && withoutCasts(sum.getLhs()) == index)
    return getConstantIntValue(sum.getRhs());
  return std::nullopt;
}

std::optional<NamedElement> tk::getNamedElement(Value value) {
  auto result = dyn_cast<OpResult>(withoutCasts(value));
  auto reduce = result ? dyn_cast<ReduceOp>(result.getOwner()) : ReduceOp();
  if (!reduce || reduce.getNumIndices() != 1 || getConstantIntValue(reduce.getLower()[0]) != 0)
    return std::nullopt;
  const unsigned r = result.getResultNumber();
  auto choice = withoutCasts(reduce.getYield().getValues()[r]).getDefiningOp<arith::SelectOp>();
  if (!choice || !reduce.standsAlone(r))
    return std::nullopt;
  NamedElement element{reduce, r, choice.getCondition(), reduce.getKind(r) == ReduceKind::Min};
  std::optional<int64_t> offset = offsetFrom(choice.getTrueValue(), reduce.getIndex(0));
  if (!offset)
    return std::nullopt;
  element.offset = *offset;
  if (element.isFirst)
    return *offset == 0 && withoutCasts(choice.getFalseValue()) == reduce.getUpper()[0]
               ? std::optional(element)
               : std::nullopt;
  std::optional<int64_t> none = getConstantIntValue(withoutCasts(choice.getFalseValue()));
  if (reduce.getKind(r) != ReduceKind::Max || !none)
    return std::nullopt;
  element.none = *none;
  return element;
}

/// The element of which `condition` says that there is one.
static std::optional<NamedElement> presentElement(Value condition) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  std::optional<NamedElement> element = compare ? getNamedElement(compare.getLhs()) : std::nullopt;
  if (!element || element->offset != 0)
    return std::nullopt;
  ReduceOp reduce = element->reduce;
  if (element->isFirst)
    return compare.getPredicate() == arith::CmpIPredicate::slt &&
                   withoutCasts(compare.getRhs()) == reduce.getUpper()[0]
               ? element
               : std::nullopt;
  std::optional<int64_t> least = getConstantIntValue(compare.getRhs());
  if (compare.getPredicate() == arith::CmpIPredicate::sgt && least)
    ++*least;
  else if (compare.getPredicate() != arith::CmpIPredicate::sge)
    return std::nullopt;
  return least == 0 && element->none < 0 ? element : std::nullopt;
}

/// The indices of `compute` whose values `sum`, `outer * extent of inner + inner`, numbers.
static std::optional<std::pair<BlockArgument, BlockArgument>> numberedIndices(Value sum,
                                                                              ComputeOp compute) {
  auto add = withoutCasts(sum).getDefiningOp<arith::AddIOp>();
  if (!add)
    return std::nullopt;
  for (unsigned side : {0U, 1U}) {
    auto scaled = add->getOperand(side).getDefiningOp<arith::MulIOp>();
    BlockArgument inner = asIndexOf(compute, add->getOperand(1 - side));
    if (!scaled || !inner)
      continue;
    for (unsigned of : {0U, 1U}) {
      BlockArgument outer = asIndexOf(compute, scaled->getOperand(of));
      if (outer && outer != inner &&
          isSameExtent(withoutCasts(scaled->getOperand(1 - of)),
                       compute.getExtents()[inner.getArgNumber()]))
        return std::pair(outer, inner);
    }
  }
  return std::nullopt;
}

/// The indices of `compute` that `test` compares with another value.
static SmallVector<NamedIndex> indicesOfTest(Value test, ComputeOp compute) {
  auto equal = test.getDefiningOp<arith::CmpIOp>();
  if (!equal || equal.getPredicate() != arith::CmpIPredicate::eq)
    return {};
  for (auto [side, other] :
       {std::pair(equal.getLhs(), equal.getRhs()), std::pair(equal.getRhs(), equal.getLhs())}) {
    if (BlockArgument index = asIndexOf(compute, side); index && !asIndexOf(compute, other))
      return {{index.getArgNumber(), other, NamedIndex::Part::Whole, {}}};
    if (auto pair = numberedIndices(side, compute)) {
      Value extent = compute.getExtents()[pair->second.getArgNumber()];
      return {{pair->first.getArgNumber(), other, NamedIndex::Part::Quotient, extent},
              {pair->second.getArgNumber(), other, NamedIndex::Part::Remainder, extent}};
    }
  }
  return {};
}

std::optional<VisitedPlaces> tk::matchVisitedPlaces(KernelOp kernel, ComputeOp compute) {
  Value condition = getConditionOfChange(kernel, compute);
  std::optional<NamedElement> element = condition ? presentElement(condition) : std::nullopt;
  if (!element || element->reduce->getBlock() != compute.getBlock())
    return std::nullopt;
  VisitedPlaces visited{*element, {}};
  SmallVector<Value> tests, indices;
  addParts<arith::AndIOp>(element->holds, tests);
  for (Value test : tests)
    for (const NamedIndex &place : indicesOfTest(test, compute))
      if (!visited.names(place.index)) {
        visited.places.push_back(place);
        indices.push_back(compute.getIndex(place.index));
      }
  // A place that lies outside of its index's range is compared with, but read at by nothing.
  Dependence onPlaces{ValueRange(indices)};
  for (const NamedIndex &place : visited.places)
    if (onPlaces.on(place.value) ||
        !llvm::all_of(getIterationIndices(place.value), [&](BlockArgument at) {
          return at.getOwner() == compute.getBlock() || at == element->reduce.getIndex(0);
        }))
      return std::nullopt;
  for (LoadOp load : element->reduce.getBlock()->getOps<LoadOp>())
    if (llvm::any_of(load.getIndices(), [&](Value at) { return onPlaces.on(at); }))
      return std::nullopt;
  return visited.places.empty() ? std::nullopt : std::optional(visited);
}

/// The most values that `extents` have together, if that is known.
static std::optional<double> countAll(KernelOp kernel, ValueRange extents) {
  double all = 1;
  for (Value extent : extents) {
    std::optional<int64_t> upper = getSizeFact(kernel, extent).upper;
    if (!upper)
      return std::nullopt;
    all *= static_cast<double>(*upper);
  }
  return all;
}

std::optional<VisitTimes> tk::getVisitTimes(KernelOp kernel, ComputeOp compute,
                                            const VisitedPlaces &visited) {
  ReduceOp reduce = visited.element.reduce;
  const SmallVector<Value> ofChange = indicesOfChange(kernel, compute);
  SmallVector<Value> ofRows, ofElements = {reduce.getUpper()[0]}, ofColumns;
  for (auto [index, extent] :
       llvm::zip_equal(compute.getBlock()->getArguments(), compute.getExtents())) {
    const bool isOfRow = llvm::is_contained(ofChange, index);
    (isOfRow ? ofRows : ofColumns).push_back(extent);
    if (isOfRow && !visited.names(index.getArgNumber()))
      ofElements.push_back(extent);
  }
  std::optional<double> terms = countAll(kernel, reduce.getUpper()),
                        rows = countAll(kernel, ofRows), elements = countAll(kernel, ofElements),
                        columns = countAll(kernel, ofColumns);
  if (!terms || !rows || !elements || !columns)
    return std::nullopt;
  const unsigned bits =
      getElementTypeOrSelf(compute.getResult(0).getType()).getIntOrFloatBitWidth();
  const double parts = std::ceil(*columns * bits / 8 / cost::bytesOfRowPart);
  return VisitTimes{2 * cost::launch + cost::rowComparison * *terms * *rows,
                    cost::launch + cost::elementComparison * *terms * *elements * parts};
}

std::optional<VisitedPlaces> tk::getVisitedPlaces(KernelOp kernel, ComputeOp compute) {
  std::optional<VisitedPlaces> visited = matchVisitedPlaces(kernel, compute);
  std::optional<VisitTimes> times =
      visited ? getVisitTimes(kernel, compute, *visited) : std::nullopt;
  return times && times->ofElements < times->ofRows ? visited : std::nullopt;
}
