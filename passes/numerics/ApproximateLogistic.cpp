//===- ApproximateLogistic.cpp - logistic functions that are rounded ------===//
//
// The logistic function 1 / (1 + exp(-x)) is what silu and, as (1 + tanh(x / 2)) / 2, an activation
// by tanh multiply by. Of what is rounded to 16 bits or fewer:
//
//   1. A product with 1 + tanh(z) that through products only is rounded is one with
//      2 / (1 + 2^y), where y = -2 log2(e) z. That has a relative error of 2^-17, y below 128 being
//      rounded, where tanh(z) near -1 leaves nothing of the sum. Constant factors are joined.
//   2. Where z is a polynomial of the product's other factor, or of what a constant multiplies in
//      that, y is evaluated by multiply-adds in its square, if it has odd powers alone and their
//      coefficients have one sign: no term cancels another.
//   3. A narrow exponential that only a constant of at least 1/2 is added to may be the
//      instruction for 2^x: of the sum, and so of quotients by it, the error is no more.
//   4. A narrow quotient of a constant by such a sum is a product with the hardware's reciprocal:
//      that is 0 where 1 / x is no normal number.
//
//   %h = arith.mulf %x, 0.5                   %q = arith.mulf %x, %x
//   %z = arith.mulf %x + 0.0447 %x^3, 0.798   %p = math.fma %q, -0.103, -2.302
//   %t = math.tanh %z                         %y = arith.mulf %x, %p
//   %s = arith.addf %t, 1                →    %e = math.exp2 %y <approx>
//   %g = arith.mulf %h, %s                    %s = arith.addf %e, 1
//   %r = arith.truncf %g : f32 to bf16        %g = arith.divf %x, %s <approx, reciprocal>
//                                             %r = arith.truncf %g : f32 to bf16
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/numerics/ApproximateExps.h"
#include "passes/numerics/ApproximateNarrow.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;
using namespace tk;

/// Significant bits of results beside which a relative error of 2^-17 is little.
static constexpr unsigned mostBits = 11;
/// Of the polynomials that are looked for.
static constexpr size_t highestPower = 7;
/// The least constant whose sum with an exponential has a normal reciprocal, or one near 0.
static constexpr double leastAddend = 0.5;
static constexpr double log2OfE = 1.4426950408889634;

/// Coefficients from the constant one upwards.
using Polynomial = SmallVector<double>;

static std::optional<Polynomial> product(const Polynomial &a, const Polynomial &b) {
  if (a.size() + b.size() - 2 > highestPower)
    return std::nullopt;
  Polynomial result(a.size() + b.size() - 1, 0.0);
  for (auto [i, x] : llvm::enumerate(a))
    for (auto [j, y] : llvm::enumerate(b))
      result[i + j] += x * y;
  return result;
}

static Polynomial sum(Polynomial a, const Polynomial &b, double sign) {
  a.resize(std::max(a.size(), b.size()), 0.0);
  for (auto [i, y] : llvm::enumerate(b))
    a[i] += sign * y;
  return a;
}

/// `value` as a polynomial of `x`, if it is one.
static std::optional<Polynomial> asPolynomial(Value value, Value x) {
  FloatAttr constant;
  if (value == x)
    return Polynomial{0.0, 1.0};
  if (matchPattern(value, m_Constant(&constant)) && constant.getValue().isFinite())
    return Polynomial{constant.getValueAsDouble()};
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<arith::AddFOp, arith::SubFOp, arith::MulFOp>(op))
    return std::nullopt;
  std::optional<Polynomial> a = asPolynomial(op->getOperand(0), x);
  std::optional<Polynomial> b = a ? asPolynomial(op->getOperand(1), x) : std::nullopt;
  if (!b)
    return std::nullopt;
  return isa<arith::MulFOp>(op) ? product(*a, *b)
                                : sum(*a, *b, isa<arith::SubFOp>(op) ? -1.0 : 1.0);
}

static Value constant(OpBuilder &builder, Location loc, double value) {
  return arith::ConstantOp::create(builder, loc,
                                   builder.getF32FloatAttr(static_cast<float>(value)));
}

/// Has a polynomial odd powers alone, several of them, and all with the same sign?
static bool isMonotonous(const Polynomial &powers) {
  for (auto [power, coefficient] : llvm::enumerate(powers))
    if (power % 2 == 0 ? coefficient != 0.0 : coefficient * powers.back() < 0.0)
      return false;
  return powers.size() % 2 == 0 && powers.size() > 2 && powers.back() != 0.0;
}

/// `scale` times `z`, from `x` if `z` is such a polynomial of that.
static Value createExponent(OpBuilder &builder, Location loc, Value z, Value x, double scale) {
  std::optional<Polynomial> powers = asPolynomial(z, x);
  if (!powers || !isMonotonous(*powers)) {
    auto [value, factor] = splitConstant(z);
    return multiplyBy(builder, loc, value, factor * scale);
  }
  Value square = arith::MulFOp::create(builder, loc, x, x);
  Value result = constant(builder, loc, powers->back() * scale);
  for (size_t power = powers->size() - 1; power > 1; power -= 2)
    result = math::FmaOp::create(builder, loc, square, result,
                                 constant(builder, loc, (*powers)[power - 2] * scale));
  return arith::MulFOp::create(builder, loc, x, result);
}

/// Makes a product with 1 + tanh(z) a quotient by 1 + 2^y.
static void useLogistic(arith::MulFOp product) {
  if (!product.getType().isF32() || !isRoundedThroughProducts(product, mostBits))
    return;
  auto [tanh, factor] = matchFactorOnePlus<math::TanhOp>(product);
  if (!tanh)
    return;
  OpBuilder builder(product);
  Location loc = product.getLoc();
  auto [other, scale] = splitConstant(factor);
  Value exponent = createExponent(builder, loc, tanh.getOperand(), other, -2.0 * log2OfE);
  auto power = math::Exp2Op::create(builder, loc, exponent);
  gpu::addMode(power, gpu::MathMode::Approx);
  Value divisor = arith::AddFOp::create(builder, loc, power, constant(builder, loc, 1.0));
  auto quotient =
      arith::DivFOp::create(builder, loc, multiplyBy(builder, loc, other, 2.0 * scale), divisor);
  gpu::addMode(quotient, gpu::MathMode::Approx);
  gpu::addMode(quotient, gpu::MathMode::Reciprocal);
  product.replaceAllUsesWith(quotient.getResult());
  product.erase();
}

/// Is `sum` that of an exponential and a constant of at least 1/2?
static bool isExponentialAndConstant(arith::AddFOp sum) {
  for (bool swapped : {false, true}) {
    Value power = sum->getOperand(swapped), addend = sum->getOperand(!swapped);
    FloatAttr constant;
    if (power.getDefiningOp() && isa<math::ExpOp, math::Exp2Op>(power.getDefiningOp()) &&
        matchPattern(addend, m_Constant(&constant)) && constant.getValueAsDouble() >= leastAddend &&
        constant.getValue().isFinite())
      return true;
  }
  return false;
}

void tk::approximateLogistics(ComputeOp compute) {
  compute.getBody().walk(useLogistic);
  compute.getBody().walk([&](Operation *op) {
    if (op->getNumResults() != 1 || !op->getResult(0).getType().isF32())
      return;
    auto isSum = [](Operation *user) {
      auto sum = dyn_cast<arith::AddFOp>(user);
      return sum && isExponentialAndConstant(sum);
    };
    if (isa<math::ExpOp>(op) && isNarrow(op->getResult(0)) && llvm::all_of(op->getUsers(), isSum))
      gpu::addMode(op, gpu::MathMode::Approx);
    auto divisor = isa<arith::DivFOp>(op) && gpu::hasMode(op, gpu::MathMode::Approx)
                       ? op->getOperand(1).getDefiningOp<arith::AddFOp>()
                       : arith::AddFOp();
    if (divisor && isExponentialAndConstant(divisor) &&
        matchPattern(op->getOperand(0), m_Constant()))
      gpu::addMode(op, gpu::MathMode::Reciprocal);
  });
}
