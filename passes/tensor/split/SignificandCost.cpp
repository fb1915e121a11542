//===- SignificandCost.cpp - the cost model of bf16x3 decomposition -------===//
//
// The model compares two times. One is that of the waves of tiles on CUDA cores (CoreTiles.h). The
// other is that of wgmma on six times as many elements (WarpgroupTiles.h), plus the time of storing
// the parts.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/Declines.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/CoreTiles.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"
#include "passes/machine/WarpgroupTiles.h"
#include "passes/machine/limits/Splits.h"
#include "passes/tensor/split/SignificandParts.h"

#include <limits>
#include <utility>

using namespace mlir;
using namespace tk;

namespace {

using namespace limits::significand_cost;

/// What a product is over: rows and columns, of which tiles are cut, other results, and terms,
/// those of the innermost index of the sum apart; and how many pairs of parts make one product.
struct Extents {
  int64_t rows = 1, columns = 1, terms = 1, inner = 1, pairs = countPairs;
  double others = 1;

  /// One row or one column has none: what it reads, it reads once.
  bool hasTiles() const { return rows > 1 && columns > 1; }
  template <typename Tile> int64_t count(const Tile &tile) const {
    return static_cast<int64_t>(others * static_cast<double>(tile.count(rows, columns)));
  }
};

} // namespace

/// What the sum of products of `left` and `right` is over.
static Extents extentsOf(KernelOp kernel, ComputeOp compute, ReduceOp reduce, Value left,
                         Value right) {
  auto reads = [](Value factor, Value index) { return Dependence(ValueRange{index}).on(factor); };
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
  for (Value end : reduce.getUpper())
    extents.terms *= extents.inner = static_cast<int64_t>(guessSize(kernel, end));
  extents.pairs = countPairsOf(partsOf(left.getType()), partsOf(right.getType()));
  return extents;
}

/// What the sum of `term` is over.
static Extents extentsOf(KernelOp kernel, ComputeOp compute, ReduceOp reduce, Value term) {
  auto [left, right] = *factorsOf(term);
  return extentsOf(kernel, compute, reduce, left, right);
}

/// What it takes to store, and to add up in a launch of their own, `count` sums for each result.
static double timeToAddUp(const Extents &extents, int64_t count) {
  const double outputs = extents.others * static_cast<double>(extents.rows * extents.columns);
  return count == 1 ? 0 : cost::launch + cost::byte * 2 * 4 * static_cast<double>(count) * outputs;
}

/// What a product takes whose pairs of parts are shared out among blocks.
static double timeByParts(const Extents &extents, int64_t shares, int64_t processors) {
  const int64_t pairsOfShare = extents.pairs / shares;
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
  for (int64_t shares : {2, 3, 5, 6})
    if (extents.pairs % shares == 0 && timeByParts(extents, shares, processors) <
                                           worthOfShares * timeByParts(extents, best, processors))
      best = shares;
  return best;
}

/// What the product takes on CUDA cores in at most `mostCuts` pieces: long sums of few tiles are
/// cut there (tk-split-contractions).
static double timeOnCores(const Extents &extents, int64_t mostCuts, int64_t processors) {
  double least = std::numeric_limits<double>::max();
  for (int64_t cuts = 1; cuts <= mostCuts; cuts *= 2)
    for (const CoreTile &tile : coreTiles)
      least = std::min(least, tile.timeOf(extents.count(tile) * cuts,
                                          llvm::divideCeil(extents.terms, cuts), processors) +
                                  timeToAddUp(extents, cuts));
  return least;
}

/// The elements of what `load` reads.
static double countElementsOf(KernelOp kernel, LoadOp load) {
  double elements = 1;
  for (Value extent : getExtents(kernel, load.getTensor()))
    elements *= guessSize(kernel, extent);
  return elements;
}

/// The one factor of 16 bits beside one of f32; null if there is none.
static LoadOp narrowFactorOf(Value term) {
  auto [left, right] = *factorsOf(term);
  if (left.getType().isF32() == right.getType().isF32())
    return {};
  return left.getType().isF32() ? right : left;
}

/// What the product of `term` takes on CUDA cores if its narrow factor is stored in f32.
static double timeWidened(KernelOp kernel, const Extents &extents, LoadOp narrow,
                          int64_t processors) {
  constexpr double bytesOfWide = 2 + 4;
  return timeOnCores(extents, mostCuts, processors) + cost::launch +
         cost::byte * bytesOfWide * countElementsOf(kernel, narrow);
}

bool SignificandCost::paysWidened(ReduceOp reduce) {
  Value term = reduce.getYield().getValues()[0];
  LoadOp narrow = narrowFactorOf(term);
  if (!narrow || !areSizesKnown({reduce}))
    return false;
  Extents extents = extentsOf(kernel, compute, reduce, term);
  if (!extents.hasTiles())
    return false;
  // As it is stored, the product takes as long as one of f32 that is not cut, or longer.
  return timeWidened(kernel, extents, narrow, processors) + launchesOfWide * cost::launch <
         timeOnCores(extents, 1, processors);
}

/// What the sum of `term` takes on CUDA cores and by parts, the one less the other.
double SignificandCost::savedOf(ReduceOp reduce, Value term) {
  Extents extents = extentsOf(kernel, compute, reduce, term);
  // Sums of fewer than one slice would be of zeros mostly. A vector times a matrix takes the time
  // of reading that, whatever multiplies.
  LoadOp narrow = narrowFactorOf(term);
  if (extents.inner < elementsOfSlice || std::min(extents.rows, extents.columns) <= 1 ||
      (narrow && !extents.hasTiles()))
    return 0;
  double onCores = timeOnCores(extents, mostCuts, processors);
  if (narrow)
    onCores = worthOfMixedParts * std::min(timeOnCores(extents, 1, processors),
                                           timeWidened(kernel, extents, narrow, processors));
  return onCores - timeByParts(extents, countShares(reduce), processors);
}

/// Are all sizes known that decide what `sums` take? Of others nothing is known to be saved.
bool SignificandCost::areSizesKnown(ArrayRef<ReduceOp> sums) {
  auto isKnown = [&](Value extent) { return getSizeFact(kernel, extent).upper.has_value(); };
  return llvm::all_of(compute.getExtents(), isKnown) && llvm::all_of(sums, [&](ReduceOp reduce) {
           return llvm::all_of(reduce.getUpper(), isKnown);
         });
}

/// Do `sums` save more than their factors' parts cost, and is there memory for these?
bool SignificandCost::pays(ArrayRef<ReduceOp> sums) {
  constexpr StringLiteral pass = "tk-split-significands";
  if (!areSizesKnown(sums))
    return decline(compute, pass, "not all sizes are known");
  double saved = 0, cost = cost::launch * launchesBeside, scratch = 0;
  llvm::SmallPtrSet<Value, 4> counted;
  for (ReduceOp reduce : sums)
    for (Value term : reduce.getYield().getValues()) {
      saved += savedOf(reduce, term);
      auto [left, right] = *factorsOf(term);
      for (LoadOp load : {left, right}) {
        if (!counted.insert(load.getTensor()).second)
          continue;
        // An element is read twice, and its parts are written.
        const double elements = countElementsOf(kernel, load);
        const double bytesOfParts = bytesOfPart * static_cast<double>(1 + partsOf(load.getType()));
        const double bytesOfElement = load.getType().getIntOrFloatBitWidth() / 8.0;
        cost += cost::byte * (2 * bytesOfElement + bytesOfParts) * elements;
        scratch += bytesOfParts * elements;
      }
    }
  if (scratch > mostScratch)
    return decline(compute, pass, "the parts of its operands would take too much memory");
  return savesTime(compute, pass, "storing the bf16 parts of its operands", saved, cost);
}

/// Does the product of f32 operands, of which the computed ones have `bytesStored` bytes, save more
/// by parts than it costs to store the computed ones and the parts?
bool SignificandCost::paysStored(ReduceOp reduce, Value left, Value right, double bytesStored) {
  if (!areSizesKnown({reduce}))
    return false;
  Extents extents = extentsOf(kernel, compute, reduce, left, right);
  if (extents.inner < elementsOfSlice || !extents.hasTiles())
    return false;
  // Both operands' indices: those of one are rows or columns, and the sum's.
  auto elementsOf = [&](Value factor) {
    auto elements = static_cast<double>(extents.terms);
    for (auto [index, extent] :
         llvm::zip_equal(compute.getBlock()->getArguments(), compute.getExtents()))
      if (Dependence(ValueRange{index}).on(factor))
        elements *= guessSize(kernel, extent);
    return elements;
  };
  const double elements = elementsOf(left) + elementsOf(right);
  const double bytesOfParts = bytesOfPart * static_cast<double>(1 + partsOf(left.getType()));
  constexpr double bytesOfElement = 4;
  const double cost = cost::launch * (launchesBeside + 2) + cost::byte * 2 * bytesStored +
                      cost::byte * (2 * bytesOfElement + bytesOfParts) * elements;
  return bytesOfParts * elements <= mostScratch &&
         timeOnCores(extents, mostCuts, processors) - timeByParts(extents, 1, processors) > cost;
}
