//===- LoopSteps.cpp - where loops stand ----------------------------------===//
#include "passes/memory/LoopSteps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

Value tk::createStepBehind(OpBuilder &builder, Location loc, Value lower, Value end, Value step) {
  Value terms = arith::SubIOp::create(builder, loc, end, lower);
  terms =
      arith::MaxSIOp::create(builder, loc, terms, arith::ConstantIndexOp::create(builder, loc, 0));
  Value count = arith::CeilDivSIOp::create(builder, loc, terms, step);
  Value done = arith::MulIOp::create(builder, loc, count, step);
  return arith::AddIOp::create(builder, loc, lower, done);
}

std::optional<int64_t> tk::mostBeyond(Value value, Value from) {
  auto both = [](std::optional<int64_t> a, std::optional<int64_t> b, auto join) {
    return a && b ? std::optional<int64_t>(join(*a, *b)) : std::nullopt;
  };
  auto larger = [](int64_t a, int64_t b) { return std::max(a, b); };
  if (value == from)
    return 0;
  APInt constant;
  if (!from && matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumOperands() != 2)
    return std::nullopt;
  Value left = op->getOperand(0), right = op->getOperand(1);
  if (isa<arith::AddIOp>(op))
    return both(mostBeyond(left, from), mostBeyond(right, {}), std::plus<int64_t>());
  if (isa<arith::MaxSIOp>(op))
    return both(mostBeyond(left, from), mostBeyond(right, from), larger);
  if (isa<arith::MinSIOp>(op)) {
    std::optional<int64_t> a = mostBeyond(left, from), b = mostBeyond(right, from);
    return a && b ? std::min(*a, *b) : a ? a : b;
  }
  if (auto subtract = dyn_cast<arith::SubIOp>(op)) {
    if (from)
      return std::nullopt;
    std::optional<int64_t> apart = mostBeyond(left, right);
    return apart ? apart : mostBeyond(left, {});
  }
  if (from || !matchPattern(right, m_ConstantInt(&constant)) || !constant.isStrictlyPositive())
    return std::nullopt;
  std::optional<int64_t> most = mostBeyond(left, {});
  if (most && isa<arith::MulIOp>(op))
    return *most * constant.getSExtValue();
  if (most && isa<arith::DivUIOp, arith::DivSIOp>(op))
    return *most / constant.getSExtValue();
  return std::nullopt;
}
