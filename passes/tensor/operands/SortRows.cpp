//===- SortRows.cpp - rows whose matrix a table names ---------------------===//
//
// A mixture of experts multiplies each row by a matrix of the row's own choice. A tile of such rows
// shares no matrix, so each row would read a whole matrix. Rows that are sorted by their matrix
// share it.
//
// 1. The pattern matches compute ops with one result and a contraction of two loads. The right load
//    is over an axis at the entry of an integer table. The entry is that of the rows: of indices of
//    the compute op that the left load has and the right load has nowhere else.
// 2. Rows are sorted into blocks of 128 (RowOrder.cpp). The group of a row is its entry. A last
//    group has the rows whose entry is outside of the axis.
// 3. A compute op over blocks and places computes what the matched one did, with the group of the
//    block as the entry. A place without a row reads 0.
// 4. The matched compute op reads the results from the rows' places.
//
// The pattern declines if the sorted product takes more time, with blocks that are not full and the
// copies there and back.
//
//   %y = tk.compute ["m", "n"] {tk.reduce [sum] ["k"] {x[m, k] * w[e[m], k, n]}}
//     =>
//   %place, %group, %row = the order of the rows (RowOrder.cpp)
//   %h = tk.compute ["b", "t", "n"] {tk.reduce [sum] ["k"] {x[row[b, t], k] * w[group[b], k, n]}}
//   %y = tk.compute ["m", "n"] {h[place[m] / 128, place[m] mod 128, n]}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/operands/SortRows.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProducerKind.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/RowOrderCost.h"
#include "passes/tensor/operands/RowOrder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SmallBitVector.h"

#include <cmath>

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-materialize-operands:sort-rows";
/// The rows of a block: those of a tile of a product.
static constexpr int64_t rowsOfBlock = 128;
/// Launches that gather and return the rows.
static constexpr double launchesBeside = 2;

namespace {

/// A contraction whose right operand lies at the entry of a table.
struct TableProduct {
  ReduceOp reduce;
  LoadOp table;               ///< the entry, at bare indices of the compute op
  SmallVector<unsigned> rows; ///< the positions of these indices
  Value groups;               ///< the extent of the axis that the entry selects
};

class RowSorting {
public:
  RowSorting(KernelOp kernel, ComputeOp compute, TableProduct product)
      : kernel(kernel), compute(compute), product(std::move(product)), sorter(kernel, compute),
        builder(compute), loc(compute.getLoc()) {}

  bool pays();
  void rewrite();

private:
  SmallVector<Value> split(OpBuilder &at, Value row);
  Value join(OpBuilder &at, ValueRange indices);
  Value groupOf(OpBuilder &at, Value row);
  Value storeSorted();
  void selectBlocks(ComputeOp sorted, ValueRange rows, Value block);
  void readSorted(Value sorted);

  KernelOp kernel;
  ComputeOp compute;
  TableProduct product;
  RowSorter sorter;
  OpBuilder builder;
  Location loc;
  RowOrder order;
};

} // namespace

//===----------------------------------------------------------------------===//
// The match
//===----------------------------------------------------------------------===//

/// The load of a table at bare indices of `compute` that `index` is; null if it is something else.
static LoadOp tableOf(Value index, ComputeOp compute) {
  auto cast = index.getDefiningOp<arith::IndexCastOp>();
  auto table = cast ? cast.getIn().getDefiningOp<LoadOp>() : LoadOp();
  if (!table || table.getPad() || !table.getType().isInteger(32) || table.getIndices().empty())
    return {};
  llvm::SmallDenseSet<Value> different;
  for (Value at : table.getIndices()) {
    auto argument = dyn_cast<BlockArgument>(at);
    if (!argument || argument.getOwner() != compute.getBlock() || !different.insert(at).second)
      return {};
  }
  return table;
}

/// The positions of the indices of `compute` that the places of `load` depend on, without what
/// axis `except` is read at.
static llvm::SmallBitVector positionsOf(LoadOp load, ComputeOp compute, int64_t except = -1) {
  llvm::SmallBitVector positions(compute.getNumIndices());
  for (unsigned p = 0; p < compute.getNumIndices(); ++p) {
    Dependence onIndex(ValueRange{compute.getIndex(p)});
    for (auto [axis, at] : llvm::enumerate(load.getIndices()))
      if (static_cast<int64_t>(axis) != except && onIndex.on(at))
        positions.set(p);
  }
  return positions;
}

/// Matches `right`, beside `left`, as the operand that a table selects.
static std::optional<TableProduct> match(KernelOp kernel, ComputeOp compute, ReduceOp reduce,
                                         LoadOp left, LoadOp right) {
  for (auto [axis, at] : llvm::enumerate(right.getIndices())) {
    LoadOp table = tableOf(at, compute);
    SmallVector<Value> extents = getExtents(kernel, right.getTensor());
    if (!table || extents.size() != right.getIndices().size())
      continue;
    llvm::SmallBitVector rows = positionsOf(table, compute), ofLeft = positionsOf(left, compute),
                         ofRight = positionsOf(right, compute, static_cast<int64_t>(axis));
    // Each index is one of the rows or one of the columns. Columns of no row would be batches.
    llvm::SmallBitVector all = rows;
    all |= ofRight;
    if (rows.anyCommon(ofRight) || ofRight.none() || !all.all() || !ofLeft.anyCommon(rows))
      continue;
    llvm::SmallBitVector common = ofLeft;
    common &= ofRight;
    if (common.any())
      continue;
    TableProduct found{reduce, table, {}, extents[axis]};
    for (Value index : table.getIndices())
      found.rows.push_back(cast<BlockArgument>(index).getArgNumber());
    return found;
  }
  return std::nullopt;
}

static std::optional<TableProduct> findProduct(KernelOp kernel, ComputeOp compute) {
  if (compute.getNumResults() != 1 || replacesParameter(kernel, compute) ||
      compute.getIndicesOf(0).size() != compute.getNumIndices())
    return std::nullopt;
  for (auto reduce : compute.getBlock()->getOps<ReduceOp>()) {
    if (reduce.isOnline() || reduce.getNumAccumulators() != 1 || reduce.getNumIndices() != 1 ||
        !isContraction(reduce) || !isKernelLevel(reduce.getUpper()[0], compute))
      continue;
    auto multiply = reduce.getYield().getValues()[0].getDefiningOp<arith::MulFOp>();
    if (!multiply)
      continue;
    auto left = withoutExtension(multiply.getLhs()).getDefiningOp<LoadOp>();
    auto right = withoutExtension(multiply.getRhs()).getDefiningOp<LoadOp>();
    if (!left || !right)
      continue;
    for (auto [a, b] : {std::pair(left, right), std::pair(right, left)})
      if (std::optional<TableProduct> found = match(kernel, compute, reduce, a, b))
        return found;
  }
  return std::nullopt;
}

/// Whether the contraction of all rows takes less time sorted.
bool RowSorting::pays() {
  auto isKnown = [&](Value extent) { return getSizeFact(kernel, extent).upper.has_value(); };
  if (!llvm::all_of(compute.getExtents(), isKnown) || !isKnown(product.groups) ||
      !isKnown(product.reduce.getUpper()[0]))
    return false;
  double rows = 1, columns = 1, depth = guessSize(kernel, product.reduce.getUpper()[0]);
  for (unsigned p = 0; p < compute.getNumIndices(); ++p)
    (llvm::is_contained(product.rows, p) ? rows : columns) *=
        guessSize(kernel, compute.getExtents()[p]);
  const double groups = guessSize(kernel, product.groups) + 1;
  const double blocks = std::floor(rows / rowsOfBlock) + groups, places = blocks * rowsOfBlock;
  auto multiply = product.reduce.getYield().getValues()[0].getDefiningOp<arith::MulFOp>();
  Type operand = withoutExtension(multiply.getLhs()).getType();
  const bool isNarrow = operand.getIntOrFloatBitWidth() <= 16;
  const double bytes = operand.getIntOrFloatBitWidth() / 8.0;
  const bool isInCache = bytes * groups * columns * depth <= cost::ownMatricesInCache;
  const double ownTerm =
      isInCache ? cost::ownMatrixTerm : std::max(cost::ownMatrixTerm, cost::byte * bytes);
  const double own = ownTerm * rows * columns * depth;
  const double sorted =
      (isNarrow ? cost::sortedHalfTerm : cost::sortedTerm) * places * columns * depth +
      cost::byte * bytes * (groups * columns * depth + 2 * places * (columns + depth)) +
      RowSorter::timeOf(rows, groups, rowsOfBlock) + launchesBeside * cost::launch;
  return sorted < own;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// The indices of the compute op whose row is `row`.
SmallVector<Value> RowSorting::split(OpBuilder &at, Value row) {
  SmallVector<Value> indices(product.rows.size());
  for (unsigned n = product.rows.size(); n-- > 1;) {
    Value extent = compute.getExtents()[product.rows[n]];
    indices[n] = FloorModOp::create(at, loc, row.getType(), row, extent);
    row = FloorDivOp::create(at, loc, row.getType(), row, extent);
  }
  indices[0] = row;
  return indices;
}

/// The row of indices of the compute op.
Value RowSorting::join(OpBuilder &at, ValueRange indices) {
  Value row;
  for (unsigned p : product.rows) {
    if (row)
      row = arith::MulIOp::create(at, loc, row, compute.getExtents()[p]);
    row = row ? Value(arith::AddIOp::create(at, loc, row, indices[p])) : indices[p];
  }
  return row;
}

/// The group of a row: its entry, or the last one.
Value RowSorting::groupOf(OpBuilder &at, Value row) {
  Value entry = sorter.loadIndex(at, product.table.getTensor(), split(at, row));
  Value least = sorter.constant(at, 0);
  Value isLeast = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::sge, entry, least);
  Value isBelow = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt, entry, product.groups);
  Value isInside = arith::AndIOp::create(at, loc, isLeast, isBelow);
  return arith::SelectOp::create(at, loc, isInside, entry, product.groups);
}

//===----------------------------------------------------------------------===//
// The sorted rows
//===----------------------------------------------------------------------===//

/// Has the loads of `sorted` that lie at the table's entry read at the group of the block, and
/// those that depend on the row read 0 where there is none.
void RowSorting::selectBlocks(ComputeOp sorted, ValueRange rows, Value block) {
  Dependence onRow(rows);
  sorted->walk([&](LoadOp load) {
    OpBuilder at(load);
    SmallVector<Value> extents = getExtents(kernel, load.getTensor());
    for (auto [axis, index] : llvm::enumerate(load.getIndices())) {
      auto cast = index.getDefiningOp<arith::IndexCastOp>();
      auto table = cast ? cast.getIn().getDefiningOp<LoadOp>() : LoadOp();
      if (table && table.getTensor() == product.table.getTensor() &&
          llvm::equal(table.getIndices(), rows) && axis < extents.size() &&
          isSameExtent(extents[axis], product.groups))
        load.getIndicesMutable()[axis].set(sorter.loadIndex(at, order.blockGroup, {block}));
    }
    if (!load.getPad() &&
        llvm::any_of(load.getIndices(), [&](Value index) { return onRow.on(index); }))
      load.getPadMutable().assign(createIdentity(at, loc, ReduceKind::Sum, load.getType()));
  });
}

/// Stores what the compute op computes, over blocks and places in them.
Value RowSorting::storeSorted() {
  SmallVector<StringRef> names = {"block", "place"};
  SmallVector<Value> extents = {order.numBlocks, sorter.constant(builder, rowsOfBlock)};
  for (unsigned p = 0; p < compute.getNumIndices(); ++p)
    if (!llvm::is_contained(product.rows, p)) {
      names.push_back(cast<StringAttr>(compute.getIndexNames()[p]).getValue());
      extents.push_back(compute.getExtents()[p]);
    }
  std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + ".sorted").str();
  Type type = cast<RankedTensorType>(compute.getResult(0).getType()).getElementType();
  SmallVector<Value> rows;
  Value block;
  auto sorted = ComputeOp::create(
      builder, loc, names, extents, ArrayRef<Type>{type}, ArrayRef<StringRef>{name},
      ArrayRef<SmallVector<unsigned>>{}, [&](OpBuilder &at, Location, ValueRange indices) {
        block = indices[0];
        rows = split(at, sorter.loadIndex(at, order.blockRow, indices.take_front(2)));
        IRMapping mapping;
        for (auto [p, row] : llvm::zip_equal(product.rows, rows))
          mapping.map(compute.getIndex(p), row);
        unsigned next = 2;
        for (unsigned p = 0; p < compute.getNumIndices(); ++p)
          if (!llvm::is_contained(product.rows, p))
            mapping.map(compute.getIndex(p), indices[next++]);
        for (Operation &op : *compute.getBlock())
          at.clone(op, mapping);
      });
  selectBlocks(sorted, rows, block);
  eraseDead(sorted);
  return sorted->getResult(0);
}

/// Has the compute op read its rows of `sorted`.
void RowSorting::readSorted(Value sorted) {
  Block *block = compute.getBlock();
  auto yield = cast<YieldOp>(block->getTerminator());
  OpBuilder at(yield);
  Value row = join(at, block->getArguments());
  Value own = sorter.loadIndex(
      at, order.place,
      {sorter.divide(at, row, rowsOfChunk), sorter.remainder(at, row, rowsOfChunk)});
  SmallVector<Value> indices = {sorter.divide(at, own, rowsOfBlock),
                                sorter.remainder(at, own, rowsOfBlock)};
  for (unsigned p = 0; p < compute.getNumIndices(); ++p)
    if (!llvm::is_contained(product.rows, p))
      indices.push_back(compute.getIndex(p));
  Value pad = createIdentity(at, loc, ReduceKind::Sum, yield.getValues()[0].getType());
  yield->setOperand(0, LoadOp::create(at, loc, sorted, indices, pad));
  eraseDead(compute);
}

void RowSorting::rewrite() {
  note(product.reduce, passName, Verdict::Derived,
       "rows of the " + describe(product.reduce) +
           " are sorted by the entry of a table, into blocks of " + Twine(rowsOfBlock) +
           " rows that share an operand");
  Value numRows;
  for (unsigned p : product.rows) {
    Value extent = compute.getExtents()[p];
    numRows = numRows ? Value(arith::MulIOp::create(builder, loc, numRows, extent)) : extent;
  }
  Value numGroups =
      arith::AddIOp::create(builder, loc, product.groups, sorter.constant(builder, 1));
  order = sorter.sort(numRows, numGroups, rowsOfBlock,
                      [&](OpBuilder &at, Value row) { return groupOf(at, row); });
  readSorted(storeSorted());
}

unsigned tk::sortRows(KernelOp kernel) {
  unsigned sorted = 0;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>())) {
    std::optional<TableProduct> product = findProduct(kernel, compute);
    if (!product)
      continue;
    RowSorting sorting(kernel, compute, *product);
    if (!sorting.pays())
      continue;
    sorting.rewrite();
    ++sorted;
  }
  return sorted;
}
