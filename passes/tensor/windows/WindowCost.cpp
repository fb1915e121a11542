//===- WindowCost.cpp - the cost model of flattened convolutions ----------===//
//
// The model compares the time of the flattened contraction with that of the convolution on CUDA
// cores. The former has waves of wgmma tiles (WarpgroupTiles.h) and the bytes of storing parts,
// contraction and results. The latter counts elements of the sum.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"
#include "passes/machine/TileFacts.h"
#include "passes/machine/WarpgroupTiles.h"
#include "passes/machine/limits/Windows.h"
#include "passes/plan/WindowPlaces.h"
#include "passes/tensor/split/SignificandParts.h"
#include "passes/tensor/windows/WindowSums.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tk;

namespace {

using namespace limits::window_cost;
/// What a slice of so many channels takes for each, relative to the longest: sums of slices are
/// added up by threads. Of parts all that are stored of a slice are in shared memory at a time.
struct Slice {
  int64_t length;
  double rate;
};
constexpr Slice slicesOfParts[] = {{32, 1}, {16, 1.6}},
                slicesOfHalves[] = {{64, 1}, {32, 1.5}, {16, 2.5}},
                slicesOfTf32[] = {{32, 2}, {16, 3}};

/// What a plan's product is over, and how many copies of the windows' tensor are its factors.
struct Extents {
  double batches = 1, rows = 1, pixels = 1, channels = 1, taps = 1, residues = 1, copies = 1;
  double bytesOfElement = 0, bytesOfParts = 0, bytesOfResult = 0;
  int64_t pairs = 1;
};

} // namespace

double WindowSum::sizeOf(BlockArgument index, bool isFirstPhase) const {
  constexpr double usualShare = 0.75, middle = 0.5;
  return std::max(estimateSize(kernel, extentOf(index), usualShare, isFirstPhase ? 0 : middle),
                  1.0);
}

static double sizeOf(const WindowSum &sum, BlockArgument index) { return sum.sizeOf(index); }

SmallVector<int64_t> tk::groupsOf(const WindowSum &sum, double size) {
  SmallVector<int64_t> counts = {1};
  if (sum.batches.empty())
    return counts;
  const int64_t divisor = getSizeFact(sum.kernel, sum.extentOf(sum.batches[0])).divisor;
  for (int64_t count = 2; divisor % count == 0 && divisor > 0; count *= 2)
    if (static_cast<double>(count) * size <= mostOfGroups)
      counts.push_back(count);
    else
      break;
  return counts;
}

static Extents extentsOf(const WindowSum &sum, int64_t groups, bool arePhasesRows) {
  Extents extents;
  extents.bytesOfElement = sum.element.getIntOrFloatBitWidth() / 8.0;
  extents.bytesOfParts = sum.isInParts() ? cost::bytesOfPart * static_cast<double>(sum.countParts())
                                         : extents.bytesOfElement;
  extents.bytesOfResult = sum.endsWithProduct() ? extents.bytesOfElement : cost::bytesOfWide;
  extents.pairs = sum.countPairs();
  for (BlockArgument index : llvm::concat<const BlockArgument>(sum.batches, sum.phases))
    extents.batches *= sizeOf(sum, index);
  for (BlockArgument index : sum.phases)
    if (arePhasesRows) {
      extents.rows *= sizeOf(sum, index);
      extents.batches /= sizeOf(sum, index);
    }
  for (BlockArgument index : sum.batches)
    extents.copies *= sizeOf(sum, index);
  for (BlockArgument index : sum.rows)
    extents.rows *= sizeOf(sum, index);
  for (BlockArgument index : sum.pixels) {
    double size = sizeOf(sum, index);
    if (const WindowAxis *axis = sum.axisOf(index)) {
      const double taps = sum.sizeOf(axis->tap, arePhasesRows);
      const auto stride = static_cast<double>(axis->stride);
      size += std::floor((taps - 1) * static_cast<double>(axis->dilation) / stride);
      extents.taps *= taps;
      extents.residues *= std::min(stride, taps);
    }
    extents.pixels *= size;
  }
  for (BlockArgument index : sum.channels)
    extents.channels *= sizeOf(sum, index);
  const auto count = static_cast<double>(groups);
  extents.batches /= count;
  extents.copies /= count;
  extents.rows *= count;
  extents.channels *= count;
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
          extents.batches * extents.rows * cost::bytesOfWide * static_cast<double>(shares));
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
  product *= cost::termOfProcessor * slice.rate *
             static_cast<double>(slice.length * extents.pairs) *
             std::ceil(stepsOf(extents, slice) / static_cast<double>(shares));
  const double stored = extents.copies * extents.pixels * extents.residues * channels;
  const double results = extents.batches * extents.rows * extents.pixels;
  const double bytesOfResult =
      shares == 1 ? extents.bytesOfResult : cost::bytesOfWide * static_cast<double>(shares);
  // A product of parts reads them while it multiplies; its results are read and written once more.
  if (extents.pairs > 1)
    return cost::launchesOfConvolution * cost::launch +
           cost::byteOfConvolution * (extents.bytesOfElement + extents.bytesOfParts) * stored +
           std::max(product, cost::byteOfConvolution *
                                 (extents.bytesOfParts * stored + bytesOfResult * results)) +
           cost::byteOfConvolution * (bytesOfResult + cost::bytesOfWide) * results;
  return product + cost::launchesOfConvolution * cost::launch +
         cost::byteOfConvolution * ((extents.bytesOfElement + 2 * extents.bytesOfParts) * stored +
                                    2 * bytesOfResult * results);
}

static ArrayRef<Slice> slicesOf(const WindowSum &sum) {
  if (sum.isInParts())
    return slicesOfParts;
  return sum.element.isF32() ? ArrayRef(slicesOfTf32) : ArrayRef(slicesOfHalves);
}

/// Takes the plan of `groups` groups with the axes `unrolled` if it takes less time than `best`.
static void planGroups(const WindowSum &sum, unsigned unrolled, int64_t groups, bool arePhasesRows,
                       int64_t processors, std::optional<WindowPlan> &best) {
  WindowSum own = sum;
  for (unsigned n = sum.axes.size(); n-- > 0;)
    if (unrolled >> n & 1)
      own.unroll(n);
  Extents extents = extentsOf(own, groups, arePhasesRows);
  if (arePhasesRows || (groups > 1 && !sum.isResult()))
    extents.bytesOfResult = cost::bytesOfWide;
  for (Slice slice : slicesOf(sum))
    for (int64_t shares : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}) {
      if (shares > 1 && static_cast<double>(shares * leastSteps) > stepsOf(extents, slice))
        break;
      const double time = timeOfPlan(extents, slice, shares, processors);
      if (std::isnan(time) || scratchOf(extents, slice, shares) > cost::mostScratchOfParts)
        continue;
      const bool isMore = best && (shares > best->shares || unrolled > best->unrolled);
      const bool isChecked = best && (groups > best->groups || arePhasesRows > best->arePhasesRows);
      const double most = isChecked ? mostTimeOfGroups : isMore ? cost::mostTimeOfFinerSplit : 1;
      if (!best || time < best->time * most)
        best = WindowPlan{unrolled, slice.length, shares, time, groups, arePhasesRows};
    }
}

/// How many groups may be one product: one, if the check of the results takes more time than that
/// saves.
static SmallVector<int64_t> joinedGroups(const WindowSum &sum) {
  const Extents extents = extentsOf(sum, 1, false);
  ComputeOp compute = sum.compute;
  if (extents.channels >= static_cast<double>(slicesOfHalves[2].length))
    return {1};
  // Results that are read row by row lie apart where a group ends: the second-level cache has them,
  // and what is stored beside.
  if (llvm::is_contained(sum.rows, compute.getBlock()->getArguments().back()) &&
      extents.batches * extents.rows * extents.pixels * extents.bytesOfResult >
          static_cast<double>(cacheBytesOfPlans) / 2)
    return {1};
  return groupsOf(sum, std::max(extents.rows, extents.channels));
}

std::optional<WindowPlan> tk::planWindowSum(const WindowSum &sum, int64_t processors) {
  std::optional<WindowPlan> best;
  const unsigned count = sum.phases.empty() ? sum.axes.size() : 0;
  for (unsigned unrolled = 0; unrolled < (1U << count); ++unrolled)
    for (int64_t groups : joinedGroups(sum))
      planGroups(sum, unrolled, groups, false, processors, best);
  if (!sum.phases.empty())
    planGroups(sum, 0, 1, true, processors, best);
  return best;
}

/// Do vectors of channels lie side by side in both tensors, wherever the window is?
static bool areChannelsInnermost(const WindowSum &sum) {
  LoadOp window = sum.window, weights = sum.weights;
  auto last = dyn_cast<BlockArgument>(window.getIndices().back());
  return last && weights.getIndices().back() == last && llvm::is_contained(sum.channels, last) &&
         getSizeFact(sum.kernel, sum.extentOf(last)).divisor % halvesOfVector == 0;
}

/// Do vectors of pixels lie side by side in the input, wherever the window is? Its taps are then
/// whole vectors apart.
static bool areVectorsApart(const WindowSum &sum) {
  LoadOp window = sum.window;
  const WindowAxis *along = nullptr;
  for (BlockArgument index : getIterationIndices(window.getIndices().back()))
    along = along ? along : sum.axisOf(index);
  return along && along->stride == 1 && along->dilation % halvesOfVector == 0 &&
         getRowAlignment(sum.kernel, window) >= 2 * halvesOfVector;
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
  double time = hasShortIndices(sum) ? cost::termOfCountedTaps
                : areTapsKnown       ? cost::termOfKnownTaps
                                     : cost::termOfUnknownTaps;
  if (areTapsKnown && rows < cost::rowsOfCoreTile)
    time *= std::pow(cost::rowsOfCoreTile / rows, cost::powerOfFewRows);
  const double least = areTapsKnown ? leastSlice : termsOfSlice;
  return longest < least ? time * least / longest : time;
}

double tk::timeAsWritten(const WindowSum &sum, int64_t processors) {
  double terms = sum.isInParts() ? 0
                 : (areChannelsInnermost(sum) || areVectorsApart(sum)) && !sum.element.isF32()
                     ? cost::shareOfMatrixUnit * cost::termOfContiguousChannels
                     : cost::shareOfMatrixUnit * cost::termOfStridedChannels;
  if (!sum.phases.empty())
    terms = cost::termOfGatheredTaps;
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
  terms *= sum.isInParts() ? rows
                           : std::ceil(rows / limits::window_cost::rowsOfTile) *
                                 limits::window_cost::rowsOfTile;
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
