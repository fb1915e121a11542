//===- IndexGrowth.cpp - how an axis of an access grows with an index -----===//
#include "passes/analysis/IndexGrowth.h"

#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

std::optional<int64_t> tk::growth(Value value, Value index) {
  if (std::optional<int64_t> number = getConstantIndex(value))
    return index ? 0 : *number;
  if (value == index)
    return 1;
  if (isa<BlockArgument>(value) && (index || !getIterationIndices(value).empty()))
    return 0;
  Operation *op = value.getDefiningOp();
  if (op && index && !Dependence{ValueRange{index}}.on(value))
    return 0;
  if (!op || !isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return std::nullopt;
  std::optional<int64_t> left = growth(op->getOperand(0), index);
  std::optional<int64_t> right = growth(op->getOperand(1), index);
  if (!left || !right)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return *left + *right;
  if (isa<arith::SubIOp>(op))
    return *left - *right;
  if (!index)
    return *left * *right;
  std::optional<int64_t> factor = getConstantIndex(op->getOperand(*left == 0 ? 0 : 1));
  return factor ? std::optional(*factor * (*left + *right)) : std::nullopt;
}
