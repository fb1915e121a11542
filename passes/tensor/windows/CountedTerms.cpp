//===- CountedTerms.cpp - matching sums over pixels -----------------------===//
//
// A sum over pixels is matched if
// 1. one operand has the pixels' indices as they are, and the other one multiples of them plus
//    taps; each operand has one more index, of the result, and taps are indices of the result;
// 2. there are fewer taps than pixels along the windows;
// 3. windows reach no farther than TMA loads do.
//
// 16-bit operands are read where they lie if their last axes are those of columns and rows, and
// their other axes are in one order. Else they are stored in that order, with whole vectors of
// columns and rows. f32 is stored in parts in bf16, side by side along the last axis. The taps of a
// window may then be columns, too: the operand is stored along it for each tap. A tensor of one
// channel has no other columns.
//
// A batch of such sums, those of groups of channels, has the groups' columns and rows side by side
// in what is stored. Several groups are one product, whose results between groups nothing reads.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/windows/CountedTerms.h"
#include "passes/machine/limits/Windows.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"
#include "passes/machine/TileFacts.h"
#include "passes/machine/WarpgroupTiles.h"
#include "passes/plan/WindowPlaces.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tk;

using namespace limits::counted_terms;

/// Reads the indices of `load`: each is a pixel's, by a window or as it is, or one of the result.
static bool readIndices(const WindowSum &sum, LoadOp load, bool isWindow,
                        SmallVectorImpl<BlockArgument> &pixels, BlockArgument &own) {
  ReduceOp reduce = sum.reduce;
  for (auto [axis, index] : llvm::enumerate(load.getIndices())) {
    const auto *window = llvm::find_if(
        sum.axes, [&](const WindowAxis &candidate) { return candidate.axis == axis; });
    const bool isMoved = isWindow && window != sum.axes.end();
    auto argument = isMoved ? window->tap : dyn_cast<BlockArgument>(index);
    if (!argument || (isMoved && window->isTurned))
      return false;
    if (llvm::is_contained(sum.batches, argument))
      continue;
    if (argument.getOwner() == reduce.getBlock()) {
      if (llvm::is_contained(pixels, argument))
        return false;
      pixels.push_back(argument);
    } else if (own) {
      return false;
    } else {
      own = argument;
    }
  }
  return pixels.size() == reduce.getNumIndices();
}

/// Does the last axis of `load` have whole vectors?
static bool hasWholeVectors(const WindowSum &sum, LoadOp load) {
  return getSizeFact(sum.kernel, getExtents(sum.kernel, load.getTensor()).back()).divisor %
             halvesOfVector ==
         0;
}

/// Do TMA loads bring the rows from where they lie? `pixels` are their other indices in their
/// order.
static bool areRowsCopied(const CountedSum &counted, ArrayRef<BlockArgument> pixels) {
  const WindowSum &sum = counted.sum;
  LoadOp rows = sum.weights;
  if (sum.element.isF32() || counted.batch || rows.getIndices().back() != counted.row ||
      pixels != ArrayRef(counted.pixels) || !hasWholeVectors(sum, rows))
    return false;
  SmallVector<Value> extents = getExtents(sum.kernel, rows.getTensor());
  for (auto [pixel, extent] : llvm::zip(pixels, extents))
    if (!isSameExtent(sum.extentOf(pixel), extent))
      return false;
  return true;
}

/// Do TMA loads bring the windows from where they lie?
static bool areColumnsCopied(const CountedSum &counted) {
  const WindowSum &sum = counted.sum;
  LoadOp window = sum.window;
  return !sum.element.isF32() && !counted.batch && counted.column &&
         window.getIndices().back() == counted.column && hasWholeVectors(sum, window) &&
         areWindowsCopied(sum.kernel, window, llvm::to_vector_of<Value>(counted.pixels));
}

/// Are the windows' places, which are taps of the result, fewer than the terms along them?
static bool areTapsFew(const WindowSum &sum) {
  double taps = 1, terms = 1;
  for (const WindowAxis &axis : sum.axes) {
    taps *= estimateSize(sum.kernel, sum.extentOf(axis.place));
    terms *= estimateSize(sum.kernel, sum.extentOf(axis.tap));
  }
  return taps < terms;
}

/// About how large `index` is: 1 if there is none.
static double sizeOf(const WindowSum &sum, BlockArgument index) {
  return index ? std::max(estimateSize(sum.kernel, sum.extentOf(index)), 1.0) : 1;
}

/// How many groups may be one product.
static SmallVector<int64_t> countsOfGroups(const CountedSum &counted) {
  const WindowSum &sum = counted.sum;
  return groupsOf(sum, std::max(sizeOf(sum, counted.row), sizeOf(sum, counted.column)));
}

std::optional<CountedSum> tk::readCountedSum(const WindowSum &sum) {
  ComputeOp compute = sum.compute;
  ReduceOp reduce = sum.reduce;
  CountedSum counted{sum, {}, {}, {}, {}};
  if (!sum.batches.empty())
    counted.batch = sum.batches[0];
  SmallVector<BlockArgument> pixels;
  if (!(sum.element.isF16() || sum.element.isBF16() || sum.isInParts()) || !sum.phases.empty() ||
      compute.getNumResults() != 1 || reduce.getNumAccumulators() != 1 ||
      !isZeroOutside(sum.window) || !isZeroOutside(sum.weights) ||
      !readIndices(sum, sum.window, true, counted.pixels, counted.column) ||
      !readIndices(sum, sum.weights, false, pixels, counted.row) || sum.rows.size() != 1 ||
      counted.row != sum.rows[0] ||
      sum.pixels.size() != sum.axes.size() + (counted.column ? 1 : 0) ||
      (counted.column && !llvm::is_contained(sum.pixels, counted.column)) || !areTapsFew(sum))
    return std::nullopt;
  if (areColumnsCopied(counted) && areRowsCopied(counted, pixels))
    return counted;
  // The first index that is counted is none of a window.
  counted.isStored = true;
  SmallVector<BlockArgument> ordered;
  for (bool isMoved : {false, true})
    llvm::copy_if(counted.pixels, std::back_inserter(ordered), [&](BlockArgument pixel) {
      return (counted.windowOf(pixel) != nullptr) == isMoved;
    });
  counted.pixels = ordered;
  counted.isRowStored = !areRowsCopied(counted, pixels);
  if (counted.pixels.size() < 2 || counted.pixels.size() > mostPixelIndices ||
      counted.windowOf(counted.pixels.front()))
    return std::nullopt;
  return counted;
}

/// Is window `n` of the sum among the `unrolled` ones?
static bool isUnrolled(unsigned unrolled, size_t n) { return unrolled >> n & 1; }

bool tk::areWindowsInReach(const CountedSum &counted, unsigned unrolled) {
  if (!counted.isStored)
    return unrolled == 0;
  const WindowSum &sum = counted.sum;
  LoadOp window = sum.window;
  SmallVector<Value> extents = getExtents(sum.kernel, window.getTensor());
  for (auto [n, axis] : llvm::enumerate(sum.axes)) {
    if (isUnrolled(unrolled, n))
      continue;
    const unsigned rank = counted.pixels.size() + 1;
    std::optional<WindowReach> reach =
        reachOfWindow(sum.kernel, window.getIndices()[axis.axis], axis.tap);
    if (!reach || reach->step < 1 ||
        reach->distances.most - reach->distances.least > mostDistanceOfPlaces(rank) ||
        !areCornersInRange(sum.kernel, sum.extentOf(axis.tap), extents[axis.axis], reach->step,
                           reach->distances.least, rank))
      return false;
  }
  return true;
}

namespace {

/// The sizes that a plan's time follows from.
struct TermExtents {
  double products = 1, rows = 1, columns = 1, taps = 1, terms = 1, stored = 0, read = 0;
  double stores = 0; ///< launches that store operands
  double bytesOfElement = 2, bytesOfParts = 2;
  int64_t pairs = 1, slice = termsOfCountedSlice;
};

} // namespace

static TermExtents extentsOf(const CountedSum &counted, unsigned unrolled, int64_t groups) {
  const WindowSum &sum = counted.sum;
  LoadOp window = sum.window;
  auto estimate = [&](Value extent) { return std::max(estimateSize(sum.kernel, extent), 1.0); };
  TermExtents extents;
  extents.rows = sizeOf(sum, counted.row);
  extents.columns = sizeOf(sum, counted.column);
  extents.bytesOfElement = sum.element.getIntOrFloatBitWidth() / 8.0;
  extents.bytesOfParts = sum.isInParts() ? cost::bytesOfPart * static_cast<double>(sum.countParts())
                                         : extents.bytesOfElement;
  extents.pairs = sum.countPairs();
  extents.slice = sum.isInParts() ? termsOfPartsSlice : termsOfCountedSlice;
  double places = 1;
  for (BlockArgument pixel : counted.pixels) {
    extents.terms *= estimate(sum.extentOf(pixel));
    if (!counted.windowOf(pixel))
      places *= estimate(sum.extentOf(pixel));
  }
  SmallVector<Value> sizes = getExtents(sum.kernel, window.getTensor());
  double copies = 1;
  for (auto [n, axis] : llvm::enumerate(sum.axes)) {
    const double taps = estimate(sum.extentOf(axis.place));
    const bool isColumn = isUnrolled(unrolled, n);
    (isColumn ? copies : extents.taps) *= taps;
    places *= estimate(isColumn ? sum.extentOf(axis.tap) : sizes[axis.axis]);
  }
  extents.columns *= copies;
  const auto count = static_cast<double>(groups);
  extents.products = sizeOf(sum, counted.batch) / count;
  extents.rows *= count;
  extents.columns *= count;
  // Rows and columns are whole vectors where they are stored.
  auto whole = [](double size) {
    return std::ceil(size / static_cast<double>(halvesOfVector)) *
           static_cast<double>(halvesOfVector);
  };
  if (counted.isStored) {
    ++extents.stores;
    extents.read += extents.products * places * extents.columns / copies;
    extents.stored += extents.products * places * whole(extents.columns);
  }
  if (counted.isRowStored) {
    ++extents.stores;
    extents.read += extents.products * extents.terms * extents.rows;
    extents.stored += extents.products * extents.terms * whole(extents.rows);
  }
  return extents;
}

/// The time of the product in so many shares, of what is stored for it, and of adding the shares.
static double timeOf(const TermExtents &extents, int64_t shares, int64_t processors,
                     double bytesOfResult) {
  double product = std::numeric_limits<double>::max();
  for (const WarpgroupTile &tile : warpgroupTiles) {
    if (extents.pairs > 1 && tile.m > rowsOfLargestTile)
      continue;
    const int64_t tiles =
        tile.count(static_cast<int64_t>(extents.rows), static_cast<int64_t>(extents.columns)) *
        static_cast<int64_t>(extents.taps * extents.products);
    product = std::min(product, tile.timeOf(tiles * shares, processors));
  }
  const auto slice = static_cast<double>(extents.slice);
  const double slices = std::ceil(std::ceil(extents.terms / slice) / static_cast<double>(shares));
  product *= cost::termOfProcessor * slice * slices * static_cast<double>(extents.pairs);
  const double bytes = extents.bytesOfElement * extents.read +
                       extents.bytesOfParts * extents.stored +
                       extents.products * extents.taps * extents.rows * extents.columns *
                           (2 * cost::bytesOfWide * static_cast<double>(shares) + bytesOfResult);
  const double launches = 1 + launchesOfShares + extents.stores;
  return product + launches * cost::launch + cost::byteOfConvolution * bytes;
}

/// Takes the plan of `groups` groups and the `unrolled` windows if it takes less time than `best`.
static void planGroups(const CountedSum &counted, unsigned unrolled, int64_t groups,
                       int64_t processors, std::optional<TermPlan> &best) {
  const TermExtents extents = extentsOf(counted, unrolled, groups);
  const double scratch = extents.bytesOfParts * extents.stored;
  if (std::isnan(extents.terms * extents.rows * extents.columns * extents.taps * scratch) ||
      scratch > cost::mostScratchOfParts)
    return;
  const double slices = std::ceil(extents.terms / static_cast<double>(extents.slice));
  for (int64_t shares = 1; shares <= mostShares; ++shares) {
    if (shares > 1 && static_cast<double>(shares) * leastSlices > slices)
      break;
    const double time =
        timeOf(extents, shares, processors, counted.sum.element.getIntOrFloatBitWidth() / 8.0);
    const bool isMore = best && (shares > best->shares || unrolled > best->unrolled);
    if (!best || time < best->time * (isMore ? mostTimeOfMore : 1))
      best = TermPlan{unrolled, shares, time, groups};
  }
}

std::optional<TermPlan> tk::planCountedSum(const CountedSum &counted, int64_t processors) {
  std::optional<TermPlan> best;
  const size_t count = counted.isStored ? counted.sum.axes.size() : 0;
  for (unsigned unrolled = 0; unrolled < (1U << count); ++unrolled) {
    if (!areWindowsInReach(counted, unrolled))
      continue;
    for (int64_t groups : countsOfGroups(counted))
      planGroups(counted, unrolled, groups, processors, best);
    // Groups fill tiles with columns, without copies for each tap.
    if (counted.batch && best)
      break;
  }
  return best;
}
