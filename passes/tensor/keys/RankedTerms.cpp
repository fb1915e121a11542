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

/// Splits the element of a reduction into its conditions and its weight.
static bool splitElement(RankedReduction &ranked) {
  const ReduceKind kind = ranked.reduce.getKind(0);
  Value element = ranked.reduce.getYield().getValues()[0];
  if (kind == ReduceKind::Any) {
    addParts<arith::AndIOp>(element, ranked.conditions);
    return true;
  }
  if (Value counted = kind == ReduceKind::Sum ? getCountedCondition(element) : Value()) {
    addParts<arith::AndIOp>(counted, ranked.conditions);
    return true;
  }
  while (auto select = element.getDefiningOp<arith::SelectOp>()) {
    if (!isIdentity(select.getFalseValue(), kind))
      break;
    addParts<arith::AndIOp>(select.getCondition(), ranked.conditions);
    element = select.getTrueValue();
  }
  ranked.weight = element;
  Type type = element.getType();
  return type.isF32() || type.isF64() || type.isInteger(32) || type.isInteger(64);
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

/// Is nothing reduced in what `value` is computed from?
static bool isPlain(Value value, ComputeOp compute) {
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

std::optional<RankedReduction> tk::matchRankedReduction(ComputeOp compute, ReduceOp reduce) {
  const ReduceKind kind = reduce.getKind(0);
  if (reduce.isOnline() || reduce.getNumIndices() != 1 ||
      !llvm::is_contained({ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::Any},
                          kind))
    return std::nullopt;
  Value term = reduce.getIndex(0);
  RankedReduction ranked{reduce, {}, term, getExtent(term, compute), reduce.getLoc(), {}, {}};
  if (!ranked.numTerms || !splitElement(ranked))
    return std::nullopt;
  Value found;
  for (Value condition : ranked.conditions)
    if (std::optional<RankTest> test = found ? std::nullopt : matchRankTest(condition, term)) {
      ranked.test = *test;
      found = condition;
    }
  if (!found || !isPlain(ranked.test.key, compute))
    return std::nullopt;
  llvm::erase(ranked.conditions, found);
  llvm::SmallSetVector<unsigned, 4> ofKey, ofTerm, ofBound;
  bool areOwn = addIndices(compute, ranked.test.key, term, ofKey) &&
                addIndices(compute, ranked.test.bound, term, ofBound) &&
                (!ranked.test.tie || addIndices(compute, ranked.test.tie, term, ofBound));
  SmallVector<Value> inTerm = ranked.conditions;
  if (ranked.weight)
    inTerm.push_back(ranked.weight);
  for (Value value : inTerm)
    areOwn &= isPlain(value, compute) && addIndices(compute, value, term, ofTerm);
  if (!areOwn)
    return std::nullopt;
  for (unsigned p = 0; p < compute.getNumIndices(); ++p)
    if (ofKey.contains(p))
      ranked.batches.push_back(p);
    else if (ofTerm.contains(p))
      ranked.columns.push_back(p);
  // Sums of the terms for each bound would be as many as comparisons.
  if (llvm::any_of(ranked.columns, [&](unsigned p) { return ofBound.contains(p); }))
    return std::nullopt;
  return ranked;
}
