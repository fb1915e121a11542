//===- CountedRows.cpp - rows whose places are counted through ------------===//
#include "passes/layout/CountedRows.h"

#include "dialects/tk/TkDialect.h"
#include "passes/layout/BulkBox.h"
#include "passes/layout/RunIndices.h"
#include "passes/plan/WindowPlaces.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

Value CountedExtent::build(OpBuilder &builder, Location loc) const {
  return number ? arith::ConstantIndexOp::create(builder, loc, *number).getResult() : value;
}

static std::optional<CountedExtent> readExtent(Value tile) {
  if (std::optional<int64_t> number = constantIndex(tile))
    return CountedExtent{tile, number};
  if (Value scalar = splatSource(tile))
    return CountedExtent{scalar, constantIndex(scalar)};
  return std::nullopt;
}

static bool isSame(const CountedExtent &a, const CountedExtent &b) {
  return a.number ? a.number == b.number : a.value == b.value;
}

/// Takes what is added to, and multiplied with, a digit off `index`; returns the digit.
static Value takeDigit(Value index, CountedDigit &digit) {
  for (;;) {
    Operation *op = index.getDefiningOp();
    if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
      return index;
    Value rest = op->getOperand(0);
    std::optional<CountedExtent> other = readExtent(op->getOperand(1));
    if (!other && !isa<arith::SubIOp>(op)) {
      rest = op->getOperand(1);
      other = readExtent(op->getOperand(0));
    }
    if (!other)
      return index;
    if (isa<arith::MulIOp>(op)) {
      if (!other->number)
        return index;
      digit.step *= *other->number;
    } else {
      const int64_t factor = isa<arith::SubIOp>(op) ? -digit.step : digit.step;
      if (other->number)
        digit.number += factor * *other->number;
      else
        digit.scalars.emplace_back(other->value, factor);
    }
    index = rest;
  }
}

/// The dividend of `value`, a quotient or a remainder by an extent.
template <class... Ops> static Value readDivision(Value value, CountedExtent &extent) {
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<Ops...>(op))
    return {};
  std::optional<CountedExtent> divisor = readExtent(op->getOperand(1));
  if (!divisor)
    return {};
  extent = *divisor;
  return op->getOperand(0);
}

std::optional<CountedRows> tk::readCountedRows(const MemoryAccess &access, int64_t axis) {
  CountedRows rows;
  SmallVector<Value> digits;
  for (unsigned d = 0; d < access.indices.size(); ++d) {
    if (access.indexAxes(d) != ArrayRef(axis))
      continue;
    if (digits.empty())
      rows.first = d;
    else if (d != rows.end())
      return std::nullopt;
    CountedDigit digit;
    digits.push_back(takeDigit(access.indices[d], digit));
    if (digit.step < 1)
      return std::nullopt;
    rows.digits.push_back(digit);
  }
  if (digits.size() < 2)
    return std::nullopt;
  Value rest = readDivision<FloorModOp>(digits.back(), rows.digits.back().extent);
  rows.count = rest;
  for (size_t d = digits.size(); rest && d-- > 0;) {
    if (d == 0) {
      if (digits[0] != rest)
        return std::nullopt;
      break;
    }
    CountedExtent extent;
    if (readDivision<FloorModOp>(digits[d], extent) != rest)
      return std::nullopt;
    rows.digits[d].extent = extent;
    // The quotient is what the next digit is taken of.
    Value next = d == 1 ? digits[0] : readDivision<FloorModOp>(digits[d - 1], extent);
    CountedExtent divisor;
    if (!next || readDivision<FloorDivOp>(next, divisor) != rest ||
        !isSame(divisor, rows.digits[d].extent))
      return std::nullopt;
    rest = next;
  }
  if (!rows.count || !isRun(rows.count, rows.starts))
    return std::nullopt;
  return rows;
}

/// A value as a multiple of another one, or of nothing if it is a number.
static std::pair<Value, int64_t> readMultiple(Value value) {
  if (std::optional<int64_t> number = constantIndex(value))
    return {Value(), *number};
  int64_t factor = 1;
  while (auto product = value.getDefiningOp<arith::MulIOp>()) {
    std::optional<int64_t> number = constantIndex(product.getRhs());
    if (!number)
      break;
    factor *= *number;
    value = product.getLhs();
  }
  return {value, factor};
}

/// Is `product` that of `stride` and `extent`?
static bool isProduct(Value product, Value stride, const CountedExtent &extent) {
  std::optional<int64_t> part = constantIndex(stride);
  if (extent.number) {
    const auto [whole, factor] = readMultiple(product);
    const auto [base, factorOfStride] = readMultiple(stride);
    if (whole == base && factor == factorOfStride * *extent.number)
      return true;
  }
  auto multiplied = product.getDefiningOp<arith::MulIOp>();
  if (!multiplied)
    return false;
  auto is = [&](Value a, Value b) {
    return (a == stride || (part && constantIndex(a) == part)) &&
           (extent.number ? constantIndex(b) == extent.number : b == extent.value);
  };
  return is(multiplied.getLhs(), multiplied.getRhs()) ||
         is(multiplied.getRhs(), multiplied.getLhs());
}

bool CountedRows::areContiguous(ValueRange strides) const {
  for (unsigned d = 0; d < digits.size(); ++d)
    if (!digits[d].isPlain() ||
        (d > 0 && !isProduct(strides[first + d - 1], strides[first + d], digits[d].extent)))
      return false;
  return true;
}

SmallVector<Value> CountedRows::buildFirst(OpBuilder &builder, Location loc) const {
  Value rest;
  for (Value start : starts)
    rest = rest ? arith::AddIOp::create(builder, loc, rest, start).getResult() : start;
  if (!rest)
    rest = arith::ConstantIndexOp::create(builder, loc, 0);
  SmallVector<Value> values(digits.size());
  for (size_t d = digits.size(); d-- > 1;) {
    Value extent = digits[d].extent.build(builder, loc);
    values[d] = FloorModOp::create(builder, loc, rest.getType(), rest, extent);
    rest = FloorDivOp::create(builder, loc, rest.getType(), rest, extent);
  }
  values[0] = rest;
  return values;
}

Value CountedDigit::buildDistance(OpBuilder &builder, Location loc, int64_t base) const {
  Value sum;
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  for (auto [scalar, factor] : scalars) {
    Value term = factor == 1 || factor == -1
                     ? scalar
                     : arith::MulIOp::create(builder, loc, scalar, constant(std::abs(factor)));
    if (!sum && factor < 0)
      sum = constant(0);
    sum = !sum         ? term
          : factor < 0 ? arith::SubIOp::create(builder, loc, sum, term).getResult()
                       : arith::AddIOp::create(builder, loc, sum, term).getResult();
  }
  if (!sum)
    return constant(number - base);
  if (number != base)
    sum = arith::AddIOp::create(builder, loc, sum, constant(number - base));
  return sum;
}

//===----------------------------------------------------------------------===//
// Ranges of scalars
//===----------------------------------------------------------------------===//

static std::optional<ScalarRange> rangeOfArgument(BlockArgument argument) {
  if (auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())) {
    if (argument != loop.getInductionVar())
      return std::nullopt;
    std::optional<ScalarRange> from = rangeOfScalar(loop.getLowerBound()),
                               to = rangeOfScalar(loop.getUpperBound());
    if (!from || !to)
      return std::nullopt;
    return ScalarRange{from->least, std::max(from->least, to->most - 1)};
  }
  auto function = dyn_cast<FuncOp>(argument.getOwner()->getParentOp());
  std::optional<LaunchArguments> arguments =
      function ? LaunchArguments::of(function) : std::nullopt;
  LaunchOp launch = arguments ? arguments->getLaunch() : LaunchOp();
  if (!launch || !argument.getType().isIndex() ||
      argument.getArgNumber() >= launch.getArgs().size())
    return std::nullopt;
  std::optional<SizeRange> range =
      rangeOfSize(launch->getParentOfType<KernelOp>(), launch.getArgs()[argument.getArgNumber()]);
  if (!range)
    return std::nullopt;
  return ScalarRange{range->least, range->most};
}

std::optional<ScalarRange> tk::rangeOfScalar(Value scalar) {
  if (std::optional<int64_t> number = constantIndex(scalar))
    return ScalarRange{*number, *number};
  if (auto argument = dyn_cast<BlockArgument>(scalar))
    return rangeOfArgument(argument);
  Operation *op = scalar.getDefiningOp();
  if (op->getNumOperands() != 2)
    return std::nullopt;
  std::optional<ScalarRange> a = rangeOfScalar(op->getOperand(0)),
                             b = rangeOfScalar(op->getOperand(1));
  // A remainder is less than its divisor, whatever it is of.
  if (isa<FloorModOp>(op) && b && b->most > 0)
    return ScalarRange{0, a && a->least >= 0 ? std::min(a->most, b->most - 1) : b->most - 1};
  if (!a || !b)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return ScalarRange{a->least + b->least, a->most + b->most};
  if (isa<arith::SubIOp>(op))
    return ScalarRange{a->least - b->most, a->most - b->least};
  if (isa<arith::MulIOp>(op)) {
    const auto [least, most] = std::minmax(
        {a->least * b->least, a->least * b->most, a->most * b->least, a->most * b->most});
    return ScalarRange{least, most};
  }
  if (isa<FloorDivOp>(op) && b->least > 0 && b->least == b->most)
    return ScalarRange{llvm::divideFloorSigned(a->least, b->least),
                       llvm::divideFloorSigned(a->most, b->least)};
  // No quotient by 0 is computed.
  if (isa<FloorDivOp, arith::DivSIOp>(op) && a->least >= 0 && b->least >= 0 && b->most > 0)
    return ScalarRange{a->least / b->most, a->most / std::max<int64_t>(b->least, 1)};
  if (isa<arith::RemSIOp>(op) && a->least >= 0 && b->least > 0)
    return ScalarRange{0, std::min(a->most, b->most - 1)};
  return std::nullopt;
}
