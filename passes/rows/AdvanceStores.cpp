//===- AdvanceStores.cpp - store results before the reductions ------------===//
//
// A kernel stores all results after its reductions, also those that are known earlier, such as the
// sum of two rows. While the warps synchronise in a reduction, memory has nothing to write;
// afterwards it has to write everything at once. This pass moves such stores before the reduction.
//
// 1. The pass takes kernels without matrix products whose results replace no parameter. Other
//    threads might still read a parameter that is replaced.
// 2. The pass finds the reductions in which several warps synchronise, in each block of code.
// 3. A store of a tile moves before the first of these reductions whose result the store does not
//    need. The arithmetic that leads to the value and to the address moves with the store.
// 4. A store stays if its value or address needs a load that stands after the reduction. A store
//    stays, too, if an operation in between accesses the same buffer, has regions or has other
//    effects.
//
// Before: %u = %x + %y; %m = reduce %u; store %u, %a[%i]; store (%u * %m), %b[%i]
// After:  %u = %x + %y; store %u, %a[%i]; %m = reduce %u; store (%u * %m), %b[%i]
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuPrivateOps.h"
#include "passes/Passes.h"
#include "passes/layout/TileComponents.h"
#include "passes/pipeline/MovedOperations.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_ADVANCESTORES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// May a store to `buffer` pass `op`?
static bool isIndependent(Operation &op, Value buffer) {
  if (op.getNumRegions() > 0 || llvm::is_contained(op.getOperands(), buffer))
    return false;
  return isMemoryEffectFree(&op) || isReduction(&op) ||
         isa<StoreOp, PrivateLoadOp, PrivateStoreOp, CopyPrivateOp, AsyncCommitOp, AsyncWaitOp>(op);
}

/// Moves `store` before the first of `meetings` that can do without what it needs.
static bool advance(StoreOp store, ArrayRef<Operation *> meetings) {
  for (Operation *meeting : meetings) {
    if (store->isBeforeInBlock(meeting))
      return false;
    llvm::SetVector<Operation *> moved;
    bool isKnown =
        collectNeeds(store, meeting, moved, [](Operation *op) { return !isa<gpu::LoadOp>(op); });
    bool passes = llvm::all_of(llvm::make_range(meeting->getIterator(), store->getIterator()),
                               [&](Operation &op) { return isIndependent(op, store.getBuffer()); });
    if (!isKnown || !passes)
      continue;
    for (Operation *op : moved)
      op->moveBefore(meeting);
    store->moveBefore(meeting);
    return true;
  }
  return false;
}

namespace {

struct AdvanceStores : tk::impl::AdvanceStoresBase<AdvanceStores> {
  void runOnOperation() override {
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      if (hasProducts(function) || getPlan(function).inPlace)
        continue;
      function.walk([&](Block *block) {
        SmallVector<Operation *> meetings;
        for (Operation &op : *block)
          if (isMeeting(&op))
            meetings.push_back(&op);
        for (StoreOp store : llvm::to_vector(block->getOps<StoreOp>()))
          numAdvanced += isTile(store.getValue()) && advance(store, meetings);
      });
    }
  }
};

} // namespace
