//===- FreeReferences.cpp - maxima that cancel from results ----------------===//
//
// The maximum of a softmax keeps its weights in range. Where its results are quotients of sums of
// weights, any other reference gives the same ones; one under which weights are 2^-32 of what they
// are rounds them alike (tk-keep-references). An online reduction has such a free reference if
//
// 1. its first accumulator is a maximum that only weights of its terms are under, and nobody reads
//    but with the logarithm of a sum of weights, to which it is added (log-sum-exp);
// 2. weights are approximate, and added up as they are or as bf16, which has f32's range;
// 3. the other accumulators are sums, each under a factor that takes weights under the old maximum
//    to weights under the new one;
// 4. of two of these each is only divided by the other, or divides it, but for such logarithms.
//
//===----------------------------------------------------------------------===//
#include "passes/numerics/FreeReferences.h"

#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuProducts.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/numerics/ApproximateExps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

/// Is `op` the weight of `a` under `b`, an approximate one but for plans, which precede marks?
static bool isWeight(Operation *op, Value a, Value b, bool isPlan) {
  if (auto scaled = dyn_cast<gpu::ScaledExpDiffOp>(op))
    return scaled.getA() == a && scaled.getB() == b && scaled.getPower() == 0;
  auto diff = dyn_cast<ExpDiffOp>(op);
  return diff && diff.getA() == a && diff.getB() == b &&
         (isPlan ||
          (gpu::hasMode(diff, gpu::MathMode::Approx) && !gpu::hasMode(diff, gpu::MathMode::Wide)));
}

/// Are all users of `reference` weights of `term`, of use for sums?
static bool isOfWeights(Value reference, Value term, tk::ReduceOp reduction, bool isPlan) {
  return llvm::all_of(reference.getUsers(), [&](Operation *user) {
    return user->getBlock() == reduction.getBlock() && isWeight(user, term, reference, isPlan) &&
           llvm::all_of(user->getUsers(), [&](Operation *use) {
             auto narrow = dyn_cast<arith::TruncFOp>(use);
             return use == reduction.getYield() || (narrow && narrow.getType().isBF16());
           });
  });
}

/// Is `use` of a sum that of a quotient with another one?
static bool isInQuotient(OpOperand &use, tk::ReduceOp reduction) {
  auto quotient = dyn_cast<DivOrZeroOp>(use.getOwner());
  Value other = quotient ? quotient->getOperand(1 - use.getOperandNumber()) : Value();
  return other && other != use.get() && other.getDefiningOp() == reduction;
}

bool tk::isInQuotients(Value sum, tk::ReduceOp reduction) {
  return !sum.use_empty() &&
         llvm::all_of(sum.getUses(), [&](OpOperand &use) { return isInQuotient(use, reduction); });
}

bool tk::areQuotientsNarrow(tk::ReduceOp reduction) {
  return llvm::all_of(llvm::drop_begin(reduction.getResults()), [&](Value sum) {
    return isInQuotients(sum, reduction) && llvm::all_of(sum.getUses(), [&](OpOperand &use) {
             return use.getOperandNumber() == 1 || isNarrowed(use.getOwner()->getResult(0));
           });
  });
}

/// Is `value` the maximum of `reduction`, in the units of its weights' exponents?
static bool isReference(Value value, tk::ReduceOp reduction) {
  Value scale;
  for (Operation *user : reduction.getRunning(0).getUsers()) {
    auto scaled = dyn_cast<gpu::ScaledExpDiffOp>(user);
    Value own = scaled ? scaled.getScale() : Value();
    if (user != *reduction.getRunning(0).user_begin() && own != scale)
      return false;
    scale = own;
  }
  if (!scale)
    return value == reduction.getResult(0);
  auto product = value.getDefiningOp<arith::MulFOp>();
  return product && product.getLhs() == reduction.getResult(0) && product.getRhs() == scale;
}

/// Is `use` of a sum that of a logarithm which only the maximum is added to?
static bool isInLogSumExp(OpOperand &use, tk::ReduceOp reduction) {
  auto logarithm = dyn_cast<math::LogOp>(use.getOwner());
  return logarithm && llvm::all_of(logarithm->getUses(), [&](OpOperand &of) {
           auto sum = dyn_cast<arith::AddFOp>(of.getOwner());
           return sum && isReference(sum->getOperand(1 - of.getOperandNumber()), reduction);
         });
}

/// Do results need a sum for quotients with others alone, or for its logarithm?
static bool isInResults(Value sum, tk::ReduceOp reduction) {
  return !sum.use_empty() && llvm::all_of(sum.getUses(), [&](OpOperand &use) {
    return isInQuotient(use, reduction) || isInLogSumExp(use, reduction);
  });
}

/// Is `user` a question whether the maximum is infinite, to which that is the answer? If -inf is,
/// the sum is 0, and so its logarithm -inf, whatever the reference. If +inf is, the sum is not
/// finite, and the reference does not stay (tk-keep-references).
static bool asksIfInfinite(Operation *user) {
  auto compare = dyn_cast<arith::CmpFOp>(user);
  APFloat limit(0.0f);
  return compare && compare.getPredicate() == arith::CmpFPredicate::OEQ &&
         matchPattern(compare.getRhs(), m_ConstantFloat(&limit)) && limit.isInfinity() &&
         llvm::all_of(compare->getUsers(), [&](Operation *choice) {
           auto select = dyn_cast<arith::SelectOp>(choice);
           return select && select.getCondition() == compare.getResult() &&
                  select.getTrueValue() == compare.getRhs();
         });
}

/// Is the maximum added to logarithms of sums, and nothing else done to it?
static bool isReadInLogSumExp(Value maximum, tk::ReduceOp reduction) {
  return llvm::all_of(maximum.getUsers(), [&](Operation *user) {
    if (isa<arith::MulFOp>(user))
      return user->getOperand(0) == maximum && maximum == reduction.getResult(0) &&
             isReadInLogSumExp(user->getResult(0), reduction);
    if (asksIfInfinite(user))
      return true;
    if (!isa<arith::AddFOp>(user) || !isReference(maximum, reduction))
      return false;
    return llvm::any_of(user->getOperands(), [&](Value operand) {
      auto logarithm = operand.getDefiningOp<math::LogOp>();
      return logarithm && logarithm.getOperand().getDefiningOp() == reduction &&
             logarithm.getOperand() != reduction.getResult(0);
    });
  });
}

static bool hasFreeReference(tk::ReduceOp reduction, bool isPlan = false) {
  const unsigned count = reduction.getNumAccumulators();
  if (!reduction.isOnline() || count < 3 || reduction.getKind(0) != ReduceKind::Max ||
      !isReadInLogSumExp(reduction.getResult(0), reduction) ||
      !isOfWeights(reduction.getRunning(0), reduction.getYield().getValues().front(), reduction,
                   isPlan))
    return false;
  Block &rescale = reduction.getRescale().front();
  Value before = rescale.getArgument(0), after = rescale.getArgument(count - 1);
  auto factors = cast<YieldOp>(rescale.getTerminator()).getValues();
  for (unsigned k = 1; k < count; ++k) {
    Operation *factor = factors[k - 1].getDefiningOp();
    if (reduction.getKind(k) != ReduceKind::Sum || !factor ||
        !isWeight(factor, before, after, isPlan) ||
        !(isPlan || gpu::hasMode(factor, gpu::MathMode::Rescale)) ||
        !isInResults(reduction.getResult(k), reduction) ||
        (k + 1 < count && !reduction.getRunning(k).use_empty()))
      return false;
  }
  return true;
}

/// Is `score` a sum of products, perhaps scaled, or else left out?
static bool isPlainScore(Value score, tk::ReduceOp reduction) {
  Operation *op = score.getDefiningOp();
  if (!op || op->getBlock() != reduction.getBlock())
    return false;
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return isNegativeInfinity(select.getFalseValue()) &&
           isPlainScore(select.getTrueValue(), reduction);
  auto isOutside = [&](Value factor) {
    return !reduction.getBody().isAncestor(factor.getParentRegion());
  };
  if (isa<arith::MulFOp>(op) && isOutside(op->getOperand(1)))
    return isPlainScore(op->getOperand(0), reduction);
  auto product = dyn_cast<tk::ReduceOp>(op);
  return product && product.getNumAccumulators() == 1 && product.getKind(0) == ReduceKind::Sum;
}

bool tk::mayReferenceStay(tk::ReduceOp reduction) {
  return hasFreeReference(reduction, /*isPlan=*/true) &&
         isPlainScore(reduction.getYield().getValues().front(), reduction) &&
         areQuotientsNarrow(reduction);
}

void tk::markFreeReferences(ComputeOp compute) {
  compute.getBody().walk([](tk::ReduceOp reduction) {
    if (hasFreeReference(reduction))
      reduction->setAttr(freeReferenceAttrName, UnitAttr::get(reduction.getContext()));
  });
}
