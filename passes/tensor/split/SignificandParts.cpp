//===- SignificandParts.cpp - storing the parts of a bf16x3 decomposition -===//
//
// 1. Compute the scale of each row of an operand, a power of two, from its greatest finite
//    magnitude.
// 2. Store the three bf16 parts of the scaled rows.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/split/SignificandParts.h"
#include "passes/machine/limits/Splits.h"

#include "passes/analysis/SizeFacts.h"
#include "passes/tensor/operands/PadFactors.h"
#include "passes/tensor/split/SplitReductions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace tk;

namespace {

/// What is stored of a tensor, in this order: bf16 of a number, the same where it is finite, and
/// the parts that follow.
enum Part : int64_t { Raw, First, Second, Third };

/// The pairs of parts that are multiplied, the least first.
constexpr std::pair<Part, Part> pairs[] = {{Third, First},  {Second, Second}, {First, Third},
                                           {Second, First}, {First, Second},  {Raw, Raw}};
static_assert(std::size(pairs) == countPairs && Third + 1 == countParts);

/// The scales of rows whose greatest magnitude is below a bound, the greatest bound first. All bits
/// of three parts exist from 2^-110 on; 2^24 takes every number of f32 there that is not 0. A
/// scaled row stays below 2^-20: its products with numbers of any size are not infinite before they
/// are summed, nor are 2^20 of them.
constexpr std::pair<double, double> scalesOfSmall[] = {
    {0x1p-28, 0x1p8}, {0x1p-36, 0x1p16}, {0x1p-44, 0x1p24}};

using namespace limits::significand_parts;

} // namespace

/// What `factor` loads, as it is or extended from 16 bits.
static LoadOp loadOf(Value factor) {
  constexpr unsigned halfBits = 16;
  auto extension = factor.getDefiningOp<arith::ExtFOp>();
  if (extension && extension.getIn().getType().getIntOrFloatBitWidth() == halfBits)
    factor = extension.getIn();
  return factor.getDefiningOp<LoadOp>();
}

std::optional<std::pair<LoadOp, LoadOp>> tk::factorsOf(Value term) {
  auto product = term.getDefiningOp<arith::MulFOp>();
  if (!product || !product.getType().isF32())
    return std::nullopt;
  LoadOp left = loadOf(product.getLhs()), right = loadOf(product.getRhs());
  if (!left || !right || (left.getType() == right.getType() && !left.getType().isF32()))
    return std::nullopt;
  return std::pair(left, right);
}

int64_t tk::partsOf(Type type) { return type.isBF16() ? 1 : type.isF16() ? 2 : Third; }

/// The pairs of parts that make a product of numbers that have so many parts.
static SmallVector<std::pair<Part, Part>> pairsOf(int64_t left, int64_t right) {
  SmallVector<std::pair<Part, Part>> kept;
  for (auto pair : pairs)
    if (pair.first <= left && pair.second <= right)
      kept.push_back(pair);
  return kept;
}

int64_t tk::countPairsOf(int64_t left, int64_t right) {
  return static_cast<int64_t>(pairsOf(left, right).size());
}

SumAxes tk::axesOfSum(LoadOp load, ReduceOp reduce) {
  auto axisOf = [&](unsigned position) -> unsigned {
    return llvm::find(load.getIndices(), reduce.getIndex(position)) - load.getIndices().begin();
  };
  const unsigned last = reduce.getNumIndices() - 1;
  SumAxes axes = {axisOf(last), 0};
  for (unsigned position = 0; position < last; ++position)
    axes.others |= 1U << axisOf(position);
  return axes;
}

bool tk::isMadeLonger(KernelOp kernel, Value extent) {
  return getSizeFact(kernel, extent).divisor % elementsOfSlice != 0;
}

std::string SignificandParts::nameOf(StringRef suffix) {
  return (cast<StringAttr>(compute.getNames()[0]).getValue() + suffix).str();
}

/// Names of the axes of `tensor`.
static SmallVector<std::string> namesOfAxes(unsigned rank) {
  SmallVector<std::string> names;
  for (unsigned axis = 0; axis < rank; ++axis)
    names.push_back("at" + std::to_string(axis));
  return names;
}

Value tk::createF32(OpBuilder &builder, Location loc, double value) {
  return arith::ConstantOp::create(builder, loc,
                                   builder.getF32FloatAttr(static_cast<float>(value)));
}

/// Is the f32 `value` finite?
static Value isFinite(OpBuilder &builder, Location loc, Value value) {
  Value infinity = createF32(builder, loc, std::numeric_limits<double>::infinity());
  return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT,
                               math::AbsFOp::create(builder, loc, value), infinity);
}

/// The element of `tensor` at `place` in f32; 0 outside of it if it `isPadded`.
static Value loadWide(OpBuilder &builder, Location loc, Value tensor, ValueRange place,
                      bool isPadded) {
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  Value zero =
      isPadded ? arith::ConstantOp::create(builder, loc, builder.getZeroAttr(element)).getResult()
               : Value();
  Value value = LoadOp::create(builder, loc, tensor, place, zero);
  return element.isF32() ? value : arith::ExtFOp::create(builder, loc, builder.getF32Type(), value);
}

/// The greatest finite magnitude along the axes `sum` of `tensor`, of `extents`, at `row` of its
/// other axes.
static Value createGreatest(OpBuilder &builder, Location loc, Value tensor, ArrayRef<Value> extents,
                            SumAxes sum, ValueRange row) {
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  SmallVector<Value> ends;
  SmallVector<std::string> texts;
  for (auto [axis, extent] : llvm::enumerate(extents))
    if (sum.has(axis)) {
      texts.push_back(sum.others == 0 ? "along" : "along" + std::to_string(axis));
      ends.push_back(extent);
    }
  auto greatest =
      ReduceOp::create(builder, loc, ReduceKind::Max, llvm::to_vector_of<StringRef>(texts),
                       SmallVector<Value>(ends.size(), zero), ends, builder.getF32Type(),
                       [&](OpBuilder &inner, Location at, ValueRange along) -> Value {
                         SmallVector<Value> place;
                         auto nextOfSum = along.begin();
                         auto nextOfRow = row.begin();
                         for (unsigned axis = 0; axis < extents.size(); ++axis)
                           place.push_back(sum.has(axis) ? *nextOfSum++ : *nextOfRow++);
                         Value element = loadWide(inner, at, tensor, place, /*isPadded=*/false);
                         Value magnitude = math::AbsFOp::create(inner, at, element);
                         return arith::SelectOp::create(inner, at, isFinite(inner, at, element),
                                                        magnitude, createF32(inner, at, 0));
                       });
  return greatest.getResult(0);
}

/// The statement of the scales of the rows of `factor`, and of their reciprocals.
SignificandParts::RowScales SignificandParts::storeScales(Factor factor) {
  OpBuilder builder(compute);
  Location loc = compute.getLoc();
  auto [tensor, sum] = factor;
  SmallVector<Value> extents = getExtents(kernel, tensor);
  SmallVector<std::string> texts = withoutSum(namesOfAxes(extents.size()), sum);
  std::string up = nameOf(".scale"), off = nameOf(".unscale");
  auto statement = ComputeOp::create(
      builder, loc, llvm::to_vector_of<StringRef>(texts), withoutSum(extents, sum),
      SmallVector<Type>(2, builder.getF32Type()), ArrayRef<StringRef>{up, off},
      ArrayRef<SmallVector<unsigned>>{}, [&](OpBuilder &body, Location at, ValueRange row) {
        Value most = createGreatest(body, at, tensor, extents, sum, row);
        Value scale = createF32(body, at, 1), reciprocal = scale;
        auto choose = [&](Value condition, double power) {
          scale = arith::SelectOp::create(body, at, condition, createF32(body, at, power), scale);
          reciprocal = arith::SelectOp::create(body, at, condition, createF32(body, at, 1 / power),
                                               reciprocal);
        };
        auto compare = [&](arith::CmpFPredicate how, double bound) -> Value {
          return arith::CmpFOp::create(body, at, how, most, createF32(body, at, bound));
        };
        for (auto [bound, power] : scalesOfSmall)
          choose(compare(arith::CmpFPredicate::OLT, bound), power);
        choose(compare(arith::CmpFPredicate::OGE, 0x1p127), 0.5);
        YieldOp::create(body, at, {scale, reciprocal});
      });
  // Columns too few for all multiprocessors are reduced in parts.
  splitInChunks(statement);
  return {statement->getResult(0), statement->getResult(1)};
}

Value tk::createPart(OpBuilder &builder, Location loc, Value scaled, Value which, bool isBounded) {
  auto rounded = [&](Value value) -> Value {
    return arith::TruncFOp::create(builder, loc, builder.getBF16Type(), value);
  };
  auto restOf = [&](Value value, Value part) -> Value {
    Value wide = arith::ExtFOp::create(builder, loc, builder.getF32Type(), part);
    return arith::SubFOp::create(builder, loc, value, wide);
  };
  Value raw = isBounded ? rounded(scaled) : Value();
  Value zero = createF32(builder, loc, 0);
  Value isNumber = isFinite(builder, loc, scaled);
  Value finite = arith::SelectOp::create(builder, loc, isNumber, scaled, zero), near = finite;
  if (!isBounded) {
    near = arith::MinimumFOp::create(builder, loc, near, createF32(builder, loc, greatestPart));
    near = arith::MaximumFOp::create(builder, loc, near, createF32(builder, loc, -greatestPart));
    raw = rounded(arith::SelectOp::create(builder, loc, isNumber, near, scaled));
  }
  Value first = rounded(near);
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
Value SignificandParts::lengthOf(Value extent) {
  Value &length = lengths[extent];
  if (!length) {
    OpBuilder builder(compute);
    length = createMultiple(builder, compute.getLoc(), extent, elementsOfSlice);
  }
  return length;
}

/// The statement of the parts of `tensor`, a tensor each. Those of a row are computed one behind
/// the other, which reads it from memory once.
StoredParts SignificandParts::storeParts(Factor factor, RowScales scales) {
  OpBuilder builder(compute);
  Location loc = compute.getLoc();
  auto [tensor, sum] = factor;
  SmallVector<Value> extents = getExtents(kernel, tensor);
  SmallVector<std::string> texts = namesOfAxes(extents.size());
  const unsigned last = extents.size() - 1;
  bool isLonger = false;
  const bool isRowLonger = !sum.has(last) && isMadeLonger(kernel, extents[last]);
  Value length;
  for (unsigned axis : {sum.inner, last})
    if (isMadeLonger(kernel, extents[axis])) {
      extents[axis] = lengthOf(extents[axis]);
      isLonger = true;
      if (axis == sum.inner)
        length = extents[axis];
      if (sum.inner == last)
        break;
    }
  texts.insert(texts.begin() + last, "part");
  const int64_t stored = 1 + partsOf(cast<RankedTensorType>(tensor.getType()).getElementType());
  extents.insert(extents.begin() + last, arith::ConstantIndexOp::create(builder, loc, stored));
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
        Value element = loadWide(body, at, tensor, from, isLonger);
        Value one = isRowLonger ? createF32(body, at, 1) : Value();
        Value power = LoadOp::create(body, at, scales.scale, withoutSum(from, sum), one);
        Value scaled = arith::MulFOp::create(body, at, element, power);
        YieldOp::create(body, at, createPart(body, at, scaled, places[last], /*isBounded=*/true));
      });
  return {statement->getResult(0), scales.reciprocal, length};
}

Value tk::createPartOfPair(OpBuilder &builder, Location loc, Value pair, bool isLeft,
                           int64_t leftParts, int64_t rightParts) {
  // Two bits of a number each.
  int64_t table = 0;
  for (auto [n, parts] : llvm::enumerate(pairsOf(leftParts, rightParts)))
    table |= int64_t(isLeft ? parts.first : parts.second) << (2 * n);
  Value two = arith::ConstantIndexOp::create(builder, loc, 2);
  Value four = arith::ConstantIndexOp::create(builder, loc, 4);
  Value place = arith::MulIOp::create(builder, loc, pair, two);
  Value bits = arith::ShRUIOp::create(builder, loc,
                                      arith::ConstantIndexOp::create(builder, loc, table), place);
  return FloorModOp::create(builder, loc, bits.getType(), bits, four);
}

LoadOp SignificandParts::storeWide(LoadOp load) {
  OpBuilder builder(load->getParentOfType<ComputeOp>());
  compute = load->getParentOfType<ComputeOp>();
  SmallVector<Value> extents = getExtents(kernel, load.getTensor());
  SmallVector<std::string> texts = namesOfAxes(extents.size());
  std::string name = nameOf(".wide");
  auto statement = ComputeOp::create(
      builder, load.getLoc(), llvm::to_vector_of<StringRef>(texts), extents,
      ArrayRef<Type>{builder.getF32Type()}, ArrayRef<StringRef>{name},
      ArrayRef<SmallVector<unsigned>>{}, [&](OpBuilder &body, Location at, ValueRange places) {
        YieldOp::create(body, at, loadWide(body, at, load.getTensor(), places, false));
      });
  OpBuilder inner(load);
  return LoadOp::create(inner, load.getLoc(), statement->getResult(0), load.getIndices(), Value());
}

void SignificandParts::store(ComputeOp statement, ArrayRef<ReduceOp> sums) {
  compute = statement;
  for (ReduceOp reduce : sums)
    for (LoadOp load : reduce.getBlock()->getOps<LoadOp>()) {
      const Key key = keyOf(load, reduce);
      if (stored.contains(key))
        continue;
      const Factor factor{load.getTensor(), axesOfSum(load, reduce)};
      stored[key] = storeParts(factor, storeScales(factor));
    }
}
