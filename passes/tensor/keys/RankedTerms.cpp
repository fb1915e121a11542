//===- RankedTerms.cpp - reductions of terms before a bound ---------------===//
//
// The element of such a reduction is a choice against the identity of the reduction. One part of
// its condition compares a key with a bound (RankTest.cpp). The other parts, and what is chosen, do
// not depend on an index that only the bound depends on:
//
//   a[u] < b[v] ? w[u] : 0        a[u] > a[v] and y[u] ? 1 : 0
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/keys/RankedTerms.h"

#include "passes/analysis/Conditions.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/tensor/keys/KeyedTerms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tk;

ReduceKind RankedReduction::getKind() const {
  return weight ? ReduceOp(reduce).getKind(0) : ReduceKind::Sum;
}

Type RankedReduction::getType() const {
  return weight ? weight.getType() : IntegerType::get(loc.getContext(), 32);
}

std::optional<RankedElement> tk::splitRankedElement(ReduceOp reduce) {
  const ReduceKind kind = reduce.getKind(0);
  Value element = reduce.getYield().getValues()[0];
  RankedElement split;
  Value counted = kind == ReduceKind::Any   ? element
                  : kind == ReduceKind::Sum ? getCountedCondition(element)
                                            : Value();
  if (counted) {
    addParts<arith::AndIOp>(counted, split.conditions);
    return split;
  }
  while (auto select = element.getDefiningOp<arith::SelectOp>()) {
    if (!isIdentity(select.getFalseValue(), kind))
      break;
    addParts<arith::AndIOp>(select.getCondition(), split.conditions);
    element = select.getTrueValue();
  }
  split.weight = element;
  Type type = element.getType();
  const bool isNumber = type.isF32() || type.isF64() || type.isInteger(32) || type.isInteger(64);
  return isNumber ? std::optional(split) : std::nullopt;
}

/// The positions of the indices of `compute` that `value` depends on; false if it depends on
/// another index besides `term`.
static bool addIndices(ComputeOp compute, Value value, Value term,
                       llvm::SmallSetVector<unsigned, 4> &positions) {
  for (BlockArgument index : getIterationIndices(value)) {
    if (index == term)
      continue;
    if (index.getOwner() != compute.getBlock())
      return false;
    positions.insert(index.getArgNumber());
  }
  return true;
}

bool tk::isComputedPlainly(Value value, ComputeOp compute) {
  SmallVector<Value> work = {value};
  llvm::SmallDenseSet<Value> seen;
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || !compute->isProperAncestor(op))
      continue;
    if (op->getNumRegions() > 0)
      return false;
    for (Value input : getInputs(op))
      if (seen.insert(input).second)
        work.push_back(input);
  }
  return true;
}

/// Matches `ranked`, whose test is one of its conditions.
static bool matchTest(ComputeOp compute, RankedReduction &ranked, Value condition) {
  std::optional<RankTest> test = matchRankTest(condition, ranked.term);
  if (!test || !isComputedPlainly(test->key, compute))
    return false;
  ranked.test = *test;
  llvm::erase(ranked.conditions, condition);
  llvm::SmallSetVector<unsigned, 4> ofKey, ofTerm, ofBound;
  bool areOwn = addIndices(compute, test->key, ranked.term, ofKey) &&
                addIndices(compute, test->bound, ranked.term, ofBound) &&
                (!test->tie || addIndices(compute, test->tie, ranked.term, ofBound));
  SmallVector<Value> inTerm = ranked.conditions;
  if (ranked.weight)
    inTerm.push_back(ranked.weight);
  for (Value value : inTerm)
    areOwn &= isComputedPlainly(value, compute) && addIndices(compute, value, ranked.term, ofTerm);
  if (!areOwn)
    return false;
  for (unsigned p = 0; p < compute.getNumIndices(); ++p)
    if (ofKey.contains(p))
      ranked.batches.push_back(p);
    else if (ofTerm.contains(p))
      ranked.columns.push_back(p);
  // A row has one bound for each of its values of other indices. Sums of the terms for each bound
  // would be as many as comparisons.
  auto isOfKey = [&](unsigned p) { return ofKey.contains(p); };
  auto isOfBound = [&](unsigned p) { return ofBound.contains(p); };
  return !llvm::all_of(ofBound, isOfKey) && llvm::none_of(ranked.columns, isOfBound);
}

std::optional<RankedReduction> tk::matchRankedReduction(ComputeOp compute, ReduceOp reduce) {
  const ReduceKind kind = reduce.getKind(0);
  if (reduce.isOnline() || reduce.getNumIndices() != 1 ||
      !llvm::is_contained({ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::Any},
                          kind))
    return std::nullopt;
  Value term = reduce.getIndex(0);
  std::optional<RankedElement> element = splitRankedElement(reduce);
  Value extent = getExtent(term, compute);
  if (!extent || !element)
    return std::nullopt;
  for (Value condition : element->conditions) {
    RankedReduction ranked{reduce,         {}, term, extent, reduce.getLoc(), element->conditions,
                           element->weight};
    if (matchTest(compute, ranked, condition))
      return ranked;
  }
  return std::nullopt;
}
