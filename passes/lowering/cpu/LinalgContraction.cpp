//===- LinalgContraction.cpp - matrix products over a tile ----------------===//
//
// A chunk of a sum of products, sum += rows * columns, over a tile:
//  1. The row factor is a tile over the rows and the terms; a load of that shape is used where it
//     is. The column factor is packed into panels of a register tile's width. Whatever the factors
//     are (converted, scaled, masked, gathered), they are plain numbers of the accumulator's type
//     from there on.
//  2. Every `registerRows` rows of every panel are a linalg.matmul of static size but for the
//     number of terms, which tk-vectorize-contractions keeps in registers. Rows that are left over
//     are taken one by one; panels are padded, and what the padding computes lands in the padding
//     of the sum.
// The panel is the inner loop's constant and stays in the first-level cache.
//
//===----------------------------------------------------------------------===//
#include "passes/lowering/cpu/LinalgEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tk;
using namespace tk::cpu;

/// The numbers of the reduction's indices whose bounds differ within the tile along indices of
/// `mask`.
SmallVector<unsigned> LinalgEmitter::boundedAlong(ReduceOp reduce, IndexMask mask) const {
  SmallVector<unsigned> numbers;
  for (unsigned i = 0; i < reduce.getNumIndices(); ++i) {
    Value lower = reduce.getLower()[i], upper = reduce.getUpper()[i];
    Ids varying = analysis.tiledIds(analysis.maskOf(lower) | analysis.maskOf(upper));
    if (!varying.empty() && (mask & bit(varying.front())))
      numbers.push_back(i);
  }
  return numbers;
}

/// Whether the point is inside the bounds of the reduction that differ within the tile along
/// indices of `mask`; null where there are none.
Value LinalgEmitter::insideBounds(ReduceOp reduce, IndexMask mask) {
  Value inside;
  for (unsigned i : boundedAlong(reduce, mask)) {
    Value lower = reduce.getLower()[i], upper = reduce.getUpper()[i];
    Value at = state[analysis.idOf(reduce.getIndex(i))].global;
    for (auto [predicate, bound] : {std::pair(arith::CmpIPredicate::sge, lower),
                                    std::pair(arith::CmpIPredicate::slt, upper)}) {
      Value ok = arith::CmpIOp::create(b, loc, predicate, at, eval(bound));
      inside = inside ? arith::AndIOp::create(b, loc, inside, ok).getResult() : ok;
    }
  }
  return inside;
}

/// A factor at the current point; 0 outside the reduction's bounds where those vary in the tile.
Value LinalgEmitter::maskedFactor(ReduceOp reduce, Value factor) {
  Value value = eval(factor);
  Value inside = insideBounds(reduce, analysis.maskOf(factor));
  if (!inside)
    return value;
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType()));
  return arith::SelectOp::create(b, loc, inside, value, zero);
}

/// What `maskedFactor` evaluates.
SmallVector<Value> LinalgEmitter::withBounds(ReduceOp reduce, Value factor) const {
  SmallVector<Value> roots = {factor};
  for (unsigned i : boundedAlong(reduce, analysis.maskOf(factor)))
    roots.append({reduce.getLower()[i], reduce.getUpper()[i]});
  return roots;
}

/// The row factor as a tensor over the rows and `depth`.
Value LinalgEmitter::rowFactor(ReduceOp reduce, const Contraction &c, ArrayRef<unsigned> depth) {
  Ids ids = {c.rowId};
  llvm::append_range(ids, depth);
  if (!boundsVary(reduce))
    if (std::optional<Leaf> leaf = leafOf(c.row, ids); leaf && leaf->map && leaf->map.isIdentity())
      return leaf->tensor;
  Value tile = emptyTile(c.row.getType(), ids);
  return emitGeneric(ids, {}, withBounds(reduce, c.row), currentPart(tile, ids), ids,
                     [&](ValueRange) { return Values{maskedFactor(reduce, c.row)}; })[0];
}

/// The column factor as a tensor over panels, `depth` and the columns of a panel.
Value LinalgEmitter::packColumns(ReduceOp reduce, const Contraction &c, ArrayRef<unsigned> depth,
                                 int64_t width) {
  Ids ids(depth);
  ids.push_back(c.columnId);
  SmallVector<int64_t> shape = {analysis.tileOf(c.columnId) / width};
  for (unsigned id : depth)
    shape.push_back(analysis.tileOf(id));
  shape.push_back(width);
  Value panels = tensor::EmptyOp::create(b, loc, shape, c.column.getType());
  Value columns = asValue(state[c.columnId].current);
  return forLoop(index(0), ceilDivide(columns, width), 1, panels, [&](Value p, ValueRange carried) {
    Value begin = multiply(p, index(width));
    IndexState &own = state[c.columnId];
    own.first = getAsOpFoldResult(begin);
    own.current = getAsOpFoldResult(minOf(index(width), subtract(columns, begin)));
    SmallVector<OpFoldResult> offsets(shape.size(), b.getIndexAttr(0));
    SmallVector<OpFoldResult> sizes = {b.getIndexAttr(1)};
    offsets[0] = getAsOpFoldResult(p);
    for (unsigned id : ids)
      sizes.push_back(state[id].current);
    SmallVector<bool> kept(shape.size(), true);
    kept[0] = false;
    Value panel = extractSlice(carried[0], offsets, sizes, kept);
    panel = emitGeneric(ids, {}, withBounds(reduce, c.column), panel, ids,
                        [&](ValueRange) { return Values{maskedFactor(reduce, c.column)}; })[0];
    return Values{insertSlice(panel, carried[0], offsets, sizes)};
  })[0];
}

/// The product of a few rows with one panel, added to their part of the sum.
static Value multiplyRegisterTile(OpBuilder &b, Location loc, unsigned depth, Value rows,
                                  Value panel, Value sum) {
  if (depth == 1)
    return linalg::MatmulOp::create(b, loc, sum.getType(), ValueRange{rows, panel}, sum)
        .getResult(0);
  unsigned n = depth + 2;
  SmallVector<AffineExpr> dims;
  for (unsigned i = 0; i < n; ++i)
    dims.push_back(b.getAffineDimExpr(i));
  auto map = [&](ArrayRef<AffineExpr> exprs) {
    return AffineMap::get(n, 0, exprs, b.getContext());
  };
  SmallVector<AffineExpr> left = {dims[0]}, right(dims.begin() + 2, dims.end());
  left.append(dims.begin() + 2, dims.end());
  right.push_back(dims[1]);
  SmallVector<utils::IteratorType> iterators(n, utils::IteratorType::reduction);
  iterators[0] = iterators[1] = utils::IteratorType::parallel;
  return linalg::GenericOp::create(
             b, loc, sum.getType(), ValueRange{rows, panel}, sum,
             ArrayRef<AffineMap>{map(left), map(right), map({dims[0], dims[1]})}, iterators,
             [&](OpBuilder &inner, Location, ValueRange args) {
               Value next;
               if (isa<FloatType>(args[0].getType()))
                 next = arith::AddFOp::create(inner, loc, args[2],
                                              arith::MulFOp::create(inner, loc, args[0], args[1]));
               else
                 next = arith::AddIOp::create(inner, loc, args[2],
                                              arith::MulIOp::create(inner, loc, args[0], args[1]));
               linalg::YieldOp::create(inner, loc, next);
             })
      .getResult(0);
}

Value LinalgEmitter::multiplyTiles(const Contraction &c, ArrayRef<unsigned> depth, Value rows,
                                   Value panels, Value sum, int64_t width) {
  Value rowCount = asValue(state[c.rowId].current), columns = asValue(state[c.columnId].current);
  int64_t height = machine.registerRows;
  Value groups = b.createOrFold<arith::DivUIOp>(loc, rowCount, index(height));
  Value grouped = multiply(groups, index(height));
  SmallVector<OpFoldResult> depthSizes, depthOffsets(depth.size(), b.getIndexAttr(0));
  for (unsigned id : depth)
    depthSizes.push_back(state[id].current);
  // `count` rows of a panel at a time, from row `lower` to `upper`.
  auto overRows = [&](Value p, Value panel, Value lower, Value upper, int64_t count, Value start) {
    return forLoop(lower, upper, count, start, [&](Value row, ValueRange carried) {
      SmallVector<OpFoldResult> offsets = {getAsOpFoldResult(row)}, sizes = {b.getIndexAttr(count)};
      SmallVector<OpFoldResult> at = {offsets[0], getAsOpFoldResult(multiply(p, index(width)))};
      SmallVector<OpFoldResult> size = {b.getIndexAttr(count), b.getIndexAttr(width)};
      llvm::append_range(offsets, depthOffsets);
      llvm::append_range(sizes, depthSizes);
      Value left = extractSlice(rows, offsets, sizes, SmallVector<bool>(sizes.size(), true));
      Value part = extractSlice(carried[0], at, size, {true, true});
      part = multiplyRegisterTile(b, loc, depth.size(), left, panel, part);
      return Values{insertSlice(part, carried[0], at, size)};
    })[0];
  };
  return forLoop(index(0), ceilDivide(columns, width), 1, sum, [&](Value p, ValueRange carried) {
    SmallVector<OpFoldResult> offsets = {getAsOpFoldResult(p)}, sizes = {b.getIndexAttr(1)};
    llvm::append_range(offsets, depthOffsets);
    llvm::append_range(sizes, depthSizes);
    offsets.push_back(b.getIndexAttr(0));
    sizes.push_back(b.getIndexAttr(width));
    SmallVector<bool> kept(sizes.size(), true);
    kept[0] = false;
    Value panel = extractSlice(panels, offsets, sizes, kept);
    Value next = overRows(p, panel, index(0), grouped, height, carried[0]);
    return Values{overRows(p, panel, grouped, rowCount, 1, next)};
  })[0];
}

bool LinalgEmitter::emitContraction(ReduceOp reduce, unsigned k) {
  const Contraction *c = analysis.contractionOf(reduce, k);
  if (!c)
    return false;
  Tile sum = tiles[reduce.getResult(k)];
  if (sum.ids != Ids{c->rowId, c->columnId})
    return false;
  Type element = reduce.getResult(k).getType();
  int64_t lanes = machine.vectorBytes / (element.getIntOrFloatBitWidth() / 8);
  int64_t width = lanes * machine.registerVectors;
  Ids depth;
  for (unsigned i = 0; i < reduce.getNumIndices(); ++i)
    if (unsigned id = analysis.idOf(reduce.getIndex(i)); analysis.tileOf(id) > 1)
      depth.push_back(id);
  Value rows = rowFactor(reduce, *c, depth);
  Value panels = packColumns(reduce, *c, depth, width);
  tiles[reduce.getResult(k)].value = multiplyTiles(*c, depth, rows, panels, sum.value, width);
  return true;
}
