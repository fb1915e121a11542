//===- ScanPosition.cpp - where a scan is taken ---------------------------===//
#include "passes/analysis/ScanPosition.h"

#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace tk {

static bool areEqual(Value a, Value b) { return a == b || ScalarEquality().equal(a, b); }

bool isLastOf(Value value, Value extent) {
  std::optional<int64_t> last = getConstantIntValue(value), end = getConstantIntValue(extent);
  if (last && end)
    return *last == *end - 1;
  if (auto add = value.getDefiningOp<arith::AddIOp>())
    return (isConstantIntValue(add.getRhs(), -1) && areEqual(add.getLhs(), extent)) ||
           (isConstantIntValue(add.getLhs(), -1) && areEqual(add.getRhs(), extent));
  auto sub = value.getDefiningOp<arith::SubIOp>();
  return sub && isConstantIntValue(sub.getRhs(), 1) && areEqual(sub.getLhs(), extent);
}

std::optional<IndexOrMirror> matchIndexOrMirror(Value value, Value extent, ComputeOp compute) {
  auto asIndex = [&](Value v) {
    auto index = dyn_cast<BlockArgument>(v);
    return index && index.getOwner() == compute.getBlock() ? index : BlockArgument();
  };
  if (BlockArgument index = asIndex(value))
    return IndexOrMirror{index, false};
  auto sub = value.getDefiningOp<arith::SubIOp>();
  BlockArgument index = sub ? asIndex(sub.getRhs()) : BlockArgument();
  if (!index || !isLastOf(sub.getLhs(), extent))
    return std::nullopt;
  return IndexOrMirror{index, true};
}

std::optional<IndexOrMirror> getScanPosition(ScanOp scan, ComputeOp compute) {
  if (auto number = dyn_cast<BlockArgument>(scan.getPosition()))
    if (auto around = dyn_cast<ScanOp>(number.getOwner()->getParentOp())) {
      std::optional<IndexOrMirror> found = getScanPosition(around, compute);
      const bool isSameRange = isConstantIntValue(around.getLower(), 0) &&
                               isConstantIntValue(scan.getLower(), 0) &&
                               around.getUpper() == scan.getUpper();
      return found && !found->isMirrored && isSameRange ? found : std::nullopt;
    }
  return matchIndexOrMirror(scan.getPosition(), scan.getUpper(), compute);
}

std::optional<int64_t> getScanChunk(ScanOp scan, BlockArgument index) {
  auto product = scan.getLower().getDefiningOp<arith::MulIOp>();
  for (unsigned side : {0, 1}) {
    auto quotient = product ? product->getOperand(side).getDefiningOp<FloorDivOp>() : FloorDivOp();
    std::optional<int64_t> length =
        quotient ? getConstantIntValue(product->getOperand(1 - side)) : std::nullopt;
    if (length && quotient.getLhs() == index && isConstantIntValue(quotient.getRhs(), *length))
      return length;
  }
  return std::nullopt;
}

} // namespace tk
