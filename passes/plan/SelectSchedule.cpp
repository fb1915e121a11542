//===- SelectSchedule.cpp - tiles with one result for each thread ---------===//
//
// Every compute op needs a schedule before it can become a kernel: tile sizes, warps and the
// lengths of loads. This pass gives each compute op the simplest schedule, in which a thread has
// one result. tk-coarsen-threads and tk-widen-vectors improve it.
//
// 1. Analyse the shape of the compute op: contractions, reductions, indices along memory, and known
//    sizes. Leave a compute op that has a schedule as it is.
// 2. Choose tiles from the shape (PlanSchedule.cpp).
// 3. Report an error for products of 8-bit floats on an architecture without them, and for a tile
//    that the threads of a block cannot hold.
// 4. Note the keys of the kernel's schedule block that no compute op uses.
//
// Before: tk.compute ["i"] in (%N) { ... }
// After:  the same with tkgpu.plan = #tkgpu.plan<family = elementwise, tiles =
// #tkgpu.schedule<...>>
//
//===----------------------------------------------------------------------===//
#include "passes/machine/Machine.h"
#include "passes/plan/ScheduleBlock.h"

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
