//===- PlanRows.cpp - tiles of reductions ---------------------------------===//
//
//   1. Reductions along memory: the whole row in one tile where it is known to fit, so that it is
//      read once; else a loop over slices. Short rows share a block.
//   2. Reductions across memory: threads run along the contiguous parallel index.
//
//===----------------------------------------------------------------------===//
#include "passes/parallel/Planner.h"

using namespace mlir;
using namespace tk;

/// The longest row that a block holds in registers, in elements.
static constexpr int64_t longestWholeRow = 32768;

/// A reduction whose loads run along a parallel index: threads along that, a few terms at a time.
bool Planner::planAcross(Operation *op) {
  Value across;
  for (Value index : shape.compute.getBlock()->getArguments())
    if (shape.runsAlong[op].contains(index) && shape.dependsOn[op].contains(index))
      across = index;
  auto reduction = dyn_cast<ReduceOp>(op);
  if (!across || !reduction)
    return false;
  set(across, fit(across, coarse ? 64 : 32));
  Value last = reduction.getIndex(reduction.getNumIndices() - 1);
  set(last, fit(last, coarse ? 32 : 8));
  return true;
}

/// A reduction (scan) along memory, or whatever else: slices of one of its indices, or all of it.
Value Planner::planAlong(Operation *op) {
  Value best;
  for (BlockArgument index : op->getRegion(0).front().getArguments()) {
    auto reduction = dyn_cast<ReduceOp>(op);
    if (reduction && index.getArgNumber() >= reduction.getNumIndices())
      break;
    if (!best || shape.runsAlong[op].contains(index))
      best = index;
  }
  std::optional<int64_t> upper = shape.upperOf(best);
  bool whole = upper && *upper <= longestWholeRow && shape.startsAtZero(best);
  int64_t slice = coarse ? 1024 : 256;
  whole &= coarse || *upper <= slice;
  set(best, fit(best, whole ? longestWholeRow : slice));
  // An output along the same row: the block goes on to step through it, so that the reduction is
  // computed once a row.
  for (auto [p, index] : llvm::enumerate(shape.compute.getBlock()->getArguments())) {
    bool own = shape.dependsOn[op].contains(index) && !isa<ScanOp>(op);
    if (shape.endOf(index) != shape.endOf(best) || own || tiles.contains(index))
      continue;
    set(index, tileOf(best));
    if (!whole)
      loop = p;
  }
  return best;
}

void Planner::planRows() {
  int64_t longest = 0;
  for (Operation *op : shape.reductions) {
    // Nested reductions share the block's registers: only the outermost is tiled.
    if (op->getParentOfType<ReduceOp>() || op->getParentOfType<ScanOp>())
      continue;
    if (planAcross(op))
      longest = std::max<int64_t>(longest, 1024);
    else
      longest = std::max(longest, tileOf(planAlong(op)));
  }
  int64_t wanted = coarse ? 1024 : 256, rows = 1;
  for (unsigned p = shape.compute.getNumIndices(); p-- > 0 && rows == 1;) {
    Value index = shape.compute.getIndex(p);
    if (tiles.contains(index))
      continue;
    rows = fit(index, std::clamp<int64_t>(wanted / std::max<int64_t>(longest, 1), 1, 32));
    set(index, rows);
  }
  int64_t threads = rows * longest / (coarse ? 8 : 1);
  warps = std::clamp<int64_t>(threads / 32, 1, longest > 16384 ? 32 : longest > 4096 ? 16 : 8);
  perThread = std::max<int64_t>(rows * longest / (warps * 32), 1);
}
