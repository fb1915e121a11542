//===- LoopSteps.cpp - where loops stand ----------------------------------===//
#include "passes/pipeline/LoopSteps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

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
  APInt constant, start;
  if (matchPattern(value, m_ConstantInt(&constant)) &&
      (!from || matchPattern(from, m_ConstantInt(&start))))
    return constant.getSExtValue() - (from ? start.getSExtValue() : 0);
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
    if (std::optional<int64_t> apart = mostBeyond(left, right))
      return apart;
    std::optional<int64_t> most = mostBeyond(left, {});
    if (most && matchPattern(right, m_ConstantInt(&constant)))
      return *most - constant.getSExtValue();
    // What a division leaves over.
    auto rest = right.getDefiningOp<arith::RemSIOp>();
    if (most && *most >= 0 && rest && rest.getLhs() == left &&
        matchPattern(rest.getRhs(), m_ConstantInt(&constant)) && constant.isStrictlyPositive())
      return *most - *most % constant.getSExtValue();
    return most;
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

bool tk::isAtMost(Value a, Value b) {
  if (a == b)
    return true;
  APInt x, y;
  if (matchPattern(a, m_ConstantInt(&x)) && matchPattern(b, m_ConstantInt(&y)))
    return x.sle(y);
  Operation *left = a.getDefiningOp(), *right = b.getDefiningOp();
  if (auto least = dyn_cast_or_null<arith::MinSIOp>(left))
    if (isAtMost(least.getLhs(), b) || isAtMost(least.getRhs(), b))
      return true;
  if (auto greatest = dyn_cast_or_null<arith::MaxSIOp>(right))
    if (isAtMost(a, greatest.getLhs()) || isAtMost(a, greatest.getRhs()))
      return true;
  if (!left || !right || left->getName() != right->getName() || left->getNumOperands() != 2)
    return false;
  auto isEqual = [](Value c, Value d) { return isAtMost(c, d) && isAtMost(d, c); };
  Value c = left->getOperand(0), d = left->getOperand(1);
  Value e = right->getOperand(0), f = right->getOperand(1);
  if (isa<arith::AddIOp, arith::MaxSIOp, arith::MinSIOp>(left))
    return isAtMost(c, e) && isAtMost(d, f);
  if (isa<arith::MulIOp, arith::DivUIOp, arith::DivSIOp>(left))
    return isEqual(d, f) && matchPattern(d, m_ConstantInt(&x)) && x.isStrictlyPositive() &&
           isAtMost(c, e);
  if (!isa<arith::SubIOp>(left))
    return false;
  // Without what a division leaves over, or without the same.
  auto rest = d.getDefiningOp<arith::RemSIOp>(), other = f.getDefiningOp<arith::RemSIOp>();
  if (rest && other && rest.getLhs() == c && other.getLhs() == e)
    return isEqual(rest.getRhs(), other.getRhs()) &&
           matchPattern(rest.getRhs(), m_ConstantInt(&x)) && x.isStrictlyPositive() &&
           isAtMost(c, e);
  return isAtMost(c, e) && isEqual(d, f);
}

/// The step of a loop, also of an unrolled one, if it is a constant.
static std::optional<int64_t> constantStep(scf::ForOp loop) {
  APInt constant, factor;
  if (matchPattern(loop.getStep(), m_ConstantInt(&constant)))
    return constant.getSExtValue();
  auto product = loop.getStep().getDefiningOp<arith::MulIOp>();
  if (!product || !matchPattern(product.getLhs(), m_ConstantInt(&constant)) ||
      !matchPattern(product.getRhs(), m_ConstantInt(&factor)))
    return std::nullopt;
  return constant.getSExtValue() * factor.getSExtValue();
}

bool tk::hasFirstStepAlone(scf::ForOp earlier, scf::ForOp later) {
  std::optional<int64_t> length = mostBeyond(earlier.getUpperBound(), earlier.getLowerBound());
  std::optional<int64_t> step = constantStep(earlier);
  return earlier.getLowerBound() == later.getLowerBound() && length && step && *length <= *step &&
         isAtMost(earlier.getUpperBound(), later.getUpperBound());
}

bool tk::isSameAt(scf::ForOp earlier, Value a, scf::ForOp later, Value b) {
  if (a == b)
    return true;
  if (a == earlier.getInductionVar() || b == later.getInductionVar())
    return a == earlier.getInductionVar() && b == later.getInductionVar();
  Operation *left = a.getDefiningOp(), *right = b.getDefiningOp();
  return left && right && left->getName() == right->getName() && left->getNumResults() == 1 &&
         left->getAttrDictionary() == right->getAttrDictionary() && isMemoryEffectFree(left) &&
         left->getNumRegions() == 0 && a.getType() == b.getType() &&
         left->getNumOperands() == right->getNumOperands() &&
         llvm::all_of(llvm::zip(left->getOperands(), right->getOperands()), [&](auto pair) {
           return isSameAt(earlier, std::get<0>(pair), later, std::get<1>(pair));
         });
}
