//===- RankTimes.cpp - predicted times of ranked reductions ---------------===//
#include "passes/tensor/keys/RankTimes.h"
#include "passes/machine/limits/Keys.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/SortCost.h"

#include <cmath>

using namespace mlir;
using namespace tk;

namespace {
/// How many there are of each.
struct Sizes {
  double batches = 1, columns = 1, results = 1, terms = 1;
};
} // namespace

static void predictSorted(const Sizes &sizes, bool isCount, RankTimes &times) {
  using namespace limits::sort_row;
  times.sorted = std::numeric_limits<double>::infinity();
  for (int64_t size = fewestElements; size <= mostElements; size *= 2) {
    const double elements = static_cast<double>(size), bits = std::log2(elements);
    const double chunks = std::ceil(sizes.terms / elements), blocks = sizes.batches * chunks;
    const double places = blocks * elements;
    constexpr double bytesOfNumber = 2 * 8, bytesOfTerm = 3 * 4;
    double time = cost::launch +
                  cost::sortedStep * elements * bits * (bits + 1) / 2 *
                      std::max(blocks, cost::sortingBlocks) +
                  cost::byte * bytesOfNumber * places +
                  cost::searched * sizes.results * chunks * (bits + 1);
    if (!isCount)
      time += cost::launch + cost::byte * (bytesOfNumber + bytesOfTerm) * places * sizes.columns;
    if (places * sizes.columns < std::numeric_limits<int32_t>::max() && time < times.sorted) {
      times.sorted = time;
      times.ofChunk = size;
    }
  }
}

static void predictThreshold(const Sizes &sizes, int64_t bitsOfKey, RankTimes &times) {
  using namespace limits::rank_thresholds;
  times.threshold = std::numeric_limits<double>::infinity();
  for (int64_t bits = fewestBits; bits <= mostBits; ++bits) {
    const double sums = sizes.batches * sizes.columns * std::exp2(bits);
    const double steps = std::ceil(static_cast<double>(bitsOfKey) / static_cast<double>(bits));
    const double bytes = sizes.batches * sizes.terms * sizeof(float);
    const double time =
        steps * (launchesOfStep * cost::launch +
                 std::max(cost::byte * bytes, cost::thresholdTerm * sums * sizes.terms));
    if (time < times.threshold) {
      times.threshold = time;
      times.bitsOfDigit = bits;
    }
  }
}

std::optional<RankTimes> tk::predictRanks(KernelOp kernel, ComputeOp compute,
                                          const RankedReduction &ranked, int64_t bitsOfKey) {
  ReduceOp reduce = ranked.reduce;
  auto isKnown = [&](Value extent) { return getSizeFact(kernel, extent).upper.has_value(); };
  if (!isKnown(ranked.numTerms) || !llvm::all_of(compute.getExtents(), isKnown))
    return std::nullopt;
  Sizes sizes;
  for (BlockArgument index : getIterationIndices(reduce.getResult(0)))
    if (index.getOwner() == compute.getBlock())
      sizes.results *= guessSize(kernel, compute.getExtents()[index.getArgNumber()]);
  for (unsigned p : ranked.batches)
    sizes.batches *= guessSize(kernel, compute.getExtents()[p]);
  for (unsigned p : ranked.columns)
    sizes.columns *= guessSize(kernel, compute.getExtents()[p]);
  sizes.terms = guessSize(kernel, ranked.numTerms);
  RankTimes times;
  times.compared = cost::rankedTerm * sizes.results * sizes.terms;
  predictSorted(sizes, ranked.isCount(), times);
  predictThreshold(sizes, bitsOfKey, times);
  return times;
}
