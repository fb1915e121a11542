//===- PlanOffsetRows.cpp - columns of rows whose terms lie between offsets ===//
//
// `y[r, c] = sum[t in ptr[r]..ptr[r + 1]](w[t] * x[col[t], c])` has a few terms for each row, and
// each term is a row of `x`. A block with one row would wait for its offsets, its terms' numbers
// and its terms' rows, one after the other, with few bytes in flight. Threads of many columns would
// compute the same weights.
//
// 1. The planner takes a compute op whose reductions all run from 0 to a loaded number of terms
//    (tk-shift-ranges), if the terms of one at least are rows of memory along an index of the
//    compute op: the columns.
// 2. A thread has one access of columns of several terms at a time. A warp has a whole row if it
//    has as many columns, or several short ones. So a row's weights are computed once a warp, and
//    warps need not wait for each other.
// 3. Reductions without columns, such as the maximum of a row's weights, have a warp for each row.
// 4. If some reductions lie along another index, such as the head of a weight, a warp has several
//    heads with the columns of each.
// 5. A sum over a short row in each term, such as the product of two rows of nodes, is over all of
//    that row.
//
// Before: tiles of 1 x 64 results and 8 terms, in 4 warps
// After:  tiles of 4 x 128 results and 8 terms of f32: a row a warp
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/OffsetRanges.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/Machine.h"
#include "passes/machine/limits/Operands.h"
#include "passes/machine/limits/Rows.h"
#include "passes/plan/Planner.h"

using namespace mlir;
using namespace tk;

using namespace limits::plan_offset_rows;

namespace {
/// The rows and columns of a compute op whose terms lie between offsets.
struct OffsetRows {
  Value row, column;
  Value head;       ///< null, or another index that the terms of some reductions lie along
  double terms = 0; ///< of a row, on average
};
} // namespace

/// The last index of the compute op that the number of terms depends on.
static Value rowOf(StatementShape &shape, ReduceOp reduce) {
  Value row;
  for (BlockArgument index : getIterationIndices(reduce.getUpper()[0]))
    if (index.getOwner() == shape.compute.getBlock() &&
        (!row || index.getArgNumber() > cast<BlockArgument>(row).getArgNumber()))
      row = index;
  return row;
}

/// Adds an index that terms lie along. Of two, the last one is the column.
static bool addColumn(OffsetRows &rows, Value index) {
  if (!rows.column || rows.column == index) {
    rows.column = index;
    return true;
  }
  auto placeOf = [](Value of) { return cast<BlockArgument>(of).getArgNumber(); };
  Value head = index;
  if (placeOf(index) > placeOf(rows.column))
    std::swap(head, rows.column);
  if (rows.head && rows.head != head)
    return false;
  rows.head = head;
  return true;
}

/// Does a load in the terms of `reduce`, and in no sum in these, run along `index` in memory?
static bool readsAlong(ReduceOp reduce, Value index) {
  return llvm::any_of(reduce.getBlock()->getOps<LoadOp>(), [&](LoadOp load) {
    return !load.getIndices().empty() && runsOneByOne(load.getIndices().back(), index);
  });
}

static std::optional<OffsetRows> findRows(StatementShape &shape) {
  OffsetRows rows;
  for (Operation *op : shape.reductions) {
    auto reduce = dyn_cast<ReduceOp>(op);
    if (reduce && isSumOfShortRow(reduce, limits::shift_ranges::longestSummedRow))
      continue;
    std::optional<double> mean = reduce ? meanOfShifted(reduce) : std::nullopt;
    Value row = mean ? rowOf(shape, reduce) : Value();
    if (!row || reduce.isOnline() || (rows.row && rows.row != row))
      return std::nullopt;
    rows.row = row;
    rows.terms = std::max(rows.terms, *mean);
    for (Value index : shape.compute.getBlock()->getArguments()) {
      const bool isColumn = (shape.runsAlong[op].contains(index) || readsAlong(reduce, index)) &&
                            shape.dependsOn[op].contains(index) && index != row;
      if (isColumn && !addColumn(rows, index))
        return std::nullopt;
    }
  }
  return rows.column ? std::optional(rows) : std::nullopt;
}

bool Planner::planOffsetRows() {
  if (!coarse || isForLess() || !block.tiles.empty() || !block.coarsen.empty())
    return false;
  std::optional<OffsetRows> found = findRows(shape);
  if (!found)
    return false;
  const int64_t width = std::max<int64_t>(vectorBits / shape.narrowestBits, 1);
  const int64_t columns = fit(found->column, lanesOfWarp * width);
  const int64_t heads = found->head ? fit(found->head, lanesOfWarp * width / columns) : 1;
  const int64_t lanes = std::max<int64_t>(heads * columns / width, 1);
  int64_t rows = fit(found->row, std::min(warpsOfRows * lanesOfWarp / lanes, mostRows)), blocks = 1;
  for (Value index : shape.compute.getBlock()->getArguments()) {
    const int64_t tile = index == found->column ? columns
                         : index == found->row  ? rows
                         : index == found->head ? heads
                                                : 1;
    blocks *= llvm::divideCeil(std::max<int64_t>(shape.upperOf(index).value_or(1 << 16), 1), tile);
    blocks = std::min<int64_t>(blocks, INT32_MAX);
  }
  for (; rows > 1 && blocks < blocksOfProcessor * target.getProcessors(); blocks *= 2)
    rows /= 2;
  const int64_t typical = llvm::PowerOf2Ceil(std::max<int64_t>(int64_t(found->terms), 1));
  set(found->row, rows);
  set(found->column, columns);
  if (found->head)
    set(found->head, heads);
  warps = std::clamp<int64_t>(rows * lanes / lanesOfWarp, 1, warpsOfRows);
  for (Operation *op : shape.reductions) {
    if (auto sum = cast<ReduceOp>(op); sum->getParentOfType<ReduceOp>()) {
      set(sum.getIndex(0), fit(sum.getIndex(0), limits::shift_ranges::longestSummedRow));
      continue;
    }
    const bool hasColumns = shape.dependsOn[op].contains(found->column);
    const int64_t terms =
        hasColumns ? std::min(elementsOfThread / width, mostTerms)
                   : std::clamp(warps * lanesOfWarp / (rows * heads), leastAlone, mostAlone);
    set(cast<ReduceOp>(op).getIndex(0), std::min(terms, hasColumns ? typical : terms));
  }
  perThread =
      std::max<int64_t>(rows * heads * columns * std::min(elementsOfThread / width, mostTerms) /
                            (warps * lanesOfWarp),
                        1);
  return true;
}
