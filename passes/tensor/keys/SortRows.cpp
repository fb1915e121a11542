//===- SortRows.cpp - rows whose matrix a table selects -------------------===//
//
// A mixture of experts multiplies each row by a matrix of the row's own choice. A tile of such rows
// shares no matrix, so each row would read a whole matrix. Rows that are sorted by their matrix
// share it.
//
// 1. The pattern matches contractions whose right operand lies at an entry that tables give each
//    row (TableProducts.cpp). Contractions in other reductions, and those of several entries in one
//    compute op, become compute ops of their own.
// 2. Rows are sorted into blocks of 128 (RowOrder.cpp). The group of a row is its entry. A last
//    group has the rows whose entry is outside of the axis.
// 3. A compute op over blocks and places computes what the matched one did, with the group of the
//    block as the entry. A place without a row reads 0. It reads rows of an earlier sorted compute
//    op where they are, if both have one order.
// 4. A compute op stores the left operand of the sorted rows, if it is not an element of one
//    tensor at the block and the place. Both operands then are boxes of tensors.
// 5. Readers read the results from the rows' places. Results of the kernel and operands of other
//    contractions are stored in the order of the program.
//
// The pattern declines if the sorted products take more time, with blocks that are not full and the
// copies there and back.
//
//   %y = tk.compute ["m", "n"] {tk.reduce [sum] ["k"] {x[m, k] * w[e[m], k, n]}}
//     =>
//   %place, %group, %row = the order of the rows (RowOrder.cpp)
//   %h = tk.compute ["b", "t", "n"] {tk.reduce [sum] ["k"] {x[row[b, t], k] * w[group[b], k, n]}}
//   %y = tk.compute ["m", "n"] {h[place[m] / 128, place[m] mod 128, n]}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/keys/SortRows.h"
#include "passes/machine/limits/Keys.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProducerKind.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/SortCost.h"
#include "passes/tensor/keys/StoreRowOperands.h"
#include "passes/tensor/keys/TableProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>
#include <vector>

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-split-reductions:rows";
using namespace limits::sort_rows;

namespace {

/// A compute op's result, and the tensor that has it in the order of the keys.
struct SortedResult {
  Value result, sorted;
  const RowOrder *order;
  RowKey key;                          ///< without its expression
  SmallVector<unsigned> rows, columns; ///< positions among the indices of the result
};

/// Sorts the rows of products in one kernel.
class RowSorting {
public:
  RowSorting(KernelOp kernel, RowOrders &orders) : kernel(kernel), orders(orders) {}

  /// Sorts the rows of `compute`. Returns the number of compute ops that were sorted.
  unsigned sort(ComputeOp compute);
  /// Has readers read sorted results.
  void forward();

private:
  bool pays(ArrayRef<TableProduct> products);
  void rewrite(ComputeOp compute, ArrayRef<TableProduct> products);
  ComputeOp storeSorted(ComputeOp compute, const SortedResult &how, const RowKey &key);
  void selectBlocks(ComputeOp sorted, const RowOrder &order, ValueRange rows, Value block,
                    Value key, Value numKeys);
  void readSorted(ComputeOp sorted, const RowOrder &order, ValueRange rows, ValueRange place);
  Value loadRow(OpBuilder &at, const SortedResult &from, ValueRange indices);

  KernelOp kernel;
  RowOrders &orders;
  std::vector<SortedResult> results;
};

} // namespace

static std::vector<TableProduct> findProducts(KernelOp kernel, ComputeOp compute) {
  std::vector<TableProduct> products;
  if (compute.getNumResults() != 1 || replacesParameter(kernel, compute) ||
      compute.getIndicesOf(0).size() != compute.getNumIndices())
    return products;
  compute->walk([&](ReduceOp reduce) {
    if (std::optional<TableProduct> product = matchTableProduct(kernel, compute, reduce))
      products.push_back(*product);
  });
  return products;
}

/// Are the results of all `products` over the indices of their compute op, with one key?
static bool shareRows(ArrayRef<TableProduct> products) {
  ScalarEquality equality;
  const TableProduct &first = products.front();
  ComputeOp compute = first.key.compute;
  return llvm::all_of(products, [&](const TableProduct &product) {
    return isOfCompute(product) &&
           product.key.indices.size() + product.columns.size() == compute.getNumIndices() &&
           equality.equal(product.key.key, first.key.key) &&
           isSameExtent(product.key.numKeys, first.key.numKeys);
  });
}

/// Does `compute` have a contraction besides `products`? Its rows need no order, and in theirs it
/// would go through copies of its operand, and through places that have no row.
static bool hasOtherProduct(ComputeOp compute, ArrayRef<TableProduct> products) {
  return llvm::any_of(compute.getBlock()->getOps<ReduceOp>(), [&](ReduceOp reduce) {
    return isContraction(reduce) && llvm::none_of(products, [&](const TableProduct &product) {
             return product.whole == reduce || product.reduce == reduce;
           });
  });
}

/// Whether the contractions of all rows take less time sorted.
bool RowSorting::pays(ArrayRef<TableProduct> products) {
  auto isKnown = [&](Value extent) { return getSizeFact(kernel, extent).upper.has_value(); };
  const RowKey &key = products.front().key;
  if (!llvm::all_of(key.extents, isKnown) || !isKnown(key.numKeys))
    return false;
  double rows = 1;
  for (Value extent : key.extents)
    rows *= guessSize(kernel, extent);
  const double groups = guessSize(kernel, key.numKeys) + 1;
  const double blocks = std::floor(rows / rowsOfBlock) + groups, places = blocks * rowsOfBlock;
  if (places * rowsOfBlock > std::numeric_limits<int32_t>::max())
    return false;
  double own = 0;
  double sorted = launchesBeside * cost::launch;
  if (!orders.contains(key, rowsOfBlock))
    sorted += RowSorter::timeOf(1, rows, groups, rowsOfBlock);
  for (const TableProduct &product : products) {
    double columns = 1, depth = 1;
    for (Value index : product.columns) {
      Value extent = getExtent(index, key.compute);
      if (!isKnown(extent))
        return false;
      columns *= guessSize(kernel, extent);
    }
    ReduceOp reduce = product.reduce;
    for (Value index : product.summed) {
      Value extent = getExtent(index, key.compute);
      if (!isKnown(extent))
        return false;
      depth *= guessSize(kernel, extent);
    }
    const bool isNarrow = product.operandBits <= 16;
    const double bytes = product.operandBits / 8.0;
    const bool isInCache = bytes * groups * columns * depth <= cost::ownMatricesInCache;
    const double cachedTerm = product.liesAlongSum ? cost::ownMatrixTermAlong : cost::ownMatrixTerm;
    const double ownTerm = isInCache ? cachedTerm : std::max(cachedTerm, cost::byte * bytes);
    // A product of its own is stored, and read again.
    const double resultBits = reduce.getResult(0).getType().getIntOrFloatBitWidth();
    const double resultBytes = isOfCompute(product) ? bytes : resultBits / 8;
    own += ownTerm * rows * columns * depth;
    sorted += (isNarrow ? cost::sortedHalfTerm : cost::sortedTerm) * places * columns * depth +
              cost::byte * (bytes * (groups * columns * depth + (rows + 2 * places) * depth) +
                            resultBytes * (rows + 2 * places) * columns);
  }
  return sorted < own;
}

//===----------------------------------------------------------------------===//
// The sorted rows
//===----------------------------------------------------------------------===//

/// Has the loads of `sorted` that lie at the entry `key` read at the group of the block, and those
/// that depend on the row read 0 where there is none.
void RowSorting::selectBlocks(ComputeOp sorted, const RowOrder &order, ValueRange rows, Value block,
                              Value key, Value numKeys) {
  Dependence onRow(rows);
  ScalarEquality equality;
  Location loc = sorted.getLoc();
  SmallVector<LoadOp> loads;
  sorted->walk([&](LoadOp load) { loads.push_back(load); });
  SmallVector<std::pair<LoadOp, unsigned>> atKey;
  for (LoadOp load : loads) {
    SmallVector<Value> extents = getExtents(kernel, load.getTensor());
    if (extents.size() == load.getIndices().size())
      for (auto [axis, index] : llvm::enumerate(load.getIndices()))
        if (isSameExtent(extents[axis], numKeys) && equality.equal(index, key))
          atKey.push_back({load, axis});
  }
  for (LoadOp load : loads) {
    OpBuilder at(load);
    if (!load.getPad() &&
        llvm::any_of(load.getIndices(), [&](Value index) { return onRow.on(index); }))
      load.getPadMutable().assign(createIdentity(at, loc, ReduceKind::Sum, load.getType()));
  }
  for (auto [load, axis] : atKey) {
    OpBuilder at(load);
    Value entry = LoadOp::create(at, loc, order.blockGroup, ValueRange{block}, Value());
    load.getIndicesMutable()[axis].set(
        arith::IndexCastOp::create(at, loc, at.getIndexType(), entry));
  }
}

/// Has the loads of rows that were sorted in the same order read them at the place of the row.
void RowSorting::readSorted(ComputeOp sorted, const RowOrder &order, ValueRange rows,
                            ValueRange place) {
  SmallVector<LoadOp> loads;
  sorted->walk([&](LoadOp load) { loads.push_back(load); });
  for (LoadOp load : loads)
    for (const SortedResult &from : results) {
      if (load.getTensor() != from.result || from.order != &order ||
          from.rows.size() != rows.size())
        continue;
      bool isRow = llvm::all_of(llvm::zip_equal(from.rows, rows), [&](auto pair) {
        return load.getIndices()[std::get<0>(pair)] == std::get<1>(pair);
      });
      if (!isRow)
        continue;
      SmallVector<Value> indices(place);
      for (unsigned p : from.columns)
        indices.push_back(load.getIndices()[p]);
      OpBuilder at(load);
      load.replaceAllUsesWith(
          LoadOp::create(at, load.getLoc(), from.sorted, indices, Value()).getResult());
      load.erase();
      break;
    }
}

/// Stores what `compute` computes, over blocks and places in them.
ComputeOp RowSorting::storeSorted(ComputeOp compute, const SortedResult &how, const RowKey &key) {
  OpBuilder builder(compute);
  Location loc = compute.getLoc();
  const RowOrder &order = *how.order;
  SmallVector<StringRef> names = {"block", "place"};
  SmallVector<Value> extents = {order.numBlocks,
                                arith::ConstantIndexOp::create(builder, loc, rowsOfBlock)};
  for (unsigned p : how.columns) {
    names.push_back(cast<StringAttr>(compute.getIndexNames()[p]).getValue());
    extents.push_back(compute.getExtents()[p]);
  }
  std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + ".sorted").str();
  Type type = cast<RankedTensorType>(compute.getResult(0).getType()).getElementType();
  SmallVector<Value> rows, place;
  Value ownKey;
  auto sorted = ComputeOp::create(
      builder, loc, names, extents, ArrayRef<Type>{type}, ArrayRef<StringRef>{name},
      ArrayRef<SmallVector<unsigned>>{}, [&](OpBuilder &at, Location, ValueRange indices) {
        llvm::append_range(place, indices.take_front(2));
        Value row = LoadOp::create(at, loc, order.blockRow, place, Value());
        row = arith::IndexCastOp::create(at, loc, at.getIndexType(), row);
        rows = splitRow(at, loc, row, key.extents);
        IRMapping mapping;
        for (auto [p, index] : llvm::zip_equal(how.rows, rows))
          mapping.map(compute.getIndex(p), index);
        for (auto [n, p] : llvm::enumerate(how.columns))
          mapping.map(compute.getIndex(p), indices[n + 2]);
        IRMapping keys = mapping;
        ownKey = cloneFrom(at, key.key, compute, keys);
        for (Operation &op : *compute.getBlock())
          at.clone(op, mapping);
      });
  selectBlocks(sorted, order, rows, place[0], ownKey, key.numKeys);
  readSorted(sorted, order, rows, place);
  eraseDead(sorted);
  storeRowOperands(sorted);
  return sorted;
}

/// Loads the element of `from` whose place in the order of the program is `indices`.
Value RowSorting::loadRow(OpBuilder &at, const SortedResult &from, ValueRange indices) {
  Location loc = from.result.getLoc();
  ComputeWriter writer(at, loc, "");
  SmallVector<Value> row;
  for (unsigned p : from.rows)
    row.push_back(indices[p]);
  Value number = joinRow(at, loc, row, from.key.extents);
  Value place = writer.loadIndex(
      at, from.order->place,
      {writer.divide(at, number, rowsOfChunk), writer.remainder(at, number, rowsOfChunk)});
  SmallVector<Value> own = {writer.divide(at, place, rowsOfBlock),
                            writer.remainder(at, place, rowsOfBlock)};
  for (unsigned p : from.columns)
    own.push_back(indices[p]);
  Type type = cast<RankedTensorType>(from.sorted.getType()).getElementType();
  // Places of rows are inside of the tensor, which the table does not show.
  Value pad = createIdentity(at, loc, ReduceKind::Sum, type);
  return LoadOp::create(at, loc, from.sorted, own, pad);
}

void RowSorting::rewrite(ComputeOp compute, ArrayRef<TableProduct> products) {
  for (const TableProduct &product : products)
    note(product.reduce, passName, Verdict::Derived,
         "rows of the " + describe(product.reduce) +
             " are sorted by the entry of a table, into blocks of " + Twine(rowsOfBlock) +
             " rows that share an operand");
  const RowKey &key = products.front().key;
  SortedResult how;
  how.result = compute.getResult(0);
  how.order = &orders.get(key, rowsOfBlock, /*withPlaces=*/true);
  how.key = key;
  for (Value index : key.indices)
    how.rows.push_back(cast<BlockArgument>(index).getArgNumber());
  for (unsigned p = 0; p < compute.getNumIndices(); ++p)
    if (!llvm::is_contained(how.rows, p))
      how.columns.push_back(p);
  how.sorted = storeSorted(compute, how, key)->getResult(0);
  auto yield = cast<YieldOp>(compute.getBlock()->getTerminator());
  OpBuilder at(yield);
  yield->setOperand(0, loadRow(at, how, compute.getBlock()->getArguments()));
  eraseDead(compute);
  how.key.compute = {};
  how.key.key = {};
  results.push_back(how);
}

unsigned RowSorting::sort(ComputeOp compute) {
  std::vector<TableProduct> products = findProducts(kernel, compute);
  if (products.empty())
    return 0;
  if (shareRows(products) && !hasOtherProduct(compute, products)) {
    if (!pays(products))
      return 0;
    rewrite(compute, products);
    return 1;
  }
  unsigned sorted = 0;
  for (const TableProduct &product : products)
    if (pays(product)) {
      ComputeOp own = separateProduct(product);
      std::optional<TableProduct> moved;
      own->walk([&](ReduceOp reduce) {
        if (!moved)
          moved = matchTableProduct(kernel, own, reduce);
      });
      assert(moved && "a product stays one in a compute op of its own");
      rewrite(own, *moved);
      ++sorted;
    }
  return sorted;
}

/// Is `load` an element of an operand that a contraction reads for many results?
static bool isOperand(LoadOp load) {
  return llvm::any_of(getEnclosingReductions(load),
                      [](ReduceOp around) { return isMatrixProduct(around); });
}

void RowSorting::forward() {
  for (const SortedResult &from : llvm::reverse(results)) {
    SmallVector<LoadOp> loads;
    for (Operation *user : from.result.getUsers())
      if (auto load = dyn_cast<LoadOp>(user); load && !load.getPad() && !isOperand(load))
        loads.push_back(load);
    for (LoadOp load : loads) {
      OpBuilder at(load);
      load.replaceAllUsesWith(loadRow(at, from, load.getIndices()));
      load.erase();
    }
    if (from.result.use_empty())
      from.result.getDefiningOp()->erase();
  }
}

unsigned tk::sortRows(KernelOp kernel, RowOrders &orders) {
  unsigned sorted = 0;
  RowSorting sorting(kernel, orders);
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>()))
    sorted += sorting.sort(compute);
  sorting.forward();
  return sorted;
}
