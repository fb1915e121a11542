//===- FuseRowsCost.cpp - the cost rule of fusing row reductions ----------===//
//
// The second rule of FuseProducersCost.cpp, for each read of a reduction that is no matrix product,
// or of a value computed from one. The reduction is fused if no work is repeated, or if the extra
// indices are the row itself and one block, or one cluster, holds the row: not in the epilogue of a
// product. Otherwise the number of repetitions must be known and small.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/fuse/FuseProducersCost.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/OffsetRanges.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"
#include "passes/machine/Machine.h"
#include "passes/machine/TileFacts.h"
#include "passes/machine/limits/Operands.h"
#include "passes/plan/StatementShape.h"
#include "passes/tensor/split/SplitReductions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tk {

using namespace limits::fuse_producers_cost;

/// True if the extra indices are the last ones and `reduce` ranges over exactly them.
static bool isRowOf(ReduceOp reduce, ArrayRef<BlockArgument> extra, ComputeOp consumer) {
  if (extra.size() != reduce.getNumIndices() ||
      extra.front().getArgNumber() + extra.size() != consumer.getNumIndices())
    return false;
  for (auto [n, index] : llvm::enumerate(extra))
    if (!rangesOver(reduce, n, getExtent(index, consumer)))
      return false;
  return true;
}

/// True if neighbours along an index of the statement are neighbours in memory where `reduce`
/// reads: threads then run along that index (PlanAcross.cpp), and no block has the row that it
/// reduces.
static bool runsAcross(ReduceOp reduce) {
  auto compute = reduce->getParentOfType<ComputeOp>();
  size_t most = 0;
  bool isAcross = false;
  reduce.getBody().walk([&](LoadOp load) {
    if (load.getIndices().empty())
      return;
    llvm::SmallPtrSet<Value, 4> own;
    for (Value place : load.getIndices())
      for (BlockArgument index : getIterationIndices(place))
        if (reduce->isAncestor(index.getOwner()->getParentOp()))
          own.insert(index);
    if (own.size() < most)
      return; // the same for many terms
    isAcross &= own.size() == most;
    most = own.size();
    for (BlockArgument index : getIterationIndices(load.getIndices().back())) {
      if (!isParallel(index, compute) || !runsOneByOne(load.getIndices().back(), index))
        continue;
      int64_t upper = getUpperBound(getExtent(index, compute));
      isAcross |= upper < 0 || upper >= lanesOfWarp;
    }
  });
  return isAcross;
}

/// True if `reduce` reads neighbours in memory one after the other. No block has the row that it
/// reduces where it does not.
static bool runsAlong(ReduceOp reduce) {
  bool isAlong = false;
  reduce.getBody().walk([&](LoadOp load) {
    for (Value place : load.getIndices().take_back(1))
      for (BlockArgument index : getIterationIndices(place))
        isAlong |= reduce->isAncestor(index.getOwner()->getParentOp());
  });
  return isAlong;
}

/// True if `reduce` ranges over exactly the extra index, which is not the last one, and neighbours
/// in memory are of other indices: a block holds such columns, if they are short.
static bool isColumnOf(ReduceOp reduce, ArrayRef<BlockArgument> extra, ComputeOp consumer) {
  if (!consumer->getParentOfType<ModuleOp>()->hasAttr(gpu::targetAttrName) || extra.size() != 1 ||
      reduce.getNumIndices() != 1 || extra.front().getArgNumber() + 1 == consumer.getNumIndices() ||
      !rangesOver(reduce, 0, getExtent(extra.front(), consumer)))
    return false;
  const int64_t upper = getUpperBound(reduce.getUpper()[0]);
  bool isAcross = upper >= 0 && upper <= longestHeldColumn;
  reduce.walk([&](LoadOp load) {
    isAcross &=
        !load.getIndices().empty() &&
        !llvm::is_contained(getIterationIndices(load.getIndices().back()), reduce.getIndex(0));
  });
  return isAcross;
}

/// True if the blocks of a cluster may share what `reduce` takes of a row over two axes: elements
/// of 16 bits that lie in the order of the axes wherever they are read and stored.
static bool maySpread(ReduceOp reduce, ArrayRef<BlockArgument> row, ComputeOp consumer) {
  auto target =
      consumer->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  if (!hasFeature(target, Feature::Clusters) || row.size() != 2 || !takesPackedPlane(reduce) ||
      !runsInOrder(consumer, row.front(), row.back()))
    return false;
  SizeFact along =
      getSizeFact(consumer->getParentOfType<KernelOp>(), getExtent(row.back(), consumer));
  bool lies = along.upper && *along.upper <= longestWholeRow && along.divisor % bytesOfVector == 0;
  for (unsigned r = 0; r < consumer.getNumResults(); ++r) {
    SmallVector<unsigned> positions = consumer.getIndicesOf(r);
    for (unsigned p : ArrayRef(positions).drop_back(!positions.empty()))
      lies &= consumer.getIndex(p) != row.back();
  }
  return lies;
}

/// True if a row over several axes is known to be more than a block, or the blocks of a cluster,
/// hold: it goes on to step through one of them only, and would reduce anew for each value of the
/// others.
static bool isTooLarge(ReduceOp reduce, ArrayRef<BlockArgument> row, ComputeOp consumer) {
  int64_t most = maySpread(reduce, row, consumer) ? longestSpreadPlane : longestWholeRow;
  int64_t elements = 1;
  for (BlockArgument index : row) {
    int64_t upper = getUpperBound(getExtent(index, consumer));
    if (upper < 0 || elements > most)
      break;
    elements *= llvm::PowerOf2Ceil(std::max<int64_t>(upper, 1));
  }
  return row.size() > 1 && elements > most;
}

/// True if tiles of the consumer extend along `index`: what does not depend on it is computed once
/// for each tile of it, elsewhere for each of its values. Products have tiles over rows and
/// columns.
static bool hasTilesAlong(BlockArgument index, ComputeOp consumer) {
  return index.getArgNumber() + 1 == consumer.getNumIndices() ||
         consumer
             .walk([](ReduceOp reduce) {
               return isContraction(reduce) ? WalkResult::interrupt() : WalkResult::advance();
             })
             .wasInterrupted();
}

/// True if the rows over `row` that `reduce` takes are known to be few, and longer than what the
/// blocks of a cluster hold.
static bool areFewAndLong(ReduceOp reduce, ArrayRef<BlockArgument> row, ComputeOp consumer) {
  auto module = consumer->getParentOfType<ModuleOp>();
  if (row.size() != 1 || !module->hasAttr(gpu::targetAttrName) ||
      getUpperBound(getExtent(row.front(), consumer)) <= longestHeldRow(reduce))
    return false;
  int64_t rows = 1;
  for (BlockArgument index : consumer.getBlock()->getArguments()) {
    int64_t upper = getUpperBound(getExtent(index, consumer));
    if (index != row.front() && (upper < 0 || upper > fewRows))
      return false;
    rows *= index == row.front() ? 1 : std::max<int64_t>(upper, 1);
    if (rows > fewRows)
      return false;
  }
  return true;
}

std::optional<int64_t> countKnownTerms(ReduceOp reduce, int64_t most) {
  int64_t terms = 1;
  for (Value upper : reduce.getUpper()) {
    int64_t length = getUpperBound(upper);
    if (length < 0 || length > most)
      return std::nullopt;
    terms *= std::max<int64_t>(length, 1);
    if (terms > most)
      return std::nullopt;
  }
  return terms;
}

/// Does each element read terms of its own?
static bool readsOwnTerms(ReduceOp reduce) {
  const unsigned all = reduce->getParentOfType<ComputeOp>().getNumIndices();
  bool isOwn = false;
  reduce.getBody().walk([&](LoadOp load) {
    unsigned outer = 0, inner = 0;
    llvm::SmallDenseSet<BlockArgument, 8> seen;
    for (Value place : load.getIndices())
      for (BlockArgument index : getIterationIndices(place))
        if (seen.insert(index).second)
          (isa<ComputeOp>(index.getOwner()->getParentOp()) ? outer : inner) += 1;
    isOwn |= outer == all && inner > 0;
  });
  return isOwn;
}

/// True if the reader has a block for each of its rows, of which there are fewer than
/// multiprocessors: a long reduction for each element of a row would leave the others idle.
static bool leavesBlocksIdle(ReduceOp reduce, ComputeOp consumer) {
  auto target =
      consumer->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  if (!target || consumer.getNumIndices() < 2 || countKnownTerms(reduce, fewRepeatedTerms) ||
      !readsOwnTerms(reduce))
    return false;
  BlockArgument row = consumer.getIndex(consumer.getNumIndices() - 1);
  int64_t rows = 1;
  for (BlockArgument index : consumer.getBlock()->getArguments().drop_back()) {
    const int64_t upper = getUpperBound(getExtent(index, consumer));
    if (upper < 0 || upper >= target.getProcessors() || rows >= target.getProcessors())
      return false;
    rows *= std::max<int64_t>(upper, 1);
  }
  Dependence onRow(ValueRange{row});
  return rows < target.getProcessors() &&
         llvm::any_of(
             consumer.getBlock()->getOps<ReduceOp>(),
             [&](ReduceOp other) {
               return other.getNumIndices() == 1 && !onRow.on(other.getResult(0)) &&
                      rangesOver(other, 0, getExtent(row, consumer));
             });
}

/// For how many values of indices without tiles `reduce` may be repeated.
static int64_t repeatedValues(ReduceOp reduce) {
  std::optional<int64_t> terms = countKnownTerms(reduce, fewRepeatedTerms);
  return terms ? std::max(fewValues, fewRepeatedTerms / *terms) : fewValues;
}

/// True if `reduce` takes elements of an operand of a product that the reader sums over the same
/// range, and the product loses more by that than it takes to read the operand twice.
static bool slowsProduct(ReduceOp reduce, ComputeOp consumer) {
  auto kernel = consumer->getParentOfType<KernelOp>();
  auto target =
      consumer->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  if (!hasFeature(target, Feature::WarpgroupProducts))
    return false;
  auto isKnown = [](Value extent) { return getUpperBound(extent) >= 0; };
  llvm::DenseMap<Value, double> bytesOf;
  reduce.walk([&](LoadOp load) {
    double bytes = load.getType().getIntOrFloatBitWidth() / 8.0;
    for (Value extent : getExtents(kernel, load.getTensor()))
      bytes *= isKnown(extent) ? guessSize(kernel, extent) : 0;
    bytesOf[load.getTensor()] = bytes;
  });
  return llvm::any_of(consumer.getBlock()->getOps<ReduceOp>(), [&](ReduceOp product) {
    if (!isMatrixProduct(product) || product.getNumIndices() != 1 || reduce.getNumIndices() != 1 ||
        !rangesOver(reduce, 0, product.getUpper()[0]) || !isKnown(product.getUpper()[0]) ||
        !llvm::all_of(consumer.getExtents(), isKnown))
      return false;
    double terms = guessSize(kernel, product.getUpper()[0]);
    for (Value extent : consumer.getExtents())
      terms *= guessSize(kernel, extent);
    Operation *term = product.getYield().getValues()[0].getDefiningOp();
    return llvm::any_of(term->getOperands(), [&](Value factor) {
      auto load = withoutExtension(factor).getDefiningOp<LoadOp>();
      return load && haveWarpgroupProduct(load.getType(), getSumPrecision(product)) &&
             bytesOf.contains(load.getTensor()) &&
             cost::lostByReducedOperand * terms >
                 cost::launch + cost::byte * bytesOf[load.getTensor()];
    });
  });
}

/// True if the reader is the epilogue of a product: one in it, or one that it alone reads, element
/// by element, through compute ops that are so themselves. A block then has a tile of the product,
/// not whole rows.
static bool followsProduct(ComputeOp consumer) {
  auto hasProduct = [](ComputeOp compute) {
    return llvm::any_of(compute.getBlock()->getOps<ReduceOp>(),
                        [](ReduceOp reduce) { return isMatrixProduct(reduce); });
  };
  if (hasProduct(consumer))
    return true;
  return llvm::any_of(consumer.getBlock()->getOps<LoadOp>(), [&](LoadOp load) {
    auto element = dyn_cast<OpResult>(load.getTensor());
    auto compute = element ? dyn_cast<ComputeOp>(element.getOwner()) : ComputeOp();
    if (!compute || !llvm::all_of(element.getUsers(), [&](Operation *user) {
          return user->getBlock() == consumer.getBlock();
        }))
      return false;
    return hasProduct(compute) ||
           (classify(element) == ProducerKind::Pointwise && followsProduct(compute));
  });
}

/// True if `reduce` sums a short row for each of the few terms that a table of offsets divides
/// among the reader's rows: for all pairs of rows and terms it would take a multiple of the work.
static bool isSummedForDividedTerms(ReduceOp reduce, Read read) {
  auto around = read.load->getParentOfType<ReduceOp>();
  std::optional<double> mean = around ? meanOfMasked(around) : std::nullopt;
  std::optional<int64_t> terms = countKnownTerms(reduce, limits::shift_ranges::longestSummedRow);
  auto choice =
      mean ? around.getYield().getValues()[0].getDefiningOp<arith::SelectOp>() : arith::SelectOp();
  return choice && rowOfMask(choice.getCondition()) &&
         *mean <= limits::shift_ranges::mostTermsAcross && terms &&
         *terms <= limits::shift_ranges::longestSummedRow;
}

std::optional<std::string> whyNotRows(ReduceOp reduce, Read read, const Reach &reach,
                                      int64_t maxExtra) {
  if (!reach.reduced.empty() && isSummedForDividedTerms(reduce, read))
    return std::nullopt;
  if (!reach.reduced.empty())
    return "its reductions vary with an index that the reader reduces over, and would lose the "
           "parallelism over that index";
  if (!reach.allPlain)
    return "it is read at an index expression, so that its reductions would be repeated";
  if (isUnderSoftmax(read) || isCarriedByReader(reduce, read))
    return std::nullopt;
  if (reach.extra.empty()) {
    if (leavesBlocksIdle(reduce, read.consumer))
      return "its reader has a block for each of few rows";
    return delaysParts(reduce, read)
               ? std::optional<std::string>("parts of what its reader reduces would wait for it")
               : std::nullopt;
  }
  if (isRowOf(reduce, reach.extra, read.consumer) && runsAlong(reduce) && !runsAcross(reduce) &&
      !followsProduct(read.consumer)) {
    if (areFewAndLong(reduce, reach.extra, read.consumer))
      return "there are few rows, longer than what blocks hold together";
    if (!isTooLarge(reduce, reach.extra, read.consumer))
      return std::nullopt;
    return "a row over several axes is more than a block holds";
  }
  if (isColumnOf(reduce, reach.extra, read.consumer))
    return std::nullopt;
  if (slowsProduct(reduce, read.consumer))
    return "it reads an operand of its reader's product, which would go through registers for it";
  RepeatBudget budget(maxExtra), values(std::min(maxExtra, repeatedValues(reduce)));
  for (BlockArgument index : reach.extra) {
    bool inTiles = hasTilesAlong(index, read.consumer);
    if (!(inTiles ? budget : values).allows(index, read.consumer))
      return std::string("its reductions would be repeated for every ") +
             (inTiles ? "tile" : "value") + " of index " + quote(index, read.consumer);
  }
  return std::nullopt;
}

} // namespace tk
