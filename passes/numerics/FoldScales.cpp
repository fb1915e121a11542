//===- FoldScales.cpp - positive factors of scores ------------------------===//
//
// In an online reduction the scores often have a common factor, s = x c, with weights exp(s - m)
// under their running maximum. For a positive finite c
//
//   1. the maximum of the products is the product of the maximum: rounding is monotone, and -inf
//      stays -inf, under masks too;
//   2. a weight is exp((x - max x) c), in which c joins the factor log2(e) of the exponential.
//
// So scores are never multiplied: the loop carries the maximum of x, and what reads the maximum
// afterwards multiplies that by c. Only for weights that may be approximate: x c is no longer
// rounded by itself.
//
//   yield (max) x * c, exp_diff(x * c, %m)      yield (max) x, scaled_exp_diff(x, %m, c)
//   %r#0                                     →  %r#0 * c
//
//===----------------------------------------------------------------------===//
#include "passes/numerics/FoldScales.h"

#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuProducts.h"
#include "passes/analysis/ScalarCases.h"
#include "passes/numerics/ApproximateExps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

namespace {

class ScaleFolding {
public:
  ScaleFolding(KernelOp kernel, tk::ReduceOp reduction)
      : kernel(kernel), reduction(reduction), builder(reduction) {}

  bool analyse();
  void apply();

private:
  bool isPositive(Value value);
  bool isOutside(Value value) { return !reduction.getBody().isAncestor(value.getParentRegion()); }
  bool areWeightsUnder(Block &block, Value bound, Value score);
  void rescale(ExpDiffOp diff, Value from);

  KernelOp kernel;
  tk::ReduceOp reduction;
  OpBuilder builder;
  arith::SelectOp mask; ///< around the product, if there is one
  arith::MulFOp product;
  Value unscaled, scale;
  SmallVector<ExpDiffOp> weights, factors;
};

} // namespace

/// Is a scalar of the kernel known to be above 0? Parameters are by what the launch checks, and are
/// then taken to be finite; so is what follows from dimensions, unless something is empty.
bool ScaleFolding::isPositive(Value value) {
  APFloat literal(0.0f);
  if (matchPattern(value, m_ConstantFloat(&literal)))
    return literal.isFiniteNonZero() && !literal.isNegative();
  if (isa<BlockArgument>(value))
    return assumedOf(value).isPositive;
  Operation *op = value.getDefiningOp();
  if (isa<math::RsqrtOp, math::SqrtOp>(op))
    return isPositive(op->getOperand(0));
  if (isa<arith::MulFOp, arith::DivFOp>(op))
    return isPositive(op->getOperand(0)) && isPositive(op->getOperand(1));
  // A dimension: where it is 0 there are no scores, or all are 0.
  if (auto convert = dyn_cast<arith::SIToFPOp>(op)) {
    auto cast = convert.getIn().getDefiningOp<arith::IndexCastOp>();
    return cast && llvm::is_contained(kernel.getDimArguments(), cast.getIn());
  }
  return false;
}

/// Is `bound` of use for nothing but approximate weights of `score`?
bool ScaleFolding::areWeightsUnder(Block &block, Value bound, Value score) {
  for (Operation *user : bound.getUsers()) {
    auto diff = dyn_cast<ExpDiffOp>(user);
    if (!diff || user->getBlock() != &block || diff.getA() != score || diff.getB() != bound ||
        !gpu::hasMode(diff, gpu::MathMode::Approx))
      return false;
    weights.push_back(diff);
  }
  return true;
}

bool ScaleFolding::analyse() {
  if (!reduction.isOnline() || reduction.getKind(0) != ReduceKind::Max)
    return false;
  Value score = reduction.getYield().getValues().front();
  mask = score.getDefiningOp<arith::SelectOp>();
  if (mask) {
    APFloat other(0.0f);
    if (!matchPattern(mask.getFalseValue(), m_ConstantFloat(&other)) || !other.isInfinity() ||
        !other.isNegative())
      return false;
    product = mask.getTrueValue().getDefiningOp<arith::MulFOp>();
  } else {
    product = score.getDefiningOp<arith::MulFOp>();
  }
  if (!product || !product.getType().isF32() || product->getBlock() != reduction.getBlock())
    return false;
  for (unsigned side : {0u, 1u})
    if (isOutside(product->getOperand(side)) && isPositive(product->getOperand(side))) {
      scale = product->getOperand(side);
      unscaled = product->getOperand(1 - side);
    }
  if (!scale || !areWeightsUnder(*reduction.getBlock(), reduction.getRunning(0), score))
    return false;
  // Nothing else may see the scores as they were.
  for (OpOperand &use : score.getUses())
    if (!llvm::is_contained(weights, use.getOwner()) &&
        !(use.getOwner() == reduction.getYield() && use.getOperandNumber() == 0))
      return false;
  if (mask && !product->hasOneUse())
    return false;
  Block &rescale = reduction.getRescale().front();
  Value before = rescale.getArgument(0),
        after = rescale.getArgument(reduction.getNumAccumulators() - 1);
  unsigned numWeights = weights.size();
  if (numWeights == 0 || !areWeightsUnder(rescale, after, before))
    return false;
  factors.assign(weights.begin() + numWeights, weights.end());
  weights.truncate(numWeights);
  return llvm::all_of(before.getUsers(),
                      [&](Operation *user) { return llvm::is_contained(factors, user); });
}

void ScaleFolding::rescale(ExpDiffOp diff, Value from) {
  builder.setInsertionPoint(diff);
  auto scaled = gpu::ScaledExpDiffOp::create(builder, diff.getLoc(), diff.getType(), from,
                                             diff.getB(), scale);
  if (gpu::hasMode(diff, gpu::MathMode::Rescale))
    gpu::addMode(scaled, gpu::MathMode::Rescale);
  diff.replaceAllUsesWith(scaled.getResult());
  diff.erase();
}

void ScaleFolding::apply() {
  Value score = unscaled;
  if (mask) {
    mask.getTrueValueMutable().assign(unscaled);
    score = mask;
  }
  for (ExpDiffOp diff : weights)
    rescale(diff, score);
  for (ExpDiffOp diff : factors)
    rescale(diff, diff.getA());
  reduction.getYield()->setOperand(0, score);
  if (product->use_empty())
    product.erase();
  builder.setInsertionPointAfter(reduction);
  Value maximum = reduction.getResult(0);
  if (maximum.use_empty())
    return;
  auto scaled = arith::MulFOp::create(builder, reduction.getLoc(), maximum, scale);
  maximum.replaceAllUsesExcept(scaled, scaled);
}

void tk::foldScales(KernelOp kernel, ComputeOp compute) {
  compute.getBody().walk([&](tk::ReduceOp reduction) {
    if (ScaleFolding folding(kernel, reduction); folding.analyse())
      folding.apply();
  });
}
