//===- PlanShared.cpp - results that share the elements of a row ----------===//
//
// A reduction may read values along its range that are the same for all results along an index.
// These values meet the results' own values only in the elements of the sum. Examples are counts of
// equal bins, kernel densities, and forces between bodies. A block then has several results, and
// each thread has its part of the range for all of them. A thread loads and computes the shared
// values of a position once for the block's results. A barrier follows the loop.
//
// Shared values may lie along an index of other results, as `x[i, c]` of `sum[i](s[i] == g ? x[i,
// c] : 0)`. Threads then run along that index, and a block has the results of several `g` beside.
//
// Before: h[b] = sum[i](bin(x[i]) == b): each b reads all x, and computes all bins
// After:  tiles of 8 b; a thread has 4 neighbours of x, their bins, and 8 x 4 counts
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/Extrema.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/limits/Elements.h"
#include "passes/plan/Planner.h"

using namespace mlir;
using namespace tk;

using namespace limits::plan_shared;

/// Do all results along `index` read the same for each of the terms of `op`, of which there may be
/// `least` at least?
static bool sharesTerms(StatementShape &shape, Operation *op, Value index, int64_t least) {
  auto reduction = dyn_cast<ReduceOp>(op);
  if (!reduction || reduction->getBlock() != shape.compute.getBlock() ||
      reduction.getNumIndices() != 1 || !shape.dependsOn[op].contains(index))
    return false;
  for (unsigned k = 0; k < reduction.getNumAccumulators(); ++k)
    if (!reduction.standsAlone(k))
      return false;
  auto needs = [](Value value, Value other) {
    return llvm::is_contained(getIterationIndices(value), other);
  };
  if (needs(reduction.getLower()[0], index) || needs(reduction.getUpper()[0], index))
    return false;
  bool isRead = false, isOwn = false;
  reduction.getBody().walk([&](Operation *inner) {
    isOwn |= inner->getNumRegions() > 0 && isa<ReduceOp, ScanOp>(inner);
    auto load = dyn_cast<LoadOp>(inner);
    if (!load || !needs(load.getResult(), reduction.getIndex(0)))
      return;
    isRead = true;
    isOwn |= needs(load.getResult(), index);
  });
  std::optional<int64_t> length = shape.upperOf(reduction.getIndex(0));
  return isRead && !isOwn && (!length || *length >= least);
}

/// Do shared values lie along an index of other results, of so many that a sector has several?
static bool liesAcross(StatementShape &shape, Value shared) {
  auto compute = shape.compute;
  auto isColumn = [&](BlockArgument index) {
    return index.getOwner() == compute.getBlock() && Value(index) != shared &&
           shape.upperOf(index).value_or(leastAcross) >= leastAcross;
  };
  return llvm::any_of(shape.reductions, [&](Operation *op) {
    return op
        ->walk([&](LoadOp load) {
          auto last = load.getIndices().empty() ? BlockArgument()
                                                : dyn_cast<BlockArgument>(load.getIndices().back());
          return last && isColumn(last) ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  });
}

/// The index of the statement before `index`; null if there is none.
static Value indexBefore(ComputeOp compute, Value index) {
  const unsigned place = cast<BlockArgument>(index).getArgNumber();
  return place > 0 ? Value(compute.getIndex(place - 1)) : Value();
}

/// Where there are results for all threads, threads go through all terms of their own results. A
/// few lanes share as many terms and results: each loads a term for all of these. Threads need not
/// meet.
bool Planner::planOwnTerms(Value index) {
  if (!block.tiles.empty() || liesAcross(shape, index))
    return false;
  int64_t results = 1;
  for (Value other : shape.compute.getBlock()->getArguments())
    results = std::min<int64_t>(results * std::max<int64_t>(shape.upperOf(other).value_or(1), 1),
                                INT32_MAX);
  const int64_t each = results / (target.getProcessors() * resultsOfProcessor);
  if (each < 1)
    return false;
  const int64_t most =
      std::min<int64_t>(llvm::bit_floor(static_cast<uint64_t>(each)), mostOwn) * threadsOfOwn;
  const int64_t wanted = std::min(fit(index, most), most);
  int64_t threads = std::min(wanted, threadsOfOwn);
  if (wanted < 32) {
    // A warp has the results of several rows, and loads several terms at once.
    Value row = indexBefore(shape.compute, index);
    const int64_t rows = threadsOfOwn / wanted;
    if (wanted < leastAcross || !row || fit(row, rows) < rows)
      return false;
    set(row, rows);
    threads = threadsOfOwn;
  }
  set(index, wanted);
  // Threads with several results load few terms for each as it is.
  const bool isShared = wanted >= lanesOfWarp && wanted <= threadsOfOwn;
  for (Operation *op : shape.reductions)
    set(cast<ReduceOp>(op).getIndex(0),
        isShared ? fit(cast<ReduceOp>(op).getIndex(0), termsOfOwn) : 1);
  warps = threads / 32;
  perThread = std::max<int64_t>(wanted / threadsOfOwn, 1);
  return true;
}

bool Planner::planShared() {
  ComputeOp compute = shape.compute;
  if (!coarse || compute.getNumIndices() == 0)
    return false;
  // The innermost index that shares terms with all reductions; nothing is stored along these.
  auto findIndex = [&](int64_t least) {
    for (Value candidate : llvm::reverse(compute.getBlock()->getArguments()))
      if (llvm::all_of(shape.reductions,
                       [&](Operation *op) { return sharesTerms(shape, op, candidate, least); }))
        return candidate;
    return Value();
  };
  if (Value own = findIndex(leastTermsOfOwn); own && planOwnTerms(own))
    return true;
  Value index = findIndex(leastTermsAcross);
  if (!index || block.tiles.size() > block.tiles.count(index))
    return false;
  if (shape.reductions.size() == 1 && liesAcross(shape, index)) {
    set(index, fit(index, mostSharedResults));
    return false;
  }
  index = findIndex(leastShared);
  if (!index)
    return false;
  int64_t words = 0, blocks = 1;
  for (Operation *op : shape.reductions) {
    auto reduction = cast<ReduceOp>(op);
    for (unsigned k = 0; k < reduction.getNumAccumulators(); ++k) {
      Type type = reduction.getResult(k).getType();
      bool isPlace = isArgReduction(reduction.getKind(k));
      bool isWide = !type.isIntOrFloat() || type.getIntOrFloatBitWidth() > 32;
      words += placeOfExtremum(reduction) ? 0 : 1 + isPlace + isWide;
    }
  }
  for (Value other : compute.getBlock()->getArguments())
    if (other != index)
      blocks *= shape.upperOf(other).value_or(1);
  // As many results as cost least, places and what lies beyond the last result counted.
  std::optional<int64_t> upper = shape.upperOf(index);
  int64_t best = 1, least = 0;
  for (int64_t results = 1; results <= mostSharedResults; results *= 2) {
    if (results > 1 && results * neighbours * words > mostCarried)
      break;
    int64_t groups = upper ? llvm::divideCeil(std::max<int64_t>(*upper, 1), results) : 0;
    if (results > 1 && upper && groups * blocks < target.getProcessors())
      break;
    int64_t cost = (upper ? groups : mostSharedResults / results) * (results + costOfPlace);
    if (results == 1 || cost <= least)
      best = results, least = cost;
  }
  if (!block.tiles.contains(index) && best == 1)
    return false;
  set(index, best);
  for (Operation *op : shape.reductions)
    set(cast<ReduceOp>(op).getIndex(0), threadsOfShared * neighbours);
  warps = threadsOfShared / 32;
  perThread = tileOf(index) * neighbours;
  return true;
}
