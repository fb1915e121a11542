//===- DecayedSums.cpp - sums whose elements decay with distance ----------===//
//
// Part of tk-split-reductions. Discounted sums weight each element by a power of its distance from
// the result. They are recurrences, a[t] = x[t] + c * a[t + 1], but are written as sums over all
// later (or earlier) elements:
//
//   a[t] = sum[s in t..T](pow(c, s - t) * x[s])
//
// 1. Find sums over an index of the compute op from there to the end, or from the beginning to
//    there. An element is a product of a weight and of a value that does not depend on the place.
//    The weight is `pow(c, distance)` or `exp(distance * l)`, where `c` and `l` depend on neither
//    index. The weight of a sum of distances is the product of their weights.
// 2. Cut the index in chunks of 64. A compute op sums each chunk, with weights from its end that
//    faces the results. A second one sums the chunks beyond each chunk, with weights of whole
//    chunks.
// 3. The sum goes over the rest of its own chunk. To it the chunks beyond are added, with one
// weight.
//
// No weight is divided by another, so that weights that underflow change nothing. Batch-invariant
// kernels and those with a schedule stay as they are. So do sums that take less time so.
//
//   %a = tk.compute ["t"] {tk.reduce [sum] ["s"] {s >= t ? powf(%c, s - t) * x[s] : 0}}
//     =>
//   %p = tk.compute ["i"] {tk.reduce [sum] ["u"] {powf(%c, u) * x[64 * i + u]}}
//   %q = tk.compute ["i"] {tk.reduce [sum] ["j"] {j > i ? powf(%c, 64 * (j - i - 1)) * p[j] : 0}}
//   %a = tk.compute ["t"] {tk.reduce [sum] ["s"] from (t) to (%e) {powf(%c, s - t) * x[s]}
//                          + powf(%c, %e - t) * q[t / 64]}          %e = min(t / 64 * 64 + 64, T)
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/split/DecayedSums.h"

#include "dialects/tk/TkInvariance.h"
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/Declines.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/ScheduleEntries.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"
#include "passes/machine/limits/Splits.h"
#include "passes/tensor/keys/RowKey.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tk;
using namespace limits::decayed_sums;

namespace {

/// A sum of elements that decay with their distance from an index of the compute op.
class DecayedSum {
public:
  DecayedSum(KernelOp kernel, ComputeOp compute, ReduceOp reduce)
      : kernel(kernel), compute(compute), reduce(reduce), builder(compute), loc(reduce.getLoc()),
        writer(builder, loc, cast<StringAttr>(compute.getNames()[0]).getValue()) {}

  bool match();
  bool pays();
  void rewrite();

private:
  bool matchWeight(Value value);
  Value weightOf(OpBuilder &at, Value distance, IRMapping mapping);
  Value storeChunks();
  Value storeChunksBeyond(Value chunks);
  void addChunksBeyond(Value beyond);
  std::pair<SmallVector<StringRef>, SmallVector<Value>> axesOfChunks();
  Value product(OpBuilder &at, Value a, Value b) { return arith::MulFOp::create(at, loc, a, b); }
  Value sum(OpBuilder &at, Value a, Value b) { return arith::AddIOp::create(at, loc, a, b); }
  Value difference(OpBuilder &at, Value a, Value b) { return arith::SubIOp::create(at, loc, a, b); }
  Value scaled(OpBuilder &at, Value a) {
    return arith::MulIOp::create(at, loc, a, writer.constant(at, chunk));
  }

  KernelOp kernel;
  ComputeOp compute;
  ReduceOp reduce;
  OpBuilder builder;
  Location loc;
  ComputeWriter writer;
  BlockArgument place; ///< the index of the compute op
  bool isBackward = false;
  Value weight, element; ///< the factors of an element of the sum
  Value distance;        ///< in the weight
  Value extent, numChunks;
};

} // namespace

/// Is `value` a power of what neither index of the sum is in, by the distance?
bool DecayedSum::matchWeight(Value value) {
  Dependence onIndices{ValueRange{reduce.getIndex(0), place}};
  Value exponent;
  if (auto power = value.getDefiningOp<math::PowFOp>(); power && !onIndices.on(power.getLhs()))
    exponent = power.getRhs();
  else if (auto exponential = value.getDefiningOp<math::ExpOp>()) {
    exponent = exponential.getOperand();
    if (auto scaled = exponent.getDefiningOp<arith::MulFOp>())
      for (unsigned side : {0U, 1U})
        if (!onIndices.on(scaled->getOperand(1 - side)))
          exponent = scaled->getOperand(side);
  }
  auto number = exponent ? exponent.getDefiningOp<arith::SIToFPOp>() : arith::SIToFPOp();
  if (!number)
    return false;
  Value whole = number.getIn();
  if (auto cast = whole.getDefiningOp<arith::IndexCastOp>())
    whole = cast.getIn();
  auto apart = whole.getDefiningOp<arith::SubIOp>();
  Value later = reduce.getIndex(0), earlier = place;
  if (!isBackward)
    std::swap(later, earlier);
  if (!apart || !whole.getType().isIndex() || apart.getLhs() != later || apart.getRhs() != earlier)
    return false;
  distance = whole;
  return true;
}

/// The place that `condition` compares the index of the sum with, if it holds from there on, or up
/// to there.
static std::pair<BlockArgument, bool> boundOf(Value condition, ReduceOp reduce, ComputeOp compute) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return {};
  using Predicate = arith::CmpIPredicate;
  const Predicate predicate = compare.getPredicate();
  Value low = compare.getLhs(), high = compare.getRhs();
  if (predicate == Predicate::sge || predicate == Predicate::sgt)
    std::swap(low, high);
  if (predicate == Predicate::slt || predicate == Predicate::sgt) {
    auto next = high.getDefiningOp<arith::AddIOp>();
    if (!next || !isConstantIntValue(next.getRhs(), 1))
      return {};
    high = next.getLhs();
  } else if (predicate != Predicate::sle && predicate != Predicate::sge) {
    return {};
  }
  const bool isBackward = high == reduce.getIndex(0);
  auto place = dyn_cast<BlockArgument>(isBackward ? low : high);
  const bool isBound =
      place && place.getOwner() == compute.getBlock() && (isBackward || low == reduce.getIndex(0));
  return isBound ? std::pair(place, isBackward) : std::pair(BlockArgument(), false);
}

bool DecayedSum::match() {
  if (reduce.isOnline() || reduce.getNumIndices() != 1 || reduce.getKind(0) != ReduceKind::Sum ||
      !reduce.getResult(0).getType().isF32() || compute.getNumResults() != 1 ||
      llvm::any_of(*reduce.getBlock(), [](Operation &op) { return op.getNumRegions() > 0; }))
    return false;
  auto choice = reduce.getYield().getValues()[0].getDefiningOp<arith::SelectOp>();
  if (!choice || !isZero(choice.getFalseValue()))
    return false;
  std::tie(place, isBackward) = boundOf(choice.getCondition(), reduce, compute);
  auto both = choice.getTrueValue().getDefiningOp<arith::MulFOp>();
  if (!place || !both)
    return false;
  extent = compute.getExtents()[place.getArgNumber()];
  if (!rangesOver(reduce, 0, extent))
    return false;
  for (unsigned side : {0U, 1U}) {
    weight = both->getOperand(side);
    element = both->getOperand(1 - side);
    if (matchWeight(weight) && !Dependence{ValueRange{place}}.on(element))
      return true;
  }
  return false;
}

bool DecayedSum::pays() {
  double others = 1;
  for (Value one : compute.getExtents()) {
    std::optional<int64_t> upper = getSizeFact(kernel, one).upper;
    if (!upper)
      return false;
    others *= one == extent ? 1 : static_cast<double>(*upper);
  }
  const double places = guessSize(kernel, extent), chunks = places / chunk,
               plain = places * places / 2, own = places * (chunk / 2.0 + 1) + chunks * chunks / 2;
  return savesTime(reduce, "tk-split-reductions:decays", "the sum in chunks",
                   plain * others * cost::termOfCountedTaps,
                   2 * cost::launch + own * others * cost::termOfCountedTaps);
}

/// The weight of `distance`, at `at`.
Value DecayedSum::weightOf(OpBuilder &at, Value own, IRMapping mapping) {
  mapping.map(distance, own);
  return cloneFrom(at, weight, compute, mapping);
}

/// The indices of a compute op of chunks.
std::pair<SmallVector<StringRef>, SmallVector<Value>> DecayedSum::axesOfChunks() {
  SmallVector<StringRef> names;
  SmallVector<Value> extents(compute.getExtents());
  for (Attribute name : compute.getIndexNames())
    names.push_back(cast<StringAttr>(name).getValue());
  extents[place.getArgNumber()] = numChunks;
  return {names, extents};
}

/// The sum of each chunk, as the results next to it see it.
Value DecayedSum::storeChunks() {
  const auto [names, extents] = axesOfChunks();
  return writer.define(
      ".chunks", names, extents, reduce.getResult(0).getType(),
      [&](OpBuilder &at, ValueRange own) -> Value {
        Value first = scaled(at, own[place.getArgNumber()]), left = difference(at, extent, first);
        Value end = arith::MinSIOp::create(at, loc, left, writer.constant(at, chunk));
        auto term = [&](OpBuilder &inner, Location, ValueRange index) -> Value {
          IRMapping mapping;
          mapping.map(compute.getBlock()->getArguments(), own);
          mapping.map(reduce.getIndex(0), sum(inner, first, index[0]));
          // The last chunk may be shorter. Nothing lies behind it.
          Value apart = isBackward ? index[0]
                                   : difference(inner, writer.constant(inner, chunk - 1), index[0]);
          Value value = cloneFrom(inner, element, compute, mapping);
          return product(inner, weightOf(inner, apart, mapping), value);
        };
        return ReduceOp::create(at, loc, ReduceKind::Sum,
                                ArrayRef<StringRef>{getName(reduce.getIndex(0))},
                                ValueRange{writer.constant(at, 0)}, ValueRange{end},
                                reduce.getResult(0).getType(), term)
            .getResult(0);
      });
}

/// The sum of the chunks beyond each chunk, as it sees them.
Value DecayedSum::storeChunksBeyond(Value chunks) {
  const auto [names, extents] = axesOfChunks();
  const unsigned n = place.getArgNumber();
  return writer.define(
      ".beyond", names, extents, reduce.getResult(0).getType(),
      [&](OpBuilder &at, ValueRange own) -> Value {
        auto term = [&](OpBuilder &inner, Location, ValueRange index) -> Value {
          IRMapping mapping;
          mapping.map(compute.getBlock()->getArguments(), own);
          Value low = isBackward ? own[n] : index[0], high = isBackward ? index[0] : own[n];
          Value isBeyond = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::slt, low, high);
          Value between =
              difference(inner, difference(inner, high, low), writer.constant(inner, 1));
          SmallVector<Value> at(own);
          at[n] = index[0];
          Value value = LoadOp::create(inner, loc, chunks, at, Value());
          value = product(inner, weightOf(inner, scaled(inner, between), mapping), value);
          Value none = createIdentity(inner, loc, ReduceKind::Sum, value.getType());
          return arith::SelectOp::create(inner, loc, isBeyond, value, none);
        };
        return ReduceOp::create(at, loc, ReduceKind::Sum, ArrayRef<StringRef>{names[n]},
                                ValueRange{writer.constant(at, 0)}, ValueRange{numChunks},
                                reduce.getResult(0).getType(), term)
            .getResult(0);
      });
}

/// Has the sum end with its chunk, and adds the chunks beyond.
void DecayedSum::addChunksBeyond(Value beyond) {
  OpBuilder at(reduce);
  auto choice = reduce.getYield().getValues()[0].getDefiningOp<arith::SelectOp>();
  Value number = writer.divide(at, place, chunk), first = scaled(at, number);
  Value next = sum(at, first, writer.constant(at, chunk));
  if (isBackward) {
    reduce.getLowerMutable()[0].set(place);
    reduce.getUpperMutable()[0].set(arith::MinSIOp::create(at, loc, next, extent).getResult());
  } else {
    reduce.getLowerMutable()[0].set(first);
    reduce.getUpperMutable()[0].set(sum(at, place, writer.constant(at, 1)));
  }
  reduce.getYield()->setOperand(0, choice.getTrueValue());
  at.setInsertionPointAfter(reduce);
  SmallVector<Value> own(compute.getBlock()->getArguments());
  own[place.getArgNumber()] = number;
  Value value = LoadOp::create(at, loc, beyond, own, Value());
  Value apart = isBackward ? difference(at, next, place)
                           : sum(at, difference(at, place, first), writer.constant(at, 1));
  value = product(at, weightOf(at, apart, IRMapping()), value);
  // Weights may be infinite where there is nothing to weight.
  Value isLast = isBackward
                     ? arith::CmpIOp::create(at, loc, arith::CmpIPredicate::sge, next, extent)
                     : arith::CmpIOp::create(at, loc, arith::CmpIPredicate::sle, first,
                                             writer.constant(at, 0));
  Value none = createIdentity(at, loc, ReduceKind::Sum, value.getType());
  value = arith::SelectOp::create(at, loc, isLast, none, value);
  auto total = arith::AddFOp::create(at, loc, reduce.getResult(0), value);
  reduce.getResult(0).replaceAllUsesExcept(total, total);
}

void DecayedSum::rewrite() {
  note(reduce, "tk-split-reductions:decays", Verdict::Derived,
       "the " + describe(reduce) + " goes over chunks of " + Twine(chunk) +
           ": its elements decay with their distance");
  Value padded = sum(builder, extent, writer.constant(builder, chunk - 1));
  numChunks = writer.divide(builder, padded, chunk);
  addChunksBeyond(storeChunksBeyond(storeChunks()));
  eraseDead(compute);
}

unsigned tk::splitDecayedSums(KernelOp kernel) {
  unsigned count = 0;
  if (isBatchInvariant(kernel) || findScheduleBlock(kernel))
    return count;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>())) {
    auto reduces = compute.getBlock()->getOps<ReduceOp>();
    if (!llvm::hasSingleElement(reduces))
      continue;
    DecayedSum decayed(kernel, compute, *reduces.begin());
    if (!decayed.match() || !decayed.pays())
      continue;
    decayed.rewrite();
    ++count;
  }
  return count;
}
