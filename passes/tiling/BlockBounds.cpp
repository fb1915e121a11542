//===- BlockBounds.cpp - bounds of reductions over a tile -----------------===//
//
// A reduction's bounds may depend on tiled indices (causal masks, windows). The block's loop runs
// from the least lower to the greatest upper bound in the tile. Where a bound is monotone in its
// indices, which sums, minima and maxima are, that is its value at a corner of the tile.
//
// Warpgroups share a tile's rows. What a bound is for the rows of each goes along
// (tkgpu.rows_bound), for those who come to have these rows alone.
//
//===----------------------------------------------------------------------===//
#include "passes/machine/Machine.h"
#include "passes/machine/WarpgroupTiles.h"
#include "passes/tiling/BlockProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

/// The extreme of `value` over the tile, or a part of its rows, as a scalar; null where it is not
/// known to be monotone.
Value BlockProgram::endOf(Value value, bool wantMax, const RowPart *part) {
  if (auto axis = axisOf.find(value); axis != axisOf.end()) {
    const Axis &info = axes[axis->second];
    unsigned depth = info.depth;
    bool isPart = part && part->axis == axis->second;
    Value start = info.start ? info.start : indexConstant(0, depth);
    if (isPart && part->first > 0)
      start = arith::AddIOp::create(at(depth), loc, start, indexConstant(part->first, depth));
    if (!wantMax && info.endsWithRange)
      return arith::MaxSIOp::create(at(depth), loc, start, indexConstant(0, depth));
    if (!wantMax || info.isScalar)
      return start;
    Value size = indexConstant(isPart ? part->rows : info.step, depth);
    Value end = arith::AddIOp::create(at(depth), loc, start, size);
    if (info.limit && !info.endsWithRange)
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
    Value a = endOf(op->getOperand(0), wantMax, part);
    Value b = a ? endOf(op->getOperand(1), secondMax, part) : Value();
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
  if (auto load = dyn_cast<LoadOp>(op))
    return endOfLoaded(load, wantMax, part);
  if (auto cast = dyn_cast<arith::IndexCastOp>(op)) {
    Value end = endOf(cast.getIn(), wantMax, part);
    return end ? arith::IndexCastOp::create(at(scopes.size() - 1), loc, cast.getType(), end)
               : Value();
  }
  if (isa<arith::AddIOp, arith::MinSIOp, arith::MaxSIOp>(op))
    return build(same, wantMax);
  if (isa<arith::SubIOp>(op))
    return build(same, !wantMax);
  // The divisor of a floor division is a positive expression of dimensions.
  if (isa<FloorDivOp>(op) && get(op->getOperand(1)).axes.empty())
    return build(same, wantMax);
  if (isa<arith::MulIOp>(op) && isNonNegative(op->getOperand(0), /*inRange=*/true) &&
      isNonNegative(op->getOperand(1), /*inRange=*/true))
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
    for (const std::optional<TileValue> &mask : {limitMask(axis), beginMask(axis)})
      if (mask)
        result = select(*mask, result,
                        builder.getIndexAttr(wantMax ? 0 : std::numeric_limits<int32_t>::max()));
  result = reduceTile(result, result.axes, wantMax ? ReduceKind::Max : ReduceKind::Min);
  return result.value;
}

/// The rows of each warpgroup, if all products of the reduction have the same rows and there are
/// several warpgroups' of them.
SmallVector<BlockProgram::RowPart> BlockProgram::rowParts(Reduction &reduction) {
  auto target =
      compute->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  llvm::SmallSetVector<unsigned, 2> rows;
  for (const Accumulator &acc : reduction.accumulators)
    if (acc.isDot)
      rows.insert(acc.m);
  int64_t groups = schedule.getWarps() / warpsOfWarpgroup;
  if (!hasFeature(target, Feature::WarpgroupProducts) || groups < 2 || rows.size() != 1 ||
      axes[rows.front()].size < groups * rowsOfWarpgroup)
    return {};
  SmallVector<RowPart> parts;
  int64_t ofGroup = axes[rows.front()].size / groups;
  for (int64_t group = 0; group < groups - schedule.getSpareWarps() / warpsOfWarpgroup; ++group)
    parts.push_back({rows.front(), group * ofGroup, ofGroup});
  return parts.size() > 1 ? parts : SmallVector<RowPart>();
}

/// Whether all rows of a part are outside the range; null where some row is known to be inside: a
/// tile has one, its first, or its last where tiles end with the range.
Value BlockProgram::isOutsideRange(const Axis &rows, const RowPart &part) {
  const int64_t behind = part.first + part.rows;
  if (!rows.limit || rows.limitIsAll ||
      (rows.endsWithRange ? behind >= rows.step : part.first == 0))
    return {};
  const unsigned depth = scopes.size() - 1;
  Value edge = indexConstant(rows.endsWithRange ? behind : part.first, depth);
  if (rows.start)
    edge = arith::AddIOp::create(at(depth), loc, rows.start, edge);
  if (rows.endsWithRange)
    return arith::CmpIOp::create(at(depth), loc, arith::CmpIPredicate::sle, edge,
                                 indexConstant(0, depth));
  return arith::CmpIOp::create(at(depth), loc, arith::CmpIPredicate::sge, edge, rows.limit);
}

/// `whole`, the extreme of `bound` over a tile, along with that for each warpgroup's rows;
/// `withoutRows`, if given, for a warpgroup whose rows are all outside the tensor. Only where a
/// warpgroup's rows are whole steps of the loop: in longer ones most warpgroups end in the same
/// step, and what is left out is less than loops that end apart cost (H200, 192 rows and steps of
/// 128 terms: +3 % at 2048 terms, 0 at 4096, -3 to -6 % at 16384).
Value BlockProgram::boundOfRows(Reduction &reduction, Value bound, Value whole, bool wantMax,
                                int64_t step, Value withoutRows) {
  SmallVector<RowPart> parts = rowParts(reduction);
  if (parts.empty() || parts.front().rows % step != 0 ||
      !llvm::is_contained(get(bound).axes, parts.front().axis))
    return whole;
  const Axis &rows = axes[parts.front().axis];
  unsigned depth = scopes.size() - 1;
  SmallVector<Value> ends;
  for (const RowPart &part : parts) {
    Value end = endOf(bound, wantMax, &part);
    if (!end)
      return whole;
    if (Value isOutside = withoutRows ? isOutsideRange(rows, part) : Value())
      end = arith::SelectOp::create(at(depth), loc, isOutside, withoutRows, end);
    ends.push_back(end);
  }
  return gpu::RowsBoundOp::create(at(depth), loc, whole, ends);
}
