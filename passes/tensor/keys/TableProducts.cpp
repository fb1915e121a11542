//===- TableProducts.cpp - products whose operand a table selects ---------===//
//
// A product of rows by the matrix that a table selects for each row: `x[m, c] * w[e[m], c, f]`. The
// entry may be computed (`e[m] + 1`). A row may have several entries, over an index of a reduction
// around the product, or over an index of the product's own sum:
//
//   tk.reduce [sum] ["k"] {p[m, k] * tk.reduce [sum] ["c"] {x[m, c] * w[e[m, k], c, f]}}
//   tk.reduce [sum] ["c", "k"] {x[m, c] * w[e[m, k], c, f]}
//
// A sum of blocks with scales, `sum[b](sum[j](x[m, b * 128 + j] * w[e[m], f, b * 128 + j]) * ..)`,
// is one product: both operands have the index of its blocks.
//
// Such a product becomes a compute op over `m`, `k` and `f`, so that its rows can be sorted.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/keys/TableProducts.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tk;

//===----------------------------------------------------------------------===//
// The match
//===----------------------------------------------------------------------===//

static bool haveCommon(const llvm::SetVector<Value> &a, const llvm::SetVector<Value> &b) {
  return llvm::any_of(a, [&](Value value) { return b.contains(value); });
}

/// How deep the block of an iteration index lies.
static unsigned depthOf(Value index) {
  unsigned depth = 0;
  for (Operation *op = index.getParentBlock()->getParentOp(); op; op = op->getParentOp())
    ++depth;
  return depth;
}

/// Orders indices as they are bound: those of the compute op first.
static SmallVector<Value> inOrder(const llvm::SetVector<Value> &indices) {
  SmallVector<Value> sorted(indices.begin(), indices.end());
  llvm::sort(sorted, [](Value a, Value b) {
    return std::pair(depthOf(a), cast<BlockArgument>(a).getArgNumber()) <
           std::pair(depthOf(b), cast<BlockArgument>(b).getArgNumber());
  });
  return sorted;
}

/// The most bits that the elements have which `factor` is computed from.
static unsigned bitsOf(Value factor, ComputeOp compute) {
  unsigned bits = 0;
  for (LoadOp load : getLoads(factor, compute))
    if (!load.getType().isInteger(32) && !load.getType().isInteger(64))
      bits = std::max(bits, load.getType().getIntOrFloatBitWidth());
  if (auto rounded = withoutExtension(factor).getDefiningOp<arith::TruncFOp>())
    bits = rounded.getType().getIntOrFloatBitWidth();
  return bits;
}

/// Finds the sum whose indices both operands have, or `product`'s own. Returns the indices that are
/// summed.
static llvm::SetVector<Value> findSums(TableProduct &product, const llvm::SetVector<Value> &rows,
                                       const llvm::SetVector<Value> &ofLeft,
                                       const llvm::SetVector<Value> &ofRight) {
  llvm::SetVector<Value> summed;
  product.whole = product.reduce;
  bool isWhole = true;
  for (Value index : product.reduce.getBlock()->getArguments()) {
    isWhole &= !rows.contains(index);
    if (!rows.contains(index))
      summed.insert(index);
  }
  for (ReduceOp around : getEnclosingReductions(product.reduce)) {
    bool isShared =
        isWhole && !around.isOnline() && around.getKind(0) == ReduceKind::Sum &&
        llvm::all_of(around.getBlock()->getArguments(), [&](Value index) {
          return !rows.contains(index) && ofLeft.contains(index) && ofRight.contains(index);
        });
    if (!isShared)
      break;
    summed.insert(around.getBlock()->args_begin(), around.getBlock()->args_end());
    product.whole = around;
  }
  return summed;
}

/// Matches `right`, beside `left`, as the operand that the index `key` of one of its loads selects.
static std::optional<TableProduct> matchKey(ComputeOp compute, ReduceOp reduce, Value left,
                                            Value right, Value key, Value numKeys) {
  if (isa<BlockArgument>(key) || !readsTable(key, compute))
    return std::nullopt;
  TableProduct product;
  product.reduce = reduce;
  llvm::SetVector<Value> rows = getIndicesBeside({}, key), ofRight = getIndicesBeside(key, right),
                         ofLeft = getIndicesBeside({}, left);
  // Each index is one of the rows or one of the columns. Columns of no row would be batches.
  if (rows.empty() || haveCommon(rows, ofRight) || !haveCommon(rows, ofLeft))
    return std::nullopt;
  llvm::SetVector<Value> summed = findSums(product, rows, ofLeft, ofRight);
  llvm::SetVector<Value> columns;
  for (Value index : ofRight)
    if (!summed.contains(index) && index.getParentBlock() != reduce.getBlock())
      columns.insert(index);
  if (columns.empty() || haveCommon(ofLeft, columns))
    return std::nullopt;
  for (Value index : ofLeft)
    if (!summed.contains(index) && index.getParentBlock() != reduce.getBlock() &&
        !rows.contains(index))
      return std::nullopt;
  for (Value index : getIndicesBeside({}, product.whole.getResult(0)))
    if (!rows.contains(index) && !columns.contains(index))
      return std::nullopt;
  // A sum over the rows alone would have nothing left to be summed.
  if (llvm::all_of(reduce.getBlock()->getArguments(),
                   [&](Value index) { return rows.contains(index); }))
    return std::nullopt;
  product.columns = inOrder(columns);
  product.summed.assign(summed.begin(), summed.end());
  RowKey &found = product.key;
  found.compute = compute;
  found.key = key;
  found.indices = inOrder(rows);
  found.numKeys = numKeys;
  for (Value index : found.indices)
    found.extents.push_back(getExtent(index, compute));
  auto isKnown = [&](Value index) { return getExtent(index, compute) != nullptr; };
  bool areKnown = llvm::all_of(found.indices, isKnown) && llvm::all_of(columns, isKnown) &&
                  llvm::all_of(summed, isKnown);
  product.operandBits = std::max(bitsOf(left, compute), bitsOf(right, compute));
  return areKnown ? std::optional(product) : std::nullopt;
}

/// Are the terms of `reduce` products of two factors that vary with the sum?
static bool multipliesTerms(ReduceOp reduce) {
  Operation *multiply = reduce.getYield().getValues()[0].getDefiningOp();
  if (!isa_and_nonnull<arith::MulFOp, arith::MulIOp>(multiply))
    return false;
  Dependence varies(reduce.getBlock()->getArguments());
  return multiply->getOperand(0) != multiply->getOperand(1) && varies.on(multiply->getOperand(0)) &&
         varies.on(multiply->getOperand(1));
}

std::optional<TableProduct> tk::matchTableProduct(KernelOp kernel, ComputeOp compute,
                                                  ReduceOp reduce) {
  if (reduce.isOnline() || reduce.getKind(0) != ReduceKind::Sum || !multipliesTerms(reduce) ||
      llvm::any_of(reduce.getBlock()->getOperations(),
                   [](Operation &op) { return op.getNumRegions() > 0; }))
    return std::nullopt;
  for (Value index : reduce.getBlock()->getArguments())
    if (!getExtent(index, compute))
      return std::nullopt;
  for (ReduceOp around : getEnclosingReductions(reduce))
    if (around.isOnline())
      return std::nullopt;
  Operation *multiply = reduce.getYield().getValues()[0].getDefiningOp();
  for (auto [left, right] : {std::pair(multiply->getOperand(0), multiply->getOperand(1)),
                             std::pair(multiply->getOperand(1), multiply->getOperand(0))})
    for (LoadOp load : getLoads(right, compute)) {
      SmallVector<Value> extents = getExtents(kernel, load.getTensor());
      if (extents.size() != load.getIndices().size())
        continue;
      for (auto [key, extent] : llvm::zip_equal(load.getIndices(), extents))
        if (auto product = matchKey(compute, reduce, left, right, key, extent)) {
          product->liesAlongSum = llvm::is_contained(product->summed, load.getIndices().back());
          return product;
        }
    }
  return std::nullopt;
}

bool tk::isOfCompute(const TableProduct &product) {
  ComputeOp compute = product.key.compute;
  ReduceOp reduce = product.reduce;
  Block *body = compute.getBlock();
  return reduce->getBlock() == body && llvm::all_of(product.key.indices, [&](Value index) {
           return index.getParentBlock() == body;
         });
}

//===----------------------------------------------------------------------===//
// A compute op of its own
//===----------------------------------------------------------------------===//

/// Has `reduce` sum over `kept` alone, inside a sum over its other indices. Returns the inner one.
static ReduceOp splitSum(ReduceOp reduce, ArrayRef<unsigned> kept) {
  OpBuilder builder(reduce);
  Location loc = reduce.getLoc();
  SmallVector<Value> lower[2], upper[2]; // of the outer and of the inner sum
  SmallVector<StringRef> names[2];
  for (unsigned n = 0; n < reduce.getNumIndices(); ++n) {
    const bool isInner = llvm::is_contained(kept, n);
    lower[isInner].push_back(reduce.getLower()[n]);
    upper[isInner].push_back(reduce.getUpper()[n]);
    names[isInner].push_back(cast<StringAttr>(reduce.getIndexNames()[n]).getValue());
  }
  Type type = reduce.getResult(0).getType();
  ReduceOp inner;
  auto outer = ReduceOp::create(
      builder, loc, ReduceKind::Sum, names[0], lower[0], upper[0], type,
      [&](OpBuilder &at, Location, ValueRange outerIndices) -> Value {
        inner = ReduceOp::create(
            at, loc, ReduceKind::Sum, names[1], lower[1], upper[1], type,
            [&](OpBuilder &in, Location, ValueRange innerIndices) -> Value {
              IRMapping mapping;
              unsigned next[2] = {0, 0};
              for (unsigned n = 0; n < reduce.getNumIndices(); ++n) {
                const bool isInner = llvm::is_contained(kept, n);
                mapping.map(reduce.getIndex(n),
                            (isInner ? innerIndices : outerIndices)[next[isInner]++]);
              }
              return cloneSlice(in, reduce.getYield().getValues()[0], reduce.getBlock(), mapping);
            });
        for (NamedAttribute attribute : reduce->getDiscardableAttrs())
          inner->setAttr(attribute.getName(), attribute.getValue());
        inner.setPrecision(reduce.getPrecision());
        return inner.getResult(0);
      });
  reduce.getResult(0).replaceAllUsesWith(outer.getResult(0));
  reduce.erase();
  return inner;
}

ComputeOp tk::separateProduct(const TableProduct &product) {
  ComputeOp compute = product.key.compute;
  ReduceOp reduce = product.reduce;
  SmallVector<unsigned> kept;
  for (unsigned n = 0; n < reduce.getNumIndices(); ++n)
    if (!llvm::is_contained(product.key.indices, reduce.getIndex(n)))
      kept.push_back(n);
  SmallVector<Value> extents = product.key.extents, indices = product.key.indices;
  SmallVector<StringRef> names;
  for (Value index : product.columns)
    extents.push_back(getExtent(index, compute));
  llvm::append_range(indices, product.columns);
  for (Value index : indices)
    names.push_back(getName(index));
  if (kept.size() < reduce.getNumIndices()) {
    // The indices of the reduction become those of the sum around the product.
    SmallVector<int> own;
    for (Value index : indices) {
      bool isOwn = index.getParentBlock() == reduce.getBlock();
      own.push_back(isOwn ? static_cast<int>(cast<BlockArgument>(index).getArgNumber()) : -1);
    }
    SmallVector<unsigned> moved;
    for (unsigned n = 0; n < reduce.getNumIndices(); ++n)
      if (!llvm::is_contained(kept, n))
        moved.push_back(n);
    reduce = splitSum(reduce, kept);
    auto outer = cast<ReduceOp>(reduce->getParentOp());
    for (auto [index, position] : llvm::zip_equal(indices, own))
      if (position >= 0)
        index = outer.getIndex(static_cast<unsigned>(
            llvm::find(moved, static_cast<unsigned>(position)) - moved.begin()));
  }
  // A product that is rounded is stored so.
  if (product.whole != product.reduce)
    reduce = product.whole;
  Operation *last = reduce;
  if (reduce.getResult(0).hasOneUse())
    if (auto rounded = dyn_cast<arith::TruncFOp>(*reduce.getResult(0).user_begin()))
      last = rounded;
  OpBuilder builder(compute);
  Location loc = reduce.getLoc();
  std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + ".product").str();
  Type type = last->getResult(0).getType();
  auto stored = ComputeOp::create(
      builder, loc, names, extents, ArrayRef<Type>{type}, ArrayRef<StringRef>{name},
      ArrayRef<SmallVector<unsigned>>{}, [&](OpBuilder &at, Location, ValueRange places) {
        IRMapping mapping;
        mapping.map(ValueRange(indices), places);
        YieldOp::create(at, loc, cloneFrom(at, last->getResult(0), compute, mapping));
      });
  OpBuilder at(last);
  Value loaded = LoadOp::create(at, loc, stored->getResult(0), indices, Value());
  last->getResult(0).replaceAllUsesWith(loaded);
  last->erase();
  if (last != reduce)
    reduce->erase();
  return stored;
}
