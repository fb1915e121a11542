//===- FastestTile.cpp - which warpgroup tile a contraction has -----------===//
//
// A simple model chooses the tile of the least time. It counts waves of tiles over the
// multiprocessors; a tile's outputs take the rate that its shape reaches, relative to the largest
// shape. A larger tile reads each operand less often. A smaller tile leaves fewer multiprocessors
// idle in the last wave.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/JointSums.h"
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

/// About how many places of windows `index` counts through: the product of their extents' bounds
/// would be several times as many.
std::optional<int64_t> Planner::usualPlaces(Value index, double share) {
  double places = 1;
  for (Value counted : getMergedIndices(index))
    places *= estimateSize(shape.kernel, shape.endOf(counted), share);
  if (getMergedIndices(index).size() < 2 || std::isnan(places) ||
      !isa<ComputeOp>(cast<BlockArgument>(index).getOwner()->getParentOp()))
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
      const int64_t height = usualPlaces(rows, share).value_or(usualExtent(rows));
      const double width = usualPlaces(rows, share)
                               ? estimateSize(shape.kernel, shape.endOf(columns), share)
                               : static_cast<double>(usualExtent(columns));
      time += tile.timeOf(
          others * tile.count(height, std::isnan(width) ? usualExtent(columns) : int64_t(width)),
          target.getProcessors());
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
  return *best;
}
