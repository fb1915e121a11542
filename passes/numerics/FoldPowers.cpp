//===- FoldPowers.cpp - powers of two of weights ---------------------------===//
//
// Weights that are rounded to 8 bits are multiplied by a power of two first. In an online reduction
// whose weights e are of use for such products e 2^n, all with one n, and for sums alone:
//
//   1. the power joins the exponent, where it costs nothing: the weights are e 2^n themselves;
//   2. a sum of them is 2^n times what it was, and is multiplied by 2^-n where it is read.
//
// Both are exact, but for sums beyond 2^128 / 2^n. What takes sums under one maximum to sums under
// another does not change.
//
//   %e = exp_diff %x, %m <approx>          %e = scaled_exp_diff %x, %m by 1 power 8
//   %w = mulf %e, 256                 →    yield (max) %x, (sum) %e, (sum) f(%e)
//   yield (max) %x, (sum) %e, (sum) f(%w)  %r#1 * 2^-8
//
//===----------------------------------------------------------------------===//
#include "passes/numerics/FoldScales.h"

#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/numerics/ApproximateExps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;
using namespace tk;

namespace {

/// How a weight is used.
struct WeightUses {
  SmallVector<arith::MulFOp> products; ///< with a power of two
  SmallVector<unsigned> sums;          ///< accumulators whose terms it is
  int power = 0;
};

} // namespace

static std::optional<WeightUses> usesOf(Value weight, tk::ReduceOp reduction) {
  WeightUses uses;
  for (OpOperand &use : weight.getUses()) {
    if (auto factor = exactFactor(use.getOwner()); factor && !factor->isNegative()) {
      const int power = factor->getExactLog2();
      if (!uses.products.empty() && power != uses.power)
        return std::nullopt;
      uses.power = power;
      uses.products.push_back(cast<arith::MulFOp>(use.getOwner()));
    } else if (use.getOwner() == reduction.getYield() &&
               reduction.getKind(use.getOperandNumber()) == ReduceKind::Sum) {
      uses.sums.push_back(use.getOperandNumber());
    } else {
      return std::nullopt;
    }
  }
  if (uses.products.empty())
    return std::nullopt;
  return uses;
}

static bool isRunningUsed(tk::ReduceOp reduction, unsigned accumulator) {
  return accumulator + 1 < reduction.getNumAccumulators() &&
         !reduction.getRunning(accumulator).use_empty();
}

static void fold(Operation *weight, const WeightUses &uses, tk::ReduceOp reduction) {
  OpBuilder builder(weight);
  Location loc = weight->getLoc();
  Type type = weight->getResult(0).getType();
  auto constant = [&](double value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, value));
  };
  auto scaled = dyn_cast<gpu::ScaledExpDiffOp>(weight);
  if (!scaled) {
    scaled = gpu::ScaledExpDiffOp::create(builder, loc, type, weight->getOperand(0),
                                          weight->getOperand(1), constant(1.0));
    weight->replaceAllUsesWith(scaled);
    weight->erase();
  }
  scaled.setPower(uses.power);
  for (arith::MulFOp product : uses.products) {
    product.replaceAllUsesWith(scaled.getResult());
    product.erase();
  }
  builder.setInsertionPointAfter(reduction);
  for (unsigned sum : uses.sums) {
    Value result = reduction.getResult(sum);
    if (result.use_empty())
      continue;
    auto before =
        arith::MulFOp::create(builder, loc, result, constant(std::ldexp(1.0, -uses.power)));
    result.replaceAllUsesExcept(before, before);
  }
}

void tk::foldPowers(ComputeOp compute) {
  compute.getBody().walk([](tk::ReduceOp reduction) {
    if (!reduction.isOnline())
      return;
    SmallVector<Operation *> weights;
    for (Operation &op : *reduction.getBlock())
      if (isa<gpu::ScaledExpDiffOp>(op) ||
          (isa<ExpDiffOp>(op) && gpu::hasMode(&op, gpu::MathMode::Approx)))
        weights.push_back(&op);
    for (Operation *weight : weights) {
      std::optional<WeightUses> uses = usesOf(weight->getResult(0), reduction);
      if (uses &&
          llvm::none_of(uses->sums, [&](unsigned sum) { return isRunningUsed(reduction, sum); }))
        fold(weight, *uses, reduction);
    }
  });
}
