//===- RunIndices.cpp - indices that count along a tile -------------------===//
#include "passes/layout/RunIndices.h"

#include "dialects/tk/TkDialect.h"
#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/layout/AxisInfo.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// The scalar that a tile of one constant has in each element: an operation before the tile's, made
/// once.
static Value scalarOfConstant(Value tile) {
  auto constant = tile.getDefiningOp<arith::ConstantOp>();
  std::optional<int64_t> number = constant ? constantIndex(tile) : std::nullopt;
  if (!number || !isa<RankedTensorType>(tile.getType()))
    return {};
  if (auto before = dyn_cast_or_null<arith::ConstantIndexOp>(constant->getPrevNode());
      before && before.value() == *number)
    return before;
  OpBuilder builder(constant);
  return arith::ConstantIndexOp::create(builder, constant.getLoc(), *number);
}

bool tk::isRun(Value index, SmallVectorImpl<Value> &starts, bool fromConstants) {
  if (index.getDefiningOp<IotaOp>())
    return true;
  auto add = index.getDefiningOp<arith::AddIOp>();
  if (!add)
    return false;
  for (auto [run, base] :
       {std::pair(add.getLhs(), add.getRhs()), std::pair(add.getRhs(), add.getLhs())}) {
    Value start = splatSource(base);
    if (!start && fromConstants)
      start = scalarOfConstant(base);
    if (!start)
      continue;
    starts.push_back(start);
    return isRun(run, starts, fromConstants);
  }
  return false;
}

std::optional<PartOfRun> tk::partOfRun(Value index, SmallVectorImpl<Value> &starts) {
  if (auto add = index.getDefiningOp<arith::AddIOp>())
    for (auto [part, base] :
         {std::pair(add.getLhs(), add.getRhs()), std::pair(add.getRhs(), add.getLhs())})
      if (Value start = splatSource(base)) {
        starts.push_back(start);
        return partOfRun(part, starts);
      }
  Operation *op = index.getDefiningOp();
  if (!isa_and_nonnull<FloorDivOp, FloorModOp>(op) || !op->getOperand(0).getDefiningOp<IotaOp>())
    return std::nullopt;
  Value divisor = op->getOperand(1);
  if (Value scalar = splatSource(divisor))
    divisor = scalar;
  std::optional<int64_t> size = constantIndex(divisor);
  if (!size || *size < 1)
    return std::nullopt;
  return PartOfRun{op->getOperand(0), *size, isa<FloorModOp>(op)};
}

bool tk::sameRun(Value a, Value b) {
  SmallVector<Value> ofA, ofB;
  return a == b || (isRun(a, ofA) && isRun(b, ofB) && ofA == ofB);
}
