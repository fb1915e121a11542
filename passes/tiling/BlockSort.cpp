//===- BlockSort.cpp - rows in ascending order ----------------------------===//
//
// The planner has given a sorted row a tile of all ranks, and one of all keys. The keys become a
// tile, and tkgpu.sort has its elements by rank. The keys are not counted.
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuSortOps.h"
#include "passes/analysis/SortedRow.h"
#include "passes/tiling/BlockProgram.h"

using namespace mlir;
using namespace tk;

bool BlockProgram::sortRow(tk::ReduceOp op) {
  std::optional<SortedRow> row = matchSortedRow(compute, op);
  if (!row)
    return false;
  const unsigned ranks = axisOf.lookup(compute.getIndex(compute.getNumIndices() - 1));
  if (axes[ranks].size != row->numKeys || reduceTiles.lookup(op).front() != row->numKeys)
    return false;
  const unsigned depth = freeDepth(op);
  TileValue sorted = inScope(depth, [&] {
    Reduction reduction;
    reduction.op = op;
    bindIndices(reduction);
    TileValue key = broadcast(get(row->key), {reduction.axes.front()}, depth);
    Type type = tileType({ranks}, row->key.getType());
    return TileValue{gpu::SortOp::create(at(depth), loc, type, key.value), {ranks}, depth};
  });
  scopes[depth].memo[op.getResult(0)] = sorted;
  return true;
}
