//===- TileElements.cpp - single elements of tiles of numbers -------------===//
#include "passes/layout/TileElements.h"

#include "dialects/tk/TkDialect.h"
#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// The value of all elements of a constant tile.
static TypedAttr splatOf(Value tile) {
  DenseElementsAttr elements;
  return matchPattern(tile, m_Constant(&elements)) && elements.isSplat()
             ? elements.getSplatValue<TypedAttr>()
             : TypedAttr();
}

bool TileElements::areScalars(Value tile) {
  auto type = dyn_cast<RankedTensorType>(tile.getType());
  if (!type)
    return true;
  Operation *op = tile.getDefiningOp();
  if (!op || type.getRank() != 1 || op->getNumRegions() > 0)
    return false;
  if (auto iota = dyn_cast<IotaOp>(op))
    return type.getElementType().isIndex();
  if (splatOf(tile) || splatSource(tile))
    return true;
  return (isa<gpu::LoadOp>(op) || op->hasTrait<OpTrait::Elementwise>()) &&
         llvm::all_of(op->getOperands(), areScalars);
}

Value TileElements::at(Value tile, int64_t position) {
  if (!isa<RankedTensorType>(tile.getType()))
    return tile;
  Value &element = known[{tile, position}];
  if (element)
    return element;
  OpBuilder builder(tile.getContext());
  builder.setInsertionPointAfterValue(tile);
  // Operands are entered meanwhile: the reference does not live that long.
  Value computed = compute(builder, tile.getDefiningOp(), position);
  return known[{tile, position}] = computed;
}

Value TileElements::compute(OpBuilder &builder, Operation *op, int64_t position) {
  Location loc = op->getLoc();
  if (isa<IotaOp>(op))
    return arith::ConstantIndexOp::create(builder, loc, position);
  if (TypedAttr splat = splatOf(op->getResult(0)))
    return arith::ConstantOp::create(builder, loc, splat);
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return broadcast.getSource();
  auto elements = [&](OperandRange tiles) {
    return llvm::map_to_vector(tiles, [&](Value tile) { return at(tile, position); });
  };
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  if (auto load = dyn_cast<gpu::LoadOp>(op)) {
    auto noAxes = [&](size_t count) {
      return builder.getArrayAttr(SmallVector<Attribute>(count, builder.getDenseI64ArrayAttr({})));
    };
    Value other = load.getOther() ? at(load.getOther(), position) : Value();
    return gpu::LoadOp::create(builder, loc, type, load.getBuffer(), elements(load.getIndices()),
                               load.getStrides(), elements(load.getMasks()), other,
                               noAxes(load.getIndices().size()), noAxes(load.getMasks().size()));
  }
  SmallVector<Value> operands = elements(op->getOperands());
  return builder.create(loc, op->getName().getIdentifier(), operands, type, op->getAttrs())
      ->getResult(0);
}
