//===- SlidingLoads.cpp - loads whose tile moves by less than its size ----===//
#include "passes/layout/SlidingLoads.h"

#include "passes/analysis/SizeFacts.h"
#include "passes/layout/MemoryAccess.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// Does `value` follow from `wanted` by arithmetic without regions?
static bool followsFrom(Value value, Value wanted, llvm::SmallPtrSetImpl<Value> &visited) {
  if (value == wanted)
    return true;
  Operation *op = value.getDefiningOp();
  return op && op->getNumRegions() == 0 && visited.insert(value).second &&
         llvm::any_of(op->getOperands(),
                      [&](Value operand) { return followsFrom(operand, wanted, visited); });
}

/// Is a tile of indices a sum, so that neighbours read neighbouring places?
static bool isSum(Value index) {
  SmallVector<Value> work = {index};
  llvm::SmallPtrSet<Value, 8> visited;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || !isa<RankedTensorType>(value.getType()) || !visited.insert(value).second)
      continue;
    if (isa<arith::MulIOp>(op))
      return false;
    llvm::append_range(work, op->getOperands());
  }
  return true;
}

SmallVector<int64_t> tk::slidAxes(gpu::LoadOp load, scf::ForOp loop) {
  SmallVector<int64_t> slid;
  auto tile = dyn_cast<RankedTensorType>(load.getType());
  std::optional<int64_t> step = getConstantIndex(loop.getStep());
  if (!tile || !step)
    return slid;
  MemoryAccess access = MemoryAccess::of(load);
  for (auto [d, index] : llvm::enumerate(load.getIndices())) {
    ArrayRef<int64_t> along = access.indexAxes(d);
    llvm::SmallPtrSet<Value, 8> visited;
    if (along.size() == 1 && *step < tile.getDimSize(along.front()) && isSum(index) &&
        followsFrom(index, loop.getInductionVar(), visited))
      slid.push_back(along.front());
  }
  llvm::sort(slid);
  return slid;
}

bool tk::slidesInRegisters(gpu::LoadOp load, scf::ForOp loop) {
  LayoutAttr layout = getLayout(load.getType());
  for (; layout && loop; loop = loop->getParentOfType<scf::ForOp>())
    for (int64_t axis : slidAxes(load, loop))
      if (llvm::any_of(layout.getRegisterBits(), [&](LayoutBit bit) { return bit.axis == axis; }))
        return true;
  return false;
}
