//===- BlockDot.cpp - contractions ----------------------------------------===//
//
// A sum whose term is a product of two factors, one over (m, k), one over (k, n), becomes a
// tkgpu.dot:
//   1. the factors' axes are found from what they depend on; k is the reduction's only tiled axis;
//   2. conversions from a narrower type are dropped: the product is formed from operands as stored;
//   3. elements beyond the end of k are made zero, unless their loads' masks have done so.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ProductFactors.h"
#include "passes/tiling/BlockProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

bool BlockProgram::planDot(Reduction &reduction, unsigned position) {
  Accumulator &acc = reduction.accumulators[position];
  if (acc.kind != ReduceKind::Sum)
    return false;
  Operation *product = reduction.op.getYield().getValues()[position].getDefiningOp();
  if (!product || !isa<arith::MulFOp, arith::MulIOp>(product))
    return false;
  SmallVector<unsigned> tiled;
  for (unsigned axis : reduction.axes)
    if (!axes[axis].isScalar)
      tiled.push_back(axis);
  if (tiled.size() != 1 || acc.axes.size() != 2)
    return false;
  unsigned k = tiled.front();
  Value a = product->getOperand(0), b = product->getOperand(1);
  llvm::SetVector<unsigned> ofA = axesOf(a), ofB = axesOf(b);
  if (ofA.size() != 2 || ofB.size() != 2 || !ofA.remove(k) || !ofB.remove(k))
    return false;
  unsigned m = ofA.front(), n = ofB.front();
  if (m == n)
    return false;
  if (llvm::find(order, n) < llvm::find(order, m)) {
    std::swap(m, n);
    std::swap(a, b);
  }
  Value narrowA = withoutExtension(a), narrowB = withoutExtension(b);
  // The matrix units take two operands of one type.
  if (narrowA.getType() == narrowB.getType()) {
    a = narrowA;
    b = narrowB;
  }
  acc.isDot = true;
  acc.m = m;
  acc.n = n;
  acc.k = k;
  acc.a = a;
  acc.b = b;
  return true;
}

/// A factor as a tile over exactly `wanted`, zero where k is outside its bounds.
TileValue BlockProgram::dotOperand(Reduction &reduction, Value factor, ArrayRef<unsigned> wanted,
                                   unsigned k) {
  TileValue tile = get(factor);
  Type element = getElementTypeOrSelf(tile.value.getType());
  // Products of weights that are zero outside the bounds need nothing else.
  std::optional<TileValue> mask;
  if (!reduction.masksTerms)
    mask = exactMask(k);
  auto fits = [&](const TileValue &value) {
    return llvm::all_of(value.axes,
                        [&](unsigned axis) { return llvm::is_contained(wanted, axis); });
  };
  if (mask && !fits(*mask))
    mask = limitMask(k);
  std::optional<TileValue> limit = limitMask(k);
  bool needsMask = mask && !(limit && mask->value == limit->value &&
                             llvm::is_contained(zeroOutside.lookup(tile.value), k));
  if (needsMask)
    tile = select(*mask, tile, cast<TypedAttr>(builder.getZeroAttr(element)));
  // Before a conversion, so that the load itself can be transposed.
  tile = toOrder(tile, wanted, tile.depth);
  // Half precision holds every 8-bit float.
  if (isa<FloatType>(element) && element.getIntOrFloatBitWidth() == 8 &&
      reduction.op.getPrecision() != Precision::Fast) {
    Type half = tileType(tile.axes, builder.getF16Type());
    tile.value = arith::ExtFOp::create(at(tile.depth), loc, half, tile.value);
  }
  return tile;
}

Value BlockProgram::dot(Reduction &reduction, Accumulator &acc, Value carried) {
  TileValue a = dotOperand(reduction, acc.a, {acc.m, acc.k}, acc.k);
  TileValue b = dotOperand(reduction, acc.b, {acc.k, acc.n}, acc.k);
  unsigned depth = scopes.size() - 1;
  return gpu::DotOp::create(at(depth), reduction.op.getLoc(), carried.getType(), a.value, b.value,
                            carried, getSumPrecision(reduction.op));
}
