//===- Signs.cpp - numbers that are not 0, or not negative ----------------===//
#include "passes/analysis/Signs.h"

#include "passes/analysis/ScalarCases.h"
#include "passes/analysis/SizeFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

static std::optional<APFloat> getConstant(Value value) {
  FloatAttr attr;
  return matchPattern(value, m_Constant(&attr)) ? std::optional(attr.getValue()) : std::nullopt;
}

/// Is an element of a tensor that a compute op stores 0, above 0 or NaN?
static bool isNonNegativeElement(LoadOp load) {
  auto stored = dyn_cast<OpResult>(load.getTensor());
  auto compute = stored ? dyn_cast<ComputeOp>(stored.getOwner()) : ComputeOp();
  if (!compute || (load.getPad() && !isNonNegativeOrNaN(load.getPad())))
    return false;
  return isNonNegativeOrNaN(compute.getYield().getValues()[stored.getResultNumber()]);
}

bool tk::isNonNegativeOrNaN(Value value) {
  if (std::optional<APFloat> constant = getConstant(value))
    return !constant->isNegative();
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<math::AbsFOp, math::ExpOp, math::Exp2Op, math::SqrtOp, ExpDiffOp>(op))
    return true;
  if (auto load = dyn_cast<LoadOp>(op))
    return isNonNegativeElement(load);
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    const unsigned n = cast<OpResult>(value).getResultNumber();
    return !reduce.isOnline() && reduce.getKind(n) == ReduceKind::Sum &&
           isNonNegativeOrNaN(reduce.getYield().getValues()[n]);
  }
  auto holds = [&](unsigned n) { return isNonNegativeOrNaN(op->getOperand(n)); };
  if (isa<arith::MulFOp>(op))
    return op->getOperand(0) == op->getOperand(1) || (holds(0) && holds(1));
  if (isa<arith::AddFOp, arith::DivFOp, DivOrZeroOp>(op))
    return holds(0) && holds(1);
  if (isa<arith::ExtFOp, arith::TruncFOp>(op))
    return holds(0);
  if (isa<arith::SelectOp>(op))
    return holds(1) && holds(2);
  if (isa<arith::MaximumFOp>(op))
    return holds(0) || holds(1);
  return false;
}

bool tk::isPositiveOrNaN(Value value) {
  if (std::optional<APFloat> constant = getConstant(value))
    return !constant->isNegative() && !constant->isZero();
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  auto holds = [&](unsigned n) { return isPositiveOrNaN(op->getOperand(n)); };
  if (isa<math::SqrtOp, arith::ExtFOp>(op))
    return holds(0);
  if (isa<arith::MaximumFOp>(op))
    return holds(0) || holds(1);
  // A product of small numbers may be 0, a sum of them is none.
  if (isa<arith::AddFOp>(op))
    return (holds(0) && isNonNegativeOrNaN(op->getOperand(1))) ||
           (holds(1) && isNonNegativeOrNaN(op->getOperand(0)));
  return false;
}

bool tk::isNeitherZeroNorNaN(Value value, KernelOp kernel) {
  if (std::optional<APFloat> constant = getConstant(value))
    return !constant->isZero() && !constant->isNaN();
  Operation *op = value.getDefiningOp();
  if (!op)
    return assumedOf(value).isPositive;
  // f16 has no number for large sizes, but they are infinite there, which is not 0.
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op)) {
    Value size = op->getOperand(0);
    if (auto cast = size.getDefiningOp<arith::IndexCastOp>())
      size = cast.getIn();
    return size.getType().isIndex() && getSizeFact(kernel, size).exact.value_or(0) > 0;
  }
  if (isa<arith::ExtFOp>(op))
    return isNeitherZeroNorNaN(op->getOperand(0), kernel);
  // The square root of a size: a parameter that is below 0 would give NaN.
  return isa<math::SqrtOp>(op) && op->getOperand(0).getDefiningOp<arith::SIToFPOp>() &&
         isNeitherZeroNorNaN(op->getOperand(0), kernel);
}
