//===- PlanParts.cpp - the parts of split reductions ----------------------===//
//
//   1. A part of a reduction with few outputs has `chunk` elements. On a GPU it may have more: each
//      multiprocessor gets several blocks, and few partial results are left to combine.
//   2. If a reduction has several indices, the outermost index with at least half as many parts as
//      any other is divided. A part is then one piece of memory. If loads are contiguous along the
//      index, parts are whole memory lines.
//   3. Sums of columns are PlanColumnParts.cpp's.
//   4. Online reductions of columns (a maximum and exponentials relative to it) are split likewise.
//      Online reductions of rows are split only if no cluster holds a row. A part then fits a
//      block.
//   5. A reduction over the result of a contraction stays whole. It begins in the epilogue of the
//      contraction (tk-attach-reductions), which leaves little to reduce.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/split/PlanParts.h"
#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/analysis/IndexGrowth.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/OffsetRanges.h"
#include "passes/analysis/PairTerms.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/StoredReductions.h"
#include "passes/machine/Machine.h"
#include "passes/machine/limits/Splits.h"
#include "passes/plan/ScheduleBlock.h"
#include "passes/plan/StatementShape.h"
#include "passes/tensor/split/SplitContractions.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk;

using namespace limits::plan_parts;

std::optional<int64_t> tk::countOutputs(ComputeOp compute, int64_t few) {
  int64_t outputs = 1;
  for (Value extent : compute.getExtents()) {
    int64_t upper = getUpperBound(extent);
    if (upper < 0 || upper > few)
      return std::nullopt;
    outputs *= std::max<int64_t>(upper, 1);
    if (outputs > few)
      return std::nullopt;
  }
  return outputs;
}

/// Does the kernel sum squared distances over what `reduce` is over, which is no single index?
/// Parts are then read once for both (SquaredDistances.cpp), where a block that has all reads them
/// twice.
static bool isBesideDistances(ReduceOp reduce) {
  return reduce.getNumIndices() > 1 && reduce->getParentOfType<KernelOp>()
                                           ->walk([&](ReduceOp other) {
                                             return matchDistanceInTerm(other) &&
                                                            haveSameRanges(other, reduce)
                                                        ? WalkResult::interrupt()
                                                        : WalkResult::advance();
                                           })
                                           .wasInterrupted();
}

int64_t tk::countOf(ReduceOp reduce, unsigned position) {
  return getUpperBound(reduce.getUpper()[position]);
}

int64_t tk::longestHeldRow(ReduceOp reduce) {
  bool isPacked = true, isWide = true;
  reduce.getBody().walk([&](LoadOp load) {
    bool isElement = llvm::any_of(load.getIndices(), [&](Value index) {
      return llvm::is_contained(getIterationIndices(index), reduce.getIndex(0));
    });
    const bool isNarrow = load.getResult().getType().getIntOrFloatBitWidth() <= packedBits;
    isPacked &= !isElement || isNarrow;
    isWide &= !isElement || !isNarrow;
  });
  // A cluster spreads rows only if something of 16 bits is along them (Planner::maySpread).
  auto target =
      reduce->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  if (target && (isWide || !hasFeature(target, Feature::Clusters)))
    return longestWholeRow;
  return isPacked ? longestInMemory : longestInRegisters;
}

/// How many terms the reductions in a term of `reduce` have, as far as that is known.
static int64_t termsWithin(ReduceOp reduce) {
  int64_t most = 1;
  reduce.getBody().walk([&](ReduceOp inner) {
    int64_t terms = 1;
    for (unsigned i = 0; i < inner.getNumIndices(); ++i)
      if (llvm::MulOverflow(terms, std::max<int64_t>(countOf(inner, i), 1), terms))
        terms = leastTerms;
    most = std::max(most, terms);
  });
  return most;
}

/// Are neighbours along `index` neighbours at `place`, the innermost axis of an access? Several
/// indices may count it; of an expression of one index alone it is taken to be so.
static bool runsAlong(Value place, BlockArgument index) {
  SmallVector<BlockArgument> indices = getIterationIndices(place);
  return llvm::is_contained(indices, index) && (indices.size() == 1 || runsOneByOne(place, index));
}

/// Does `reduce` read terms along `index`? Loads that have fewer of its indices than others bring
/// what is the same for many terms.
static bool readsAlong(ReduceOp reduce, BlockArgument index) {
  size_t most = 0;
  bool isAlong = false;
  reduce.getBody().walk([&](LoadOp load) {
    if (load.getIndices().empty())
      return;
    llvm::SmallPtrSet<Value, 4> own;
    for (Value place : load.getIndices())
      for (BlockArgument needed : getIterationIndices(place))
        if (needed.getOwner() == reduce.getBlock())
          own.insert(needed);
    if (own.size() < most)
      return;
    isAlong &= own.size() == most;
    most = own.size();
    isAlong |= runsAlong(load.getIndices().back(), index);
  });
  return isAlong;
}

std::optional<Split> tk::divide(ReduceOp reduce, int64_t parts, int64_t least, bool isColumn) {
  auto compute = reduce->getParentOfType<ComputeOp>();
  // An index that is cut already has the bounds of its part, of which there may be one value.
  auto isCut = [&](unsigned i) {
    return !isKernelLevel(reduce.getLower()[i], compute) ||
           !isKernelLevel(reduce.getUpper()[i], compute);
  };
  int64_t terms = 1;
  least = std::max<int64_t>(least / termsWithin(reduce), 1);
  for (unsigned i = 0; i < reduce.getNumIndices(); ++i) {
    if (isCut(i))
      continue;
    if (countOf(reduce, i) < 0 || llvm::MulOverflow(terms, countOf(reduce, i), terms))
      return std::nullopt;
  }
  // Runs are shorter where long ones would leave most multiprocessors without a part.
  for (int64_t longest = leastRun;; longest /= 2) {
    Split best{1};
    int64_t most = 0;
    for (unsigned i = 0; i < reduce.getNumIndices(); ++i) {
      if (isCut(i))
        continue;
      int64_t count = std::max<int64_t>(countOf(reduce, i), 1);
      int64_t others = std::max<int64_t>(terms / count, 1);
      const bool isAlong = !isColumn && readsAlong(reduce, reduce.getIndex(i));
      int64_t length = std::max(llvm::divideCeil(count, parts), llvm::divideCeil(least, others));
      length = llvm::PowerOf2Ceil(std::max(length, isAlong ? longest : 1));
      // Rounded up, parts of columns may be half as many as blocks are wanted.
      if (isColumn && length / 2 * others >= least && count / length * 4 < parts * 3)
        length /= 2;
      int64_t numParts = llvm::divideCeil(count, length);
      if (numParts > (most > 1 ? 2 * most : most)) {
        most = numParts;
        best = {length, false, i, isAlong};
      }
    }
    if (longest <= shortestRun || most * blocksOfTotals >= parts)
      return best;
  }
}

/// Is a term of `reduce` computed from products whose factors run along its index `position`?
static bool hasProductsAlong(ReduceOp reduce, unsigned position) {
  return reduce.getBody()
      .walk([&](ReduceOp inner) {
        const bool isProduct =
            isMatrixProduct(inner) &&
            llvm::any_of(getInputs(inner), [&](Value x) { return x == reduce.getIndex(position); });
        return isProduct ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Parts of whole tiles where a term is computed from products, if there are blocks enough then: a
/// shorter part takes as long for the factors that it reads beside its own.
static void widenToTiles(ReduceOp reduce, Split &how, int64_t leastParts) {
  if (!hasProductsAlong(reduce, how.position))
    return;
  int64_t length = lengthOfProducts;
  const int64_t count = countOf(reduce, how.position);
  while (length > how.length && (count + length - 1) / length < leastParts)
    length /= 2;
  how.length = std::max(how.length, length);
  how.isAlong = true;
}

/// One total of what lies in one piece: parts of one length, all of which run at once. Where
/// anything is read again, as for squares of distances, parts rather stay in the second-level
/// cache.
static std::optional<Split> divideTotal(ReduceOp reduce, int64_t processors) {
  int64_t count = reduce.getNumIndices() == 1 ? countOf(reduce, 0) : -1;
  bool isAlong = true;
  reduce.getBody().walk([&](LoadOp load) {
    isAlong &= !load.getIndices().empty() && load.getIndices().back() == reduce.getIndex(0);
  });
  int64_t parts = blocksOfTotal * processors;
  bool isReadOnce =
      !reduce->getParentOfType<KernelOp>()
           ->walk([](ReduceOp other) {
             return matchSquaredDistance(other) ? WalkResult::interrupt() : WalkResult::advance();
           })
           .wasInterrupted();
  if (!isAlong || !isReadOnce || count < parts * leastTerms || termsWithin(reduce) > 1)
    return std::nullopt;
  int64_t length = llvm::alignTo(llvm::divideCeil(count, parts), leastTerms);
  return Split{length, false, 0, true, parts, leastTerms};
}

gpu::TargetAttr tk::targetOf(ComputeOp compute) {
  return compute->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
}

/// Do the blocks of a cluster, or one of them, hold what a reduction reads?
static bool isHeld(ReduceOp reduce) {
  int64_t terms = 1;
  for (unsigned i = 0; i < reduce.getNumIndices(); ++i)
    if (countOf(reduce, i) < 0 || llvm::MulOverflow(terms, countOf(reduce, i), terms))
      return false;
  return terms <= (reduce.getNumIndices() == 1 ? longestHeldRow(reduce) : longestWholeRow);
}

std::optional<Split> tk::splitCarried(ReduceOp reduce, ComputeOp compute) {
  gpu::TargetAttr target = targetOf(compute);
  std::optional<int64_t> blocks = blocksOfColumns(compute);
  std::optional<Split> how;
  if (target && blocks && compute.getNumIndices() > 0 && runsAcross(reduce, compute))
    how = splitColumn(reduce, *blocks, target.getProcessors(), false, true);
  else if (target && countOutputs(compute) && !isHeld(reduce))
    how = divide(reduce, mostStates, leastCarried);
  return how && countOf(reduce, how->position) > how->length ? how : std::nullopt;
}

/// Which index of a reduction the kernel's schedule block wants in how many parts, if it says so.
static std::optional<Split> askedSplit(ReduceOp reduce, ComputeOp compute) {
  auto kernel = compute->getParentOfType<KernelOp>();
  for (auto [i, name] : llvm::enumerate(reduce.getIndexNames()))
    if (auto parts = kernel ? splitOf(kernel, cast<StringAttr>(name).getValue()) : std::nullopt)
      return Split{1, false, unsigned(i), false, *parts};
  return std::nullopt;
}

bool tk::isAskedInParts(ReduceOp reduce, ComputeOp compute) {
  return askedSplit(reduce, compute).has_value();
}

/// Can all of a statement's reductions begin in the tiles of the products whose results they take?
static bool canBeginInProducts(ComputeOp compute, ArrayRef<ReduceOp> reduces) {
  return !reduces.empty() && targetOf(compute) && llvm::all_of(reduces, [&](ReduceOp reduce) {
    std::optional<StoredReduction> found = matchStoredReduction(reduce);
    if (!found || !readsForReductionsOnly(compute, found->stored))
      return false;
    auto producer = found->stored.getDefiningOp<ComputeOp>();
    return (computesPlainProducts(producer) || computesPairs(producer)) &&
           countContractionParts(producer) == 1;
  });
}

SmallVector<Split> tk::howToSplit(ComputeOp compute, ArrayRef<ReduceOp> reduces, int64_t chunk) {
  bool isAsked =
      llvm::any_of(reduces, [&](ReduceOp reduce) { return isAskedInParts(reduce, compute); });
  if (!isAsked && canBeginInProducts(compute, reduces))
    return {};
  // Rows between offsets end within a part: parts would be empty but for one.
  auto endsInPart = [](ReduceOp reduce) {
    return meanOfMasked(reduce).value_or(leastTerms) < leastTerms;
  };
  if (!isAsked && llvm::any_of(reduces, endsInPart))
    return {};
  if (!isAsked)
    if (SmallVector<Split> hows = splitColumns(compute, reduces); !hows.empty())
      return hows;
  gpu::TargetAttr target = targetOf(compute);
  const bool areMoments = target && llvm::all_of(reduces, [](ReduceOp reduce) {
                            return isBesideDistances(reduce) && !isHeld(reduce);
                          });
  std::optional<int64_t> outputs = countOutputs(compute, areMoments ? fewMoments : fewOutputs);
  if (!isAsked && !outputs)
    return {};
  SmallVector<Split> hows;
  for (ReduceOp reduce : reduces) {
    std::optional<Split> how = askedSplit(reduce, compute);
    const bool isPlace = isArgReduction(reduce.getKind(0));
    if (!how && target && isPlace && countOf(reduce, 0) <= termsOfPlace)
      return {};
    if (!how && target && !isPlace && compute.getNumIndices() == 0 && reduces.size() == 1)
      how = divideTotal(reduce, target.getProcessors());
    // One block has a tile of all results of a product: parts alone make blocks.
    const bool isTile =
        compute.getNumIndices() >= 2 && isMatrixProduct(reduce) && countOf(reduce, 0) > leastTerms;
    const int64_t blocks = isTile ? 1 : outputs.value_or(1);
    if (!how && target)
      how = divide(reduce, llvm::divideCeil(blocksOfTotals * target.getProcessors(), blocks),
                   isTile ? termsOfTile : std::max(chunk, leastTerms));
    if (target && how && !how->parts)
      widenToTiles(reduce, *how, llvm::divideCeil(target.getProcessors(), blocks));
    hows.push_back(how.value_or(Split{reduce.getNumIndices() == 1 ? chunk : 1}));
  }
  return hows;
}

bool tk::wantsParts(ReduceOp reduce, ComputeOp compute) {
  if (!targetOf(compute) || reduce.isOnline() || (!runsAcross(reduce, compute) && isHeld(reduce)))
    return false;
  SmallVector<Split> hows = howToSplit(compute, reduce, termsOfChunk);
  if (hows.empty())
    return false;
  int64_t count = countOf(reduce, hows.front().position);
  return count < 0 || count > hows.front().length;
}
