//===- RowQuotients.cpp - quotients by what a row has once ----------------===//
//
// What is stored in 8 bits is a row over its scale, limited to the numbers that the type has. For
// each element that is a division, of three or more instructions, and two limits.
//   1. An f32 quotient that may have an error of 2 ulp (ApproximateNarrow.h), of a dividend that
//      varies with an index that the divisor does not vary with, is a product with the divisor's
//      reciprocal, which is rounded once more. The reciprocal must be a normal number: the divisor
//      is a number from 2^-125 to 2^125 wherever it is neither infinite nor NaN. Of an infinite one
//      it is 0, which gives what the quotient is.
//   2. That follows from constants: those that a maximum is taken with are limits from below, and
//      quotients of any number by a large one are limited from above. The sum or difference of a
//      constant and any number (1 - rate) is 0 or not much smaller than the constant; of 0 the
//      reciprocal is infinite, which gives what the quotient is. Above 2^127 its reciprocal is
//      subnormal, and the product has an error of 3 ulp.
//   3. Roundings to 8 bits saturate in every program of blocks: limits before them at the type's
//      largest numbers are left out. A type with infinities keeps them: a constant one would be
//      folded to itself.
//
// Before: %s = max(%m, 1e-6) / 448; %q = %n / %s <approx>; %r = truncf max(min(%q, 448), -448)
// After:  %s = max(%m, 1e-6) / 448; %f = 1 / %s; %q = %n * %f; %r = truncf %q
//
//===----------------------------------------------------------------------===//
#include "passes/numerics/RowQuotients.h"

#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/numerics/ApproximateExps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tk;

/// Divisors from here to its reciprocal have normal ones, whatever rounding their bounds have seen.
static constexpr double leastDivisor = 0x1p-125;

namespace {
/// What an f32 value lies between where it is neither infinite nor NaN; its infinities have the
/// sign of a bound.
struct Bounds {
  double low = -std::numeric_limits<float>::max(), high = std::numeric_limits<float>::max();
};
} // namespace

static Bounds boundsOf(Value value);

/// Of the sum, product or quotient of `value` and `factor`, a positive constant, or of two values.
static Bounds boundsOfArithmetic(Operation *op) {
  Bounds a = boundsOf(op->getOperand(0)), b = boundsOf(op->getOperand(1)), all;
  auto limited = [&](double low, double high) {
    return Bounds{std::max(low, all.low), std::min(high, all.high)};
  };
  if (isa<arith::AddFOp>(op))
    return limited(a.low + b.low, a.high + b.high);
  if (isa<arith::MaximumFOp>(op))
    return {std::max(a.low, b.low), std::max(a.high, b.high)};
  if (isa<arith::MinimumFOp>(op))
    return {std::min(a.low, b.low), std::min(a.high, b.high)};
  bool isScaled = b.low == b.high && b.low > 0;
  if (isScaled && isa<arith::DivFOp>(op))
    return limited(a.low / b.low, a.high / b.low);
  if (isScaled && isa<arith::MulFOp>(op))
    return limited(a.low * b.low, a.high * b.low);
  return all;
}

static Bounds boundsOf(Value value) {
  FloatAttr constant;
  if (matchPattern(value, m_Constant(&constant)) && constant.getValue().isFinite())
    return {constant.getValueAsDouble(), constant.getValueAsDouble()};
  Operation *op = value.getDefiningOp();
  if (!op || !value.getType().isF32())
    return {};
  if (isa<math::AbsFOp>(op))
    return {0.0, Bounds().high};
  bool isArithmetic =
      isa<arith::AddFOp, arith::MulFOp, arith::DivFOp, arith::MaximumFOp, arith::MinimumFOp>(op);
  return isArithmetic ? boundsOfArithmetic(op) : Bounds();
}

/// Is `value` 0 or at least `leastDivisor` in size, being the distance of two numbers one of which
/// is a constant? Numbers that are close have the same last places, in which they differ; others
/// are far apart.
static bool isDistanceFromConstant(Value value) {
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<arith::AddFOp, arith::SubFOp>(op) || !value.getType().isF32())
    return false;
  return llvm::any_of(op->getOperands(), [](Value operand) {
    FloatAttr constant;
    if (!matchPattern(operand, m_Constant(&constant)) || !constant.getValue().isFinite())
      return false;
    const double size = std::abs(constant.getValueAsDouble());
    return size >= leastDivisor * 0x1p25 && size <= 1 / leastDivisor;
  });
}

static bool hasReciprocal(Value value) {
  Bounds bounds = boundsOf(value);
  return (bounds.low >= leastDivisor && bounds.high <= 1 / leastDivisor) ||
         isDistanceFromConstant(value);
}

/// Has `quotient` the divisor of others, since its dividend alone varies with an index of
/// `compute`?
static bool sharesDivisor(arith::DivFOp quotient, ComputeOp compute) {
  return llvm::any_of(compute.getBlock()->getArguments(), [&](BlockArgument index) {
    Dependence varies{ValueRange{index}};
    return varies.on(quotient.getLhs()) && !varies.on(quotient.getRhs());
  });
}

static Value createReciprocal(ComputeOp compute, Value divisor, Location loc) {
  OpBuilder builder = OpBuilder::atBlockBegin(compute.getBlock());
  if (compute->isProperAncestor(divisor.getParentRegion()->getParentOp()) ||
      divisor.getParentBlock() == compute.getBlock() ||
      divisor.getParentBlock() == compute->getBlock()) // the launch computes it once
    builder.setInsertionPointAfterValue(divisor);
  Value one = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(1.0f));
  return arith::DivFOp::create(builder, loc, one, divisor);
}

void tk::shareReciprocals(ComputeOp compute) {
  SmallVector<arith::DivFOp> quotients;
  compute.getBody().walk([&](Operation *op) {
    auto quotient = dyn_cast<arith::DivFOp>(op);
    if (quotient && gpu::hasMode(quotient, gpu::MathMode::Approx) &&
        hasReciprocal(quotient.getRhs()) && sharesDivisor(quotient, compute))
      quotients.push_back(quotient);
    auto rounding = dyn_cast<arith::TruncFOp>(op);
    if (rounding && rounding.getType().getIntOrFloatBitWidth() == 8 &&
        !llvm::APFloat::semanticsHasInf(cast<FloatType>(rounding.getType()).getFloatSemantics()))
      rounding.getInMutable().set(stripClamps(rounding.getIn(), rounding.getType()));
  });
  DenseMap<Value, Value> reciprocals;
  for (arith::DivFOp quotient : quotients) {
    Value &reciprocal = reciprocals[quotient.getRhs()];
    if (!reciprocal)
      reciprocal = createReciprocal(compute, quotient.getRhs(), quotient.getLoc());
    OpBuilder builder(quotient);
    Value product =
        arith::MulFOp::create(builder, quotient.getLoc(), quotient.getLhs(), reciprocal);
    quotient.replaceAllUsesWith(product);
    quotient.erase();
  }
}
