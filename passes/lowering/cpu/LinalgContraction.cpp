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
// A term that is absent, by a mask or the reduction's bounds, is no product of 0 with the other
// factor, which may be NaN or infinite. Where terms are absent for some rows alone, the chunk is
// multiplied so only if its column factors are finite, and where they are for some columns alone,
// if its row factors are; else its terms are added one by one.
//
//===----------------------------------------------------------------------===//
#include "passes/lowering/cpu/LinalgEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
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

/// A factor at the current point; 0 outside the reduction's bounds where those vary in the tile,
/// and where `present`, if given, is false.
Value LinalgEmitter::maskedFactor(ReduceOp reduce, Value factor, Value present) {
  Value value = eval(factor);
  Value inside = insideBounds(reduce, analysis.maskOf(factor));
  if (present) {
    Value holds = eval(present);
    inside = inside ? arith::AndIOp::create(b, loc, inside, holds).getResult() : holds;
  }
  if (!inside)
    return value;
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType()));
  return arith::SelectOp::create(b, loc, inside, value, zero);
}

/// What `maskedFactor` evaluates.
SmallVector<Value> LinalgEmitter::withBounds(ReduceOp reduce, Value factor, Value present) const {
  SmallVector<Value> roots = {factor};
  if (present)
    roots.push_back(present);
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

/// Are terms of sum `k` absent for some values of index `id` in a tile, and there for others?
bool LinalgEmitter::mayDrop(ReduceOp reduce, unsigned k, const Contraction &c, unsigned id) const {
  if (!isa<FloatType>(c.column.getType()))
    return false;
  IndexMask mask = 0;
  for (Value bound :
       llvm::concat<Value>(llvm::to_vector(reduce.getLower()), llvm::to_vector(reduce.getUpper())))
    mask |= analysis.maskOf(bound);
  if (Value condition = presentOf(reduce, k))
    mask |= analysis.maskOf(condition);
  return (mask & bit(id)) != 0;
}

/// Is `factor`, over index `id`, finite in all of the chunk?
Value LinalgEmitter::areFinite(ReduceOp reduce, Value factor, unsigned id,
                               ArrayRef<unsigned> depth) {
  Ids ids(depth);
  ids.push_back(id);
  Type flag = b.getI32Type();
  Value none = arith::ConstantIntOp::create(b, loc, 0, 32);
  Value start = tensor::FromElementsOp::create(b, loc, RankedTensorType::get({}, flag), none);
  Value found = emitGeneric(ids, ids, withBounds(reduce, factor), start, {}, [&](ValueRange old) {
    Value value = maskedFactor(reduce, factor);
    auto type = cast<FloatType>(value.getType());
    Value infinity = arith::ConstantOp::create(
        b, loc, b.getFloatAttr(type, APFloat::getInf(type.getFloatSemantics())));
    Value isLarge = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UGE,
                                          math::AbsFOp::create(b, loc, value), infinity);
    Value bits = arith::ExtUIOp::create(b, loc, flag, isLarge);
    return Values{arith::OrIOp::create(b, loc, old[0], bits)};
  })[0];
  Value any = tensor::ExtractOp::create(b, loc, found, ValueRange());
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, any, none);
}

/// What `body` computes in a branch. Nothing that it makes is known outside.
template <typename Fn> Value LinalgEmitter::inBranch(Block *block, Fn body) {
  auto savedMemo = std::exchange(memo, decltype(memo)());
  auto savedTiles = tiles, savedCompanions = companions;
  auto savedState = state;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(block);
  Value result = body();
  scf::YieldOp::create(b, loc, result);
  memo = std::move(savedMemo);
  tiles = std::move(savedTiles);
  companions = std::move(savedCompanions);
  state = std::move(savedState);
  return result;
}

/// The column factor as a tensor over panels, `depth` and the columns of a panel.
Value LinalgEmitter::packColumns(ReduceOp reduce, unsigned k, const Contraction &c,
                                 ArrayRef<unsigned> depth, int64_t width) {
  Value condition = presentOf(reduce, k);
  if (condition && mayDrop(reduce, k, c, c.rowId))
    condition = {};
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
    panel =
        emitGeneric(ids, {}, withBounds(reduce, c.column, condition), panel, ids, [&](ValueRange) {
          return Values{maskedFactor(reduce, c.column, condition)};
        })[0];
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
  auto multiply = [&] {
    Value rows = rowFactor(reduce, *c, depth);
    Value panels = packColumns(reduce, k, *c, depth, width);
    return multiplyTiles(*c, depth, rows, panels, sum.value, width);
  };
  Value finite;
  if (mayDrop(reduce, k, *c, c->rowId))
    finite = areFinite(reduce, c->column, c->columnId, depth);
  if (mayDrop(reduce, k, *c, c->columnId)) {
    Value rows = areFinite(reduce, c->row, c->rowId, depth);
    finite = finite ? arith::AndIOp::create(b, loc, finite, rows).getResult() : rows;
  }
  if (!finite) {
    tiles[reduce.getResult(k)].value = multiply();
    return true;
  }
  auto branch = scf::IfOp::create(b, loc, sum.value.getType(), finite,
                                  /*withElseRegion=*/true);
  inBranch(branch.thenBlock(), multiply);
  inBranch(branch.elseBlock(), [&] {
    accumulate(reduce, k);
    return tiles[reduce.getResult(k)].value;
  });
  tiles[reduce.getResult(k)].value = branch.getResult(0);
  memo.clear();
  return true;
}
