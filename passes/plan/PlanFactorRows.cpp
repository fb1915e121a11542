//===- PlanFactorRows.cpp - several rows for each block of a GEMV ---------===//
//
// A matrix-vector product reads the vector once for each row. From the L2 cache these are as many
// bytes as the matrix has, and more than the L2 delivers while memory runs at full bandwidth.
// Blocks therefore have several rows and step through them together. A thread has the same
// positions of each row, and reads the vector once for all of them.
//
// Before: c[i] = sum[k](a[i, k] * b[k])     tile = [1], reduce = [8192]: 16 a and 16 b a thread
// After:  tile = [4], reduce = [2048]: 4 a of each of 4 rows, and 4 b
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/limits/Elements.h"
#include "passes/plan/Planner.h"

using namespace mlir;
using namespace tk;

using namespace limits::plan_factor_rows;

namespace {
/// What a reduction reads for each place, in bits.
struct RowReads {
  int64_t own = 0, shared = 0;
  bool areAlong = true; ///< all that is read for a place lies along the row
};
} // namespace

static RowReads readsOf(ReduceOp reduction, Value row) {
  RowReads reads;
  Value along = reduction.getIndex(0);
  llvm::SmallPtrSet<Value, 4> tensors;
  reduction.getBody().walk([&](LoadOp load) {
    SmallVector<BlockArgument> indices;
    for (Value place : load.getIndices())
      llvm::append_range(indices, getIterationIndices(place));
    if (!llvm::is_contained(indices, along))
      return;
    reads.areAlong &= load.getIndices().back() == along;
    if (tensors.insert(load.getTensor()).second)
      (llvm::is_contained(indices, row) ? reads.own : reads.shared) +=
          load.getResult().getType().getIntOrFloatBitWidth();
  });
  return reads;
}

bool Planner::planFactorRows() {
  if (!coarse || !block.tiles.empty() || shape.reductions.size() != 1)
    return false;
  auto reduction = dyn_cast<ReduceOp>(shape.reductions.front());
  if (!reduction || reduction.getNumIndices() != 1 || !reduction.getRescale().empty() ||
      !shape.startsAtZero(reduction.getIndex(0)))
    return false;
  Value along = reduction.getIndex(0), row;
  int64_t blocks = 1;
  for (Value index : shape.compute.getBlock()->getArguments()) {
    std::optional<int64_t> upper = shape.upperOf(index);
    const bool isOwn = shape.dependsOn[reduction].contains(index);
    if (!upper || llvm::MulOverflow(blocks, *upper, blocks) ||
        (!isOwn && shape.endOf(index) == shape.endWithoutMask(along)))
      return false;
    if (isOwn && *upper > 1)
      row = index;
  }
  const int64_t slice = threadsOfRows * vectorBits / shape.narrowestBits;
  const int64_t divisor = getSizeFact(shape.kernel, shape.endWithoutMask(along)).divisor;
  if (!row || shape.upperOf(along).value_or(0) < slice ||
      divisor * shape.narrowestBits % vectorBits != 0)
    return false;
  RowReads reads = readsOf(reduction, row);
  if (!reads.areAlong || reads.own == 0 || reads.shared * leastPart < reads.own ||
      *shape.upperOf(along) * reads.shared / 8 <= mostCached)
    return false;
  int64_t rows = fit(row, mostRows);
  while (rows > 1 && blocks / rows < leastBlocks * target.getProcessors())
    rows /= 2;
  if (rows == 1)
    return false;
  set(row, rows);
  set(along, slice);
  warps = threadsOfRows / 32;
  perThread = rows * slice / threadsOfRows;
  return true;
}
