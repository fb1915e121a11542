//===- WidenVectors.cpp - accesses of up to 16 bytes ----------------------===//
//
// Loads and stores of one element each waste memory bandwidth. Accesses of up to 16 bytes a thread
// need fewer instructions for the same bytes.
//
// 1. Find a compute op with a schedule. tk-select-schedule limits it to accesses of one element.
// 2. Set the limit to the widest access of the hardware, or to the width in the kernel's schedule
//    block.
//
// The limit does not force wide accesses: tk-coalesce-accesses chooses vectors only if alignment
// and bounds allow them.
//
// Before: #tkgpu.schedule<tile = [128, 128], ..., vector = 4, ...>
// After:  #tkgpu.schedule<tile = [128, 128], ..., vector = 16, ...>
//
//===----------------------------------------------------------------------===//
#include "passes/plan/StatementShape.h"

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
