//===- SignificandParts.cpp - parts of f32 numbers are stored ------------===//
//
// 1. The greatest finite magnitude of each row of a tensor.
// 2. From those of all rows the scale, a power of two, of each tensor of a statement.
// 3. The parts of the scaled tensor.
//
//===----------------------------------------------------------------------===//
#include "passes/fusion/SignificandParts.h"

#include "passes/fusion/PadFactors.h"
#include "passes/tiling/SizeFacts.h"

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

/// The exponent that the greatest magnitude is taken to, and those of the scales that exist: 2^126
/// takes every number that is not 0 to 2^-23 at least.
constexpr double wantedExponent = 50, leastExponent = -77, mostExponent = 126;

} // namespace

std::optional<std::pair<LoadOp, LoadOp>> tk::factorsOf(Value term) {
  auto product = term.getDefiningOp<arith::MulFOp>();
  if (!product || !product.getType().isF32())
    return std::nullopt;
  auto left = product.getLhs().getDefiningOp<LoadOp>();
  auto right = product.getRhs().getDefiningOp<LoadOp>();
  return left && right ? std::optional(std::pair(left, right)) : std::nullopt;
}

unsigned tk::axisOfSum(LoadOp load, ReduceOp reduce) {
  return llvm::find(load.getIndices(), reduce.getIndex(0)) - load.getIndices().begin();
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

/// The statement of the greatest finite magnitude of each row of `tensor`.
Value SignificandParts::storeGreatest(Value tensor) {
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
                                             magnitude, createF32(inner, where, 0));
            });
        YieldOp::create(body, at, greatest.getResults());
      });
  return statement->getResult(0);
}

/// The statement of the scales of `tensors`, two results each: the power of two, and its exponent.
ComputeOp SignificandParts::storeScales(ArrayRef<Value> tensors, ArrayRef<Value> greatest) {
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
              arith::MaximumFOp::create(body, at, all.getResult(0), createF32(body, at, 0));
          Value exponent = math::FloorOp::create(body, at, math::Log2Op::create(body, at, most));
          exponent = arith::SubFOp::create(body, at, createF32(body, at, wantedExponent), exponent);
          exponent =
              arith::MaximumFOp::create(body, at, exponent, createF32(body, at, leastExponent));
          exponent =
              arith::MinimumFOp::create(body, at, exponent, createF32(body, at, mostExponent));
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
  Value zero = createF32(builder, loc, 0);
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
StoredParts SignificandParts::storeParts(Factor factor, Value scale, Value exponent) {
  OpBuilder builder(compute);
  Location loc = compute.getLoc();
  auto [tensor, sumAxis] = factor;
  SmallVector<Value> extents = getExtents(kernel, tensor);
  SmallVector<std::string> texts = namesOfAxes(extents.size());
  const unsigned last = extents.size() - 1;
  bool isLonger = false;
  Value length;
  for (unsigned axis : {sumAxis, last})
    if (isMadeLonger(kernel, extents[axis])) {
      extents[axis] = lengthOf(extents[axis]);
      isLonger = true;
      if (axis == sumAxis)
        length = extents[axis];
      if (sumAxis == last)
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
        Value outside = isLonger ? createF32(body, at, 0) : Value();
        Value element = LoadOp::create(body, at, tensor, from, outside);
        Value power = LoadOp::create(body, at, scale, ValueRange(), Value());
        Value scaled = arith::MulFOp::create(body, at, element, power);
        YieldOp::create(body, at, createPart(body, at, scaled, places[last]));
      });
  return {statement->getResult(0), exponent, length};
}

Value tk::createPartOfPair(OpBuilder &builder, Location loc, Value pair, bool isLeft) {
  // Two bits of a number each.
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

void SignificandParts::store(ComputeOp statement, ArrayRef<ReduceOp> sums) {
  compute = statement;
  SmallVector<Factor> factors;
  SmallVector<Value> tensors, greatest;
  for (ReduceOp reduce : sums)
    for (LoadOp load : reduce.getBlock()->getOps<LoadOp>()) {
      Factor factor(load.getTensor(), axisOfSum(load, reduce));
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
}
