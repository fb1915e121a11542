//===- ApproximateExps.cpp - exponentials of fewer bits -------------------===//
//
// In an online reduction the weights exp(a - m) under the running maximum m are often rounded to 16
// bits, as factors of a product, and otherwise only summed. The instruction for 2^x is then exact
// enough:
//   1. 2^(a c - round(m c)), c = log2(e), has the error of the instruction, 2^-22, and that of the
//      difference: 2^-24 of its size, small where the weight is not.
//   2. What m c is rounded by multiplies all weights under one m alike. It cancels between their
//      sum and their product, and is within an ulp of m + log(sum).
//   3. When m grows to n, 2^(round(m c) - round(n c)) takes weights under m to weights under n; it
//      is 1 where m does not change, however large m is.
//   4. All that as long as 2^(m c - round(m c)) is in range. Weights that no product takes are so
//      under any m (`wide`), for a few instructions a row, which the loops of products have not to
//      spare.
//
// Likewise where the weights are divided by their sum, or multiplied by its reciprocal, and the
// quotients rounded, be it after something is added to them: both are marked, so that they stay one
// expression. And where nothing else is done with their sum but to add its logarithm to m; there
// they are 2^((s - m) log2(e)) like the factors, so that m + log 1 is m.
//
// A statement that reads the maximum and the sum of weights under it, which another one has stored,
// may compute weights again. If their quotients by the sum are rounded to 16 bits, both are marked.
//
// A sum of such weights is 0 or a normal number, so that a quotient by it which is rounded to 16
// bits may be a product with its reciprocal, of which a row has one.
//
//   %p = tk.exp_diff %a, %m          %p = tk.exp_diff %a, %m <approx>
//   %q = arith.truncf %p : bf16  →   %q = arith.truncf %p : bf16
//   tk.yield ..., %p, ...            tk.yield ..., %p, ...
//
//===----------------------------------------------------------------------===//
#include "passes/numerics/ApproximateExps.h"

#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuProducts.h"
#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

/// Is `diff` only summed by `reduction`, and rounded to 16 bits or less at least once?
static bool isRoundedOrSummed(ExpDiffOp diff, tk::ReduceOp reduction) {
  bool isRounded = false;
  SmallVector<Value> values = {diff.getResult()};
  while (!values.empty())
    for (OpOperand &use : values.pop_back_val().getUses()) {
      Operation *user = use.getOwner();
      if (auto narrow = dyn_cast<arith::TruncFOp>(user);
          narrow && narrow.getType().getIntOrFloatBitWidth() <= 16) {
        isRounded = true;
      } else if (auto select = dyn_cast<arith::SelectOp>(user);
                 select && use.getOperandNumber() == 1 &&
                 matchPattern(select.getFalseValue(), m_AnyZeroFloat())) {
        values.push_back(select.getResult());
      } else if (exactFactor(user)) {
        values.push_back(user->getResult(0));
      } else if (user != reduction.getYield() ||
                 reduction.getKind(use.getOperandNumber()) != ReduceKind::Sum) {
        return false;
      }
    }
  return isRounded;
}

static void mark(Operation *op) { gpu::addMode(op, gpu::MathMode::Approx); }

static void markFactor(ExpDiffOp factor) {
  mark(factor);
  gpu::addMode(factor, gpu::MathMode::Rescale);
}

bool tk::isNarrowed(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUsers(), [](Operation *user) {
    if (isa<arith::MulFOp, arith::SelectOp>(user))
      return isNarrowed(user->getResult(0));
    auto narrow = dyn_cast<arith::TruncFOp>(user);
    return narrow && narrow.getType().getIntOrFloatBitWidth() <= 16;
  });
}

/// The greatest of `bound` and a sink, by which `user` multiplies a sum of weights under `bound` to
/// have them under that: sum * exp(bound - greatest). Null if it does not.
static arith::MaximumFOp referenceWithSink(Operation *user, Value sum, Value bound) {
  auto product = dyn_cast<arith::MulFOp>(user);
  if (!product)
    return {};
  Value factor = product.getLhs() == sum ? product.getRhs() : product.getLhs();
  auto rest = factor.getDefiningOp<ExpDiffOp>();
  auto greatest = rest && bound && rest.getA() == bound
                      ? rest.getB().getDefiningOp<arith::MaximumFOp>()
                      : arith::MaximumFOp();
  return greatest && llvm::is_contained(greatest->getOperands(), bound) ? greatest
                                                                        : arith::MaximumFOp();
}

/// Is it the weight of the sink, exp(sink - greatest)?
static bool isWeightOfSink(Value value, arith::MaximumFOp greatest, Value bound) {
  auto exp = value.getDefiningOp<math::ExpOp>();
  auto distance = exp ? exp.getOperand().getDefiningOp<arith::SubFOp>() : arith::SubFOp();
  Value sink = greatest.getLhs() == bound ? greatest.getRhs() : greatest.getLhs();
  return distance && distance.getLhs() == sink && distance.getRhs() == greatest.getResult();
}

/// Marks quotients by sums of marked weights under `bound`, also with the weight of a sink, or by
/// what is such a sum or else NaN. One of the weights is 1, so that none of these is small.
static void markQuotientsBy(Value sum, Value bound, arith::MaximumFOp greatest = {},
                            bool hasSink = false) {
  for (OpOperand &use : sum.getUses()) {
    Operation *user = use.getOwner();
    auto quotient = dyn_cast<DivOrZeroOp>(user);
    if (quotient && use.getOperandNumber() == 1 && (!greatest || hasSink) &&
        isNarrowed(quotient.getResult()))
      mark(quotient);
    if (auto choice = dyn_cast<arith::SelectOp>(user);
        choice && matchPattern(choice->getOperand(3 - use.getOperandNumber()), m_NaNFloat()))
      markQuotientsBy(choice, bound, greatest, hasSink);
    if (arith::MaximumFOp reference =
            greatest ? arith::MaximumFOp() : referenceWithSink(user, sum, bound))
      markQuotientsBy(user->getResult(0), bound, reference);
    if (auto both = dyn_cast<arith::AddFOp>(user); both && greatest && !hasSink)
      if (isWeightOfSink(both->getOperand(1 - use.getOperandNumber()), greatest, bound))
        markQuotientsBy(both, bound, greatest, /*hasSink=*/true);
  }
}

/// Marks quotients by sums of marked weights.
static void markQuotients(tk::ReduceOp reduction) {
  for (unsigned k = 0; k < reduction.getNumAccumulators(); ++k) {
    Value term = reduction.getYield().getValues()[k];
    while (auto select = term.getDefiningOp<arith::SelectOp>())
      term = select.getTrueValue();
    auto diff = term.getDefiningOp<ExpDiffOp>();
    if (!diff || !gpu::hasMode(diff, gpu::MathMode::Approx) ||
        reduction.getKind(k) != ReduceKind::Sum)
      continue;
    auto running = dyn_cast<BlockArgument>(diff.getB());
    bool isOwn = running && running.getOwner() == reduction.getBlock() &&
                 running.getArgNumber() >= reduction.getNumIndices();
    Value bound =
        isOwn ? Value(reduction.getResult(running.getArgNumber() - reduction.getNumIndices()))
              : Value();
    markQuotientsBy(reduction.getResult(k), bound);
  }
}

/// Is `sum` read for its logarithm here, only to add that to `bound`?
static bool isLogarithmUnder(Value bound, Operation *user) {
  auto log = dyn_cast<math::LogOp>(user);
  return log && llvm::all_of(log->getUsers(), [&](Operation *op) {
           return isa<arith::AddFOp>(op) && llvm::is_contained(op->getOperands(), bound);
         });
}

/// Is `value` of use for 16 bits or less only, itself or with something added?
static bool isNarrowedSum(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUsers(), [&](Operation *user) {
    auto narrow = dyn_cast<arith::TruncFOp>(user);
    return (narrow && narrow.getType().getIntOrFloatBitWidth() <= 16) ||
           (isa<arith::AddFOp, arith::SubFOp>(user) && isNarrowedSum(user->getResult(0)));
  });
}

/// Adds the weights under `bound` that `factor`, the reciprocal of their sum or what takes its
/// place, multiplies; false if it is of other use, or the products of use for more than 16 bits.
static bool collectScaledWeights(Value factor, Value bound, SmallVectorImpl<Operation *> &weights) {
  return llvm::all_of(factor.getUsers(), [&](Operation *user) {
    if (isa<arith::SelectOp>(user))
      return collectScaledWeights(user->getResult(0), bound, weights);
    if (!isa<arith::MulFOp>(user) || !isNarrowedSum(user->getResult(0)))
      return false;
    auto weight = user->getOperand(0).getDefiningOp<ExpDiffOp>();
    if (!weight)
      weight = user->getOperand(1).getDefiningOp<ExpDiffOp>();
    if (!weight || weight.getB() != bound || !weight->hasOneUse())
      return false;
    weights.push_back(weight);
    return true;
  });
}

/// Marks weights that are summed here, and again divided by that sum where they are read, or of
/// which no more is read than m + log(sum).
static void markNormaliser(tk::ReduceOp reduction, unsigned k) {
  auto diff = reduction.getYield().getValues()[k].getDefiningOp<ExpDiffOp>();
  if (!diff || reduction.getKind(k) != ReduceKind::Sum || !diff.getType().isF32() ||
      !diff->hasOneUse() || diff->getBlock() != reduction.getBlock())
    return;
  auto running = dyn_cast<BlockArgument>(diff.getB());
  if (!running || running.getOwner() != reduction.getBlock() ||
      running.getArgNumber() < reduction.getNumIndices())
    return;
  Value bound = reduction.getResult(running.getArgNumber() - reduction.getNumIndices());
  SmallVector<Operation *> marked = {diff};
  bool hasLogarithm = false;
  for (OpOperand &use : reduction.getResult(k).getUses()) {
    if (isLogarithmUnder(bound, use.getOwner())) {
      hasLogarithm = true;
      continue;
    }
    if (auto reciprocal = dyn_cast<arith::DivFOp>(use.getOwner());
        reciprocal && matchPattern(reciprocal.getLhs(), m_OneFloat())) {
      if (!collectScaledWeights(reciprocal.getResult(), bound, marked))
        return;
      continue;
    }
    auto quotient = dyn_cast<DivOrZeroOp>(use.getOwner());
    auto weight = quotient ? quotient.getA().getDefiningOp<ExpDiffOp>() : ExpDiffOp();
    if (!weight || use.getOperandNumber() != 1 || weight.getB() != bound || !weight->hasOneUse() ||
        !isNarrowed(quotient.getResult()))
      return;
    marked.append({weight, quotient});
  }
  Block &rescale = reduction.getRescale().front();
  auto factor =
      cast<YieldOp>(rescale.getTerminator()).getValues()[k - 1].getDefiningOp<ExpDiffOp>();
  if (factor && !factor->hasOneUse())
    factor = {};
  if (marked.size() == 1 && !factor && !hasLogarithm)
    return;
  for (Operation *op : marked) {
    auto weight = dyn_cast<ExpDiffOp>(op);
    if (weight && hasLogarithm)
      markFactor(weight);
    else
      mark(op);
    if (weight && !hasLogarithm)
      gpu::addMode(weight, gpu::MathMode::Wide);
  }
  if (factor)
    markFactor(factor);
}

/// The reduction's result that a load takes an element of, stored by another compute op; null if it
/// takes something else.
static OpResult storedReduction(LoadOp load) {
  auto stored = load ? dyn_cast<OpResult>(load.getTensor()) : OpResult();
  auto compute = stored ? dyn_cast<ComputeOp>(stored.getOwner()) : ComputeOp();
  if (!compute)
    return {};
  auto result = dyn_cast<OpResult>(compute.getYield().getValues()[stored.getResultNumber()]);
  return result && isa<tk::ReduceOp>(result.getOwner()) ? result : OpResult();
}

/// Is `sum` of exponentials under `bound`, which the same loop carries?
static bool sumsWeightsUnder(OpResult bound, OpResult sum) {
  auto reduction = cast<tk::ReduceOp>(sum.getOwner());
  if (reduction != bound.getOwner() || !reduction.isOnline() ||
      reduction.getKind(bound.getResultNumber()) != ReduceKind::Max ||
      reduction.getKind(sum.getResultNumber()) != ReduceKind::Sum)
    return false;
  auto weight = reduction.getYield().getValues()[sum.getResultNumber()].getDefiningOp<ExpDiffOp>();
  return weight && weight.getB() == reduction.getRunning(bound.getResultNumber());
}

/// Marks quotients of weights by their stored sum, under their stored maximum.
static void markStoredQuotients(ComputeOp compute) {
  compute.getBody().walk([](DivOrZeroOp quotient) {
    auto weight = quotient.getA().getDefiningOp<ExpDiffOp>();
    if (!weight || !weight->hasOneUse() || !weight.getType().isF32() ||
        !isNarrowed(quotient.getResult()))
      return;
    auto bound = weight.getB().getDefiningOp<LoadOp>(),
         sum = quotient.getB().getDefiningOp<LoadOp>();
    OpResult most = storedReduction(bound), total = storedReduction(sum);
    if (!most || !total || !sumsWeightsUnder(most, total) ||
        !llvm::equal(bound.getIndices(), sum.getIndices()))
      return;
    markFactor(weight);
    mark(quotient);
  });
}

void tk::markApproximateExps(ComputeOp compute) {
  markStoredQuotients(compute);
  compute.getBody().walk([](tk::ReduceOp reduction) {
    if (!reduction.isOnline())
      return;
    bool all = true, any = false;
    for (auto diff : reduction.getBlock()->getOps<ExpDiffOp>()) {
      auto bound = dyn_cast<BlockArgument>(diff.getB());
      bool fits = diff.getType().isF32() && bound && bound.getOwner() == reduction.getBlock() &&
                  bound.getArgNumber() >= reduction.getNumIndices() &&
                  isRoundedOrSummed(diff, reduction);
      if (fits)
        mark(diff);
      all &= fits;
      any |= fits;
    }
    // Sums of such weights gain nothing from exacter factors.
    if (all && any)
      for (auto diff : reduction.getRescale().front().getOps<ExpDiffOp>())
        markFactor(diff);
    markQuotients(reduction);
    for (unsigned k = 1; k < reduction.getNumAccumulators(); ++k)
      if (!reduction.getResult(k).use_empty())
        markNormaliser(reduction, k);
  });
}
