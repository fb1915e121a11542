//===- PrivateTiles.cpp - tiles in threads' own shared memory -------------===//
#include "passes/layout/PrivateTiles.h"
#include "passes/machine/Machine.h"

#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuPrivateOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

bool tk::isStorable(Value tile) {
  Type element = getElementTypeOrSelf(tile);
  LayoutAttr layout = getLayout(tile.getType());
  return layout && element.isIntOrFloat() && element.getIntOrFloatBitWidth() >= 8 &&
         layout.getNumRegisters() * element.getIntOrFloatBitWidth() >= vectorBits;
}

void tk::keepInMemory(Value tile, Operation *use) {
  auto type = cast<RankedTensorType>(tile.getType());
  Location loc = tile.getLoc();
  OpBuilder builder(tile.getContext());
  builder.setInsertionPointAfterValue(tile);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  auto kept =
      PrivateType::get(builder.getContext(), 1, type, vectorBits / type.getElementTypeBitWidth());
  Value memory = AllocPrivateOp::create(builder, loc, kept, nullptr);
  auto store = PrivateStoreOp::create(builder, loc, tile, memory, zero);
  if (use)
    builder.setInsertionPoint(use);
  Value read = PrivateLoadOp::create(builder, loc, type, memory, zero);
  tile.replaceAllUsesExcept(read, store);
}
