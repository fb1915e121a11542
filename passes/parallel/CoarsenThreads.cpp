//===- CoarsenThreads.cpp - several outputs for every thread --------------===//
//
//   1. A statement whose schedule gives a thread one output, as tk-select-schedule chose it, gets
//      the schedule in which a thread has several: the values that it loads then serve all of them.
//      How many, and how many warpgroups share them, the kernel's schedule block may say.
//      Products over windows have tiles of several indices counted through (MergeIndices.h).
//   2. Any other schedule is left as it is.
//
// Before: #tkgpu.schedule<tile = [16, 16], reduce = [16], warps = 8, per_thread = 1, ...>
// After:  #tkgpu.schedule<tile = [128, 128], reduce = [16], warps = 8, per_thread = 64, ...>
//
//===----------------------------------------------------------------------===//
#include "passes/parallel/MergeIndices.h"
#include "passes/parallel/ScheduleBlock.h"

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
