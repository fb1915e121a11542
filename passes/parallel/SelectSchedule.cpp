//===- SelectSchedule.cpp - tiles in which a thread has one output --------===//
//
//   1. A statement's shape is analysed: contractions, indices along memory, known sizes.
//   2. Tiles follow from the shape (PlanSchedule.cpp) such that a thread has one output.
//   3. A statement that has a schedule keeps it.
//   4. Keys of the kernel's schedule block that mean nothing to its statements are noted.
//
// Before: tk.compute ["i"] in (%N) { ... }
// After:  the same with tkgpu.schedule = #tkgpu.schedule<tile = [256], reduce = [], warps = 8, ...>
//
//===----------------------------------------------------------------------===//
#include "passes/parallel/ScheduleBlock.h"

#include "passes/Passes.h"

namespace tk {
#define GEN_PASS_DEF_SELECTSCHEDULE
#include "passes/Passes.h.inc"
} // namespace tk

using namespace tk;

namespace {

struct SelectSchedule : tk::impl::SelectScheduleBase<SelectSchedule> {
  void runOnOperation() override {
    mlir::WalkResult walked = getOperation().walk([](ComputeOp compute) {
      auto kernel = compute->getParentOfType<KernelOp>();
      if (!kernel || compute->hasAttr(gpu::scheduleAttrName))
        return mlir::WalkResult::advance();
      StatementShape shape = analyzeStatement(kernel, compute);
      gpu::ScheduleAttr schedule = planSchedule(shape, getTarget(kernel), false);
      if (failed(checkThreadsHold(shape, schedule)))
        return mlir::WalkResult::interrupt();
      compute->setAttr(gpu::scheduleAttrName, schedule);
      return mlir::WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    for (KernelOp kernel : getOperation().getOps<KernelOp>())
      noteUnusedKeys(kernel, getArgument());
  }
};

} // namespace
