//===- ApproximateScores.cpp - what is done to scores ----------------------===//
//
// In an online reduction with weights exp(x - m) that may be approximate, scores x of use for
// nothing but the weights and their maximum need no more than a small absolute error: that is the
// weights' relative one. So, of what scores are computed from by sums, differences, negations,
// choices against -inf and products with values that are the same for the whole range,
//
//   1. a quotient by such a value is a product with its reciprocal, computed once;
//   2. of two products with such values one is left;
//   3. a hyperbolic tangent may have an absolute error of 2^-22, and so may its argument's terms
//      relatively;
//   4. a sum with a product is one multiply-add;
//   5. what a product with such a value is taken from is a sum with one of the other sign.
//
// A capped score c tanh(x / c) rounded at each step has an error of c 2^-24 itself.
//
//   yield (max) mulf(%c, tanh(divf(mulf(%x, %s), %c)))
//     →  %r = divf(1, %c); %t = mulf(%s, %r)            // before the reduction
//        yield (max) mulf(%c, tanh(mulf(%x, %t)) <approx>)
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/numerics/ApproximateExps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tk;

namespace {

class ScoreApproximation {
public:
  explicit ScoreApproximation(tk::ReduceOp reduction)
      : reduction(reduction), before(reduction), inside(reduction) {}

  void run();

private:
  bool areScores(unsigned maximum);
  void visit(Value value);
  void foldQuotient(arith::DivFOp quotient);
  void foldProducts(arith::MulFOp product);
  void joinProduct(arith::AddFOp sum);
  void addNegated(arith::SubFOp difference);
  bool isOutside(Value value) { return !reduction.getBody().isAncestor(value.getParentRegion()); }
  /// The factor of `product` that is the same for the whole range; null if none is.
  OpOperand *outsideFactor(arith::MulFOp product) {
    for (OpOperand &factor : product->getOpOperands())
      if (isOutside(factor.get()))
        return &factor;
    return nullptr;
  }

  tk::ReduceOp reduction;
  OpBuilder before, inside;
};

} // namespace

/// Are the terms of `maximum` of use for approximate weights alone, and is the maximum itself?
bool ScoreApproximation::areScores(unsigned maximum) {
  Value score = reduction.getYield().getValues()[maximum];
  if (reduction.getKind(maximum) != ReduceKind::Max || !reduction.getResult(maximum).use_empty() ||
      !score.getType().isF32() || score.getParentBlock() != reduction.getBlock())
    return false;
  bool hasWeights = false;
  for (OpOperand &use : score.getUses()) {
    auto weight = dyn_cast<ExpDiffOp>(use.getOwner());
    bool isWeight =
        weight && use.getOperandNumber() == 0 && gpu::hasMode(weight, gpu::MathMode::Approx);
    hasWeights |= isWeight;
    bool isTerm = use.getOwner() == reduction.getYield() && use.getOperandNumber() == maximum;
    if (!isWeight && !isTerm)
      return false;
  }
  return hasWeights;
}

void ScoreApproximation::foldQuotient(arith::DivFOp quotient) {
  Location loc = quotient.getLoc();
  Value one = arith::ConstantOp::create(before, loc, before.getF32FloatAttr(1.0f));
  Value reciprocal = arith::DivFOp::create(before, loc, one, quotient.getRhs());
  inside.setInsertionPoint(quotient);
  auto product = arith::MulFOp::create(inside, loc, quotient.getLhs(), reciprocal);
  quotient.replaceAllUsesWith(product.getResult());
  quotient.erase();
  visit(product);
}

void ScoreApproximation::foldProducts(arith::MulFOp product) {
  OpOperand *outer = outsideFactor(product);
  Value rest = product->getOperand(1 - outer->getOperandNumber());
  auto inner = rest.getDefiningOp<arith::MulFOp>();
  OpOperand *second = inner && rest.hasOneUse() ? outsideFactor(inner) : nullptr;
  if (!second) {
    if (rest.hasOneUse())
      visit(rest);
    return;
  }
  Value both = arith::MulFOp::create(before, product.getLoc(), second->get(), outer->get());
  outer->set(both);
  product->setOperand(1 - outer->getOperandNumber(),
                      inner->getOperand(1 - second->getOperandNumber()));
  inner.erase();
  foldProducts(product);
}

/// Makes a sum with a product that is of no other use one operation.
void ScoreApproximation::joinProduct(arith::AddFOp sum) {
  for (unsigned side : {0u, 1u}) {
    auto product = sum->getOperand(side).getDefiningOp<arith::MulFOp>();
    if (!product || !product->hasOneUse() || product->getBlock() != sum->getBlock())
      continue;
    inside.setInsertionPoint(sum);
    auto joined = math::FmaOp::create(inside, sum.getLoc(), product.getLhs(), product.getRhs(),
                                      sum->getOperand(1 - side));
    sum.replaceAllUsesWith(joined.getResult());
    sum.erase();
    product.erase();
    return;
  }
}

void ScoreApproximation::addNegated(arith::SubFOp difference) {
  auto product = difference.getRhs().getDefiningOp<arith::MulFOp>();
  OpOperand *factor = product && product->hasOneUse() ? outsideFactor(product) : nullptr;
  if (!factor || product->getBlock() != difference->getBlock())
    return;
  factor->set(before.createOrFold<arith::NegFOp>(product.getLoc(), factor->get()));
  inside.setInsertionPoint(difference);
  auto sum = arith::AddFOp::create(inside, difference.getLoc(), difference.getLhs(), product);
  difference.replaceAllUsesWith(sum.getResult());
  difference.erase();
  joinProduct(sum);
}

/// Approximates what `value` is computed from, if it is of no other use.
void ScoreApproximation::visit(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != reduction.getBlock() || !value.getType().isF32())
    return;
  auto visitOperand = [&](unsigned number) {
    if (op->getOperand(number).hasOneUse())
      visit(op->getOperand(number));
  };
  if (auto quotient = dyn_cast<arith::DivFOp>(op)) {
    if (isOutside(quotient.getRhs()))
      foldQuotient(quotient);
  } else if (auto product = dyn_cast<arith::MulFOp>(op)) {
    if (outsideFactor(product))
      foldProducts(product);
  } else if (auto select = dyn_cast<arith::SelectOp>(op)) {
    visitOperand(1);
    visitOperand(2);
  } else if (isa<arith::AddFOp, arith::SubFOp>(op)) {
    visitOperand(0);
    visitOperand(1);
    if (auto sum = dyn_cast<arith::AddFOp>(op))
      joinProduct(sum);
    else
      addNegated(cast<arith::SubFOp>(op));
  } else if (isa<arith::NegFOp>(op)) {
    visitOperand(0);
  } else if (isa<math::TanhOp>(op)) {
    gpu::addMode(op, gpu::MathMode::Approx);
    visitOperand(0);
  }
}

void ScoreApproximation::run() {
  for (unsigned k = 0; k < reduction.getNumAccumulators(); ++k)
    if (areScores(k))
      visit(reduction.getYield().getValues()[k]);
}

void tk::approximateScores(ComputeOp compute) {
  compute.getBody().walk([](tk::ReduceOp reduction) {
    if (reduction.isOnline())
      ScoreApproximation(reduction).run();
  });
}
