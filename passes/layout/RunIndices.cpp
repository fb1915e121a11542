//===- RunIndices.cpp - indices that count along a tile -------------------===//
#include "passes/layout/RunIndices.h"

#include "dialects/tk/TkDialect.h"
#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/layout/AxisInfo.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

bool tk::isRun(Value index, SmallVectorImpl<Value> &starts) {
  if (index.getDefiningOp<IotaOp>())
    return true;
  auto add = index.getDefiningOp<arith::AddIOp>();
  if (!add)
    return false;
  for (auto [run, base] :
       {std::pair(add.getLhs(), add.getRhs()), std::pair(add.getRhs(), add.getLhs())})
    if (Value start = splatSource(base)) {
      starts.push_back(start);
      return isRun(run, starts);
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
