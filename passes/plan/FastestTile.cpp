//===- FastestTile.cpp - which warpgroup tile a contraction has -----------===//
//
// A simple model chooses the tile of the least time. It counts waves of tiles over the
// multiprocessors; a tile's outputs take the rate that its shape reaches, relative to the largest
// shape. A larger tile reads each operand less often. A smaller tile leaves fewer multiprocessors
// idle in the last wave.
//
//===----------------------------------------------------------------------===//
#include "dialects/tk/TkInvariance.h"
#include "passes/analysis/JointSums.h"
#include "passes/analysis/TileReductions.h"
#include "passes/machine/SteppedTiles.h"
#include "passes/machine/TileFacts.h"
#include "passes/machine/WarpgroupTiles.h"
#include "passes/machine/limits/Products.h"
#include "passes/plan/MergeIndices.h"
#include "passes/plan/Planner.h"
#include "passes/plan/WindowPlaces.h"

#include <cmath>

using namespace mlir;
using namespace tk;

using namespace limits::plan_hopper;

/// Do threads have registers for so many tiles of sums?
static bool holds(const WarpgroupTile &tile, int64_t sums) {
  return tile.m * tile.n / (tile.warps * 32) * sums <= accumulatorRegisters;
}

/// How many tiles of sums a thread has a part of at once.
int64_t Planner::countSums(Contraction &product) {
  // What one loop adds up is one tile.
  llvm::SmallMapVector<Operation *, unsigned, 4> together;
  for (Contraction &other : shape.contractions)
    if (other.m == product.m && other.n == product.n)
      ++together[other.op];
  int64_t sums = 0;
  for (auto [op, count] : together)
    sums +=
        op->getNumResults() == count ? countJointSums(cast<ReduceOp>(op)).value_or(count) : count;
  // Parts of a sum that are scaled and added up have a tile of their own beside the sum's.
  auto isOfStatement = [&](Value index) {
    return cast<BlockArgument>(index).getOwner() == shape.compute.getBlock();
  };
  return sums + (product.isInner && isOfStatement(product.m) && isOfStatement(product.n));
}

bool Planner::holdsSums(Contraction &product) {
  return llvm::any_of(warpgroupTiles, [sums = countSums(product)](const WarpgroupTile &tile) {
    return holds(tile, sums);
  });
}

/// Is an extent made of a product of sizes that are not known?
static bool isProductOfSizes(KernelOp kernel, Value extent) {
  Operation *op = extent.getDefiningOp();
  if (!op || getSizeFact(kernel, extent).exact)
    return false;
  auto isUnknown = [&](Value size) { return !getSizeFact(kernel, size).exact; };
  return (isa<arith::MulIOp>(op) && llvm::all_of(op->getOperands(), isUnknown)) ||
         llvm::any_of(op->getOperands(),
                      [&](Value size) { return isProductOfSizes(kernel, size); });
}

/// About how many places of windows `index` counts through: the product of their extents' bounds
/// would be several times as many.
std::optional<int64_t> Planner::usualPlaces(Value index, double share) {
  if (!isa<ComputeOp>(cast<BlockArgument>(index).getOwner()->getParentOp()))
    return std::nullopt;
  double places = 1;
  SmallVector<Value> merged = getMergedIndices(index);
  for (Value counted : merged)
    places *= estimateSize(shape.kernel, shape.endOf(counted), share);
  if (merged.empty() && isProductOfSizes(shape.kernel, shape.endOf(index)))
    places = estimateSize(shape.kernel, shape.endOf(index), share);
  else if (merged.size() < 2)
    return std::nullopt;
  if (std::isnan(places))
    return std::nullopt;
  return static_cast<int64_t>(places);
}

/// The share of windows' places that are counted through as a rule: the product of several extents
/// is less than that of their bounds.
static constexpr double usualShare = 0.75;

/// How many values of an index waves of blocks go over; what is not bounded is many.
int64_t Planner::usualExtent(Value index) {
  return usualPlaces(index, usualShare).value_or(shape.upperOf(index).value_or(assumedExtent));
}

/// About how many rows of one tile that holds a whole range lie behind the range. The last of
/// several tiles has none: it begins earlier (tk-tile).
static int64_t rowsBehind(StatementShape &shape, Value index, int64_t size) {
  const SizeFact fact = getSizeFact(shape.kernel, shape.endOf(index));
  if (!getMergedIndices(index).empty() || fact.exact || !fact.upper || *fact.upper > size)
    return 0;
  const double usual = estimateSize(shape.kernel, shape.endOf(index));
  return std::isnan(usual) ? 0 : std::max<int64_t>(size - static_cast<int64_t>(usual), 0);
}

/// May tiles of a product leave their last columns to the next tile?
static bool mayLeaveOutColumns(Planner &planner, Contraction &product, Value rows, Value columns) {
  const ScheduleBlock &block = planner.block;
  StatementShape &shape = planner.shape;
  const bool isAsked = block.consumers || block.teams || block.cluster || block.stages ||
                       block.tiles.contains(product.m) || block.tiles.contains(product.n);
  const bool isPlain = shape.reductions.size() == 1 && product.op.getNumIndices() == 1 &&
                       !product.isInner && rows == product.m && planner.areFactorsStored(product) &&
                       !planner.isMisaligned(product, sectorBytes);
  // Threads add up whole tiles of products in 8 bits, and of blocks.
  const Precision precision = product.op.getPrecision();
  const bool isSummedByHardware =
      precision != Precision::Blocked &&
      (product.operand.getIntOrFloatBitWidth() != 8 || precision == Precision::Fast);
  if (isAsked || !isPlain || !isSummedByHardware || isBatchInvariant(shape.kernel) ||
      !getMergedIndices(rows).empty() || !getMergedIndices(columns).empty() ||
      !shape.upperOf(rows) || !shape.upperOf(columns))
    return false;
  // Results leave by TMA, in boxes of whole tiles' columns.
  const int64_t divisor = getSizeFact(shape.kernel, shape.endOf(columns)).divisor;
  for (unsigned r = 0; r < shape.compute.getNumResults(); ++r) {
    const SmallVector<unsigned> indices = shape.compute.getIndicesOf(r);
    const int64_t bits =
        getElementTypeOrSelf(shape.compute.getResultTypes()[r]).getIntOrFloatBitWidth();
    if (indices.empty() || shape.compute.getIndex(indices.back()) != columns ||
        llvm::none_of(indices, [&](unsigned p) { return shape.compute.getIndex(p) == rows; }) ||
        getTileReduction(shape.compute, r) || divisor * bits % (8 * vectorBytes) != 0)
      return false;
  }
  return true;
}

/// The fastest tile of `rows` and `columns` whose sums warpgroups hold, if `others` products are
/// computed side by side.
const WarpgroupTile &Planner::fastestTile(Contraction &product, Value rows, Value columns,
                                          int64_t others) {
  const int64_t accumulators = countSums(product);
  // Places of windows are the product of several extents, whose bounds make too large a number of
  // it: it is taken to be anywhere between.
  auto timeOf = [&](const WarpgroupTile &tile) {
    double time = 0;
    for (double share : {usualShare, 1.0}) {
      std::optional<int64_t> places = usualPlaces(rows, share),
                             across = usualPlaces(columns, share);
      const double width = places && !across
                               ? estimateSize(shape.kernel, shape.endOf(columns), share)
                               : static_cast<double>(across.value_or(usualExtent(columns)));
      const int64_t count =
          others * tile.count(places.value_or(usualExtent(rows)),
                              std::isnan(width) ? usualExtent(columns) : int64_t(width));
      time += getMergedIndices(rows).size() > 1 ? tile.timeOfWindows(count, target.getProcessors())
                                                : tile.timeOf(count, target.getProcessors());
      const int64_t behind = rowsBehind(shape, rows, tile.m) + rowsBehind(shape, columns, tile.n);
      time += tile.timeBehind(count, target.getProcessors(), behind);
    }
    return time;
  };
  // Slices that threads add up are long: beside them 256 rows of results leave room for one stage.
  const bool isBlocked = product.op.getPrecision() == Precision::Blocked;
  const WarpgroupTile *best = nullptr;
  for (const WarpgroupTile &tile : warpgroupTiles)
    if (holds(tile, accumulators) && (!isBlocked || tile.m <= mostRowsOfBlocked) &&
        (!best || timeOf(tile) < timeOf(*best)))
      best = &tile;
  const WarpgroupTile *stepped = nullptr;
  if (mayLeaveOutColumns(*this, product, rows, columns))
    for (const WarpgroupTile &tile : steppedTiles)
      if (holds(tile, accumulators) && (!stepped || timeOf(tile) < timeOf(*stepped)))
        stepped = &tile;
  return stepped && timeOf(*stepped) < leastGainOfStep * timeOf(*best) ? *stepped : *best;
}
