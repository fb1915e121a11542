//===- FuseProducersCost.cpp - the cost rule of producer fusion -----------===//
//
// The rule uses three sets of indices, seen from the consumer. `D` has the indices that the
// producer's reductions depend on. `extra` has the parallel indices of the consumer outside of `D`:
// along these the work is repeated once for each tile. The third set has the consumer's reduction
// indices in `D`.
//
// 1. Pointwise producers are fused. Costly producers that are read at overlapping indices are an
//    exception. So are producers that overwrite their own operand, if a reduction of the reader
//    reads them. The latter are fused if one block holds the reduced rows: it then reads the rows
//    before it overwrites any (tk-overwrite-rows).
// 2. Row reductions are fused in each of these cases:
//    * no work is repeated;
//    * the extra indices are the row itself, which the block of the row covers anyway;
//    * the product of the extra extents is known to be small, and very small along indices without
//      tiles;
//    * the consumer runs over the same row and can carry the reductions online (softmax).
//    Reductions of few rows that no cluster holds are not fused. Their parts can use all
//    multiprocessors (tk-split-reductions, tk-split-chains), and the row must be read again anyway.
//    A reduction is not fused if it would keep its reader's reductions from being split. An example
//    is the third powers of distances from a mean down columns.
// 3. Matrix products are fused into an epilogue if no work is repeated. Under a reduction of the
//    consumer (a back-to-back contraction) they are fused if a parallel index is left and one of
//    these holds:
//    * the extra indices are known to be small together;
//    * their extents are unknown, and all operands share a batch index, or the consumer carries a
//      softmax over the shared index.
//    Attention thus never stores its scores, and a perceptron stores its hidden layer. A product is
//    stored in these cases:
//    * the consumer reduces over two back-to-back contractions, one after the other, and has few
//      tiles;
//    * the product would be recomputed along an index of a reduction around it;
//    * a reduction over the product's own columns reads it, and a stored product takes less time.
//
// FuseProductsCost.cpp and ReducedProducts.cpp implement rule 3. StoreProducts.cpp decides from all
// reads of a product together.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/fuse/FuseProducersCost.h"
#include "passes/machine/limits/Operands.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"
#include "passes/machine/Machine.h"
#include "passes/machine/TileFacts.h"
#include "passes/plan/StatementShape.h"
#include "passes/tensor/split/SplitReductions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"

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

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

static bool isCostly(Operation *op) {
  return isa<math::ExpOp, math::Exp2Op, math::ExpM1Op, math::LogOp, math::Log2Op, math::Log1pOp,
             math::TanhOp, math::ErfOp, math::SinOp, math::CosOp, math::PowFOp, ExpDiffOp, RandOp>(
      op);
}

/// An index expression that several combinations of iteration indices can make equal.
static bool overlaps(LoadOp load) {
  return llvm::any_of(load.getIndices(),
                      [](Value index) { return getIterationIndices(index).size() > 1; });
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

static std::optional<std::string> whyNotRows(ReduceOp reduce, Read read, const Reach &reach,
                                             int64_t maxExtra) {
  if (!reach.reduced.empty())
    return "its reductions vary with an index that the reader reduces over, and would lose the "
           "parallelism over that index";
  if (!reach.allPlain)
    return "it is read at an index expression, so that its reductions would be repeated";
  if (isUnderSoftmax(read) || isCarriedByReader(reduce, read))
    return std::nullopt;
  if (reach.extra.empty())
    return delaysParts(reduce, read)
               ? std::optional<std::string>("parts of what its reader reduces would wait for it")
               : std::nullopt;
  if (isRowOf(reduce, reach.extra, read.consumer) && !runsAcross(reduce)) {
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

bool isCarriedFreely(Read read) {
  return llvm::all_of(getProducerSlice(read.producer), [&](Operation *op) {
    auto reduce = dyn_cast<ReduceOp>(op);
    return !reduce || (getReach(reduce, read).extra.empty() &&
                       (isCarriedByReader(reduce, read) || isPointOfReader(reduce, read)));
  });
}

/// True if what is read replaces an inout parameter that it is computed from: whoever computes it
/// again behind that needs a copy of what was there before.
static bool replacesWhatItNeeds(OpResult producer) {
  auto kernel = producer.getOwner()->getParentOfType<KernelOp>();
  unsigned next = kernel.getResultNames().size();
  for (auto [i, param] : llvm::enumerate(kernel.getParamArguments())) {
    if (!kernel.getParam(i).getInout() || kernel.getReturn().getResults()[next++] != producer)
      continue;
    return llvm::any_of(getProducerSlice(producer), [&](Operation *op) {
      auto load = dyn_cast<LoadOp>(op);
      return load && load.getTensor() == param;
    });
  }
  return false;
}

/// True if what is read is a factor that was stored in parts, which threads add up the products of.
static bool isStoredInParts(Read read) {
  return llvm::any_of(getEnclosingReductions(read.load),
                      [](ReduceOp reduce) { return reduce.getPrecision() == Precision::Blocked; });
}

/// Does `load`, in a reduction of `consumer`, read rows that one block is known to hold?
static bool readsHeldRows(LoadOp load, ComputeOp consumer) {
  int64_t elements = 1;
  for (Value place : load.getIndices()) {
    auto index = dyn_cast<BlockArgument>(place);
    if (!index)
      return false;
    if (index.getOwner() == consumer.getBlock())
      continue;
    auto reduce = dyn_cast<ReduceOp>(index.getOwner()->getParentOp());
    int64_t upper = reduce && index.getArgNumber() < reduce.getNumIndices()
                        ? getUpperBound(reduce.getUpper()[index.getArgNumber()])
                        : -1;
    if (upper < 0 || llvm::MulOverflow(elements, std::max<int64_t>(upper, 1), elements))
      return false;
  }
  return elements <= longestWholeRow;
}

/// Would the reader need a copy of what `read.producer` replaces, as other threads overwrite it?
/// All reads of one statement are treated alike: one that is inlined has it read what was there
/// before.
static bool needsOldRows(Read read) {
  if (!replacesWhatItNeeds(read.producer))
    return false;
  auto producer = cast<ComputeOp>(read.producer.getOwner());
  const bool mayBeOne = llvm::equal(producer.getExtents(), read.consumer.getExtents(),
                                    [](Value a, Value b) { return isSameExtent(a, b); });
  return llvm::any_of(read.producer.getUsers(), [&](Operation *user) {
    auto load = dyn_cast<LoadOp>(user);
    return load && read.consumer->isProperAncestor(load) && !getEnclosingReductions(load).empty() &&
           !(mayBeOne && readsHeldRows(load, read.consumer));
  });
}

/// True if each term of a sum would divide anew what the producer's elements are counted by: it is
/// read where an index is computed, of which the producer makes several.
static bool isDividedInTerms(Read read, ArrayRef<Operation *> slice) {
  if (getEnclosingReductions(read.load).empty())
    return false;
  auto compute = cast<ComputeOp>(read.producer.getOwner());
  SmallVector<unsigned> axes = compute.getIndicesOf(read.producer.getResultNumber());
  SmallVector<Value> computed;
  for (auto [axis, index] : llvm::zip_equal(axes, read.load.getIndices()))
    if (!isa<BlockArgument>(index) && !getIterationIndices(index).empty())
      computed.push_back(compute.getIndex(axis));
  Dependence onComputed(computed);
  return llvm::any_of(slice, [&](Operation *op) {
    return isa<FloorDivOp, FloorModOp>(op) && onComputed.on(op->getResult(0));
  });
}

std::optional<std::string> whyNotInline(Read read, ProducerKind kind, int64_t maxExtra) {
  SmallVector<Operation *> slice = getProducerSlice(read.producer);
  if (kind == ProducerKind::Scan)
    return whyNotScan(read);
  if (isStoredInParts(read))
    return "it is a factor's parts, which copies bring";
  if (kind == ProducerKind::Pointwise) {
    if (isDividedInTerms(read, slice))
      return "each term of its reader would take the numbers of its elements apart";
    bool underReduction = !getEnclosingReductions(read.load).empty();
    if (underReduction && overlaps(read.load) && llvm::any_of(slice, isCostly))
      return "it is costly and read at overlapping indices";
    if (needsOldRows(read))
      return "it replaces what it is computed from, of which a copy would be kept";
    return std::nullopt;
  }
  for (Operation *op : slice) {
    auto reduce = dyn_cast<ReduceOp>(op);
    if (!reduce)
      continue;
    Reach reach = getReach(reduce, read);
    std::optional<std::string> why = isHeavy(reduce) ? whyNotProducts(op, read, reach, maxExtra)
                                                     : whyNotRows(reduce, read, reach, maxExtra);
    // A product of a matrix and a vector is row work, and may be a link of a chain all the same.
    bool mayBeLink = !getEnclosingReductions(read.load).empty();
    if (why && !isHeavy(reduce) && isContraction(reduce) && mayBeLink)
      why = whyNotProducts(op, read, reach, maxExtra);
    if (why)
      return why;
  }
  return std::nullopt;
}

} // namespace tk
