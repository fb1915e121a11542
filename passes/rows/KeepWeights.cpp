//===- KeepWeights.cpp - tiles that rows share, in shared memory ----------===//
//
// A persistent block whose rows are not aligned shifts the tiles that its rows share, such as a
// norm's weights, once before its loop over rows (tk-align-rows). In registers, the shifted tiles
// would leave a thread no others. This pass keeps them in thread-private staging in shared memory.
//
// 1. The pass takes loops at the top level of a kernel that contain a reduction.
// 2. Elementwise work before the loop that only the loop uses moves into the loop: the tiles that
//    it comes from are narrower.
// 3. A shifted tile (`tkgpu.funnel`) that only the loop reads is stored to shared memory at once,
//    each thread its part (`tkgpu.private`). The loop reads it where it is first used.
//
// Before: %g = funnel ...; %f = extf %g; for each row: ... store %x * %f
// After:  %g = funnel ...; private_store %g, %kept
//         for each row: ... %g = private_load %kept; %f = extf %g; store %x * %f
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuPrivateOps.h"
#include "passes/Passes.h"
#include "passes/layout/PrivateTiles.h"
#include "passes/layout/TileComponents.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_KEEPWEIGHTS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// The first operation of the loop's body that `op`'s results are used in or under; null if they
/// are used elsewhere, too, or nowhere.
static Operation *firstUseIn(scf::ForOp loop, Operation *op) {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers()) {
    Operation *here = loop.getBody()->findAncestorOpInBlock(*user);
    if (!here)
      return nullptr;
    if (!first || here->isBeforeInBlock(first))
      first = here;
  }
  return first;
}

static bool isComputed(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() && op->getNumResults() == 1 &&
         isTile(op->getResult(0)) && !isCheapTile(op->getResult(0)) && isMemoryEffectFree(op);
}

/// Returns how many tiles that `loop` reads are kept.
static unsigned keepWeights(FuncOp function, scf::ForOp loop) {
  SmallVector<FunnelOp> funnels;
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*function.getBlock()))) {
    if (!op.isBeforeInBlock(loop))
      continue;
    if (auto funnel = dyn_cast<FunnelOp>(op))
      funnels.push_back(funnel);
    else if (Operation *use = isComputed(&op) ? firstUseIn(loop, &op) : nullptr)
      op.moveBefore(use);
  }
  unsigned count = 0;
  for (FunnelOp funnel : llvm::reverse(funnels))
    if (Operation *use = isStorable(funnel.getResult()) ? firstUseIn(loop, funnel) : nullptr) {
      keepInMemory(funnel.getResult(), use);
      ++count;
    }
  return count;
}

namespace {

struct KeepWeights : tk::impl::KeepWeightsBase<KeepWeights> {
  void runOnOperation() override {
    for (FuncOp function : getOperation().getOps<FuncOp>())
      for (auto loop : llvm::to_vector(function.getBlock()->getOps<scf::ForOp>()))
        if (llvm::any_of(*loop.getBody(), [](Operation &op) { return isReduction(&op); }))
          numKept += keepWeights(function, loop);
  }
};

} // namespace
