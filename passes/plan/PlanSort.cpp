//===- PlanSort.cpp - tiles of rows in ascending order --------------------===//
//
// A block sorts one row. Its threads hold 16 elements each, or less of short rows.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/SortedRow.h"
#include "passes/machine/limits/Keys.h"
#include "passes/plan/Planner.h"

using namespace mlir;
using namespace tk;

bool Planner::planSort() {
  ComputeOp compute = shape.compute;
  int64_t numKeys = 0;
  for (Value value : compute.getYield().getValues()) {
    auto reduce = value.getDefiningOp<ReduceOp>();
    std::optional<SortedRow> row = reduce ? matchSortedRow(compute, reduce) : std::nullopt;
    if (!row)
      return false;
    numKeys = row->numKeys;
    tiles[reduce.getIndex(0)] = numKeys;
  }
  family = gpu::PlanFamily::RowReduction;
  constexpr int64_t lanes = 32;
  tiles[compute.getIndex(compute.getNumIndices() - 1)] = numKeys;
  perThread = std::min(limits::sort_row::elementsOfThread, numKeys / lanes);
  warps = numKeys / perThread / lanes;
  return true;
}
