//===- RankTest.cpp - comparisons of elements of two rows -----------------===//
//
// A key becomes the upper half of an integer of 64 bits, its index the lower half. The order of
// these integers is the order of the keys, and of the indices where keys are equal:
//
// 1. The bits of a float from 0 on are ordered as integers. Of negative floats all bits but the
// sign
//    are inverted. Both zeros have the bits of 0.
// 2. A descending order inverts all bits. Keys that are to count then come first, so that a sum of
//    them has no difference of two sums.
// 3. NaN is the last key, and as a bound the first one, so that no comparison with it holds.
//
// The limit of a bound has in its lower half 0 if equal keys do not count, all ones if they do, or
// the index that decides about equal keys.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/keys/RankTest.h"

#include "passes/analysis/Conditions.h"
#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;
using arith::CmpFPredicate;
using arith::CmpIPredicate;

/// The bits of an index, and the number from which a backward order counts down.
static constexpr int64_t indexBits = 32, lastIndex = int64_t(1) << 31;

//===----------------------------------------------------------------------===//
// The match
//===----------------------------------------------------------------------===//

namespace {
/// A comparison with what depends on the index on the left.
struct Comparison {
  Value left, right;
  bool isLess = false, isGreater = false, isEqual = false, isUnsigned = false;
};
} // namespace

static std::optional<Comparison> readFloats(arith::CmpFOp compare) {
  Comparison read{compare.getLhs(), compare.getRhs()};
  const CmpFPredicate predicate = compare.getPredicate();
  read.isLess = predicate == CmpFPredicate::OLT || predicate == CmpFPredicate::OLE;
  read.isGreater = predicate == CmpFPredicate::OGT || predicate == CmpFPredicate::OGE;
  read.isEqual = predicate == CmpFPredicate::OLE || predicate == CmpFPredicate::OGE ||
                 predicate == CmpFPredicate::OEQ;
  return read;
}

static std::optional<Comparison> readIntegers(arith::CmpIOp compare) {
  Comparison read{compare.getLhs(), compare.getRhs()};
  switch (compare.getPredicate()) {
  case CmpIPredicate::eq:
    read.isEqual = true;
    break;
  case CmpIPredicate::ult:
  case CmpIPredicate::ule:
  case CmpIPredicate::slt:
  case CmpIPredicate::sle:
    read.isLess = true;
    break;
  case CmpIPredicate::ugt:
  case CmpIPredicate::uge:
  case CmpIPredicate::sgt:
  case CmpIPredicate::sge:
    read.isGreater = true;
    break;
  case CmpIPredicate::ne:
    return std::nullopt;
  }
  const CmpIPredicate predicate = compare.getPredicate();
  read.isEqual |= llvm::is_contained(
      {CmpIPredicate::ule, CmpIPredicate::sle, CmpIPredicate::uge, CmpIPredicate::sge}, predicate);
  read.isUnsigned = llvm::is_contained(
      {CmpIPredicate::ult, CmpIPredicate::ule, CmpIPredicate::ugt, CmpIPredicate::uge}, predicate);
  return read;
}

/// `condition` as a comparison of what depends on `index` with what does not.
static std::optional<Comparison> readComparison(Value condition, Value index) {
  std::optional<Comparison> read;
  if (auto floats = condition.getDefiningOp<arith::CmpFOp>())
    read = readFloats(floats);
  else if (auto integers = condition.getDefiningOp<arith::CmpIOp>())
    read = readIntegers(integers);
  if (!read || !(read->isLess || read->isGreater || read->isEqual))
    return std::nullopt;
  Dependence onIndex{ValueRange{index}};
  if (onIndex.on(read->right)) {
    std::swap(read->left, read->right);
    std::swap(read->isLess, read->isGreater);
  }
  return onIndex.on(read->left) && !onIndex.on(read->right) ? read : std::nullopt;
}

/// Is `value` the index, or a conversion of it?
static bool isIndex(Value value, Value index) {
  auto cast = value.getDefiningOp<arith::IndexCastOp>();
  return (cast ? cast.getIn() : value) == index;
}

/// Has a type keys that are half of 64 bits?
static bool isNarrow(Type type) {
  return isa<FloatType, IntegerType>(type) && !type.isInteger(1) &&
         type.getIntOrFloatBitWidth() <= indexBits;
}

/// The comparison of `condition` with a tie: `a < b or (a == b and u < tie)`.
static std::optional<RankTest> matchTie(arith::OrIOp either, Value index) {
  ScalarEquality equality;
  for (auto [first, second] :
       {std::pair(either.getLhs(), either.getRhs()), std::pair(either.getRhs(), either.getLhs())}) {
    std::optional<RankTest> test = matchRankTest(first, index);
    auto both = second.getDefiningOp<arith::AndIOp>();
    if (!test || test->isInclusive || test->tie || !both)
      continue;
    for (auto [equal, order] :
         {std::pair(both.getLhs(), both.getRhs()), std::pair(both.getRhs(), both.getLhs())}) {
      std::optional<Comparison> same = readComparison(equal, index),
                                before = readComparison(order, index);
      if (!same || !before || same->isLess || same->isGreater || before->isUnsigned ||
          !(before->isLess || before->isGreater) || !isIndex(before->left, index) ||
          !equality.equal(same->left, test->key) || !equality.equal(same->right, test->bound))
        continue;
      test->tie = before->right;
      test->isBackward = before->isGreater;
      test->isInclusive = before->isEqual;
      return test;
    }
  }
  return std::nullopt;
}

std::optional<RankTest> tk::matchRankTest(Value condition, Value index) {
  if (auto either = condition.getDefiningOp<arith::OrIOp>())
    return matchTie(either, index);
  std::optional<Comparison> read = readComparison(condition, index);
  if (!read || !(read->isLess || read->isGreater) || !isNarrow(read->left.getType()) ||
      !readsTensor(read->left))
    return std::nullopt;
  RankTest test;
  test.key = read->left;
  test.bound = read->right;
  test.isDescending = read->isGreater;
  test.isInclusive = read->isEqual;
  test.isUnsigned = read->isUnsigned;
  return test;
}

//===----------------------------------------------------------------------===//
// The numbers
//===----------------------------------------------------------------------===//

static Value constant(OpBuilder &at, Location loc, int64_t value) {
  return arith::ConstantOp::create(at, loc, at.getI64IntegerAttr(value));
}

/// The order of a float as that of an integer of 64 bits; `ofNan` is the number of NaN.
static Value orderOfFloat(OpBuilder &at, Location loc, const RankTest &test, Value value,
                          int64_t ofNan) {
  if (!value.getType().isF32())
    value = arith::ExtFOp::create(at, loc, at.getF32Type(), value);
  auto word = [&](int64_t bits) -> Value {
    return arith::ConstantOp::create(at, loc, at.getI32IntegerAttr(static_cast<int32_t>(bits)));
  };
  Value zero = arith::ConstantOp::create(at, loc, at.getF32FloatAttr(0.0f));
  Value isZero = arith::CmpFOp::create(at, loc, CmpFPredicate::OEQ, value, zero);
  Value isNan = arith::CmpFOp::create(at, loc, CmpFPredicate::UNO, value, value);
  Value bits = arith::BitcastOp::create(at, loc, at.getI32Type(), value);
  bits = arith::SelectOp::create(at, loc, isZero, word(0), bits);
  Value sign = arith::ShRSIOp::create(at, loc, bits, word(31));
  Value inverted = arith::AndIOp::create(at, loc, sign, word(0x7fffffff));
  Value order = arith::XOrIOp::create(at, loc, bits, inverted);
  if (test.isDescending)
    order = arith::XOrIOp::create(at, loc, order, word(-1));
  order = arith::SelectOp::create(at, loc, isNan, word(ofNan), order);
  return arith::ExtSIOp::create(at, loc, at.getI64Type(), order);
}

Value tk::orderOf(OpBuilder &at, Location loc, const RankTest &test, Value value, bool isKey) {
  if (isa<FloatType>(value.getType()))
    return orderOfFloat(at, loc, test, value, isKey ? INT32_MAX : INT32_MIN);
  Type wide = at.getI64Type();
  Value order;
  if (test.isUnsigned) {
    order = arith::ExtUIOp::create(at, loc, wide, value);
    order = arith::SubIOp::create(at, loc, order, constant(at, loc, -int64_t(INT32_MIN)));
  } else {
    order = arith::ExtSIOp::create(at, loc, wide, value);
  }
  return test.isDescending ? Value(arith::XOrIOp::create(at, loc, order, constant(at, loc, -1)))
                           : order;
}

OrderTest tk::notAbove(OpBuilder &at, Location loc, const RankTest &test, Value order) {
  // The order of the last number, which is infinity, or -infinity in a descending order.
  constexpr int64_t ofLast = 0x7f800000;
  order = arith::MinSIOp::create(at, loc, order, constant(at, loc, ofLast));
  order = arith::MaxSIOp::create(at, loc, order, constant(at, loc, INT32_MIN));
  if (!test.isDescending) {
    // The bits before those of 0 are -0, which equals 0.
    Value isBeforeZero =
        arith::CmpIOp::create(at, loc, CmpIPredicate::eq, order, constant(at, loc, -1));
    order = arith::SelectOp::create(at, loc, isBeforeZero, constant(at, loc, -2), order);
  }
  Value bits = arith::TruncIOp::create(at, loc, at.getI32Type(), order);
  auto word = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(at, loc, at.getI32IntegerAttr(value));
  };
  if (test.isDescending)
    bits = arith::XOrIOp::create(at, loc, bits, word(-1));
  Value sign = arith::ShRSIOp::create(at, loc, bits, word(31));
  Value inverted = arith::AndIOp::create(at, loc, sign, word(0x7fffffff));
  bits = arith::XOrIOp::create(at, loc, bits, inverted);
  return {arith::BitcastOp::create(at, loc, at.getF32Type(), bits),
          test.isDescending ? CmpFPredicate::OGE : CmpFPredicate::OLE};
}

/// `order` above `low`, a number of 32 bits.
static Value join(OpBuilder &at, Location loc, Value order, Value low) {
  Value high = arith::ShLIOp::create(at, loc, order, constant(at, loc, indexBits));
  return arith::OrIOp::create(at, loc, high, low);
}

Value tk::numberOf(OpBuilder &at, Location loc, const RankTest &test, Value key, Value u) {
  Value low = arith::IndexCastOp::create(at, loc, at.getI64Type(), u);
  if (test.isBackward)
    low = arith::SubIOp::create(at, loc, constant(at, loc, lastIndex), low);
  return join(at, loc, orderOf(at, loc, test, key, /*isKey=*/true), low);
}

Value tk::indexOf(OpBuilder &at, Location loc, const RankTest &test, Value number) {
  Value low = arith::AndIOp::create(at, loc, number, constant(at, loc, UINT32_MAX));
  if (test.isBackward)
    low = arith::SubIOp::create(at, loc, constant(at, loc, lastIndex), low);
  return arith::IndexCastOp::create(at, loc, at.getIndexType(), low);
}

Value tk::limitOf(OpBuilder &at, Location loc, const RankTest &test) {
  Value low = constant(at, loc, test.isInclusive ? UINT32_MAX : 0);
  if (test.tie) {
    low = test.tie;
    if (low.getType().isIndex())
      low = arith::IndexCastOp::create(at, loc, at.getI64Type(), low);
    else if (!low.getType().isInteger(64))
      low = arith::ExtSIOp::create(at, loc, at.getI64Type(), low);
    if (test.isBackward)
      low = arith::SubIOp::create(at, loc, constant(at, loc, lastIndex), low);
    // u <= tie is u < tie + 1, and u >= tie is u > tie - 1.
    if (test.isInclusive)
      low = arith::AddIOp::create(at, loc, low, constant(at, loc, 1));
    low = arith::MaxSIOp::create(at, loc, low, constant(at, loc, 0));
    low = arith::MinSIOp::create(at, loc, low, constant(at, loc, UINT32_MAX));
  }
  return join(at, loc, orderOf(at, loc, test, test.bound, /*isKey=*/false), low);
}

Value tk::isBefore(OpBuilder &at, Location loc, const RankTest &test, Value number, Value limit) {
  const bool isIncluded = test.isInclusive && !test.tie;
  return arith::CmpIOp::create(at, loc, isIncluded ? CmpIPredicate::sle : CmpIPredicate::slt,
                               number, limit);
}
