//===- SelectSchedule.cpp - tiles in which a thread has one output --------===//
//
//   1. A statement's shape is analysed: contractions, indices along memory, known sizes. Products
//   of
//      8-bit floats are refused where the architecture has none.
//   2. Tiles follow from the shape (PlanSchedule.cpp) such that a thread has one output.
//   3. A statement that has tiles keeps them.
//   4. Keys of the kernel's schedule block that mean nothing to its statements are noted.
//
// Before: tk.compute ["i"] in (%N) { ... }
// After:  the same with tkgpu.plan = #tkgpu.plan<family = elementwise, tiles =
// #tkgpu.schedule<...>>
//
//===----------------------------------------------------------------------===//
#include "passes/machine/Machine.h"
#include "passes/parallel/ScheduleBlock.h"

#include "passes/Passes.h"
#include "passes/analysis/Refusal.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tk {
#define GEN_PASS_DEF_SELECTSCHEDULE
#include "passes/Passes.h.inc"
} // namespace tk

using namespace tk;

static llvm::LogicalResult checkProducts(StatementShape &shape, gpu::TargetAttr target) {
  if (hasFeature(target, Feature::ByteFloats))
    return llvm::success();
  for (Contraction &product : shape.contractions)
    for (mlir::Value term : product.op.getYield().getValues()) {
      auto factors = term.getDefiningOp<mlir::arith::MulFOp>();
      if (!factors)
        continue;
      auto storedType = [](mlir::Value factor) {
        auto ext = factor.getDefiningOp<mlir::arith::ExtFOp>();
        return (ext ? ext.getIn() : factor).getType();
      };
      mlir::Type a = storedType(factors.getLhs()), b = storedType(factors.getRhs());
      if (a.getIntOrFloatBitWidth() != 8 || b.getIntOrFloatBitWidth() != 8)
        continue;
      llvm::StringRef name = llvm::isa<mlir::Float8E5M2Type>(a) ? "f8e5m2" : "f8e4m3";
      return refuse(factors.getLoc(), Refusal::NeedsNewerMachine)
             << name << " products need sm_" << firstArchWith(Feature::ByteFloats)
             << ", target is sm_" << target.getArch();
    }
  return llvm::success();
}

namespace {

struct SelectSchedule : tk::impl::SelectScheduleBase<SelectSchedule> {
  void runOnOperation() override {
    mlir::WalkResult walked = getOperation().walk([](ComputeOp compute) {
      auto kernel = compute->getParentOfType<KernelOp>();
      if (!kernel || gpu::getTiles(compute))
        return mlir::WalkResult::advance();
      StatementShape shape = analyzeStatement(kernel, compute);
      gpu::TargetAttr target = getTarget(kernel);
      const PlannedTiles planned = planSchedule(shape, target, false);
      if (failed(checkProducts(shape, target)) || failed(checkThreadsHold(shape, planned.tiles)))
        return mlir::WalkResult::interrupt();
      planned.writeTo(compute);
      return mlir::WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    for (KernelOp kernel : getOperation().getOps<KernelOp>())
      noteUnusedKeys(kernel, getArgument());
  }
};

} // namespace
