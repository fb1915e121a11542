//===- PlanSmallProducts.cpp - tiles of products of few rows and columns --===//
//
// A product of 3 x 3 results for each of many points leaves most of a tile of a contraction empty,
// and a block of its own takes longer to start than its products. A block has the products of
// several points instead. Its tile has the points, the rows and the columns, so that the terms are
// multiplied and added element by element, and not as a contraction.
//
// 1. The planner takes a contraction that is the only reduction of its compute op, if it is known
//    to have at most 8 rows and columns and few results, and if several points for each block leave
//    blocks for all multiprocessors.
// 2. A block takes 16 terms of 16 points at a time. If operands do not lie along the sum, a short
//    sum has fewer at a time and more points: each thread then adds up results of its own.
//
//===----------------------------------------------------------------------===//
#include "passes/machine/Machine.h"
#include "passes/machine/limits/Elements.h"
#include "passes/plan/Planner.h"

using namespace mlir;
using namespace tk;

using namespace limits::plan_small_products;

/// The index of the compute op, besides those of the rows and the columns, with the most values.
static Value findPoints(StatementShape &shape, Contraction &product, int64_t &most) {
  Value found;
  most = 0;
  for (Value index : shape.compute.getBlock()->getArguments()) {
    std::optional<int64_t> upper = shape.upperOf(index);
    if (index == product.m || index == product.n || !upper || *upper <= most)
      continue;
    found = index;
    most = *upper;
  }
  return found;
}

bool Planner::planSmallProduct() {
  if (!coarse || isForLess() || !block.tiles.empty() || !block.coarsen.empty() ||
      shape.contractions.size() != 1 || shape.reductions.size() != 1)
    return false;
  Contraction &product = shape.contractions.front();
  ReduceOp reduce = product.op;
  if (reduce->getBlock() != shape.compute.getBlock() || reduce.getNumIndices() != 1 ||
      reduce.isOnline())
    return false;
  for (Value side : {product.m, product.n}) {
    std::optional<int64_t> upper = shape.upperOf(side);
    auto argument = cast<BlockArgument>(side);
    if (!upper || *upper > longestSide || argument.getOwner() != shape.compute.getBlock())
      return false;
  }
  int64_t most;
  Value points = findPoints(shape, product, most);
  if (!points)
    return false;
  int64_t others = 1;
  for (Value index : shape.compute.getBlock()->getArguments())
    if (index != product.m && index != product.n && index != points)
      others *= std::clamp<int64_t>(shape.upperOf(index).value_or(1), 1, 1 << 20);
  const bool isAcross = !shape.runsAlong[reduce].contains(product.k) &&
                        shape.upperOf(product.k).value_or(mostTermsAcross + 1) <= mostTermsAcross;
  const int64_t results = fit(product.m, longestSide) * fit(product.n, longestSide);
  if (results > mostResults)
    return false;
  const int64_t wanted =
      isAcross ? pointsAcross : std::min(pointsOfBlock, resultsOfBlock / results);
  if (most / pointsOfBlock * others < blocksOfProcessor * target.getProcessors())
    return false;
  set(points, fit(points, wanted));
  set(product.m, fit(product.m, longestSide));
  set(product.n, fit(product.n, longestSide));
  set(product.k, fit(product.k, isAcross ? termsAcross : termsOfBlock));
  warps = warpsOfBlock;
  perThread = std::max<int64_t>(
      tileOf(points) * tileOf(product.m) * tileOf(product.n) * tileOf(product.k) / (32 * warps), 1);
  setFamily(isAcross ? gpu::PlanFamily::ColumnReduction : gpu::PlanFamily::RowReduction,
            gpu::PlanUnit::None);
  return true;
}
