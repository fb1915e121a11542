//===- RankedPairs.cpp - reductions of pairs under a comparison -----------===//
//
// The number of pairs in order is the sum of ranks. The reduction over the index of the key becomes
// a reduction of a compute op of its own, over the other indices:
//
//   %y = tk.compute [] {tk.reduce [sum] ["i", "j"] {a[j] < b[i] and c[i] ? w[j] : 0}}
//     =>
//   %p = tk.compute ["i"] {tk.reduce [sum] ["j"] {a[j] < b[i] ? w[j] : 0}}
//   %y = tk.compute [] {tk.reduce [sum] ["i"] {c[i] ? p[i] : 0}}
//
// Neither a condition nor the weight depends on the key's index and on another one.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/keys/RankedPairs.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/tensor/keys/KeyTests.h"
#include "passes/tensor/keys/RankedTerms.h"
#include "passes/tensor/keys/RowKey.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

/// The indices of the compute op and of the reduction besides the key's.
static SmallVector<Value> getOtherIndices(ComputeOp compute, const RankedPairs &pairs) {
  ReduceOp reduce = pairs.reduce;
  SmallVector<Value> indices(compute.getBlock()->getArguments());
  for (unsigned n = 0; n < reduce.getNumIndices(); ++n)
    if (n != pairs.term)
      indices.push_back(reduce.getIndex(n));
  return indices;
}

/// Splits the conditions with the key's index at `term`.
static bool splitConditions(RankedPairs &pairs, ArrayRef<Value> all, unsigned term) {
  ReduceOp reduce = pairs.reduce;
  Value index = reduce.getIndex(term);
  SmallVector<Value> rest;
  for (unsigned n = 0; n < reduce.getNumIndices(); ++n)
    if (n != term)
      rest.push_back(reduce.getIndex(n));
  Dependence onTerm{ValueRange{index}}, onRest{ValueRange(rest)};
  bool isCompared = false;
  pairs.conditions.clear();
  pairs.others.clear();
  pairs.term = term;
  for (Value condition : all) {
    if (!onTerm.on(condition)) {
      pairs.others.push_back(condition);
      continue;
    }
    pairs.conditions.push_back(condition);
    if (!onRest.on(condition))
      continue;
    if (isCompared || !matchRankTest(condition, index))
      return false;
    isCompared = true;
  }
  return isCompared && !(pairs.weight && onRest.on(pairs.weight));
}

std::optional<RankedPairs> tk::matchRankedPairs(ComputeOp compute, ReduceOp reduce) {
  if (reduce.isOnline() || reduce.getNumIndices() < 2 ||
      !llvm::is_contained({ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min}, reduce.getKind(0)))
    return std::nullopt;
  for (BlockArgument index : reduce.getBlock()->getArguments())
    if (!getExtent(index, compute))
      return std::nullopt;
  RankedPairs pairs{reduce, 0, {}, {}, {}};
  std::optional<RankedElement> element = splitRankedElement(reduce);
  if (!element)
    return std::nullopt;
  pairs.weight = element->weight;
  SmallVector<Value> inTerm = element->conditions;
  if (pairs.weight)
    inTerm.push_back(pairs.weight);
  if (!llvm::all_of(inTerm, [&](Value value) { return isComputedPlainly(value, compute); }))
    return std::nullopt;
  for (unsigned term = 0; term < reduce.getNumIndices(); ++term)
    if (splitConditions(pairs, element->conditions, term))
      return pairs;
  return std::nullopt;
}

ComputeOp tk::storeInner(ComputeOp compute, const RankedPairs &pairs) {
  ReduceOp reduce = pairs.reduce;
  Location loc = reduce.getLoc();
  OpBuilder builder(compute);
  ComputeWriter writer(builder, loc, cast<StringAttr>(compute.getNames()[0]).getValue());
  SmallVector<StringRef> names;
  SmallVector<Value> extents, others = getOtherIndices(compute, pairs);
  for (Value index : others) {
    names.push_back(getName(index));
    extents.push_back(getExtent(index, compute));
  }
  Value index = reduce.getIndex(pairs.term), extent = getExtent(index, compute);
  Type type = pairs.weight ? pairs.weight.getType() : builder.getI32Type();
  auto element = [&](OpBuilder &in, ValueRange own, Value term) -> Value {
    IRMapping mapping;
    mapping.map(ValueRange(others), own);
    mapping.map(index, term);
    Value holds;
    for (Value condition : pairs.conditions) {
      Value next = cloneFrom(in, condition, compute, mapping);
      holds = holds ? arith::AndIOp::create(in, loc, holds, next).getResult() : next;
    }
    Value weight = pairs.weight
                       ? cloneFrom(in, pairs.weight, compute, mapping)
                       : arith::ConstantOp::create(in, loc, in.getI32IntegerAttr(1)).getResult();
    return arith::SelectOp::create(in, loc, holds, weight,
                                   createIdentity(in, loc, pairs.getKind(), type));
  };
  Value stored =
      writer.define(".inner", names, extents, type, [&](OpBuilder &at, ValueRange own) -> Value {
        return ReduceOp::create(at, loc, pairs.getKind(), ArrayRef<StringRef>{getName(index)},
                                ValueRange{writer.constant(at, 0)}, ValueRange{extent}, type,
                                [&](OpBuilder &in, Location, ValueRange term) {
                                  return element(in, own, term[0]);
                                })
            .getResult(0);
      });
  return stored.getDefiningOp<ComputeOp>();
}

void tk::reduceStored(ComputeOp compute, const RankedPairs &pairs, ComputeOp stored) {
  ReduceOp reduce = pairs.reduce;
  Location loc = reduce.getLoc();
  OpBuilder builder(reduce);
  Type type = reduce.getResult(0).getType();
  SmallVector<StringRef> names;
  SmallVector<Value> lower, upper, over, indices = getOtherIndices(compute, pairs);
  for (unsigned n = 0; n < reduce.getNumIndices(); ++n)
    if (n != pairs.term) {
      over.push_back(reduce.getIndex(n));
      names.push_back(getName(over.back()));
      lower.push_back(reduce.getLower()[n]);
      upper.push_back(reduce.getUpper()[n]);
    }
  Value total =
      ReduceOp::create(builder, loc, pairs.getKind(), names, lower, upper, type,
                       [&](OpBuilder &in, Location, ValueRange own) -> Value {
                         IRMapping mapping;
                         mapping.map(ValueRange(over), own);
                         SmallVector<Value> place;
                         for (Value index : indices)
                           place.push_back(mapping.lookupOrDefault(index));
                         Value value =
                             LoadOp::create(in, loc, stored->getResult(0), place, Value());
                         if (!pairs.weight)
                           value = convertTotal(in, loc, value, type);
                         Value none = createIdentity(in, loc, pairs.getKind(), type);
                         for (Value condition : pairs.others)
                           value = arith::SelectOp::create(
                               in, loc, cloneFrom(in, condition, compute, mapping), value, none);
                         return value;
                       })
          .getResult(0);
  reduce.getResult(0).replaceAllUsesWith(total);
}
