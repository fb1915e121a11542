//===- BlockBounds.cpp - bounds of reductions over a tile -----------------===//
//
// A reduction's bounds may depend on tiled indices (causal masks, windows). The block's loop runs
// from the least lower to the greatest upper bound in the tile. Where a bound is monotone in its
// indices, which sums, minima and maxima are, that is its value at a corner of the tile.
//
//===----------------------------------------------------------------------===//
#include "passes/tiling/BlockProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

/// The extreme of `value` over the tile as a scalar, or null where it is not known to be monotone.
Value BlockProgram::endOf(Value value, bool wantMax) {
  if (auto axis = axisOf.find(value); axis != axisOf.end()) {
    const Axis &info = axes[axis->second];
    unsigned depth = info.depth;
    Value start = info.start ? info.start : indexConstant(0, depth);
    if (!wantMax || info.isScalar)
      return start;
    Value size = indexConstant(info.step, depth);
    Value end = arith::AddIOp::create(at(depth), loc, start, size);
    if (info.limit)
      end = arith::MinSIOp::create(at(depth), loc, end, info.limit);
    return arith::SubIOp::create(at(depth), loc, end, indexConstant(1, depth));
  }
  TileValue known = get(value);
  if (known.axes.empty())
    return known.value;
  Operation *op = value.getDefiningOp();
  if (!op)
    return {};
  auto build = [&](auto create, bool secondMax) -> Value {
    Value a = endOf(op->getOperand(0), wantMax);
    Value b = a ? endOf(op->getOperand(1), secondMax) : Value();
    if (!b)
      return {};
    return create(at(scopes.size() - 1), a, b);
  };
  auto same = [&](OpBuilder &b, Value x, Value y) -> Value {
    OperationState state(loc, op->getName());
    state.addOperands({x, y});
    state.addTypes(x.getType());
    return b.create(state)->getResult(0);
  };
  if (isa<arith::AddIOp, arith::MinSIOp, arith::MaxSIOp>(op))
    return build(same, wantMax);
  if (isa<arith::SubIOp>(op))
    return build(same, !wantMax);
  // The divisor of a floor division is a positive expression of dimensions.
  if (isa<FloorDivOp>(op) && get(op->getOperand(1)).axes.empty())
    return build(same, wantMax);
  if (isa<arith::MulIOp>(op) && isNonNegative(op->getOperand(0)) &&
      isNonNegative(op->getOperand(1)))
    return build(same, wantMax);
  return {};
}

/// The least or greatest value of a bound over a tile, as a scalar.
Value BlockProgram::scalarBound(Value bound, const TileValue &tile, bool wantMax) {
  if (tile.axes.empty())
    return tile.value;
  if (Value end = endOf(bound, wantMax))
    return end;
  // Rows outside the tensor have no say.
  TileValue result = tile;
  for (unsigned axis : tile.axes)
    if (std::optional<TileValue> mask = limitMask(axis))
      result = select(*mask, result,
                      builder.getIndexAttr(wantMax ? 0 : std::numeric_limits<int32_t>::max()));
  result = reduceTile(result, result.axes, wantMax ? ReduceKind::Max : ReduceKind::Min);
  return result.value;
}
