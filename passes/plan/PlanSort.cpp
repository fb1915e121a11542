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
  auto reduce = compute.getNumResults() == 1
                    ? compute.getYield().getValues()[0].getDefiningOp<ReduceOp>()
                    : ReduceOp();
  std::optional<SortedRow> row = reduce ? matchSortedRow(compute, reduce) : std::nullopt;
  if (!row)
    return false;
  family = gpu::PlanFamily::RowReduction;
  constexpr int64_t lanes = 32;
  tiles[compute.getIndex(compute.getNumIndices() - 1)] = row->numKeys;
  tiles[reduce.getIndex(0)] = row->numKeys;
  perThread = std::min(limits::sort_row::elementsOfThread, row->numKeys / lanes);
  warps = row->numKeys / perThread / lanes;
  return true;
}
