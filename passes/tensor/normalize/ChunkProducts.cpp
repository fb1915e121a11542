//===- ChunkProducts.cpp - products of decayed states, by chunks ----------===//
//
// Linear attention and state-space models keep a matrix for each place, a decayed sum of outer
// products, and multiply it with a row of that place. A scan of the matrices has no product for the
// matrix unit.
//
//   s[t, y, x] = sum[r in 0..t + 1](w(t, r) * b[r, y] * c[r, x])
//   out[t, x]  = sum[y](a[t, y] * s[t, y, x])
//     => with t = L m + i, r = L m + j, e(m) = L m + L - 1
//   states[m, y, x]  = sum[j in 0..L](w(e(m), r) * b[r, y] * c[r, x])
//   carried[m, y, x] = the scan of states[m - 1, y, x], with the decay w(e(m - 1), e(m - 2))
//   chunks[m, i, x]  = sum[j in 0..L](if j <= i then w(t, r) * sum[y](a[t, y] * b[r, y]) * c[r, x])
//                      + w(t, e(m - 1)) * sum[y](a[t, y] * carried[m, y, x])
//   out[t, x]        = chunks[t / L, t % L, x]
//
// 1. Take a sum over y whose term has a factor that another compute op sums over the terms up to a
//    place, or from there on, as FormRecurrences.cpp describes. Gradients are sums over r and y in
//    one; so are they nested.
// 2. Divide the factors by what they depend on. Indices of the result that c alone has are x. If a
//    weight has y (gated linear attention), CUDA cores compute the sums over y in the chunk.
//    Operands that may not be rounded to 16 bits are multiplied in f32: the scores and the sums
//    over r are stored by compute ops of their own, which are plain products.
// 3. Choose L by the time of the products and of the states that move through memory. Compare it
//    with the time of the scan (ChunkTimes.cpp).
//
// No weight is divided by another: each is of a way forward.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/normalize/ChunkProducts.h"
#include "passes/tensor/normalize/ChunkProduct.h"

#include "dialects/tk/TkInvariance.h"
#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/Declines.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScheduleEntries.h"
#include "passes/analysis/SizeFacts.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-simplify:chunk-products";

bool ChunkProduct::match() {
  std::optional<RecurrenceSide> found = RecurrenceSide::of(reduce, compute);
  if (!found || found->place.getArgNumber() >= numOfResult)
    return false;
  side = *found;
  weights.emplace(reduce, side.place, side.isBackward, side.condition);
  extent = compute.getExtents()[side.place.getArgNumber()];
  Value term = reduce.getYield().getValues()[0];
  return weights->match(term, /*isIncluded=*/true, /*needsWeight=*/false) &&
         !weights->hasDistance() && divide();
}

/// Appends the factors of `factor`, which may be a product.
static void splitFactor(DecayWeights::Factor factor,
                        SmallVectorImpl<DecayWeights::Factor> &factors) {
  auto [value, isDivisor] = factor;
  if (auto wide = value.getDefiningOp<arith::ExtFOp>())
    if (auto rounded = wide.getIn().getDefiningOp<arith::TruncFOp>();
        rounded && rounded->hasAttr(roundedFactorAttr) &&
        rounded.getIn().getType() == wide.getType() &&
        rounded.getIn().getDefiningOp<arith::MulFOp>())
      return splitFactor({rounded.getIn(), isDivisor}, factors);
  if (auto both = value.getDefiningOp<arith::MulFOp>()) {
    splitFactor({both.getLhs(), isDivisor}, factors);
    splitFactor({both.getRhs(), isDivisor}, factors);
  } else if (auto quotient = value.getDefiningOp<arith::DivFOp>()) {
    splitFactor({quotient.getLhs(), isDivisor}, factors);
    splitFactor({quotient.getRhs(), !isDivisor}, factors);
  } else {
    factors.push_back(factor);
  }
}

/// Divides indices and factors.
bool ChunkProduct::divide() {
  for (BlockArgument index : compute.getBlock()->getArguments().drop_front(numOfResult))
    states.push_back(index);
  auto on = [](const Indices &indices) {
    return Dependence{ValueRange(SmallVector<Value>(indices.begin(), indices.end()))};
  };
  Dependence onStates = on(states);
  SmallVector<Factor> others, elements, factorsOfPlace;
  for (const Factor &factor : weights->getElements())
    splitFactor(factor, elements);
  for (const Factor &factor : weights->getFactorsOfPlace())
    splitFactor(factor, factorsOfPlace);
  for (const Factor &factor : factorsOfPlace)
    (onStates.on(factor.value) ? a : ofPlace).push_back(factor);
  for (const Factor &factor : elements)
    (onStates.on(factor.value) ? b : others).push_back(factor);
  SmallVector<Value> fixed, weighing; // what x must not be in, and had better not be in
  for (const Factor &factor : llvm::concat<Factor>(a, b))
    fixed.push_back(factor.value);
  for (unsigned n = 0; n < weights->getNumWeights(); ++n)
    weighing.push_back(weights->getWeight(n));
  auto findColumns = [&](ArrayRef<Value> apart) {
    batch.clear();
    columns.clear();
    for (BlockArgument index : compute.getBlock()->getArguments().take_front(numOfResult)) {
      Dependence onIndex{ValueRange{index}};
      auto isIn = [&](Value value) { return onIndex.on(value); };
      if (index != side.place)
        (llvm::any_of(fixed, isIn) || llvm::any_of(apart, isIn) ? batch : columns).push_back(index);
    }
  };
  findColumns(weighing);
  if (columns.empty())
    findColumns({});
  Dependence onColumns = on(columns);
  for (Value weight : weighing) {
    const bool isOfStates = onStates.on(weight), isOfColumns = onColumns.on(weight);
    if (isOfStates && isOfColumns)
      return false;
    weighsStates |= isOfStates;
    weighsColumns |= isOfColumns;
    kinds.push_back(isOfStates ? Kind::OfStates : isOfColumns ? Kind::OfColumns : Kind::Plain);
  }
  for (const Factor &factor : others)
    (onColumns.on(factor.value) ? c : ofTerm).push_back(factor);
  findNarrow();
  // Each index of the result is in the product.
  return llvm::all_of(columns, [&](BlockArgument index) {
    Dependence onIndex{ValueRange{index}};
    return llvm::any_of(c, [&](const Factor &factor) { return onIndex.on(factor.value); });
  });
}

void ChunkProduct::write(ComputeOp use) {
  note(use, "tk-simplify:chunk-products", Verdict::Derived,
       "products of decayed states go over chunks of " + std::to_string(length) + " rows");
  OpBuilder before(use);
  builder = &before;
  isWhole = getSizeFact(kernel, extent).divisor % length == 0;
  numChunks = Arithmetic{before, reduce.getLoc()}.ceilDiv(extent, length);
  Value carried = createCarried(createStates());
  results = createResults(carried, createScores());
}

Value ChunkProduct::elementAt(OpBuilder &at, ValueRange own) {
  Location loc = reduce.getLoc();
  Arithmetic index{at, loc};
  Value place = own[side.place.getArgNumber()];
  SmallVector<Value> element;
  for (BlockArgument old : batch)
    element.push_back(own[old.getArgNumber()]);
  element.push_back(index.div(place, index.number(length)));
  element.push_back(index.mod(place, index.number(length)));
  for (BlockArgument old : columns)
    element.push_back(own[old.getArgNumber()]);
  IRMapping mapping;
  mapping.map(compute.getBlock()->getArguments().take_front(numOfResult), own);
  setIndices(mapping);
  Value sum = LoadOp::create(at, loc, results, element, Value());
  return product(at, ofPlace, place, sum);
}

//===----------------------------------------------------------------------===//
// The sum over all indices
//===----------------------------------------------------------------------===//

/// Replaces loads of products that other compute ops store by these.
static void inlineProducts(ComputeOp compute) {
  SmallVector<LoadOp> loads;
  compute.walk([&](LoadOp load) { loads.push_back(load); });
  for (LoadOp load : loads) {
    auto producer = load.getTensor().getDefiningOp<ComputeOp>();
    if (!producer || load.getPad() || producer.getNumResults() != 1 ||
        producer.getResultIndices() ||
        !producer.getYield().getValues()[0].getDefiningOp<arith::MulFOp>() ||
        llvm::any_of(*producer.getBlock(), [](Operation &op) { return op.getNumRegions() > 0; }))
      continue;
    OpBuilder builder(load);
    IRMapping mapping;
    mapping.map(producer.getBlock()->getArguments(), load.getIndices());
    load.replaceAllUsesWith(
        cloneFrom(builder, producer.getYield().getValues()[0], producer, mapping));
    load.erase();
  }
}

/// The sum that `load` reads, if it is all that a compute op stores.
static ReduceOp storedSum(LoadOp load) {
  auto producer = load.getTensor().getDefiningOp<ComputeOp>();
  if (!producer || load.getPad() || producer.getNumResults() != 1 || producer.getResultIndices())
    return {};
  auto sum = producer.getYield().getValues()[0].getDefiningOp<ReduceOp>();
  const bool isPlain = sum && !sum.isOnline() && sum.getNumIndices() == 1 &&
                       sum.getKind(0) == ReduceKind::Sum && sum.getResult(0).getType().isF32() &&
                       sum.getPrecision() == Precision::Default &&
                       llvm::hasSingleElement(producer.getBlock()->getOps<ReduceOp>());
  return isPlain ? sum : ReduceOp();
}

/// What the term that `load` is in has of it: as products need it, it is rounded.
static Value asFactor(LoadOp load) {
  if (!load->hasOneUse())
    return load;
  auto rounded = dyn_cast<arith::TruncFOp>(*load->user_begin());
  if (!rounded || !rounded->hasAttr(roundedFactorAttr) || !rounded->hasOneUse())
    return load;
  auto wide = dyn_cast<arith::ExtFOp>(*rounded->user_begin());
  return wide && wide.getType() == load.getType() ? wide.getResult() : load.getResult();
}

/// A compute op over the indices of `compute` and of its sum `outer`, the index number `first` of
/// the latter before the others, but for the index number `place`, which it sums over; or over the
/// index of the sum that `state` reads, a factor of the term of `outer`. Neither number may be one.
static ComputeOp createWhole(ReduceOp outer, ComputeOp compute, int64_t place, LoadOp state,
                             int64_t first) {
  ReduceOp stored = state ? storedSum(state) : ReduceOp();
  ReduceOp summed = stored ? stored : outer;
  const unsigned index = stored ? 0 : static_cast<unsigned>(place);
  SmallVector<StringRef> names;
  SmallVector<Value> extents(compute.getExtents()), old(compute.getBlock()->getArguments());
  for (Attribute name : compute.getIndexNames())
    names.push_back(cast<StringAttr>(name).getValue());
  SmallVector<unsigned> order;
  for (unsigned n = 0; n < outer.getNumIndices(); ++n)
    if (stored || n != index)
      order.insert(n == first ? order.begin() : order.end(), n);
  for (unsigned n : order) {
    names.push_back(cast<StringAttr>(outer.getIndexNames()[n]).getValue());
    extents.push_back(outer.getUpper()[n]);
    old.push_back(outer.getIndex(n));
  }
  OpBuilder builder(compute);
  const Type type = outer.getResult(0).getType();
  auto body = [&](OpBuilder &at, Location loc, ValueRange own) {
    IRMapping around, inside;
    around.map(ValueRange(old), own);
    if (stored)
      for (auto [argument, value] :
           llvm::zip_equal(stored->getBlock()->getArguments(), state.getIndices()))
        inside.map(argument, cloneFrom(at, value, compute, around));
    auto boundOf = [&](Value bound) {
      return stored ? cloneFrom(at, bound, stored->getParentOp(), inside) : bound;
    };
    Value lower = boundOf(summed.getLower()[index]), upper = boundOf(summed.getUpper()[index]);
    auto sum = ReduceOp::create(
        at, loc, ReduceKind::Sum,
        ArrayRef<StringRef>{cast<StringAttr>(summed.getIndexNames()[index]).getValue()},
        ValueRange{lower}, ValueRange{upper}, type,
        [&](OpBuilder &inner, Location, ValueRange numbers) -> Value {
          IRMapping mapping(around);
          if (!stored) {
            mapping.map(outer.getIndex(index), numbers.front());
            return cloneFrom(inner, outer.getYield().getValues()[0], compute, mapping);
          }
          IRMapping own(inside);
          own.map(stored.getIndex(0), numbers.front());
          mapping.map(asFactor(state), cloneFrom(inner, stored.getYield().getValues()[0],
                                                 stored->getParentOp(), own));
          return cloneFrom(inner, outer.getYield().getValues()[0], compute, mapping);
        });
    YieldOp::create(at, loc, sum.getResult(0));
  };
  auto whole =
      ComputeOp::create(builder, outer.getLoc(), names, extents, ArrayRef<Type>{type},
                        ArrayRef<StringRef>{cast<StringAttr>(compute.getNames()[0]).getValue()},
                        ArrayRef<SmallVector<unsigned>>{}, body);
  inlineProducts(whole);
  return whole;
}

namespace {
/// One of the ways to compute a sum.
struct Way {
  ComputeOp whole;
  std::optional<ChunkProduct> product;
  int64_t first = -1; ///< an index of the sum that stays a sum over products
  double time = std::numeric_limits<double>::infinity();
};
} // namespace

/// Computes `outer` by chunks if that takes less time: as the sum over index number `place`, or
/// over that of the sum that `state` reads.
static bool replace(ReduceOp outer, ComputeOp compute, int64_t place, LoadOp state) {
  // The program rounds what it multiplies, or its results.
  const bool mayRound =
      (state && asFactor(state) != state.getResult()) ||
      llvm::all_of(compute.getYield().getValues(), [](Value value) {
        return isa<FloatType>(value.getType()) && value.getType().getIntOrFloatBitWidth() <= 16;
      });
  Way best;
  for (int64_t first = -1; first < outer.getNumIndices(); ++first) {
    // One index of the sum is y.
    const unsigned numOfSum = outer.getNumIndices() - (state ? 0 : 1);
    if (first >= 0 && (first == place || numOfSum < 2))
      continue;
    Way way;
    way.whole = createWhole(outer, compute, place, state, first);
    way.first = first;
    way.product.emplace(way.whole, compute.getNumIndices() + (first < 0 ? 0 : 1), mayRound);
    if (way.product->match())
      way.time = way.product->timeOfChunks();
    if (way.time < best.time)
      std::swap(way, best);
    if (way.whole)
      way.whole.erase();
  }
  if (!best.whole)
    return false;
  const bool pays =
      savesTime(outer, passName, "the product by chunks", best.product->timeOfScan(), best.time);
  if (pays) {
    OpBuilder builder(outer);
    SmallVector<Value> own(compute.getBlock()->getArguments());
    best.product->write(compute);
    auto elementAt = [&](OpBuilder &at, ValueRange indices) {
      return best.product->elementAt(at, indices);
    };
    Value result;
    if (best.first < 0) {
      result = elementAt(builder, own);
    } else {
      result =
          ReduceOp::create(
              builder, outer.getLoc(), ReduceKind::Sum,
              ArrayRef<StringRef>{cast<StringAttr>(outer.getIndexNames()[best.first]).getValue()},
              ValueRange{outer.getLower()[best.first]}, ValueRange{outer.getUpper()[best.first]},
              outer.getResult(0).getType(),
              [&](OpBuilder &at, Location, ValueRange indices) -> Value {
                own.push_back(indices.front());
                return elementAt(at, own);
              })
              .getResult(0);
    }
    outer.getResult(0).replaceAllUsesWith(result);
    outer.erase();
  }
  best.whole.erase();
  return pays;
}

/// Is `outer` a plain sum over whole ranges?
static bool isPlainSum(ReduceOp outer, ComputeOp compute) {
  auto isOutside = [&](Value bound) {
    return !compute->isAncestor(bound.getParentBlock()->getParentOp());
  };
  return !outer.isOnline() && outer.getNumAccumulators() == 1 &&
         outer.getKind(0) == ReduceKind::Sum && outer.getPrecision() == Precision::Default &&
         outer.getResult(0).getType().isF32() &&
         llvm::all_of(outer.getLower(), [](Value low) { return isConstantIntValue(low, 0); }) &&
         llvm::all_of(outer.getOperands(), isOutside) &&
         llvm::none_of(*outer.getBlock(), [](Operation &op) { return op.getNumRegions() > 0; });
}

bool tk::formChunkProducts(ComputeOp compute) {
  auto kernel = compute->getParentOfType<KernelOp>();
  if (isBatchInvariant(kernel) || findScheduleBlock(kernel))
    return false;
  bool changed = false;
  for (ReduceOp outer : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>())) {
    if (!isPlainSum(outer, compute))
      continue;
    bool isDone = false;
    for (LoadOp load : llvm::to_vector(outer.getBlock()->getOps<LoadOp>()))
      isDone = isDone || (storedSum(load) && replace(outer, compute, -1, load));
    const unsigned numIndices = outer.getNumIndices();
    for (unsigned n = 0; !isDone && numIndices > 1 && n < numIndices; ++n)
      isDone = replace(outer, compute, n, LoadOp());
    changed |= isDone;
  }
  return changed;
}
