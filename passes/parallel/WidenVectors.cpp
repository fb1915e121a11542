//===- WidenVectors.cpp - accesses of up to 16 bytes ----------------------===//
//
//   1. A statement's schedule, which tk-select-schedule limits to accesses of one element, gets the
//      widest that the hardware has, or what the kernel's own schedule block says.
//   2. Layouts then give threads neighbouring elements where alignment and bounds allow vectors.
//
// Before: #tkgpu.schedule<tile = [128, 128], ..., vector = 4, ...>
// After:  #tkgpu.schedule<tile = [128, 128], ..., vector = 16, ...>
//
//===----------------------------------------------------------------------===//
#include "passes/parallel/StatementShape.h"

#include "passes/Passes.h"

namespace tk {
#define GEN_PASS_DEF_WIDENVECTORS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace tk;

namespace {

struct WidenVectors : tk::impl::WidenVectorsBase<WidenVectors> {
  void runOnOperation() override {
    getOperation().walk([&](ComputeOp compute) {
      auto kernel = compute->getParentOfType<KernelOp>();
      auto schedule = gpu::getTiles(compute);
      if (!kernel || !schedule)
        return;
      StatementShape shape = analyzeStatement(kernel, compute);
      gpu::ScheduleAttr wide = widenVectors(shape, getTarget(kernel), schedule);
      if (wide == schedule)
        return;
      gpu::setTiles(compute, wide);
      ++numWidened;
    });
  }
};

} // namespace
