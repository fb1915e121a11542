//===- WindowCost.cpp - the cost model of flattened convolutions ----------===//
//
// The model compares the time of the flattened contraction with that of the convolution on CUDA
// cores. The former has waves of wgmma tiles (WarpgroupTiles.h) and the bytes of storing parts,
// contraction and results. The latter counts elements of the sum.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/WarpgroupTiles.h"
#include "passes/plan/WindowPlaces.h"
#include "passes/tensor/split/SignificandParts.h"
#include "passes/tensor/windows/WindowSums.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tk;

namespace {

/// Nanoseconds, measured on an H200: what a processor takes for a term of one output of a tile, for
/// each pair of parts; to read or write a byte, to launch once more.
constexpr double timeOfPair = 3.4e-4, costOfByte = 2.4e-4, costOfLaunch = 2500;
/// The same for a term of a sum over windows as it is written: in f32 on CUDA cores, where the
/// number of taps is known, where terms are counted through (32 x 64 x 224 x 224 results of 27
/// terms take 354 us) and where nothing is known (32 x 128 x 54 x 54 results of 576 terms take
/// about 0.9 ms), in 16 bits where channels lie side by side (32 x 28 x 28 x 256 results of 2304
/// terms take 109 us), and where they do not.
constexpr double timeOfTerm = 6.8e-5, timeOfCounted = 1.2e-4, timeOfUnknown = 1.3e-4,
                 timeOfHalf = 7.4e-6, timeOfApart = 4e-5;
/// Rows of a tile on CUDA cores of which each term takes so long. Of fewer rows a term takes longer
/// by a power of how many times fewer they are.
constexpr double rowsOnCores = 64, powerOfFewRows = 0.4;
/// Indices of a sum that are at most as long are counted through as one on CUDA cores, which saves
/// waiting for the first slice of each, where so many rows share what each element's place takes.
constexpr double longestShort = 32, leastRowsOfShort = 32;
/// The same where results have phases, whose taps threads gather (2 x 32 x 32 x 56 x 56 results of
/// 64 terms take 4.2 ms in f32).
constexpr double timeInPhases = 5e-3;
/// So much less a sum in 16 bits takes as a product before it becomes one: windows whose channels
/// lie side by side are multiplied on the matrix unit as they are.
constexpr double worthOfProduct = 0.9;
/// Results of a small tile, of which each processor has one at least.
constexpr double resultsOfTile = 64 * 64;
/// Rows of the tiles of these; terms of a slice on CUDA cores, which has those of the longest index
/// of the sum alone.
constexpr double rowsOfTile = 128, termsOfSlice = 16, leastSlice = 8;
/// Elements of a vector of 16 bytes.
constexpr int64_t vectorElements = 8;
/// What a slice of so many channels takes for each, relative to the longest: sums of slices are
/// added up by threads. Of parts all that are stored of a slice are in shared memory at a time.
struct Slice {
  int64_t length;
  double rate;
};
constexpr Slice slicesOfParts[] = {{32, 1}, {16, 1.6}},
                slicesOfHalves[] = {{64, 1}, {32, 1.5}, {16, 2.5}},
                slicesOfTf32[] = {{32, 2}, {16, 3}};
/// Bytes of an element of f32, and of a part.
constexpr double bytesOfWide = 4, bytesOfPart = 2;
/// Bytes of scratch memory that a sum may take, and launches beside the product.
constexpr double mostScratch = double(int64_t(1) << 32), launchesBeside = 3;
/// Steps of a share at least.
constexpr int64_t leastSteps = 4;
/// What more shares, or more windows that are stored tap by tap, should take at most of the time of
/// fewer.
constexpr double worthOfMore = 0.9;

/// What a plan's product is over, and how many copies of the windows' tensor are its factors.
struct Extents {
  double batches = 1, rows = 1, pixels = 1, channels = 1, taps = 1, residues = 1, copies = 1;
  double bytesOfElement = 0, bytesOfParts = 0, bytesOfResult = 0;
  int64_t pairs = 1;
};

} // namespace

static double sizeOf(const WindowSum &sum, BlockArgument index) {
  return std::max(estimateSize(sum.kernel, sum.extentOf(index)), 1.0);
}

static Extents extentsOf(const WindowSum &sum) {
  Extents extents;
  extents.bytesOfElement = sum.element.getIntOrFloatBitWidth() / 8.0;
  extents.bytesOfParts = sum.isInParts() ? bytesOfPart * static_cast<double>(sum.countParts())
                                         : extents.bytesOfElement;
  extents.bytesOfResult = sum.endsWithProduct() ? extents.bytesOfElement : bytesOfWide;
  extents.pairs = sum.countPairs();
  for (BlockArgument index : llvm::concat<const BlockArgument>(sum.batches, sum.phases))
    extents.batches *= sizeOf(sum, index);
  for (BlockArgument index : sum.batches)
    extents.copies *= sizeOf(sum, index);
  for (BlockArgument index : sum.rows)
    extents.rows *= sizeOf(sum, index);
  for (BlockArgument index : sum.pixels) {
    double size = sizeOf(sum, index);
    if (const WindowAxis *axis = sum.axisOf(index)) {
      const double taps = sizeOf(sum, axis->tap);
      const auto stride = static_cast<double>(axis->stride);
      size += std::floor((taps - 1) * static_cast<double>(axis->dilation) / stride);
      extents.taps *= taps;
      extents.residues *= std::min(stride, taps);
    }
    extents.pixels *= size;
  }
  for (BlockArgument index : sum.channels)
    extents.channels *= sizeOf(sum, index);
  return extents;
}

static double wholeSlices(const Extents &extents, Slice slice) {
  const auto length = static_cast<double>(slice.length);
  return std::ceil(extents.channels / length) * length;
}

/// Taps and slices.
static double stepsOf(const Extents &extents, Slice slice) {
  return extents.taps * wholeSlices(extents, slice) / static_cast<double>(slice.length);
}

/// Bytes of scratch memory that a plan takes.
static double scratchOf(const Extents &extents, Slice slice, int64_t shares) {
  return extents.pixels *
         (extents.copies * extents.residues * extents.bytesOfParts * wholeSlices(extents, slice) +
          extents.batches * extents.rows * bytesOfWide * static_cast<double>(shares));
}

/// What the product of a plan takes, and what is stored for it.
static double timeOfPlan(const Extents &extents, Slice slice, int64_t shares, int64_t processors) {
  const double channels = wholeSlices(extents, slice);
  if (std::isnan(extents.rows * extents.pixels * extents.batches)) // a size is not known
    return std::numeric_limits<double>::quiet_NaN();
  double product = std::numeric_limits<double>::max();
  for (const WarpgroupTile &tile : warpgroupTiles) {
    if (tile.m > 128)
      continue;
    const auto tiles = static_cast<double>(
        tile.count(static_cast<int64_t>(extents.rows), static_cast<int64_t>(extents.pixels)));
    product = std::min(
        product, tile.timeOf(static_cast<int64_t>(tiles * extents.batches) * shares, processors));
  }
  product *= timeOfPair * slice.rate * static_cast<double>(slice.length * extents.pairs) *
             std::ceil(stepsOf(extents, slice) / static_cast<double>(shares));
  const double stored = extents.copies * extents.pixels * extents.residues * channels;
  const double results = extents.batches * extents.rows * extents.pixels;
  const double bytesOfResult =
      shares == 1 ? extents.bytesOfResult : bytesOfWide * static_cast<double>(shares);
  // A product of parts reads them while it multiplies; its results are read and written once more.
  if (extents.pairs > 1)
    return launchesBeside * costOfLaunch +
           costOfByte * (extents.bytesOfElement + extents.bytesOfParts) * stored +
           std::max(product,
                    costOfByte * (extents.bytesOfParts * stored + bytesOfResult * results)) +
           costOfByte * (bytesOfResult + bytesOfWide) * results;
  return product + launchesBeside * costOfLaunch +
         costOfByte * ((extents.bytesOfElement + 2 * extents.bytesOfParts) * stored +
                       2 * bytesOfResult * results);
}

static ArrayRef<Slice> slicesOf(const WindowSum &sum) {
  if (sum.isInParts())
    return slicesOfParts;
  return sum.element.isF32() ? ArrayRef(slicesOfTf32) : ArrayRef(slicesOfHalves);
}

std::optional<WindowPlan> tk::planWindowSum(const WindowSum &sum, int64_t processors) {
  std::optional<WindowPlan> best;
  const unsigned count = sum.phases.empty() ? sum.axes.size() : 0;
  for (unsigned unrolled = 0; unrolled < (1U << count); ++unrolled) {
    WindowSum own = sum;
    for (unsigned n = count; n-- > 0;)
      if (unrolled >> n & 1)
        own.unroll(n);
    Extents extents = extentsOf(own);
    for (Slice slice : slicesOf(sum))
      for (int64_t shares : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}) {
        if (shares > 1 && static_cast<double>(shares * leastSteps) > stepsOf(extents, slice))
          break;
        const double time = timeOfPlan(extents, slice, shares, processors);
        if (std::isnan(time) || scratchOf(extents, slice, shares) > mostScratch)
          continue;
        const bool isMore = best && (shares > best->shares || unrolled > best->unrolled);
        if (!best || time < best->time * (isMore ? worthOfMore : 1))
          best = WindowPlan{unrolled, slice.length, shares, time};
      }
  }
  return best;
}

/// Do vectors of channels lie side by side in both tensors, wherever the window is?
static bool areChannelsInnermost(const WindowSum &sum) {
  LoadOp window = sum.window, weights = sum.weights;
  auto last = dyn_cast<BlockArgument>(window.getIndices().back());
  return last && weights.getIndices().back() == last && llvm::is_contained(sum.channels, last) &&
         getSizeFact(sum.kernel, sum.extentOf(last)).divisor % vectorElements == 0;
}

bool tk::hasShortIndices(const WindowSum &sum) {
  ReduceOp reduce = sum.reduce;
  double rows = 1;
  for (BlockArgument index : sum.rows)
    rows *= sizeOf(sum, index);
  auto isShort = [&](unsigned n) {
    SizeFact fact = getSizeFact(sum.kernel, reduce.getUpper()[n]);
    return n == 0 ? fact.upper && static_cast<double>(*fact.upper) <= longestShort
                  : fact.exact && static_cast<double>(*fact.exact) <= longestShort;
  };
  return sum.isInParts() && sum.phases.empty() && reduce.getNumIndices() > 1 &&
         reduce.getNumAccumulators() == 1 && rows >= leastRowsOfShort &&
         llvm::all_of(llvm::seq(reduce.getNumIndices()), isShort);
}

/// What a term in f32 takes on CUDA cores.
static double timeOnCores(const WindowSum &sum, double rows, double longest) {
  const bool areTapsKnown = llvm::all_of(sum.axes, [&](const WindowAxis &axis) {
    return getSizeFact(sum.kernel, sum.extentOf(axis.tap)).exact.has_value();
  });
  double time = hasShortIndices(sum) ? timeOfCounted : areTapsKnown ? timeOfTerm : timeOfUnknown;
  if (areTapsKnown && rows < rowsOnCores)
    time *= std::pow(rowsOnCores / rows, powerOfFewRows);
  const double least = areTapsKnown ? leastSlice : termsOfSlice;
  return longest < least ? time * least / longest : time;
}

double tk::timeAsWritten(const WindowSum &sum, int64_t processors) {
  double terms = sum.isInParts()                                     ? 0
                 : areChannelsInnermost(sum) && !sum.element.isF32() ? worthOfProduct * timeOfHalf
                                                                     : worthOfProduct * timeOfApart;
  if (!sum.phases.empty())
    terms = timeInPhases;
  double rows = 1, longest = 1;
  for (BlockArgument index : sum.rows)
    rows *= sizeOf(sum, index);
  for (BlockArgument index : sum.channels)
    longest = std::max(longest, sizeOf(sum, index));
  for (const WindowAxis &axis : sum.axes)
    longest = std::max(longest, sizeOf(sum, axis.tap));
  if (hasShortIndices(sum))
    longest = termsOfSlice;
  if (sum.isInParts() && sum.phases.empty())
    terms = timeOnCores(sum, rows, longest);
  terms *= sum.isInParts() ? rows : std::ceil(rows / rowsOfTile) * rowsOfTile;
  double others = 1;
  for (BlockArgument index : llvm::concat<const BlockArgument>(sum.batches, sum.phases, sum.pixels))
    others *= sizeOf(sum, index);
  terms *= others;
  if (rows * others < static_cast<double>(processors) * resultsOfTile)
    terms *= static_cast<double>(processors) * resultsOfTile / (rows * others);
  for (BlockArgument index : sum.channels)
    terms *= sizeOf(sum, index);
  for (const WindowAxis &axis : sum.axes)
    terms *= sizeOf(sum, axis.tap);
  return terms;
}
