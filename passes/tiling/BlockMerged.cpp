//===- BlockMerged.cpp - indices that are counted through as one ----------===//
//
// Of indices that are counted through (passes/plan/MergeIndices.h) a block has tiles of the
// count, which each of them follows from by divisions and remainders. Where a tile never leaves the
// run of the last one, the others are the same for all of it, and the last one goes on one by one.
//
//===----------------------------------------------------------------------===//
#include "passes/tiling/BlockProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

/// How many values indices that are counted through have together, known to the launch.
Value BlockProgram::mergedExtent(ArrayRef<Value> indices) {
  OpBuilder host(compute);
  Value product;
  for (Value index : indices) {
    auto arg = cast<BlockArgument>(index);
    auto reduce = dyn_cast<tk::ReduceOp>(arg.getOwner()->getParentOp());
    Value extent =
        reduce ? reduce.getUpper()[arg.getArgNumber()] : compute.getExtents()[arg.getArgNumber()];
    mergedExtents[index] = extent;
    product = product ? Value(arith::MulIOp::create(host, loc, product, extent)) : extent;
  }
  return product;
}

/// Evaluates the indices that the count along `axis` stands for, where that begins.
void BlockProgram::takeApart(unsigned id, ArrayRef<Value> indices, bool isBounded) {
  const int64_t size = axes[id].size;
  const unsigned depth = axes[id].depth;
  auto extentOf = [&](Value index) { return kernelValue(mergedExtents.lookup(index)); };
  TileValue rest = index(id);
  Value last = indices.back();
  if (axes[id].start && !axes[id].isScalar &&
      getSizeFact(kernel, mergedExtents.lookup(last)).divisor % size == 0) {
    Value unit = indexConstant(size, depth), extent = extentOf(last);
    Value tiles = arith::DivSIOp::create(at(0), loc, extent, indexConstant(size));
    Value number = arith::DivSIOp::create(at(depth), loc, axes[id].start, unit);
    Value inside = arith::RemSIOp::create(at(depth), loc, number, tiles);
    Value first = arith::MulIOp::create(at(depth), loc, inside, unit);
    Value numbers = numbersAlong(axes[id], builder.getIndexType());
    Value start = broadcast({first, {}, depth}, {id}, depth).value;
    scopes[depth].memo[last] = {arith::AddIOp::create(at(depth), loc, start, numbers), {id}, depth};
    rest = {arith::DivSIOp::create(at(depth), loc, number, tiles), {}, depth};
    indices = indices.drop_back();
  }
  for (; indices.size() > 1; indices = indices.drop_back()) {
    TileValue extent = broadcast({extentOf(indices.back()), {}, 0}, rest.axes, depth);
    scopes[depth].memo[indices.back()] = {
        FloorModOp::create(at(depth), loc, rest.value.getType(), rest.value, extent.value),
        rest.axes, depth};
    rest.value = FloorDivOp::create(at(depth), loc, rest.value.getType(), rest.value, extent.value);
  }
  // Bulk copies of windows ask how far their elements may lie from their places.
  if (isBounded && !rest.axes.size())
    rest.value = FloorModOp::create(at(depth), loc, rest.value.getType(), rest.value,
                                    extentOf(indices.front()));
  scopes[depth].memo[indices.front()] = rest;
}

/// Gives the indices of a reduction, all of them counted through, one axis.
void BlockProgram::bindMerged(Reduction &reduction, ArrayRef<Value> indices) {
  tk::ReduceOp op = reduction.op;
  unsigned id = newAxis(cast<StringAttr>(op.getIndexNames()[indices.size() - 1]).getValue(),
                        reduceTiles.lookup(op).back());
  axes[id].rangeEnd = mergedExtent(indices);
  axes[id].isAligned = true;
  for (Value index : indices)
    axisOf[index] = id;
  reduction.axes.push_back(id);
  reduction.isLoop = true;
}
