//===- BlockScan.cpp - prefix reductions ----------------------------------===//
//
// A scan at a bare index whose whole range is in one tile is a tkgpu.scan of that tile. Any other
// is the reduction that it equals by definition.
//
//===----------------------------------------------------------------------===//
#include "passes/tiling/BlockProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tk;

TileValue BlockProgram::scan(tk::ScanOp op) {
  auto axis = axisOf.find(op.getPosition());
  if (axis == axisOf.end() || !axes[axis->second].isWhole || axes[axis->second].isScalar ||
      getConstantIndex(op.getLower()) != 0 || op.getUpper() != axes[axis->second].rangeEnd)
    return scanAsReduction(op);
  unsigned id = axis->second;
  llvm::SetVector<Value> free;
  getUsedValuesDefinedAbove(op.getBody(), free);
  for (Value value : free)
    if (axesOf(value).contains(id))
      return scanAsReduction(op);
  // Elements beyond the end come after all others: they need no mask.
  axisOf[op.getBlock()->getArgument(0)] = id;
  TileValue term = get(op.getYield().getValues().front());
  term = broadcast(term, unite(term.axes, {id}), term.depth);
  int64_t position = llvm::find(term.axes, id) - term.axes.begin();
  term.value = gpu::ScanOp::create(at(term.depth), op.getLoc(), term.value.getType(), term.value,
                                   op.getKind(), position);
  return term;
}

TileValue BlockProgram::scanAsReduction(tk::ScanOp op) {
  OpBuilder before(op);
  Location loc = op.getLoc();
  Value one = arith::ConstantIndexOp::create(before, loc, 1);
  Value next = arith::AddIOp::create(before, loc, op.getPosition(), one);
  Value upper = arith::MinSIOp::create(before, loc, op.getUpper(), next);
  auto kind = before.getArrayAttr({ReduceKindAttr::get(before.getContext(), op.getKind())});
  auto reduction = tk::ReduceOp::create(
      before, loc, TypeRange{op.getResult().getType()}, kind,
      before.getStrArrayAttr({op.getIndexName()}), ValueRange{op.getLower()}, ValueRange{upper},
      PrecisionAttr::get(before.getContext(), Precision::Default));
  reduction.getBody().takeBody(op.getBody());
  reduceTiles[reduction] = reduceTiles.lookup(op);
  return get(reduction.getResult(0));
}
