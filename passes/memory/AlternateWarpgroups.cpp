//===- AlternateWarpgroups.cpp - one's products under another's work ------===//
//
// Warpgroups that run the same loop begin their products at the same time, queue for the matrix
// unit and leave it idle together while they work on the results. In loops with several products
// in flight (OverlapChains), in the consumer's program of several warpgroups:
//
// 1. A warpgroup waits for its turn before the first product of an iteration,
// 2. and passes the turn on to the next one after the last product has begun.
//
// What an iteration does with its results then runs under the other warpgroups' products. All
// warpgroups go through a loop equally often, as its bounds are the same in the whole block, so
// that every turn passed on is taken, but for the last.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_ALTERNATEWARPGROUPS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

static constexpr int64_t kWarpsOfWarpgroup = 4;

/// Are the loop's products two or more that are in flight together, while the first is waited for?
static bool haveWorkUnderProducts(ArrayRef<WarpgroupDotOp> dots) {
  if (dots.size() < 2 || !dots.front()->hasOneUse())
    return false;
  auto wait = dyn_cast<WarpgroupWaitOp>(*dots.front()->user_begin());
  return wait && wait.getPending() > 0 && wait->getBlock() == dots.back()->getBlock() &&
         dots.back()->isBeforeInBlock(wait);
}

namespace {

struct AlternateWarpgroups : tk::impl::AlternateWarpgroupsBase<AlternateWarpgroups> {
  void runOnOperation() override {
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      if (function.getNumWarps() < 2 * kWarpsOfWarpgroup)
        continue;
      unsigned loops = 0;
      WarpRolesOp roles;
      function.walk([&](WarpRolesOp op) { roles = op; });
      if (!roles)
        continue;
      roles.getConsumer().walk([&](scf::ForOp loop) {
        SmallVector<WarpgroupDotOp> dots(loop.getBody()->getOps<WarpgroupDotOp>());
        if (!haveWorkUnderProducts(dots))
          return;
        OpBuilder builder(dots.front());
        TurnOp::create(builder, dots.front().getLoc(), TurnStep::Take);
        builder.setInsertionPointAfter(dots.back());
        TurnOp::create(builder, dots.back().getLoc(), TurnStep::Pass);
        ++loops;
      });
      if (loops == 0)
        continue;
      numLoops += loops;
      auto builder = OpBuilder::atBlockBegin(&roles.getConsumer().front());
      TurnOp::create(builder, roles.getLoc(), TurnStep::Begin);
    }
  }
};

} // namespace
