//===- ApproximateNarrow.cpp - functions whose results are rounded --------===//
//
// What is rounded to 16 bits or fewer needs no quotient that is right to the last bit of f32, nor
// the error function's relative accuracy near 0 where 1 is added to it. Both cost several times as
// much as the hardware's approximations, beside a product more than all else that is done with it.
//   1. A value is narrow if it has uses, and each is a rounding to 16 bits or fewer, or a sum,
//      difference, product, quotient, negation, extremum or choice that is narrow.
//   2. An f32 quotient that is narrow may have an error of 2 ulp.
//   3. An f32 error function may have an absolute error of 2^-22 if all that is done with it is to
//      add a constant of at least 1/2 in size, with narrow sums: of them that is 4 ulp.
//   4. An f32 exponential that is narrow may be the instruction for 2^x where its argument is a
//      difference: what that was rounded by shows in the result as much as the instruction's error
//      of 2^-22. Of other arguments results near 1 may be exact until 1 is taken off.
//
//   5. A product with 1 + erf(x) that through products only is rounded to 8 significant bits or
//      fewer is one with 2 P(x sqrt(2)), where P is the share of a standard normal distribution
//      below its argument, with a relative error; constant factors on either side are joined. In
//      gelu none is left. The share beyond |x| is 2 to the power of a polynomial.
//
//   6. A product of an integer of 8 bits and an f32 that is rounded to bf16 as a factor of a sum's
//      terms may have an error of 2^-14 before that; the f32 may count as infinite from 2^122 on.
//      If the integer is a field of packed numbers, a number may be subtracted from it, and the
//      product may have an error of 2^-13 of the f32 before the rounding.
//
//   %e = math.erf %x                          %e = math.erf %x <approx>
//   %s = arith.addf %e, %one             →    ...
//   %q = arith.divf %s, %y                    %q = arith.divf %s, %y <approx>
//   %r = arith.truncf %q : f32 to bf16
//
//   %h = arith.mulf %x, 0.5                   %a = math.absf %x
//   %k = arith.mulf %x, 0.70710678            %t = math.exp2 (polynomial of %a) <approx>
//   %e = math.erf %k                     →    %s = arith.select (%x >= 0), 1, 0
//   %s = arith.addf %e, %one                  %p = math.absf (%s - %t)
//   %g = arith.mulf %h, %s                    %g = arith.mulf %x, %p
//   %r = arith.truncf %g : f32 to bf16        %r = arith.truncf %g : f32 to bf16
//
//===----------------------------------------------------------------------===//
#include "passes/numerics/ApproximateNarrow.h"

#include "dialects/tkgpu/TkGpuFields.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/numerics/ApproximateExps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;
using namespace tk;

/// The least constant beside which an absolute error of 2^-22 is one of 4 ulp.
static constexpr double leastAddend = 0.5;
/// Significant bits of results beside which a relative error of 2^-13 is little.
static constexpr unsigned fewBits = 8;
/// The logarithm to base 2 of the share of a standard normal distribution beyond x >= 0, from the
/// coefficient of x^5 downwards: fitted on [0, 5] for the least error of the share, of 2^-13.3
/// relative to it or of 2^-30.3. Further on it falls.
static constexpr double shareBeyond[] = {-3.11483804e-04, 5.73743461e-03, -4.79285233e-02,
                                         -4.64546412e-01, -1.14897513,    -1.00013542};
/// Constant factors as near 1 as roundings of f32 leave them.
static constexpr double nearOne = 0x1p-22;

bool tk::isNarrow(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<arith::TruncFOp>(user))
      return user->getResult(0).getType().getIntOrFloatBitWidth() <= 16;
    if (isa<arith::SelectOp>(user) && use.getOperandNumber() == 0)
      return false;
    return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp,
               arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp,
               arith::SelectOp>(user) &&
           isNarrow(user->getResult(0));
  });
}

/// Is all that is done with `value` to add a constant that is not small, and is that narrow?
static bool isAddedToConstant(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUsers(), [&](Operation *user) {
    auto add = dyn_cast<arith::AddFOp>(user);
    FloatAttr constant;
    return add &&
           matchPattern(add.getLhs() == value ? add.getRhs() : add.getLhs(),
                        m_Constant(&constant)) &&
           std::abs(constant.getValueAsDouble()) >= leastAddend && isNarrow(add);
  });
}

bool tk::isRoundedThroughProducts(Value value, unsigned mostBits) {
  return !value.use_empty() && llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (isa<arith::TruncFOp>(user))
      return cast<FloatType>(user->getResult(0).getType()).getFPMantissaWidth() <= mostBits;
    return isa<arith::MulFOp>(user) && isRoundedThroughProducts(user->getResult(0), mostBits);
  });
}

std::pair<Value, double> tk::splitConstant(Value value) {
  auto product = value.getDefiningOp<arith::MulFOp>();
  FloatAttr constant;
  if (product && matchPattern(product.getRhs(), m_Constant(&constant)))
    return {product.getLhs(), constant.getValueAsDouble()};
  if (product && matchPattern(product.getLhs(), m_Constant(&constant)))
    return {product.getRhs(), constant.getValueAsDouble()};
  return {value, 1.0};
}

static Value constant(OpBuilder &builder, Location loc, double value) {
  return arith::ConstantOp::create(builder, loc,
                                   builder.getF32FloatAttr(static_cast<float>(value)));
}

Value tk::multiplyBy(OpBuilder &builder, Location loc, Value value, double factor) {
  if (std::abs(factor - 1.0) <= nearOne)
    return value;
  return arith::MulFOp::create(builder, loc, value, constant(builder, loc, factor));
}

/// The share of a standard normal distribution below `x`: of x < 0 what is beyond |x|, else 1 less
/// that. It is 0 at -inf, so that a product with -inf is NaN as it was.
static Value createNormalShare(OpBuilder &builder, Location loc, Value x) {
  Value size = math::AbsFOp::create(builder, loc, x);
  Value power = constant(builder, loc, shareBeyond[0]);
  for (double coefficient : llvm::drop_begin(shareBeyond))
    power = math::FmaOp::create(builder, loc, power, size, constant(builder, loc, coefficient));
  auto beyond = math::Exp2Op::create(builder, loc, power);
  gpu::addMode(beyond, gpu::MathMode::Approx);
  Value isAbove = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGE, x,
                                        constant(builder, loc, 0.0));
  Value whole = arith::SelectOp::create(builder, loc, isAbove, constant(builder, loc, 1.0),
                                        constant(builder, loc, 0.0));
  return math::AbsFOp::create(builder, loc, arith::SubFOp::create(builder, loc, whole, beyond));
}

/// Makes a product with 1 + erf(x) one with a share of the normal distribution.
static void useNormalShare(arith::MulFOp product) {
  if (!product.getType().isF32() || !isRoundedThroughProducts(product, fewBits))
    return;
  auto [erf, factor] = matchFactorOnePlus<math::ErfOp>(product);
  if (!erf)
    return;
  OpBuilder builder(product);
  Location loc = product.getLoc();
  auto [x, scale] = splitConstant(erf.getOperand());
  auto [other, otherScale] = splitConstant(factor);
  Value share =
      createNormalShare(builder, loc, multiplyBy(builder, loc, x, scale * std::sqrt(2.0)));
  product.getLhsMutable().set(multiplyBy(builder, loc, other, 2.0 * otherScale));
  product.getRhsMutable().set(share);
}

/// The product with an integer of 8 bits, or with the difference of a field of packed numbers and
/// another number, that `factor` of a sum's terms is after it is rounded to 16 bits, if that is all
/// that is done with it.
static arith::MulFOp matchScaledInteger(Value factor) {
  Value rounded = withoutExtension(factor);
  auto rounding = rounded.getDefiningOp<arith::TruncFOp>();
  if (!rounding || !factor.hasOneUse() || !rounded.hasOneUse())
    return {};
  if (std::optional<gpu::ScaledField> scaled = gpu::matchScaledField(rounding))
    return scaled->product;
  auto product = rounding.getIn().getDefiningOp<arith::MulFOp>();
  if (!product || !rounded.getType().isBF16() || !product->hasOneUse())
    return {};
  bool hasInteger = llvm::any_of(product->getOperands(), [](Value operand) {
    auto widened = operand.getDefiningOp<arith::SIToFPOp>();
    return widened && widened->hasOneUse() && widened.getIn().getType().isInteger(8);
  });
  return hasInteger ? product : arith::MulFOp();
}

void tk::markNarrowFunctions(ComputeOp compute) {
  compute.getBody().walk(useNormalShare);
  auto mark = [](Operation *op) { gpu::addMode(op, gpu::MathMode::Approx); };
  compute.getBody().walk([&](ReduceOp reduce) {
    if (isContraction(reduce))
      for (Value factor : reduce.getYield().getValues()[0].getDefiningOp()->getOperands())
        if (arith::MulFOp product = matchScaledInteger(factor))
          mark(product);
  });
  compute.getBody().walk([&](Operation *op) {
    if (op->getNumResults() != 1 || !op->getResult(0).getType().isF32())
      return;
    if (isa<arith::DivFOp>(op) && isNarrow(op->getResult(0)))
      mark(op);
    if (isa<math::ExpOp>(op) && op->getOperand(0).getDefiningOp<arith::SubFOp>() &&
        isNarrow(op->getResult(0)))
      mark(op);
    if (isa<math::ErfOp>(op) && isAddedToConstant(op->getResult(0)))
      mark(op);
  });
}
