//===- BlockDot.cpp - contractions ----------------------------------------===//
//
// A sum whose term is a product of two factors, one over (m, k), one over (k, n), becomes a
// tkgpu.dot:
//   1. the factors' axes are found from what they depend on; k is the reduction's only tiled axis;
//   2. conversions from a narrower type are dropped: the product is formed from operands as stored;
//   3. elements beyond the end of k are made zero, unless their loads' masks have done so.
// So does a reduction whose terms are functions of two values, where its tiles are planned so.
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/PairTerms.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/tiling/BlockProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tk;

/// Terms of pairs of values, in slices of which zeros count for nothing, or nothing has to be
/// masked (PlanPairs.cpp).
bool BlockProgram::planPairs(Reduction &reduction, Accumulator &acc) {
  if (reduction.axes.size() != 1 || acc.axes.size() != 2)
    return false;
  const unsigned k = reduction.axes.front();
  auto [m, n] = std::pair(acc.axes.front(), acc.axes.back());
  auto indexOf = [&](unsigned axis) {
    auto found = llvm::find_if(axisOf, [&](const auto &entry) { return entry.second == axis; });
    return found == axisOf.end() ? Value() : found->first;
  };
  Value term = reduction.op.getYield().getValues().front();
  std::optional<PairTerm> pair =
      getPairTerm(term, indexOf(m), indexOf(n), reduction.op.getIndex(0));
  if (!pair || axes[k].isScalar)
    return false;
  acc.isDot = true;
  acc.m = m;
  acc.n = n;
  acc.k = k;
  acc.a = pair->a;
  acc.b = pair->b;
  acc.body = pair->body.takeVector();
  return true;
}

bool BlockProgram::planDot(Reduction &reduction, unsigned position) {
  Accumulator &acc = reduction.accumulators[position];
  if (gpu::getPlan(compute).family == gpu::PlanFamily::Pairwise)
    return planPairs(reduction, acc);
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
  // A factor is zero outside of the bounds: it has no tile of both results' axes.
  for (unsigned axis : reduction.axes)
    for (const std::optional<TileValue> &bound : {axes[axis].lower, axes[axis].upper})
      if (bound && llvm::is_contained(bound->axes, m) && llvm::is_contained(bound->axes, n))
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
  SmallVector<TileValue> unseenMasks;
  if (!factor.getDefiningOp<LoadOp>())
    addUnseenMasks(factor, unseenMasks);
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
  if (mask && !fits(*mask)) {
    // The other factor is zero outside the bounds. An element of a tensor that is not finite there
    // is one that rows see, or has the result computed again (ResultElements.h).
    const bool isLoaded = withoutExtension(factor).getDefiningOp<LoadOp>() != nullptr;
    mask = isLoaded && axes[k].coveringExtent ? std::nullopt : limitMask(k);
  }
  std::optional<TileValue> limit = limitMask(k);
  bool needsMask = mask && !(limit && mask->value == limit->value &&
                             llvm::is_contained(zeroOutside.lookup(tile.value), k));
  for (const TileValue &holds : unseenMasks)
    tile = select(holds, tile, cast<TypedAttr>(builder.getZeroAttr(element)));
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

/// The new sum of terms of pairs: of the tiles of both values, and the sum so far.
Value BlockProgram::pairs(Reduction &reduction, Accumulator &acc, ArrayRef<Value> tiles) {
  Location where = reduction.op.getLoc();
  OpBuilder &b = at(scopes.size() - 1);
  IRMapping map;
  // What is the same for all terms is computed before.
  for (Operation *op : acc.body)
    for (Value operand : op->getOperands())
      if (operand != acc.a && operand != acc.b &&
          !llvm::is_contained(acc.body, operand.getDefiningOp()))
        map.map(operand, get(operand).value);
  auto dot = gpu::DotOp::create(b, where, tiles[2].getType(), tiles[0], tiles[1], tiles[2],
                                getSumPrecision(reduction.op), 1u);
  OpBuilder::InsertionGuard guard(b);
  auto elements = llvm::map_to_vector(tiles, [](Value tile) { return getElementTypeOrSelf(tile); });
  Block *body = b.createBlock(&dot.getTerm().front(), {}, elements, {where, where, where});
  map.map(acc.a, body->getArgument(0));
  map.map(acc.b, body->getArgument(1));
  for (Operation *op : acc.body)
    b.clone(*op, map);
  Value term = map.lookup(reduction.op.getYield().getValues().front());
  tk::YieldOp::create(b, where, createCombination(b, where, acc.kind, body->getArgument(2), term));
  return dot;
}

Value BlockProgram::dot(Reduction &reduction, Accumulator &acc, Value carried) {
  TileValue a = dotOperand(reduction, acc.a, {acc.m, acc.k}, acc.k);
  TileValue b = dotOperand(reduction, acc.b, {acc.k, acc.n}, acc.k);
  unsigned depth = scopes.size() - 1;
  if (!acc.body.empty())
    return pairs(reduction, acc, {a.value, b.value, carried});
  return gpu::DotOp::create(at(depth), loc, carried.getType(), a.value, b.value, carried,
                            getSumPrecision(reduction.op));
}
