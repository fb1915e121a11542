//===- PlanElements.cpp - tiles of elementwise compute ops ----------------===//
//
// A block of a compute op without reductions takes a run of elements along memory. If reads and
// writes of equally many bytes are contiguous along different indices, it takes a square. A thread
// takes several results that share what it loads.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/limits/Elements.h"
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

void Planner::planElements() {
  ComputeOp compute = shape.compute;
  unsigned count = compute.getNumIndices();
  family = gpu::PlanFamily::Elementwise;
  if (count == 0) {
    warps = 1;
    return;
  }
  Value last = compute.getIndex(count - 1), other;
  for (const llvm::SetVector<Value> &access : shape.innermost)
    for (Value index : access)
      if (index != last && !access.contains(last) && fit(index, 32) >= 16 && fit(last, 32) >= 16)
        other = index;
  warps = 8;
  perThread = coarse ? std::clamp<int64_t>(128 / shape.narrowestBits, 1, 8) : 1;
  int64_t rest = warps * 32 * perThread;
  if (other) {
    // Lines of 64 elements both ways; with one element a thread as many as there are threads.
    int64_t side = coarse ? 64 : int64_t(1) << (llvm::Log2_64(rest) / 2);
    set(other, fit(other, side));
    set(last, fit(last, std::max(side, rest / side > 64 ? side : rest / side)));
    perThread = std::max<int64_t>(tileOf(other) * tileOf(last) / (warps * 32), 1);
    if (Value results = coarse ? indexOfResults(*this) : Value(); results && results != other) {
      set(results, fit(results, mostResultsOfLoad));
      perThread *= tileOf(results);
    }
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
    set(index, fit(index, rest));
    rest /= tileOf(index);
  }
}
