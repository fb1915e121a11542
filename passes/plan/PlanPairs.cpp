//===- PlanPairs.cpp - tiles of pairwise contractions ---------------------===//
//
// In a pairwise contraction each element is a function of one value for a row and one for a column
// of the results, as in a matrix product. Examples are distances of points, equal letters of
// sequences, and shortest paths. It is tiled like a contraction on CUDA cores: operands go through
// shared memory, and a thread has rows and columns in registers.
//
// Before: d[i, j] = sum[k](abs(x[i, k] - y[j, k])): a warp has the elements of one result
// After:  tiles of 128 x 128 of d; a thread has 8 x 8, and reads 8 of x and 8 of y for each k
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/PairTerms.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/limits/Elements.h"
#include "passes/plan/Planner.h"

using namespace mlir;
using namespace tk;

using namespace limits::plan_pairs;

/// Does memory have neighbours of `load` along one of `indices`?
static bool runsAlongAny(LoadOp load, ArrayRef<Value> indices) {
  return !load.getIndices().empty() && llvm::any_of(indices, [&](Value index) {
    return runsOneByOne(load.getIndices().back(), index);
  });
}

bool Planner::planPairs() {
  ComputeOp compute = shape.compute;
  if (!coarse || shape.reductions.size() != 1 || compute.getNumIndices() < 2)
    return false;
  auto reduction = dyn_cast<ReduceOp>(shape.reductions.front());
  if (!reduction)
    return false;
  if (reduction->getBlock() != compute.getBlock() || reduction.getNumIndices() != 1 ||
      reduction.getNumAccumulators() != 1)
    return false;
  Type type = reduction.getResult(0).getType();
  ReduceKind kind = reduction.getKind(0);
  if (!type.isIntOrFloat() || type.getIntOrFloatBitWidth() != 32 ||
      (kind != ReduceKind::Sum && kind != ReduceKind::Max && kind != ReduceKind::Min))
    return false;
  Value k = reduction.getIndex(0), n = compute.getIndex(compute.getNumIndices() - 1);
  if (!shape.startsAtZero(k) || fit(n, leastSide) < leastSide)
    return false;
  Value term = reduction.getYield().getValues()[0];
  for (Value m : llvm::reverse(compute.getBlock()->getArguments())) {
    if (m == n || fit(m, leastSide) < leastSide)
      continue;
    std::optional<PairTerm> pair = getPairTerm(term, m, n, k);
    if (!pair || !runsAlongAny(pair->a, {m, k}) || !runsAlongAny(pair->b, {n, k}))
      continue;
    // Sums may have zeros behind their last terms, whatever is computed of these.
    const int64_t divisor = getSizeFact(shape.kernel, shape.endOf(k)).divisor;
    const bool isPadded = kind == ReduceKind::Sum && isZeroOfZeros(*pair);
    if (isPadded ? fit(k, shortestPaddedSlice) < shortestPaddedSlice
                 : divisor < shortestSlice || divisor % shortestSlice != 0)
      return false;
    set(k, isPadded ? fit(k, longestSlice) : std::min(longestSlice, divisor & -divisor));
    if (!isPadded && divisor % tileOf(k) != 0)
      return false;
    set(m, fit(m, mostRows, leastRows));
    shape.contractions.push_back({reduction, m, n, k, Float32Type::get(compute.getContext())});
    planProduct(shape.contractions.back());
    return true;
  }
  return false;
}
