//===- FuseProductsCost.cpp - the cost rule of fusing matrix products -----===//
//
// The third rule of FuseProducersCost.cpp, for each read of a matrix product or of a value computed
// from one. If no work is repeated, the product is fused into an epilogue. Under a reduction of the
// consumer it becomes the first of at most two back-to-back contractions. Requirements: the
// consumer's tiles are those of the product's rows, there are enough of them, and the product is
// not recomputed along another index of the reductions around it.
//
//===----------------------------------------------------------------------===//
#include "passes/machine/limits/Operands.h"
#include "passes/tensor/fuse/FuseProducersCost.h"

#include "passes/analysis/ProductFactors.h"
#include "passes/machine/Machine.h"
#include "passes/machine/TileFacts.h"
#include "passes/plan/TileBoxes.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"

#include <array>

using namespace mlir;

namespace tk {

using namespace limits::fuse_products_cost;

/// True if a parallel index of the consumer stands in every load under the reductions around the
/// read and in every component-carrying load of the producer: products of one batch each.
static bool sharesBatch(Read read, const Reach &reach) {
  SmallVector<ReduceOp> around = getEnclosingReductions(read.load);
  if (around.empty())
    return false;
  auto compute = cast<ComputeOp>(read.producer.getOwner());
  SmallVector<unsigned> axes = compute.getIndicesOf(read.producer.getResultNumber());
  for (auto [axis, component] : llvm::zip_equal(axes, read.load.getIndices())) {
    auto index = dyn_cast<BlockArgument>(component);
    if (!index || !reach.parallel.contains(index))
      continue;
    auto inEveryLoad = [](Operation *root, Value needed) {
      return !root->walk([&](LoadOp load) {
                    Dependence depends(ValueRange{needed});
                    return llvm::any_of(load.getIndices(), [&](Value i) { return depends.on(i); })
                               ? WalkResult::advance()
                               : WalkResult::interrupt();
                  })
                  .wasInterrupted();
    };
    bool inProducer = llvm::all_of(getProducerSlice(read.producer), [&](Operation *op) {
      return !isa<ReduceOp>(op) || inEveryLoad(op, compute.getIndex(axis));
    });
    if (inProducer && inEveryLoad(around.back(), index))
      return true;
  }
  return false;
}

/// How many products at most stand in each other's terms in `reduction`.
static unsigned chainLength(Operation *reduction) {
  unsigned longest = 0;
  reduction->walk([&](ReduceOp inner) {
    unsigned length = 0;
    for (Operation *op = inner; op != reduction->getParentOp(); op = op->getParentOp())
      length += isa<ReduceOp>(op) && isContraction(cast<ReduceOp>(op));
    longest = std::max(longest, length);
  });
  return longest;
}

/// How many products of the consumer have in their terms what the read stands for.
static unsigned productsAround(Read read, const Reach &reach) {
  SmallVector<ReduceOp> around = getEnclosingReductions(read.load);
  auto isRead = [&](ReduceOp reduce) {
    return llvm::any_of(reach.reduced,
                        [&](BlockArgument index) { return index.getOwner() == reduce.getBlock(); });
  };
  return llvm::count_if(llvm::make_range(llvm::find_if(around, isRead), around.end()),
                        [](ReduceOp reduce) { return isContraction(reduce); });
}

/// True if tiles of so many rows leave most processors without work. On a CPU they never do.
static bool areFewTiles(int64_t rows, ComputeOp consumer) {
  auto target =
      consumer->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  return target && 2 * (rows / rowsOfLargestTile + 1) < target.getProcessors();
}

/// An index of the reductions around the read along which what is read is computed again, more
/// often than `budget` allows; null if there is none.
static BlockArgument findRepeatedIndex(Read read, const Reach &reach, RepeatBudget budget) {
  for (ReduceOp around : getReductionsOver(read, reach))
    for (auto [n, end] : llvm::enumerate(around.getUpper()))
      if (BlockArgument index = around.getBlock()->getArgument(n);
          !reach.reduced.contains(index) && !budget.allows(end))
        return index;
  return {};
}

/// The indices among `indices` at which one factor of a product stands, and the other does not.
static llvm::SetVector<Value> getRows(ReduceOp product, ArrayRef<Value> indices) {
  Operation *term = product.getYield().getValues()[0].getDefiningOp();
  llvm::SetVector<Value> rows;
  for (Value index : indices) {
    Dependence depends(ValueRange{index});
    if (depends.on(term->getOperand(0)) != depends.on(term->getOperand(1)))
      rows.insert(index);
  }
  return rows;
}

/// True if the reader reduces over an index at which both factors of a chain's outer `product`
/// stand, heads for example, and leaves few tiles: the chains of all heads, one after the other in
/// each, are tiles of their own where they are stored.
static bool leavesFewChains(ReduceOp product, Read read, const Reach &reach) {
  if (reach.reduced.empty() || !isContraction(product) || chainLength(product) < longestChain)
    return false;
  auto compute = cast<ComputeOp>(read.producer.getOwner());
  Operation *term = product.getYield().getValues()[0].getDefiningOp();
  bool isOverBatch = false;
  for (auto [axis, component] : llvm::zip_equal(
           compute.getIndicesOf(read.producer.getResultNumber()), read.load.getIndices())) {
    auto index = dyn_cast<BlockArgument>(component);
    if (!index || !reach.reduced.contains(index))
      continue;
    Dependence depends(ValueRange{compute.getIndex(axis)});
    auto around = cast<ReduceOp>(index.getOwner()->getParentOp());
    isOverBatch |= depends.on(term->getOperand(0)) && depends.on(term->getOperand(1)) &&
                   getUpperBound(around.getUpper()[index.getArgNumber()]) > 1;
  }
  int64_t rows = 1;
  for (BlockArgument index : read.consumer.getBlock()->getArguments().drop_back()) {
    int64_t upper = getUpperBound(getExtent(index, read.consumer));
    if (upper < 0 || upper > INT32_MAX / rows)
      return false;
    rows *= std::max<int64_t>(upper, 1);
  }
  return isOverBatch && areFewTiles(rows, read.consumer);
}

/// True if no row of the `product` is one of the product that takes it as a factor, though both
/// have rows: then a block would have one row of either at a time.
static bool rowsAreCrossed(ReduceOp product, Read read) {
  SmallVector<ReduceOp> around = getEnclosingReductions(read.load);
  if (around.empty() || !isContraction(around.front()) || !isContraction(product))
    return false;
  auto compute = cast<ComputeOp>(read.producer.getOwner());
  SmallVector<unsigned> axes = compute.getIndicesOf(read.producer.getResultNumber());
  SmallVector<Value> inner, outer;
  for (auto [axis, index] : llvm::zip_equal(axes, read.load.getIndices()))
    if (auto arg = dyn_cast<BlockArgument>(index); arg && isParallel(arg, read.consumer)) {
      inner.push_back(compute.getIndex(axis));
      outer.push_back(arg);
    }
  llvm::SetVector<Value> here = getRows(product, inner), there = getRows(around.front(), outer);
  return !here.empty() && !there.empty() &&
         llvm::none_of(llvm::zip_equal(inner, outer), [&](auto pair) {
           return here.contains(std::get<0>(pair)) && there.contains(std::get<1>(pair));
         });
}

/// The indices among `indices` that stand in one factor of a product alone, for either factor.
static std::array<llvm::SetVector<Value>, 2> getSides(ReduceOp product, ArrayRef<Value> indices) {
  Operation *term = product.getYield().getValues()[0].getDefiningOp();
  std::array<llvm::SetVector<Value>, 2> sides;
  for (Value index : indices) {
    Dependence depends(ValueRange{index});
    const bool inFirst = depends.on(term->getOperand(0)),
               inSecond = depends.on(term->getOperand(1));
    if (inFirst != inSecond)
      sides[inSecond].insert(index);
  }
  return sides;
}

/// True if a block would need a tile of three sides: the rows and the columns of the `product` are
/// indices of the consumer, and another product in it has a row or a column that is neither. The
/// first product of a chain has the terms of the second one on one side instead.
static bool needsThirdSide(ReduceOp product, Read read) {
  if (!isContraction(product))
    return false;
  auto compute = cast<ComputeOp>(read.producer.getOwner());
  SmallVector<Value> own, ofReader, terms;
  for (auto [axis, component] : llvm::zip_equal(
           compute.getIndicesOf(read.producer.getResultNumber()), read.load.getIndices())) {
    auto index = dyn_cast<BlockArgument>(component);
    if (index && isParallel(index, read.consumer)) {
      own.push_back(compute.getIndex(axis));
      ofReader.push_back(index);
    } else if (index) {
      terms.push_back(compute.getIndex(axis));
    }
  }
  const auto [rows, columns] = getSides(product, own);
  const auto ofTerms = getSides(product, terms);
  const size_t inOneFactor = std::max(ofTerms[0].size(), ofTerms[1].size());
  if (rows.empty() || columns.empty() || (!terms.empty() && inOneFactor == terms.size()))
    return false;
  llvm::DenseSet<Value> tile;
  for (auto [mine, index] : llvm::zip_equal(own, ofReader))
    if (rows.contains(mine) || columns.contains(mine))
      tile.insert(index);
  const SmallVector<Value> all(read.consumer.getBlock()->getArguments());
  return read.consumer
      ->walk([&](ReduceOp other) {
        const bool isApart =
            isContraction(other) &&
            llvm::any_of(getRows(other, all), [&](Value index) { return !tile.contains(index); });
        return isApart ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// True if TMA can load the tiles of `load`, a factor of `product`: boxes of rows, or groups of
/// rows that a table names.
static bool hasBoxes(LoadOp load, ReduceOp product, ComputeOp compute) {
  auto kernel = compute->getParentOfType<KernelOp>();
  if (getRowAlignment(kernel, load) < boxAlignment)
    return false;
  const bool isOfTable = llvm::any_of(load.getIndices(), [](Value index) {
    return llvm::any_of(getSlice(index, index.getParentBlock()), llvm::IsaPred<LoadOp>);
  });
  if (!isOfTable)
    return true;
  StatementShape shape = analyzeStatement(kernel, compute);
  const SmallVector<Value> indices(compute.getBlock()->getArguments());
  llvm::SetVector<Value> tiled = getRows(product, indices);
  tiled.insert(product.getIndex(0));
  return areRowsGathered(shape, load, tiled.getArrayRef(), rowsOfGatheredBox);
}

/// True if `reduce` sums products of factors of 16 bits that TMA can load, or that are computed.
static bool sumsHalfBoxes(ReduceOp reduce, ComputeOp compute) {
  auto isHalf = [](Value value) { return value.getType().isBF16() || value.getType().isF16(); };
  for (Value term : reduce.getYield().getValues()) {
    auto product = term.getDefiningOp<arith::MulFOp>();
    if (!product || reduce.getNumIndices() != 1)
      return false;
    bool hasHalf = false;
    for (Value factor : product->getOperands()) {
      Value stored = withoutExtension(factor);
      auto load = stored.getDefiningOp<LoadOp>();
      const bool isParameter = load && !load.getTensor().getDefiningOp<ComputeOp>();
      if (isParameter && (!isHalf(stored) || !hasBoxes(load, reduce, compute)))
        return false;
      hasHalf |= isHalf(stored);
    }
    if (!hasHalf)
      return false;
  }
  return true;
}

/// True if the read is in a chain whose outputs over `columns`, the consumer's last index, are held
/// by warpgroups that divide the columns and share the scores, and shared memory has room for 64
/// rows and one step of 64 terms. Whatever else is reduced for each column has no place in it.
static bool haveColumnsByWarpgroup(Read read, BlockArgument columns) {
  auto target = read.consumer->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(
      gpu::targetAttrName);
  const int64_t upper = getUpperBound(getExtent(columns, read.consumer));
  if (!hasFeature(target, Feature::WarpgroupProducts) ||
      columns.getArgNumber() + 1 != read.consumer.getNumIndices() || upper < 0 ||
      upper > mostColumnsOfChain || !isUnderSoftmax(read))
    return false;
  Dependence onColumns(ValueRange{columns});
  for (ReduceOp reduce : read.consumer.getBlock()->getOps<ReduceOp>())
    if (llvm::any_of(reduce->getResults(), [&](Value sum) { return onColumns.on(sum); }) &&
        !sumsHalfBoxes(reduce, read.consumer))
      return false;
  int64_t elements = llvm::PowerOf2Ceil(upper);
  for (Operation *op : getProducerSlice(read.producer)) {
    auto product = dyn_cast<ReduceOp>(op);
    if (!product || !isContraction(product))
      continue;
    const int64_t terms = getUpperBound(product.getUpper().back());
    if (terms < 0 || terms > 2 * mostColumnsOfChain ||
        !sumsHalfBoxes(product, cast<ComputeOp>(read.producer.getOwner())))
      return false;
    // tk-split-depths cuts a sum behind a power of two.
    const int64_t first = terms > mostColumnsOfWarpgroup ? llvm::bit_floor<uint64_t>(terms) : 0;
    elements += 2 * (first + llvm::PowerOf2Ceil(terms - first));
  }
  return rowsOfWarpgroup * elements * int64_t(sizeof(uint16_t)) <= target.getShared();
}

/// True if a reduction that is no product ranges over the rows and over the columns of `product`:
/// the sum of all scores with one key, for example. A tile is then of the product alone, and no
/// index of the reader runs along it.
static bool isReducedWhole(ReduceOp product, Read read, const Reach &reach) {
  SmallVector<ReduceOp> around = getReductionsOver(read, reach);
  if (!isContraction(product) || around.empty() || isContraction(around.front()))
    return false;
  auto compute = cast<ComputeOp>(read.producer.getOwner());
  SmallVector<Value> reduced, others;
  for (auto [axis, component] : llvm::zip_equal(
           compute.getIndicesOf(read.producer.getResultNumber()), read.load.getIndices())) {
    auto index = dyn_cast<BlockArgument>(component);
    (index && reach.reduced.contains(index) ? reduced : others).push_back(compute.getIndex(axis));
  }
  const auto [rows, columns] = getSides(product, reduced);
  return !rows.empty() && !columns.empty() && getRows(product, others).empty();
}

std::optional<std::string> whyNotProducts(Operation *product, Read read, const Reach &reach,
                                          int64_t maxExtra) {
  llvm::SetVector<BlockArgument> all = reach.parallel;
  all.insert_range(reach.reduced);
  if (all.size() < reach.numComponents && reach.extra.empty())
    return std::nullopt; // a single element of a row, such as a label's score
  if (!reach.allPlain)
    return "it is read at an index expression, so that its products would be repeated";
  if (!reach.reduced.empty() && reach.parallel.empty())
    return "the reader would have no parallel index left to compute it over";
  if (auto reduce = dyn_cast<ReduceOp>(product)) {
    if (auto why = whyNotReduced(reduce, read, reach))
      return why;
    if (rowsAreCrossed(reduce, read))
      return "its rows are others than those of the product that reads it";
    if (needsThirdSide(reduce, read))
      return "a tile of its rows and columns would have a third side, that of another product";
    if (leavesFewChains(reduce, read, reach))
      return "its reader has few tiles, and reduces over chains of products in each";
  }
  if (chainLength(product) + productsAround(read, reach) > longestChain)
    return "a chain of more than two products is not computed in one loop";
  if (BlockArgument index = findRepeatedIndex(read, reach, RepeatBudget(maxExtra))) {
    auto around = cast<ReduceOp>(index.getOwner()->getParentOp());
    auto name = cast<StringAttr>(around.getIndexNames()[index.getArgNumber()]);
    return "its products would be repeated for every tile of index '" + name.str() + "'";
  }
  RepeatBudget budget(maxExtra), values(std::min(maxExtra, fewValues));
  auto reduce = dyn_cast<ReduceOp>(product);
  const bool isWhole = reduce && isReducedWhole(reduce, read, reach);
  for (BlockArgument index : reach.extra) {
    // What stands under no reduction has the product's own tiles, and one for each other value.
    // So does a product whose tiles are reduced.
    bool isInTiles = !isWhole && (!reach.reduced.empty() ||
                                  index.getArgNumber() + 1 == read.consumer.getNumIndices());
    if ((isInTiles ? budget : values).allows(index, read.consumer) ||
        haveColumnsByWarpgroup(read, index))
      continue;
    bool known = getUpperBound(getExtent(index, read.consumer)) >= 0;
    if (known || isWhole || reach.reduced.empty() ||
        !(isUnderSoftmax(read) || sharesBatch(read, reach)))
      return std::string("its products would be repeated for every ") +
             (isWhole ? "value" : "tile") + " of index " + quote(index, read.consumer);
  }
  return std::nullopt;
}

} // namespace tk
