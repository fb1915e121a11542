//===- WindowCost.cpp - what sums over windows take -----------------------===//
//
// A model of times: waves of tiles of the flattened product on warpgroups (WarpgroupTiles.h), and
// the bytes that storing parts, products and results move; on CUDA cores, terms.
//
//===----------------------------------------------------------------------===//
#include "passes/fusion/SignificandParts.h"
#include "passes/fusion/WindowSums.h"
#include "passes/parallel/WarpgroupTiles.h"
#include "passes/tiling/SizeFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tk;

namespace {

/// Nanoseconds, measured on an H200: what a processor takes for a term of one output of a tile, for
/// each pair of parts; to read or write a byte, to launch once more.
constexpr double timeOfPair = 3.4e-4, costOfByte = 2.7e-4, costOfLaunch = 2500;
/// The same for a term of a sum over windows on CUDA cores: 32 x 128 x 54 x 54 results of 576 terms
/// take about 0.9 ms.
constexpr double timeOfTerm = 1.3e-4;
/// What a slice of so many channels takes for each, relative to one of 128: sums of slices are
/// added up by threads.
struct Slice {
  int64_t length;
  double rate;
};
constexpr Slice slices[] = {{128, 1}, {64, 1.25}, {32, 1.6}, {16, 2.5}};
/// Bytes of an element of f32, and of its parts.
constexpr double bytesOfWide = 4, bytesOfParts = 2 * countParts;
/// Bytes of scratch memory that a sum may take, and launches beside the product.
constexpr double mostScratch = double(int64_t(1) << 32), launchesBeside = 3;
/// What more shares should take at most of the time of fewer.
constexpr double worthOfShares = 0.9;

/// What a plan's product is over.
struct Extents {
  double batches = 1, rows = 1, pixels = 1, channels = 1, taps = 1, residues = 1;
};

} // namespace

/// About how large a number of the launch is; NaN if that is not known. A dimension lies between
/// the power of two that bounds it and half of that.
static double estimate(KernelOp kernel, Value value) {
  if (std::optional<int64_t> number = getConstantIndex(value))
    return static_cast<double>(*number);
  Operation *op = value.getDefiningOp();
  if (!op) {
    SizeFact fact = getSizeFact(kernel, value);
    if (!fact.upper)
      return std::numeric_limits<double>::quiet_NaN();
    const auto upper = static_cast<double>(std::max<int64_t>(*fact.upper, 1));
    return fact.divisor == *fact.upper || upper < 3 ? upper : std::ceil(0.75 * upper);
  }
  if (op->getNumOperands() != 2)
    return std::numeric_limits<double>::quiet_NaN();
  const double a = estimate(kernel, op->getOperand(0)), b = estimate(kernel, op->getOperand(1));
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case<arith::AddIOp>([&](auto) { return a + b; })
      .Case<arith::SubIOp>([&](auto) { return std::max(a - b, 0.0); })
      .Case<arith::MulIOp>([&](auto) { return a * b; })
      .Case<FloorDivOp>([&](auto) { return std::floor(a / std::max(b, 1.0)); })
      .Case<FloorModOp>([&](auto) { return std::fmod(a, std::max(b, 1.0)); })
      .Case<arith::MinSIOp>([&](auto) { return std::min(a, b); })
      .Case<arith::MaxSIOp>([&](auto) { return std::max(a, b); })
      .Default([](Operation *) { return std::numeric_limits<double>::quiet_NaN(); });
}

static double sizeOf(const WindowSum &sum, BlockArgument index) {
  return std::max(estimate(sum.kernel, sum.extentOf(index)), 1.0);
}

static Extents extentsOf(const WindowSum &sum) {
  Extents extents;
  for (BlockArgument index : sum.batches)
    extents.batches *= sizeOf(sum, index);
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

/// Bytes of scratch memory that a plan takes.
static double scratchOf(const Extents &extents, Slice slice, int64_t shares) {
  return extents.batches * extents.pixels *
         (extents.residues * bytesOfParts * wholeSlices(extents, slice) +
          extents.rows * bytesOfWide * static_cast<double>(shares));
}

/// What the product of a plan takes, and what is stored for it.
static double timeOfPlan(const Extents &extents, Slice slice, int64_t shares, int64_t processors) {
  const double channels = wholeSlices(extents, slice);
  double product = std::numeric_limits<double>::max();
  for (const WarpgroupTile &tile : warpgroupTiles) {
    if (tile.m > 128)
      continue;
    const auto tiles = static_cast<double>(
        tile.count(static_cast<int64_t>(extents.rows), static_cast<int64_t>(extents.pixels)));
    product = std::min(
        product, tile.timeOf(static_cast<int64_t>(tiles * extents.batches) * shares, processors));
  }
  product *= timeOfPair * slice.rate * extents.taps * channels * static_cast<double>(countPairs) /
             static_cast<double>(shares);
  const double stored = extents.batches * extents.pixels * extents.residues * channels;
  const double results = extents.batches * extents.rows * extents.pixels;
  return product + launchesBeside * costOfLaunch +
         costOfByte * ((bytesOfWide + 2 * bytesOfParts) * stored +
                       2 * bytesOfWide * static_cast<double>(shares) * results);
}

std::optional<WindowPlan> tk::planWindowSum(const WindowSum &sum, int64_t processors) {
  std::optional<WindowPlan> best;
  const unsigned count = sum.axes.size();
  for (unsigned unrolled = 0; unrolled < (1U << count); ++unrolled) {
    WindowSum own = sum;
    for (unsigned n = count; n-- > 0;)
      if (unrolled >> n & 1)
        own.unroll(n);
    Extents extents = extentsOf(own);
    for (Slice slice : slices)
      for (int64_t shares : {1, 2, 3, 6}) {
        const double time = timeOfPlan(extents, slice, shares, processors);
        if (std::isnan(time) || scratchOf(extents, slice, shares) > mostScratch)
          continue;
        const bool isMoreShares = best && shares > best->shares;
        if (!best || time < best->time * (isMoreShares ? worthOfShares : 1))
          best = WindowPlan{unrolled, slice.length, shares, time};
      }
  }
  return best;
}

double tk::timeOnCores(const WindowSum &sum) {
  double terms = timeOfTerm;
  for (BlockArgument index : llvm::concat<const BlockArgument>(sum.batches, sum.rows, sum.pixels))
    terms *= sizeOf(sum, index);
  for (BlockArgument index : sum.channels)
    terms *= sizeOf(sum, index);
  for (const WindowAxis &axis : sum.axes)
    terms *= sizeOf(sum, axis.tap);
  return terms;
}

bool tk::paysFlattened(ReduceOp reduce, int64_t processors) {
  std::optional<WindowSum> sum = readWindowSum(reduce->getParentOfType<KernelOp>(),
                                               reduce->getParentOfType<ComputeOp>(), reduce);
  if (!sum)
    return false;
  std::optional<WindowPlan> plan = planWindowSum(*sum, processors);
  return plan && plan->time < timeOnCores(*sum);
}
