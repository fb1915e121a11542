//===- RunningReferences.cpp - softmax numerators relative to the running maximum ===//
//
// Part of tk-simplify. A written-out attention sink makes the softmax numerators relative to the
// greater of the scores' maximum and the sink, x = max(m, c). Since m <= x,
//
//   exp(s - x) = exp(s - m) * exp(m - x).
//
// The second factor is at most 1 and is applied to the sums once for each row. The loop is then
// that of attention without a sink: its exponentials are relative to the scores' own maximum. Later
// passes can approximate them, fold the scores' scale into them, and mask them by the elements of
// the maximum.
//
//   %m, %s = tk.reduce [max, sum] {          %m, %t = tk.reduce [max, sum] {
//     %x = maximumf %m_run, %c                 %p = exp_diff %a, %m_run
//     %p = exp_diff %a, %x            =>       yield %a, %p
//     yield %a, %p                           } rescale {exp_diff %old, %new}
//   } rescale {exp_diff (maximumf %old, %c), %x = maximumf %m, %c
//                       (maximumf %new, %c)} %s = mulf %t, (exp_diff %m, %x)
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/normalize/RunningReferences.h"

#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-simplify";

/// The users of `running`, if each is the greater of it and one and the same value, which is put in
/// `constant` or is there and comes from outside of `online`; nothing otherwise.
static std::optional<SmallVector<arith::MaximumFOp>> getReferences(Value running, ReduceOp online,
                                                                   Value &constant) {
  SmallVector<arith::MaximumFOp> references;
  for (Operation *user : running.getUsers()) {
    auto greater = dyn_cast<arith::MaximumFOp>(user);
    if (!greater)
      return std::nullopt;
    Value other = greater.getLhs() == running ? greater.getRhs() : greater.getLhs();
    if (other == running || online->isAncestor(other.getParentRegion()->getParentOp()) ||
        (constant && other != constant))
      return std::nullopt;
    constant = other;
    references.push_back(greater);
  }
  return references;
}

/// Is `value` exp_diff of two of these references?
static ExpDiffOp getStep(Value value, ArrayRef<arith::MaximumFOp> olds,
                         ArrayRef<arith::MaximumFOp> news) {
  auto step = value.getDefiningOp<ExpDiffOp>();
  bool isStep = step && llvm::is_contained(olds, step.getA().getDefiningOp<arith::MaximumFOp>()) &&
                llvm::is_contained(news, step.getB().getDefiningOp<arith::MaximumFOp>());
  return isStep ? step : ExpDiffOp();
}

static bool referTo(ReduceOp online, unsigned k) {
  unsigned running = online.getNumAccumulators() - 1;
  Block &rescale = online.getRescale().front();
  Value maximum = online.getRunning(k), term = online.getYield().getValues()[k];
  Value old = rescale.getArgument(k), now = rescale.getArgument(running + k), constant;
  auto references = getReferences(maximum, online, constant);
  auto olds = getReferences(old, online, constant), news = getReferences(now, online, constant);
  if (!references || !olds || !news || references->empty() || olds->empty() || news->empty())
    return false;
  // What the maximum is of may only be compared with it: then no weight is above 1.
  for (arith::MaximumFOp reference : *references)
    for (Operation *user : reference->getUsers()) {
      auto weight = dyn_cast<ExpDiffOp>(user);
      if (!weight || !ScalarEquality().equal(weight.getA(), term) ||
          weight.getB() != reference.getResult())
        return false;
    }
  SmallVector<unsigned> sums;
  SmallVector<ExpDiffOp> steps;
  for (auto [n, factor] : llvm::enumerate(cast<YieldOp>(rescale.getTerminator()).getValues())) {
    if (ExpDiffOp step = getStep(factor, *olds, *news)) {
      sums.push_back(n + 1);
      steps.push_back(step);
    } else if (Dependence({old, now}).on(factor)) {
      return false;
    }
  }
  for (auto *group : {&*olds, &*news})
    for (arith::MaximumFOp reference : *group)
      for (Operation *user : reference->getUsers())
        if (!llvm::is_contained(steps, dyn_cast<ExpDiffOp>(user)))
          return false;
  note(online, passName, Verdict::Derived,
       "the exponentials of the " + describe(online) +
           " are relative to its maximum alone; its sums are scaled by the rest");
  for (arith::MaximumFOp reference : *references)
    reference.replaceAllUsesWith(maximum);
  for (ExpDiffOp step : steps) {
    step.getAMutable().set(old);
    step.getBMutable().set(now);
  }
  for (auto *group : {&*references, &*olds, &*news})
    for (arith::MaximumFOp reference : *group)
      reference.erase();
  OpBuilder builder(online.getContext());
  builder.setInsertionPointAfter(online);
  Location loc = online.getLoc();
  Value whole = online.getResult(k);
  Value greatest = arith::MaximumFOp::create(builder, loc, whole, constant);
  Value factor = ExpDiffOp::create(builder, loc, whole, greatest);
  for (unsigned n : sums) {
    Value sum = online.getResult(n);
    auto scaled = arith::MulFOp::create(builder, loc, sum, factor);
    sum.replaceAllUsesExcept(scaled, scaled);
  }
  return true;
}

unsigned tk::referToRunningMaxima(ReduceOp online) {
  unsigned count = 0;
  for (unsigned k = 0; k + 1 < online.getNumAccumulators(); ++k)
    if (online.getKind(k) == ReduceKind::Max)
      count += referTo(online, k);
  return count;
}
