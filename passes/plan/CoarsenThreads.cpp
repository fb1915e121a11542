//===- CoarsenThreads.cpp - several results for each thread ---------------===//
//
// A thread with one result loads its operands for that result alone. A thread with several results
// uses each loaded operand several times.
//
// 1. Find a compute op that still has the schedule of tk-select-schedule, with one result for each
//    thread. Leave any other schedule as it is.
// 2. Merge the pixel indices of a convolution into one index, so that a tile can cover several
//    image rows. Merge the indices of its reduction as well (MergeIndices.h).
// 3. Plan again with larger tiles for the same threads (PlanSchedule.cpp). The kernel's schedule
//    block may set the number of results and the number of consumer warpgroups.
// 4. Report an error if a block's threads cannot hold the tile, or if the schedule block asks for
//    consumers that the tile cannot feed.
//
// Before: #tkgpu.schedule<tile = [16, 16], reduce = [16], warps = 8, per_thread = 1, ...>
// After:  #tkgpu.schedule<tile = [128, 128], reduce = [16], warps = 8, per_thread = 64, ...>
//
//===----------------------------------------------------------------------===//
#include "passes/plan/MergeIndices.h"
#include "passes/plan/ScheduleBlock.h"

#include "passes/Passes.h"

namespace tk {
#define GEN_PASS_DEF_COARSENTHREADS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace tk;

namespace {

struct CoarsenThreads : tk::impl::CoarsenThreadsBase<CoarsenThreads> {
  void runOnOperation() override {
    mlir::WalkResult walked = getOperation().walk([&](ComputeOp compute) {
      auto kernel = compute->getParentOfType<KernelOp>();
      auto schedule = gpu::getTiles(compute);
      if (!kernel || !schedule)
        return mlir::WalkResult::advance();
      StatementShape shape = analyzeStatement(kernel, compute);
      if (schedule != planSchedule(shape, getTarget(kernel), false).tiles)
        return mlir::WalkResult::advance();
      mergeIndices(shape);
      shape = analyzeStatement(kernel, compute);
      const PlannedTiles planned = planSchedule(shape, getTarget(kernel), true);
      if (failed(checkThreadsHold(shape, planned.tiles)) ||
          failed(checkConsumers(shape, planned.tiles, getArgument())))
        return mlir::WalkResult::interrupt();
      planned.writeTo(compute);
      ++numCoarsened;
      return mlir::WalkResult::advance();
    });
    if (walked.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
