//===- SignificandCost.cpp - the cost model of bf16x3 decomposition -------===//
//
// The model compares two times. One is that of the waves of tiles on CUDA cores (CoreTiles.h). The
// other is that of wgmma on six times as many elements (WarpgroupTiles.h), plus the time of storing
// the parts.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/CoreTiles.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/WarpgroupTiles.h"
#include "passes/tensor/split/SignificandParts.h"

#include <limits>
#include <utility>

using namespace mlir;
using namespace tk;

namespace {

/// Nanoseconds, measured on an H100 and an H200: what a processor takes for a term of one output of
/// a tile, for each pair of parts.
constexpr double timeOfPair = 3.4e-4;
/// What more shares should take at most of the time of fewer.
constexpr double worthOfShares = 0.9;
/// How many pieces a sum on CUDA cores is cut into at most where both are compared.
constexpr int64_t mostCuts = 16;
/// Bytes that are read and written for each element of a factor: twice itself, and its parts.
constexpr double bytesOfParts = 2 * countParts, bytesOfElement = 2 * 4 + bytesOfParts;
/// Bytes of scratch memory that the parts of a statement's factors may take.
constexpr double mostScratch = double(int64_t(1) << 32);
/// What launches beside a product's own take of its time: five, for each factor's rows, all scales
/// and each factor's parts, which begin as those before them end.
constexpr double launchesBeside = 2;

/// What a product is over: rows and columns, of which tiles are cut, other results, and terms.
struct Extents {
  int64_t rows = 1, columns = 1, terms = 1;
  double others = 1;

  template <typename Tile> int64_t count(const Tile &tile) const {
    return static_cast<int64_t>(others * static_cast<double>(tile.count(rows, columns)));
  }
};

} // namespace

/// What the sum of `term` is over.
static Extents extentsOf(KernelOp kernel, ComputeOp compute, ReduceOp reduce, Value term) {
  auto [left, right] = *factorsOf(term);
  auto reads = [](LoadOp load, Value index) {
    return llvm::is_contained(load.getIndices(), index);
  };
  // The innermost index of either factor alone is cut into tiles, all others count tiles.
  Extents extents;
  for (auto [index, extent] :
       llvm::zip_equal(compute.getBlock()->getArguments(), compute.getExtents())) {
    const auto size = static_cast<int64_t>(guessSize(kernel, extent));
    if (reads(left, index) == reads(right, index)) {
      extents.others *= static_cast<double>(size);
      continue;
    }
    int64_t &side = reads(left, index) ? extents.rows : extents.columns;
    extents.others *= static_cast<double>(std::exchange(side, size));
  }
  extents.terms = static_cast<int64_t>(guessSize(kernel, reduce.getUpper()[0]));
  return extents;
}

/// What it takes to store, and to add up in a launch of their own, `count` sums for each result.
static double timeToAddUp(const Extents &extents, int64_t count) {
  const double outputs = extents.others * static_cast<double>(extents.rows * extents.columns);
  return count == 1 ? 0 : cost::launch + cost::byte * 2 * 4 * static_cast<double>(count) * outputs;
}

/// What a product takes whose pairs of parts are shared out among blocks.
static double timeByParts(const Extents &extents, int64_t shares, int64_t processors) {
  const int64_t pairsOfShare = countPairs / shares;
  double least = std::numeric_limits<double>::max();
  for (const WarpgroupTile &tile : warpgroupTiles)
    least = std::min(least, tile.timeOf(extents.count(tile) * shares, processors) * timeOfPair *
                                static_cast<double>(pairsOfShare * extents.terms));
  return least + timeToAddUp(extents, shares);
}

/// Among how many blocks the pairs of parts of the only product of the statement are shared out.
int64_t SignificandCost::countShares(ReduceOp reduce) {
  int64_t best = 1;
  if (reduce.isOnline() || llvm::range_size(compute.getBlock()->getOps<ReduceOp>()) > 1)
    return best;
  Extents extents = extentsOf(kernel, compute, reduce, reduce.getYield().getValues()[0]);
  for (int64_t shares : {2, 3, 6})
    if (timeByParts(extents, shares, processors) <
        worthOfShares * timeByParts(extents, best, processors))
      best = shares;
  return best;
}

/// What the sum of `term` takes on CUDA cores and by parts, the one less the other.
double SignificandCost::savedOf(ReduceOp reduce, Value term) {
  Extents extents = extentsOf(kernel, compute, reduce, term);
  // Sums of fewer than one slice would be of zeros mostly. A vector times a matrix takes the time
  // of reading that, whatever multiplies.
  if (extents.terms < elementsOfSlice || std::min(extents.rows, extents.columns) <= 1)
    return 0;
  // Long sums of few tiles are cut there, too (tk-split-contractions).
  double onCores = std::numeric_limits<double>::max();
  for (int64_t cuts = 1; cuts <= mostCuts; cuts *= 2)
    for (const CoreTile &tile : coreTiles)
      onCores = std::min(onCores, tile.timeOf(extents.count(tile) * cuts,
                                              llvm::divideCeil(extents.terms, cuts), processors) +
                                      timeToAddUp(extents, cuts));
  return onCores - timeByParts(extents, countShares(reduce), processors);
}

/// Are all sizes known that decide what `sums` take? Of others nothing is known to be saved.
bool SignificandCost::areSizesKnown(ArrayRef<ReduceOp> sums) {
  auto isKnown = [&](Value extent) { return getSizeFact(kernel, extent).upper.has_value(); };
  return llvm::all_of(compute.getExtents(), isKnown) &&
         llvm::all_of(sums, [&](ReduceOp reduce) { return isKnown(reduce.getUpper()[0]); });
}

/// Do `sums` save more than their factors' parts cost, and is there memory for these?
bool SignificandCost::pays(ArrayRef<ReduceOp> sums) {
  if (!areSizesKnown(sums))
    return false;
  double saved = 0, cost = cost::launch * launchesBeside, scratch = 0;
  llvm::SmallPtrSet<Value, 4> counted;
  for (ReduceOp reduce : sums)
    for (Value term : reduce.getYield().getValues()) {
      saved += savedOf(reduce, term);
      auto [left, right] = *factorsOf(term);
      for (LoadOp load : {left, right}) {
        if (!counted.insert(load.getTensor()).second)
          continue;
        double elements = 1;
        for (Value extent : getExtents(kernel, load.getTensor()))
          elements *= guessSize(kernel, extent);
        cost += cost::byte * bytesOfElement * elements;
        scratch += bytesOfParts * elements;
      }
    }
  return saved > cost && scratch <= mostScratch;
}
