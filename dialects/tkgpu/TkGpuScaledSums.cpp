//===- TkGpuScaledSums.cpp - partial sums that are scaled and added -------===//
#include "dialects/tkgpu/TkGpuScaledSums.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// The only user of `value`, if it is an `Op` of the same block.
template <class Op> static Op onlyUser(Value value) {
  if (!value.hasOneUse())
    return {};
  auto user = dyn_cast<Op>(*value.user_begin());
  return user && user->getBlock() == value.getParentBlock() ? user : Op();
}

std::optional<ScaledSum> ScaledSum::of(WarpgroupDotOp dot) {
  ScaledSum found{};
  found.dot = dot;
  if (dot.getAccumulate() || !matchPattern(dot.getAcc(), m_AnyZeroFloat()))
    return std::nullopt;
  found.wait = onlyUser<WarpgroupWaitOp>(dot.getResult());
  if (!found.wait || found.wait.getSources().size() != 1 || found.wait.getPending() != 0)
    return std::nullopt;
  Value result = found.wait->getResult(0);
  found.scaled = onlyUser<arith::MulFOp>(result);
  if (!found.scaled)
    return std::nullopt;
  const bool isLeft = found.scaled.getLhs() == result;
  found.factor =
      (isLeft ? found.scaled.getRhs() : found.scaled.getLhs()).getDefiningOp<BroadcastOp>();
  found.sum = onlyUser<arith::AddFOp>(found.scaled.getResult());
  if (!found.factor || !found.sum)
    return std::nullopt;
  const bool isRight = found.sum.getRhs() == found.scaled.getResult();
  found.acc = isRight ? found.sum.getLhs() : found.sum.getRhs();
  Operation *before = found.acc.getDefiningOp();
  if (before && (before->getBlock() != dot->getBlock() || !before->isBeforeInBlock(dot)))
    return std::nullopt;
  return found;
}

bool ScaledSum::isInParts() {
  Operation *source = factor.getSource().getDefiningOp();
  return dot.getPrecision() == Precision::Blocked && acc.hasOneUse() &&
         (!source || source->getBlock() != dot->getBlock() || source->isBeforeInBlock(dot));
}

std::optional<ScaledSum> tk::gpu::getScaledSumInParts(Operation *op) {
  if (!isa<arith::MulFOp, arith::AddFOp>(op))
    return std::nullopt;
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    if (isa<arith::AddFOp>(op) && isa_and_nonnull<arith::MulFOp>(producer))
      if (std::optional<ScaledSum> found = getScaledSumInParts(producer); found && found->sum == op)
        return found;
    auto wait = dyn_cast_or_null<WarpgroupWaitOp>(producer);
    auto dot = wait && wait.getSources().size() == 1
                   ? wait.getSources().front().getDefiningOp<WarpgroupDotOp>()
                   : WarpgroupDotOp();
    if (!dot)
      continue;
    std::optional<ScaledSum> found = ScaledSum::of(dot);
    if (found && found->isInParts() && found->scaled == op)
      return found;
  }
  return std::nullopt;
}
