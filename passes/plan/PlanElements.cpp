//===- PlanElements.cpp - tiles of elementwise compute ops ----------------===//
//
// A block of a compute op without reductions takes a run of elements along memory. If reads and
// writes of equally many bytes are contiguous along different indices, it takes a square. A thread
// takes several results that share what it loads.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ChangedElements.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/limits/Elements.h"
#include "passes/machine/limits/Shapes.h"
#include "passes/plan/Planner.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk;

namespace {

using namespace limits::plan_elements;

} // namespace

/// The index along which several rows should share what a thread loads: the innermost of those that
/// nothing of what lies apart along the statement's last index follows. Null if there is none, or
/// the blocks of `elements` outputs would be few.
static Value indexThatShares(Planner &planner, int64_t elements) {
  StatementShape &shape = planner.shape;
  ComputeOp compute = shape.compute;
  Value last = compute.getIndex(compute.getNumIndices() - 1);
  llvm::SmallDenseSet<Value> own;
  bool areApart = false;
  int64_t blocks = 1;
  for (Value index : compute.getBlock()->getArguments())
    blocks *= shape.upperOf(index).value_or(1);
  compute.getBody().walk([&](LoadOp load) {
    SmallVector<BlockArgument> indices;
    for (Value index : load.getIndices())
      llvm::append_range(indices, getIterationIndices(index));
    if (!llvm::is_contained(indices, last) || runsOneByOne(load.getIndices().back(), last))
      return;
    areApart = true;
    own.insert_range(indices);
  });
  if (!areApart ||
      blocks / (elements * rowsThatShare) < blocksToSpare * planner.target.getProcessors())
    return {};
  for (Value index : llvm::reverse(compute.getBlock()->getArguments()))
    if (index != last && !own.contains(index) && planner.fit(index, rowsThatShare) == rowsThatShare)
      return index;
  return {};
}

/// An index of few values, whose number is known, that nothing of what is loaded follows: the parts
/// of a number, for example. Null if there is none.
static Value indexOfResults(Planner &planner) {
  StatementShape &shape = planner.shape;
  llvm::SmallDenseSet<Value> read;
  shape.compute.getBody().walk([&](LoadOp load) {
    for (Value at : load.getIndices())
      read.insert_range(getIterationIndices(at));
  });
  for (auto [index, extent] : llvm::zip_equal(shape.compute.getBlock()->getArguments().drop_back(),
                                              shape.compute.getExtents().drop_back())) {
    std::optional<int64_t> count = getSizeFact(shape.kernel, extent).exact;
    if (count && *count > 1 && *count <= mostResultsOfLoad && llvm::isPowerOf2_64(*count) &&
        !read.contains(index))
      return index;
  }
  return {};
}

/// The index besides `last` along which a read or write is contiguous that is not along `last`.
/// Null if there is none, or if it is too short for a side of a tile; a short one that is known to
/// be is one, with more of `last`.
static Value indexAcross(Planner &planner, Value last) {
  Value other, narrow;
  for (const llvm::SetVector<Value> &access : planner.shape.innermost)
    for (Value index : access) {
      // Reductions, if there are any, have no terms as a rule (planChecks).
      if (index.getParentBlock() != planner.shape.compute.getBlock() || index == last ||
          access.contains(last) || planner.fit(last, 32) < leastSide)
        continue;
      if (planner.fit(index, 32) >= leastSide)
        other = index;
      else if (planner.coarse && access.size() == 1 && planner.shape.upperOf(index) != 1)
        narrow = index;
    }
  return other ? other : narrow;
}

/// Gives a block whose square of elements is small several of them, along the innermost index that
/// has no tile yet. Returns how many.
static int64_t planSquares(Planner &planner, int64_t elements) {
  StatementShape &shape = planner.shape;
  Value along;
  int64_t blocks = 1;
  for (Value index : shape.compute.getBlock()->getArguments()) {
    std::optional<int64_t> upper = shape.upperOf(index);
    if (!upper)
      return 1;
    blocks *= llvm::divideCeil(std::max<int64_t>(*upper, 1), planner.tileOf(index));
    if (*upper > 1 && !planner.tiles.contains(index))
      along = index;
  }
  int64_t squares =
      along ? planner.fit(along, std::max<int64_t>(elementsOfSquares / elements, 1)) : 1;
  while (squares > 1 && blocks / squares < blocksToSpare * planner.target.getProcessors())
    squares /= 2;
  if (squares > 1)
    planner.set(along, squares);
  return squares;
}

void Planner::planElements() {
  ComputeOp compute = shape.compute;
  unsigned count = compute.getNumIndices();
  family = gpu::PlanFamily::Elementwise;
  if (count == 0) {
    warps = 1;
    return;
  }
  // Where a condition says which elements in place change, it is one for a tile (BlockRows.cpp).
  const SmallVector<Value> ofChange = indicesOfChange(shape.kernel, compute);
  Value last = compute.getIndex(count - 1);
  Value other = ofChange.empty() ? indexAcross(*this, last) : Value();
  warps = 8;
  perThread = coarse ? std::clamp<int64_t>(128 / shape.narrowestBits, 1, 8) : 1;
  int64_t rest = warps * 32 * perThread;
  if (other) {
    // Lines of 64 elements both ways; with one element a thread as many as there are threads.
    int64_t side = coarse ? sideOfSquare : int64_t(1) << (llvm::Log2_64(rest) / 2);
    set(other, fit(other, side));
    if (coarse)
      set(last, fit(last, std::max(elementsOfSquares / tileOf(other), side)));
    set(last, fit(last, std::max(side, rest / side > 64 ? side : rest / side)));
    int64_t elements = tileOf(other) * tileOf(last);
    if (Value results = coarse ? indexOfResults(*this) : Value(); results && results != other) {
      set(results, fit(results, mostResultsOfLoad));
      elements *= tileOf(results);
    }
    if (coarse)
      elements *= planSquares(*this, elements);
    perThread = std::max<int64_t>(elements / (warps * 32), 1);
    return;
  }
  // Small blocks, whose places others take as soon as they are done, and a thread reads 32 bytes:
  // with more, those that fit have no more on its way. But what a thread computes once for all of
  // its random numbers (keys, places) is then shared by more of them.
  if (coarse) {
    warps = warpsOfElements;
    rest = warps * 32 * perThread;
    int64_t elements = 1, streams = 0;
    for (unsigned p = 0; p < count; ++p)
      elements *= shape.upperOf(compute.getIndex(p)).value_or(1);
    bool draws = false;
    compute.getBody().walk([&](Operation *op) {
      auto load = dyn_cast<LoadOp>(op);
      streams += load && load.getIndices().size() >= count;
      draws |= isa<RandOp>(op);
    });
    if ((streams == 1 || draws) &&
        elements / (2 * rest) >= blocksToSpare * target.getProcessors()) {
      rest *= 2;
      perThread *= 2;
    }
  }
  // What is loaded is loaded once for all that is made of it.
  if (Value results = coarse ? indexOfResults(*this) : Value()) {
    set(results, fit(results, mostResultsOfLoad));
    perThread *= tileOf(results);
  }
  // What lies apart takes a request an element, which several rows share.
  if (Value shared = coarse ? indexThatShares(*this, rest) : Value()) {
    set(shared, rowsThatShare);
    perThread *= rowsThatShare;
  }
  for (unsigned p = count; p-- > 0 && rest > 1;) {
    Value index = compute.getIndex(p);
    set(index, llvm::is_contained(ofChange, index) ? 1 : fit(index, rest));
    rest /= tileOf(index);
  }
}
