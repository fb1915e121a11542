//===- PlanJoins.cpp - blocks that combine partial results ----------------===//
//
// The compute op that combines the parts of one total has one block with little work. If that block
// has as many threads as the blocks of the parts, the last of these blocks can combine the parts
// (JoinLaunches.h).
//
//===----------------------------------------------------------------------===//
#include "passes/machine/limits/Elements.h"
#include "passes/plan/Planner.h"

using namespace mlir;
using namespace tk;

using namespace limits::plan_joins;

/// The warps of the statement before, if this one has single results of nothing but that one's: the
/// last of its blocks, which join them without a launch of their own (JoinLaunches.h), have as
/// many.
int64_t Planner::warpsOfParts() {
  ComputeOp before;
  for (Operation *op = shape.compute->getPrevNode(); op && !before; op = op->getPrevNode())
    before = dyn_cast<ComputeOp>(op);
  auto schedule = before ? gpu::getTiles(before) : gpu::ScheduleAttr();
  if (!schedule || shape.compute.getNumIndices() > 0 || !shape.contractions.empty())
    return 0;
  int64_t blocks = 1;
  for (auto [extent, tile] : llvm::zip(before.getExtents(), schedule.getTile())) {
    std::optional<int64_t> upper = getSizeFact(shape.kernel, extent).upper;
    if (!upper || *upper > blocksOfParts * target.getProcessors() * tile)
      return 0;
    blocks *= std::max<int64_t>(llvm::divideCeil(*upper, tile), 1);
  }
  if (blocks > blocksOfParts * target.getProcessors())
    return 0;
  bool isJoined = llvm::all_of(before->getUsers(),
                               [&](Operation *user) { return shape.compute->isAncestor(user); });
  shape.compute.getBody().walk(
      [&](LoadOp load) { isJoined &= load.getTensor().getDefiningOp() == before; });
  return isJoined ? schedule.getWarps() : 0;
}
