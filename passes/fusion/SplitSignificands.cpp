//===- SplitSignificands.cpp - f32 products by products of bf16 parts -----===//
//
// The matrix unit of Hopper has no product in f32, but an f32 number is the sum of three of bf16:
// 24 bits of significand are three times 8, and the exponents are the same. Six of the nine
// products of two numbers' parts make the product to 2^-24 of it, and exactly where that has 24
// bits, in less time than CUDA cores take for one in f32.
//
// 1. Take sums of products of two tensors' elements in f32, of known sizes, where that saves more
//    than storing the parts costs, and these do not take too much memory. `exact` sums are left to
//    CUDA cores.
// 2. Of each tensor the greatest finite magnitude is found, a row at a time and of all rows, and
//    from it the power of two that takes it to 2^50. Numbers of f32 that are no less than 2^-160 of
//    the greatest one then are sums of three parts; what is less has an error of 2^-184 of the
//    greatest.
// 3. The parts of the scaled tensor are stored: what bf16 makes of it, that again but 0 where it is
//    not finite, what bf16 makes of the rest, and of the rest of that. Rows and the sum's range go
//    on to whole lines and slices, in zeros.
// 4. The sum becomes one over six pairs of parts, and over what it was over, whose slices are added
//    up in f32 by threads: the matrix unit cuts off what it adds to. Not finite numbers meet each
//    other's first parts alone, so that their products are what IEEE has. The scales' powers of two
//    are taken off the result.
// 5. Where a product has too few tiles for the machine, its pairs are shared out among blocks,
// whose
//    sums a statement of their own stores.
//
//   %c = tk.compute ["i", "j"] {tk.reduce [sum] ["k"] {a[i, k] * b[k, j]}}
//     =>
//   %m = tk.compute ["i"] {tk.reduce [max] ["k"] {|a[i, k]|}}          (and of b)
//   %up, %e, ... = tk.compute [] {tk.reduce [max] ["i"] {m[i]}, ...}
//   %p = tk.compute ["i", "part", "k"] {part of a[i, k] * up} over part, i, k   (and of b)
//   %c = tk.compute ["i", "j"] {tk.reduce [sum] ["pair", "k"]
//          {p[left(pair), i, k] * q[right(pair), k, j]} precision <blocked> * 2^-(e + f)}
//
// Source: Henry, Tang and Heinecke, "Leveraging the bfloat16 artificial intelligence datatype for
// higher-precision computations" (2019); that sums of slices are added up outside of the matrix
// unit: Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing
// the FP32 theoretical peak performance" (2022).
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/fusion/ComputedFactor.h"
#include "passes/parallel/CoreTiles.h"
#include "passes/parallel/WarpgroupTiles.h"
#include "passes/tiling/SizeFacts.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"

#include <limits>
#include <utility>

namespace tk {
#define GEN_PASS_DEF_SPLITSIGNIFICANDS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-split-significands";

namespace {

/// What is stored of a tensor, in this order: bf16 of a number, the same where it is finite, and
/// the parts that follow.
enum Part : int64_t { Raw, First, Second, Third, countParts };

/// The pairs of parts that are multiplied, the least first.
constexpr std::pair<Part, Part> pairs[] = {{Third, First},  {Second, Second}, {First, Third},
                                           {Second, First}, {First, Second},  {Raw, Raw}};
constexpr int64_t countPairs = std::size(pairs);

/// The exponent that the greatest magnitude is taken to, and those of the scales that exist: 2^126
/// takes every number that is not 0 to 2^-23 at least.
constexpr double wantedExponent = 50, leastExponent = -77, mostExponent = 126;

/// Nanoseconds, measured on an H100 and an H200: what a processor takes for a term of one output of
/// a tile, for each pair of parts; to read or write a byte, to launch once more.
constexpr double timeOfPair = 3.4e-4, costOfByte = 2.7e-4, costOfLaunch = 2500;
/// What more shares should take at most of the time of fewer.
constexpr double worthOfShares = 0.9;
/// How many pieces a sum on CUDA cores is cut into at most where both are compared.
constexpr int64_t mostCuts = 16;
/// Bytes that are read and written for each element of a factor: twice itself, and its parts.
constexpr double bytesOfParts = 2 * countParts, bytesOfElement = 2 * 4 + bytesOfParts;
/// Bytes of scratch memory that the parts of a statement's factors may take.
constexpr double mostScratch = double(int64_t(1) << 32);
/// What launches beside a product's own take of its time: five, for each factor's rows, all scales
/// and each factor's parts, which begin as those before them end.
constexpr double launchesBeside = 2;
/// Rows of parts, and the range of the sum, have a multiple of so many elements: whole lines, and
/// whole slices.
constexpr int64_t elementsOfSlice = 128;

/// A tensor's parts, and the scale that they have.
struct StoredParts {
  Value parts;
  Value exponent; ///< of two, which all elements were multiplied by, in f32
  Value length;   ///< of the sum's axis, if that was made longer; or null
};

/// What a product is over: rows and columns, of which tiles are cut, other results, and terms.
struct Extents {
  int64_t rows = 1, columns = 1, terms = 1;
  double others = 1;

  template <typename Tile> int64_t count(const Tile &tile) const {
    return static_cast<int64_t>(others * static_cast<double>(tile.count(rows, columns)));
  }
};

/// A tensor, and the axis of it that a sum is over.
using Factor = std::pair<Value, unsigned>;
using StoredFactors = llvm::MapVector<Factor, StoredParts>;

class SignificandSplitting {
public:
  SignificandSplitting(KernelOp kernel, const SplitSignificandsOptions &options, int64_t processors)
      : kernel(kernel), options(options), processors(processors) {}

  unsigned run(ComputeOp statement);

private:
  bool isSplit(ReduceOp reduce);
  bool isFactor(ReduceOp reduce, LoadOp load);
  double savedOf(ReduceOp reduce, Value term);
  double timeByParts(const Extents &extents, int64_t shares);
  int64_t countShares(ReduceOp reduce);
  bool areSizesKnown(ArrayRef<ReduceOp> sums);
  bool pays(ArrayRef<ReduceOp> sums);
  Value storeGreatest(Value tensor);
  ComputeOp storeScales(ArrayRef<Value> tensors, ArrayRef<Value> greatest);
  StoredParts storeParts(Factor factor, Value scale, Value exponent);
  Value lengthOf(Value extent);
  void rewrite(ReduceOp reduce, int64_t shares);
  Value addUpShares(ReduceOp sums, int64_t shares);
  std::string nameOf(StringRef suffix) {
    return (cast<StringAttr>(compute.getNames()[0]).getValue() + suffix).str();
  }

  KernelOp kernel;
  const SplitSignificandsOptions &options;
  int64_t processors;
  ComputeOp compute; ///< the statement at hand
  /// What was stored for the statements before, and what extents became.
  StoredFactors stored;
  llvm::MapVector<Value, Value> lengths;
};

} // namespace

/// The two factors of a term, if it is the product of two loads.
static std::optional<std::pair<LoadOp, LoadOp>> factorsOf(Value term) {
  auto product = term.getDefiningOp<arith::MulFOp>();
  if (!product || !product.getType().isF32())
    return std::nullopt;
  auto left = product.getLhs().getDefiningOp<LoadOp>();
  auto right = product.getRhs().getDefiningOp<LoadOp>();
  return left && right ? std::optional(std::pair(left, right)) : std::nullopt;
}

/// Is an axis that tiles run along made longer, to whole slices that end in zeros?
static bool isPadded(KernelOp kernel, Value extent) {
  return getSizeFact(kernel, extent).divisor % elementsOfSlice != 0;
}

/// The axis of what `load` reads that a sum is over.
static unsigned axisOf(LoadOp load, ReduceOp reduce) {
  return llvm::find(load.getIndices(), reduce.getIndex(0)) - load.getIndices().begin();
}

/// Is `load` the element of an f32 tensor at bare indices, each at one axis, that of the sum among
/// them? A sum whose range is made longer has to be over all of the axis.
bool SignificandSplitting::isFactor(ReduceOp reduce, LoadOp load) {
  SmallVector<Value> extents = getExtents(kernel, load.getTensor());
  auto type = cast<RankedTensorType>(load.getTensor().getType());
  // A box has five axes at most, and one is that of the parts.
  if (load.getPad() || load->getBlock() != reduce.getBlock() || !type.getElementType().isF32() ||
      extents.size() != load.getIndices().size() || extents.size() < 2 || extents.size() > 4)
    return false;
  llvm::SmallDenseSet<Value> different;
  for (Value index : load.getIndices())
    if (!isa<BlockArgument>(index) || !different.insert(index).second)
      return false;
  if (!different.contains(reduce.getIndex(0)))
    return false;
  Value extent = extents[axisOf(load, reduce)];
  return !isPadded(kernel, extent) || rangesOver(reduce, 0, extent);
}

bool SignificandSplitting::isSplit(ReduceOp reduce) {
  if (reduce.getNumIndices() != 1 || reduce.getPrecision() != Precision::Default ||
      (!reduce.isOnline() && !isMatrixProduct(reduce)))
    return false;
  for (auto [n, term] : llvm::enumerate(reduce.getYield().getValues())) {
    auto factors = factorsOf(term);
    if (reduce.getKind(n) != ReduceKind::Sum || (reduce.isOnline() && !reduce.standsAlone(n)) ||
        !isMatrixProductIn(reduce, term) || !factors || !isFactor(reduce, factors->first) ||
        !isFactor(reduce, factors->second))
      return false;
  }
  return true;
}

static Extents extentsOf(KernelOp kernel, ComputeOp compute, ReduceOp reduce, Value term) {
  auto [left, right] = *factorsOf(term);
  auto reads = [](LoadOp load, Value index) {
    return llvm::is_contained(load.getIndices(), index);
  };
  // The innermost index of either factor alone is cut into tiles, all others count tiles.
  Extents extents;
  for (auto [index, extent] :
       llvm::zip_equal(compute.getBlock()->getArguments(), compute.getExtents())) {
    const auto size = static_cast<int64_t>(guessSize(kernel, extent));
    if (reads(left, index) == reads(right, index)) {
      extents.others *= static_cast<double>(size);
      continue;
    }
    int64_t &side = reads(left, index) ? extents.rows : extents.columns;
    extents.others *= static_cast<double>(std::exchange(side, size));
  }
  extents.terms = static_cast<int64_t>(guessSize(kernel, reduce.getUpper()[0]));
  return extents;
}

/// What it takes to store, and to add up in a launch of their own, `count` sums for each result.
static double timeToAddUp(const Extents &extents, int64_t count) {
  const double outputs = extents.others * static_cast<double>(extents.rows * extents.columns);
  return count == 1 ? 0 : costOfLaunch + costOfByte * 2 * 4 * static_cast<double>(count) * outputs;
}

/// What a product takes whose pairs of parts are shared out among blocks.
double SignificandSplitting::timeByParts(const Extents &extents, int64_t shares) {
  const int64_t pairsOfShare = countPairs / shares;
  double least = std::numeric_limits<double>::max();
  for (const WarpgroupTile &tile : warpgroupTiles)
    least = std::min(least, tile.timeOf(extents.count(tile) * shares, processors) * timeOfPair *
                                static_cast<double>(pairsOfShare * extents.terms));
  return least + timeToAddUp(extents, shares);
}

/// Among how many blocks the pairs of parts of the only product of the statement are shared out.
int64_t SignificandSplitting::countShares(ReduceOp reduce) {
  int64_t best = 1;
  if (reduce.isOnline() || llvm::range_size(compute.getBlock()->getOps<ReduceOp>()) > 1)
    return best;
  Extents extents = extentsOf(kernel, compute, reduce, reduce.getYield().getValues()[0]);
  for (int64_t shares : {2, 3, 6})
    if (timeByParts(extents, shares) < worthOfShares * timeByParts(extents, best))
      best = shares;
  return best;
}

/// What the sum of `term` takes on CUDA cores and by parts, the one less the other.
double SignificandSplitting::savedOf(ReduceOp reduce, Value term) {
  Extents extents = extentsOf(kernel, compute, reduce, term);
  // Sums of fewer than one slice would be of zeros mostly.
  if (extents.terms < elementsOfSlice)
    return 0;
  // Long sums of few tiles are cut there, too (tk-split-contractions).
  double onCores = std::numeric_limits<double>::max();
  for (int64_t cuts = 1; cuts <= mostCuts; cuts *= 2)
    for (const CoreTile &tile : coreTiles)
      onCores = std::min(onCores, tile.timeOf(extents.count(tile) * cuts,
                                              llvm::divideCeil(extents.terms, cuts), processors) +
                                      timeToAddUp(extents, cuts));
  return onCores - timeByParts(extents, countShares(reduce));
}

/// Are all sizes known that decide what `sums` take? Of others nothing is known to be saved.
bool SignificandSplitting::areSizesKnown(ArrayRef<ReduceOp> sums) {
  auto isKnown = [&](Value extent) { return getSizeFact(kernel, extent).upper.has_value(); };
  return llvm::all_of(compute.getExtents(), isKnown) &&
         llvm::all_of(sums, [&](ReduceOp reduce) { return isKnown(reduce.getUpper()[0]); });
}

/// Do `sums` save more than their factors' parts cost, and is there memory for these?
bool SignificandSplitting::pays(ArrayRef<ReduceOp> sums) {
  if (options.always)
    return true;
  if (!areSizesKnown(sums))
    return false;
  double saved = 0, cost = costOfLaunch * launchesBeside, scratch = 0;
  llvm::SmallPtrSet<Value, 4> counted;
  for (ReduceOp reduce : sums)
    for (Value term : reduce.getYield().getValues()) {
      saved += savedOf(reduce, term);
      auto [left, right] = *factorsOf(term);
      for (LoadOp load : {left, right}) {
        if (!counted.insert(load.getTensor()).second)
          continue;
        double elements = 1;
        for (Value extent : getExtents(kernel, load.getTensor()))
          elements *= guessSize(kernel, extent);
        cost += costOfByte * bytesOfElement * elements;
        scratch += bytesOfParts * elements;
      }
    }
  return saved > cost && scratch <= mostScratch;
}

/// Names of the axes of `tensor`.
static SmallVector<std::string> namesOfAxes(unsigned rank) {
  SmallVector<std::string> names;
  for (unsigned axis = 0; axis < rank; ++axis)
    names.push_back("at" + std::to_string(axis));
  return names;
}

static Value createNumber(OpBuilder &builder, Location loc, double value) {
  return arith::ConstantOp::create(builder, loc,
                                   builder.getF32FloatAttr(static_cast<float>(value)));
}

/// Is the f32 `value` finite?
static Value isFinite(OpBuilder &builder, Location loc, Value value) {
  Value infinity = createNumber(builder, loc, std::numeric_limits<double>::infinity());
  return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT,
                               math::AbsFOp::create(builder, loc, value), infinity);
}

/// The statement of the greatest finite magnitude of each row of `tensor`.
Value SignificandSplitting::storeGreatest(Value tensor) {
  SmallVector<Value> extents = getExtents(kernel, tensor);
  SmallVector<std::string> texts = namesOfAxes(extents.size());
  SmallVector<StringRef> names(texts.begin(), texts.end());
  OpBuilder builder(compute);
  Location loc = compute.getLoc();
  std::string name = nameOf(".greatest");
  auto statement = ComputeOp::create(
      builder, loc, ArrayRef(names).drop_back(), ValueRange(extents).drop_back(),
      ArrayRef<Type>{builder.getF32Type()}, ArrayRef<StringRef>{name},
      ArrayRef<SmallVector<unsigned>>{}, [&](OpBuilder &body, Location at, ValueRange row) {
        Value zero = arith::ConstantIndexOp::create(body, at, 0);
        auto greatest = ReduceOp::create(
            body, at, ReduceKind::Max, ArrayRef<StringRef>{names.back()}, ValueRange{zero},
            ValueRange{extents.back()}, body.getF32Type(),
            [&](OpBuilder &inner, Location where, ValueRange last) -> Value {
              SmallVector<Value> place(row);
              place.push_back(last.front());
              Value element = LoadOp::create(inner, where, tensor, place, Value());
              Value magnitude = math::AbsFOp::create(inner, where, element);
              return arith::SelectOp::create(inner, where, isFinite(inner, where, element),
                                             magnitude, createNumber(inner, where, 0));
            });
        YieldOp::create(body, at, greatest.getResults());
      });
  return statement->getResult(0);
}

/// The statement of the scales of `tensors`, two results each: the power of two, and its exponent.
ComputeOp SignificandSplitting::storeScales(ArrayRef<Value> tensors, ArrayRef<Value> greatest) {
  OpBuilder builder(compute);
  Location loc = compute.getLoc();
  SmallVector<std::string> texts;
  for (size_t n = 0; n < tensors.size(); ++n)
    for (StringRef suffix : {".scale", ".exponent"})
      texts.push_back(nameOf(suffix) + (n ? std::to_string(n) : ""));
  return ComputeOp::create(
      builder, loc, ArrayRef<StringRef>{}, ValueRange{},
      SmallVector<Type>(texts.size(), builder.getF32Type()), llvm::to_vector_of<StringRef>(texts),
      ArrayRef<SmallVector<unsigned>>{}, [&](OpBuilder &body, Location at, ValueRange) {
        SmallVector<Value> results;
        for (auto [tensor, rows] : llvm::zip_equal(tensors, greatest)) {
          SmallVector<Value> extents = getExtents(kernel, tensor);
          extents.pop_back();
          SmallVector<std::string> axes = namesOfAxes(extents.size());
          Value zero = arith::ConstantIndexOp::create(body, at, 0);
          auto all = ReduceOp::create(
              body, at, ReduceKind::Max, llvm::to_vector_of<StringRef>(axes),
              SmallVector<Value>(extents.size(), zero), extents, body.getF32Type(),
              [&, rows = rows](OpBuilder &inner, Location where, ValueRange row) -> Value {
                return LoadOp::create(inner, where, rows, row, Value());
              });
          // Of 0, and of no numbers, the logarithm is -inf and the scale the greatest one.
          Value most =
              arith::MaximumFOp::create(body, at, all.getResult(0), createNumber(body, at, 0));
          Value exponent = math::FloorOp::create(body, at, math::Log2Op::create(body, at, most));
          exponent =
              arith::SubFOp::create(body, at, createNumber(body, at, wantedExponent), exponent);
          exponent =
              arith::MaximumFOp::create(body, at, exponent, createNumber(body, at, leastExponent));
          exponent =
              arith::MinimumFOp::create(body, at, exponent, createNumber(body, at, mostExponent));
          results.append({math::Exp2Op::create(body, at, exponent), exponent});
        }
        YieldOp::create(body, at, results);
      });
}

/// Part `which`, an index, of the f32 `scaled`.
static Value createPart(OpBuilder &builder, Location loc, Value scaled, Value which) {
  auto rounded = [&](Value value) -> Value {
    return arith::TruncFOp::create(builder, loc, builder.getBF16Type(), value);
  };
  auto restOf = [&](Value value, Value part) -> Value {
    Value wide = arith::ExtFOp::create(builder, loc, builder.getF32Type(), part);
    return arith::SubFOp::create(builder, loc, value, wide);
  };
  Value raw = rounded(scaled);
  Value zero = createNumber(builder, loc, 0);
  Value finite =
      arith::SelectOp::create(builder, loc, isFinite(builder, loc, scaled), scaled, zero);
  Value first = rounded(finite);
  Value rest = restOf(finite, first), second = rounded(rest), third = rounded(restOf(rest, second));
  auto isPart = [&](Part part) -> Value {
    Value number = arith::ConstantIndexOp::create(builder, loc, part);
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, which, number);
  };
  Value part = third;
  for (auto [number, value] :
       {std::pair(Second, second), std::pair(First, first), std::pair(Raw, raw)})
    part = arith::SelectOp::create(builder, loc, isPart(number), value, part);
  return part;
}

/// `extent`, of an axis that tiles run along, up to whole slices.
Value SignificandSplitting::lengthOf(Value extent) {
  Value &length = lengths[extent];
  if (!length) {
    OpBuilder builder(compute);
    Location loc = compute.getLoc();
    Value unit = arith::ConstantIndexOp::create(builder, loc, elementsOfSlice);
    Value last = arith::ConstantIndexOp::create(builder, loc, elementsOfSlice - 1);
    Value end = arith::AddIOp::create(builder, loc, extent, last);
    Value units = FloorDivOp::create(builder, loc, end.getType(), end, unit);
    length = arith::MulIOp::create(builder, loc, units, unit);
  }
  return length;
}

/// The statement of the parts of `tensor`, a tensor each. Those of a row are computed one behind
/// the other, which reads it from memory once.
StoredParts SignificandSplitting::storeParts(Factor factor, Value scale, Value exponent) {
  OpBuilder builder(compute);
  Location loc = compute.getLoc();
  auto [tensor, axisOfSum] = factor;
  SmallVector<Value> extents = getExtents(kernel, tensor);
  SmallVector<std::string> texts = namesOfAxes(extents.size());
  const unsigned last = extents.size() - 1;
  bool isLonger = false;
  Value length;
  for (unsigned axis : {axisOfSum, last})
    if (isPadded(kernel, extents[axis])) {
      extents[axis] = lengthOf(extents[axis]);
      isLonger = true;
      if (axis == axisOfSum)
        length = extents[axis];
      if (axisOfSum == last)
        break;
    }
  texts.insert(texts.begin() + last, "part");
  extents.insert(extents.begin() + last, arith::ConstantIndexOp::create(builder, loc, countParts));
  std::string name = nameOf(".parts");
  SmallVector<unsigned> order = {last};
  for (unsigned axis = 0; axis < extents.size(); ++axis)
    if (axis != last)
      order.push_back(axis);
  auto statement = ComputeOp::create(
      builder, loc, llvm::to_vector_of<StringRef>(texts), extents,
      ArrayRef<Type>{builder.getBF16Type()}, ArrayRef<StringRef>{name},
      ArrayRef<SmallVector<unsigned>>{order}, [&](OpBuilder &body, Location at, ValueRange places) {
        SmallVector<Value> from(places);
        from.erase(from.begin() + last);
        Value outside = isLonger ? createNumber(body, at, 0) : Value();
        Value element = LoadOp::create(body, at, tensor, from, outside);
        Value power = LoadOp::create(body, at, scale, ValueRange(), Value());
        Value scaled = arith::MulFOp::create(body, at, element, power);
        YieldOp::create(body, at, createPart(body, at, scaled, places[last]));
      });
  return {statement->getResult(0), exponent, length};
}

/// The left or right part of pair `pair`, an index: two bits of a number each.
static Value createPartOfPair(OpBuilder &builder, Location loc, Value pair, bool isLeft) {
  int64_t table = 0;
  for (int64_t n = 0; n < countPairs; ++n)
    table |= int64_t(isLeft ? pairs[n].first : pairs[n].second) << (2 * n);
  Value two = arith::ConstantIndexOp::create(builder, loc, 2);
  Value four = arith::ConstantIndexOp::create(builder, loc, 4);
  Value place = arith::MulIOp::create(builder, loc, pair, two);
  Value bits = arith::ShRUIOp::create(builder, loc,
                                      arith::ConstantIndexOp::create(builder, loc, table), place);
  return FloorModOp::create(builder, loc, bits.getType(), bits, four);
}

/// The sums of `shares` shares of the pairs, each stored by a statement of its own, added up.
Value SignificandSplitting::addUpShares(ReduceOp sums, int64_t shares) {
  Location loc = sums.getLoc();
  OpBuilder builder(compute);
  SmallVector<StringRef> names = {"share"};
  for (Attribute name : compute.getIndexNames())
    names.push_back(cast<StringAttr>(name).getValue());
  SmallVector<Value> extents = {arith::ConstantIndexOp::create(builder, loc, shares)};
  llvm::append_range(extents, compute.getExtents());
  std::string name = nameOf(".shares");
  auto stored = ComputeOp::create(
      builder, loc, names, extents, ArrayRef<Type>{sums.getResult(0).getType()},
      ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{},
      [&](OpBuilder &body, Location at, ValueRange indices) {
        IRMapping mapping;
        mapping.map(compute.getBlock()->getArguments(), indices.drop_front());
        Value whole = cloneSlice(body, sums.getResult(0), compute.getBlock(), mapping);
        auto share = whole.getDefiningOp<ReduceOp>();
        OpBuilder before(share);
        Value count = arith::ConstantIndexOp::create(before, at, countPairs / shares);
        Value first = arith::MulIOp::create(before, at, indices.front(), count);
        share.getUpperMutable()[0].set(count);
        Value pair = share.getIndex(0);
        OpBuilder inner = OpBuilder::atBlockBegin(share.getBlock());
        auto ofAll = arith::AddIOp::create(inner, at, first, pair);
        pair.replaceAllUsesExcept(ofAll, ofAll);
        YieldOp::create(body, at, whole);
      });
  builder.setInsertionPoint(sums);
  Value sum;
  for (int64_t share = 0; share < shares; ++share) {
    SmallVector<Value> at = {arith::ConstantIndexOp::create(builder, loc, share)};
    llvm::append_range(at, compute.getBlock()->getArguments());
    Value part = LoadOp::create(builder, loc, stored->getResult(0), at, Value());
    sum = sum ? createCombination(builder, loc, ReduceKind::Sum, sum, part) : part;
  }
  return sum;
}

/// Has the sum go over pairs of parts, shared out among blocks, and takes the scales off it.
void SignificandSplitting::rewrite(ReduceOp reduce, int64_t shares) {
  Location loc = reduce.getLoc();
  OpBuilder builder(reduce);
  note(reduce, passName, Verdict::Derived,
       "the " + describe(reduce) +
           " multiplies three parts in bf16 of each f32 number, six pairs "
           "of them, on the matrix unit");
  SmallVector<StringRef> names = {"pair", cast<StringAttr>(reduce.getIndexNames()[0]).getValue()};
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value count = arith::ConstantIndexOp::create(builder, loc, countPairs);
  llvm::SmallDenseMap<Operation *, StoredParts> partsOf;
  Value end = reduce.getUpper()[0];
  for (LoadOp load : reduce.getBlock()->getOps<LoadOp>()) {
    const StoredParts &parts = stored[{load.getTensor(), axisOf(load, reduce)}];
    partsOf[load] = parts;
    if (parts.length)
      end = parts.length;
  }
  auto sums = ReduceOp::create(builder, loc, reduce.getResultTypes(), reduce.getKinds(),
                               builder.getStrArrayAttr(names),
                               ValueRange{zero, reduce.getLower()[0]}, ValueRange{count, end},
                               PrecisionAttr::get(builder.getContext(), Precision::Blocked));
  sums.getBody().takeBody(reduce.getBody());
  sums.getRescale().takeBody(reduce.getRescale());
  Value pair = sums.getBlock()->insertArgument(0u, builder.getIndexType(), loc);
  builder.setInsertionPointToStart(sums.getBlock());
  Value sides[] = {createPartOfPair(builder, loc, pair, true),
                   createPartOfPair(builder, loc, pair, false)};
  builder.setInsertionPoint(sums.getYield());
  SmallVector<Value> terms, powers;
  OpBuilder after(reduce);
  for (auto [n, term] : llvm::enumerate(sums.getYield().getValues())) {
    auto [left, right] = *factorsOf(term);
    Value wide[2];
    for (auto [side, load] : {std::pair(0, left), std::pair(1, right)}) {
      SmallVector<Value> at(load.getIndices());
      at.insert(at.begin(), sides[side]);
      Value part = LoadOp::create(builder, load.getLoc(), partsOf[load].parts, at, Value());
      wide[side] = arith::ExtFOp::create(builder, loc, builder.getF32Type(), part);
    }
    terms.push_back(arith::MulFOp::create(builder, loc, wide[0], wide[1]));
    // The product of both powers may be no number of f32, but its root is.
    auto exponentOf = [&](LoadOp load) -> Value {
      return LoadOp::create(after, loc, partsOf[load].exponent, ValueRange(), Value());
    };
    Value both = arith::NegFOp::create(
        after, loc, arith::AddFOp::create(after, loc, exponentOf(left), exponentOf(right)));
    Value half = math::FloorOp::create(
        after, loc, arith::MulFOp::create(after, loc, both, createNumber(after, loc, 0.5)));
    Value rest = arith::SubFOp::create(after, loc, both, half);
    Value scaled = arith::MulFOp::create(after, loc, sums.getResult(n),
                                         math::Exp2Op::create(after, loc, half));
    powers.push_back(
        arith::MulFOp::create(after, loc, scaled, math::Exp2Op::create(after, loc, rest)));
  }
  SmallVector<Value> old(sums.getYield().getValues());
  sums.getYield()->setOperands(terms);
  for (Value term : old)
    if (Operation *product = term.getDefiningOp(); product->use_empty())
      product->erase();
  for (LoadOp load : llvm::to_vector(sums.getBlock()->getOps<LoadOp>()))
    if (load->use_empty())
      load->erase();
  reduce.replaceAllUsesWith(powers);
  reduce.erase();
  if (shares > 1) {
    Value sum = addUpShares(sums, shares);
    sums.getResult(0).replaceAllUsesWith(sum);
    sums.erase();
  }
}

unsigned SignificandSplitting::run(ComputeOp statement) {
  compute = statement;
  SmallVector<ReduceOp> sums;
  for (ReduceOp reduce : compute.getBlock()->getOps<ReduceOp>())
    if (isSplit(reduce))
      sums.push_back(reduce);
  if (sums.empty() || !pays(sums))
    return 0;
  const int64_t shares = options.always ? options.shares : countShares(sums.front());
  SmallVector<Factor> factors;
  SmallVector<Value> tensors, greatest;
  for (ReduceOp reduce : sums)
    for (LoadOp load : reduce.getBlock()->getOps<LoadOp>()) {
      Factor factor(load.getTensor(), axisOf(load, reduce));
      if (!stored.contains(factor) && !llvm::is_contained(factors, factor))
        factors.push_back(factor);
    }
  for (const Factor &factor : factors)
    if (!llvm::is_contained(tensors, factor.first)) {
      tensors.push_back(factor.first);
      greatest.push_back(storeGreatest(factor.first));
    }
  if (!factors.empty()) {
    ComputeOp scales = storeScales(tensors, greatest);
    for (const Factor &factor : factors) {
      unsigned n = llvm::find(tensors, factor.first) - tensors.begin();
      stored[factor] = storeParts(factor, scales.getResult(2 * n), scales.getResult(2 * n + 1));
    }
  }
  for (ReduceOp reduce : sums)
    rewrite(reduce, shares);
  return sums.size();
}

namespace {

struct SplitSignificands : tk::impl::SplitSignificandsBase<SplitSignificands> {
  using SplitSignificandsBase::SplitSignificandsBase;

  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
    if (!target || !target.getHopper())
      return;
    SplitSignificandsOptions options{always, shares};
    getOperation()->walk([&](KernelOp kernel) {
      SignificandSplitting splitting(kernel, options, target.getProcessors());
      for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>()))
        numSums += splitting.run(compute);
    });
  }
};

} // namespace
