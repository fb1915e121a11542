//===- IntegerRanges.cpp - between which numbers integers lie -------------===//
#include "passes/analysis/IntegerRanges.h"

#include "dialects/tk/TkDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>

using namespace mlir;
using namespace tk;

using MaybeRange = std::optional<IntegerRange>;

/// A loaded integer's extension: all numbers that its bits stand for.
static MaybeRange rangeOfBits(Type type, bool isSigned) {
  constexpr unsigned mostBits = 16;
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer || integer.getWidth() > mostBits)
    return std::nullopt;
  const int64_t count = int64_t(1) << integer.getWidth();
  return isSigned ? IntegerRange{-count / 2, count / 2 - 1} : IntegerRange{0, count - 1};
}

/// A mask that is not negative leaves a number up to itself.
static MaybeRange rangeOfMasked(MaybeRange a, MaybeRange b) {
  const bool isA = a && a->least >= 0, isB = b && b->least >= 0;
  if (!isA && !isB)
    return std::nullopt;
  return IntegerRange{0, isA && isB ? std::min(a->greatest, b->greatest)
                                    : (isA ? a->greatest : b->greatest)};
}

static IntegerRange productOf(IntegerRange a, IntegerRange b) {
  const auto [least, greatest] = std::minmax(
      {a.least * b.least, a.least * b.greatest, a.greatest * b.least, a.greatest * b.greatest});
  return {least, greatest};
}

/// `range` if a number of `type` has no overflow in it.
static MaybeRange within(IntegerRange range, Type type) {
  constexpr unsigned mostBits = 32;
  const unsigned width = type.isIndex() ? mostBits : type.getIntOrFloatBitWidth();
  const int64_t end = int64_t(1) << (std::min(width, mostBits) - 1);
  if (range.least < -end || range.greatest >= end)
    return std::nullopt;
  return range;
}

static MaybeRange rangeOfOperation(Operation *op, MaybeRange a, MaybeRange b) {
  Type type = op->getResult(0).getType();
  if (isa<arith::AndIOp>(op))
    return rangeOfMasked(a, b);
  if (isa<arith::ShRSIOp, arith::ShRUIOp>(op))
    return a && a->least >= 0
               ? MaybeRange({0, b && b->least >= 0 && b->least < 32 ? a->greatest >> b->least
                                                                    : a->greatest})
               : std::nullopt;
  if (isa<FloorModOp>(op))
    return b && b->least == b->greatest && b->least > 0 ? MaybeRange({0, b->least - 1})
                                                        : std::nullopt;
  if (!a || !b)
    return std::nullopt;
  return TypeSwitch<Operation *, MaybeRange>(op)
      .Case<arith::AddIOp>(
          [&](auto) { return within({a->least + b->least, a->greatest + b->greatest}, type); })
      .Case<arith::SubIOp>(
          [&](auto) { return within({a->least - b->greatest, a->greatest - b->least}, type); })
      .Case<arith::MulIOp>([&](auto) { return within(productOf(*a, *b), type); })
      .Case<arith::MinSIOp>([&](auto) {
        return MaybeRange({std::min(a->least, b->least), std::min(a->greatest, b->greatest)});
      })
      .Case<arith::MaxSIOp>([&](auto) {
        return MaybeRange({std::max(a->least, b->least), std::max(a->greatest, b->greatest)});
      })
      .Default([](Operation *) { return std::nullopt; });
}

std::optional<IntegerRange> tk::getIntegerRange(Value value) {
  Operation *op = value.getDefiningOp();
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return IntegerRange{constant.getSExtValue(), constant.getSExtValue()};
  if (!op)
    return std::nullopt;
  if (isa<arith::ExtUIOp, arith::ExtSIOp>(op)) {
    const bool isSigned = isa<arith::ExtSIOp>(op);
    MaybeRange inner = getIntegerRange(op->getOperand(0));
    return inner && (isSigned || inner->least >= 0)
               ? inner
               : rangeOfBits(op->getOperand(0).getType(), isSigned);
  }
  if (isa<arith::IndexCastOp>(op))
    return getIntegerRange(op->getOperand(0));
  if (auto choice = dyn_cast<arith::SelectOp>(op)) {
    MaybeRange a = getIntegerRange(choice.getTrueValue()),
               b = getIntegerRange(choice.getFalseValue());
    if (!a || !b)
      return std::nullopt;
    return IntegerRange{std::min(a->least, b->least), std::max(a->greatest, b->greatest)};
  }
  if (op->getNumOperands() != 2 || op->getNumRegions() > 0 || op->getNumResults() != 1)
    return std::nullopt;
  return rangeOfOperation(op, getIntegerRange(op->getOperand(0)),
                          getIntegerRange(op->getOperand(1)));
}
