//===- TermConditions.cpp - masks in the elements of reductions -----------===//
#include "passes/analysis/TermConditions.h"

#include "passes/analysis/Conditions.h"
#include "passes/analysis/Signs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tk;

TermConditions::TermConditions(ReduceOp reduce)
    : reduce(reduce), varying(reduce.getBlock()->getArguments()) {
  add(reduce.getYield().getValues()[0], reduce.getKind(0), /*isFactor=*/true);
}

void TermConditions::addAll(Value condition, Value from) {
  SmallVector<Value> conjuncts;
  addParts<arith::AndIOp>(condition, conjuncts);
  for (Value conjunct : conjuncts)
    found.push_back({conjunct, from, divisor});
}

/// `isFactor`: NaN in `term` is NaN in the whole term. `from`: what `term` is a distance from.
void TermConditions::add(Value term, ReduceKind kind, bool isFactor, Value from) {
  Operation *op = term.getDefiningOp();
  if (!op)
    return;
  if (kind == ReduceKind::Any)
    return addAll(term);
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    if (isIdentity(select.getFalseValue(), kind)) {
      addAll(select.getCondition(), from);
      add(select.getTrueValue(), kind, /*isFactor=*/false, from);
    }
    return;
  }
  if (isa<arith::ExtFOp, arith::TruncFOp>(op))
    return add(op->getOperand(0), kind, isFactor, from);
  if (kind == ReduceKind::Max && isa<arith::AddFOp>(op)) {
    add(op->getOperand(0), kind, isFactor, from);
    add(op->getOperand(1), kind, isFactor, from);
  }
  if (kind != ReduceKind::Sum)
    return;
  if (isa<arith::MulFOp, arith::MulIOp>(op)) {
    add(op->getOperand(0), kind, isFactor);
    add(op->getOperand(1), kind, isFactor);
  } else if (isa<arith::AddFOp, arith::SubFOp, arith::AddIOp, arith::SubIOp>(op)) {
    addShared(op->getOperand(0), op->getOperand(1), isFactor);
  } else if (isa<arith::NegFOp>(op)) {
    add(op->getOperand(0), kind, isFactor);
  } else if (isa<arith::DivFOp>(op)) {
    addDividend(op, kind, isFactor);
  } else if (isa<DivOrZeroOp>(op)) {
    add(op->getOperand(0), kind, /*isFactor=*/false);
  } else if (isa<ExpDiffOp, math::ExpOp, math::Exp2Op>(op)) {
    // exp(-inf) = 0
    auto distance = op->getOperand(0).getDefiningOp<arith::SubFOp>();
    if (!distance || isa<ExpDiffOp>(op))
      add(op->getOperand(0), ReduceKind::Max, isFactor);
    else if (isFactor && !varying.on(distance.getRhs()))
      add(distance.getLhs(), ReduceKind::Max, isFactor, distance.getRhs());
  }
}

/// Of two summands, the conditions that both have: without one of these both are 0.
void TermConditions::addShared(Value a, Value b, bool isFactor) {
  SmallVector<TermCondition> before = std::exchange(found, {});
  add(a, ReduceKind::Sum, isFactor);
  SmallVector<TermCondition> ofA = std::exchange(found, {});
  add(b, ReduceKind::Sum, isFactor);
  for (TermCondition condition : std::exchange(found, std::move(before)))
    if (llvm::is_contained(ofA, condition))
      found.push_back(condition);
}

/// 0 divided by a number is 0, unless that is 0 or NaN. A divisor that varies and cannot be 0
/// counts as a factor does: an element that is left out is not NaN, whatever stands beside it.
void TermConditions::addDividend(Operation *quotient, ReduceKind kind, bool isFactor) {
  Value by = quotient->getOperand(1);
  const bool varies = varying.on(by);
  if (varies ? isPositiveOrNaN(by) : isNeitherZeroNorNaN(by, reduce->getParentOfType<KernelOp>()))
    return add(quotient->getOperand(0), kind, isFactor);
  // Only one divisor can be told of, and its NaN must be that of the whole element.
  if (varies || divisor || !isFactor)
    return;
  divisor = by;
  add(quotient->getOperand(0), kind, isFactor);
  divisor = {};
}
