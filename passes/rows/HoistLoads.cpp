//===- HoistLoads.cpp - small loads before the first barrier --------------===//
//
// A row's label, and the element that the label selects, are loaded where they are used: after the
// reductions over the row. Threads synchronise in a reduction, so that no compiler moves a load
// across it. The block would then wait for memory again, with nothing else left to do.
//
// 1. In kernels without matrix products, the pass finds the first operation of each block of code
//    that waits: a wait for copies, a reduction, a scan, or an operation with regions. In kernels
//    with products, it takes only loops around exactly one `wgmma` product, and there the first
//    wait for its operands. Factors of the product (block scales) are then loaded while it runs.
// 2. Loads after that operation move in front of it, in their order, if they need nothing that it
//    or a later operation computes. The arithmetic that leads to their addresses moves along.
// 3. A load of more elements a thread than `max-elements` stays, because it would hold registers
//    across the reductions. It moves if a later reduction needs it and a thread loads at most 32
//    elements in the block of code, as in long sums by chunks.
//
// Before: %m = reduce %row; %l = load %labels[%r]; %x = load %a[%r, %l]; use %m, %x
// After:  %l = load %labels[%r]; %x = load %a[%r, %l]; %m = reduce %row; use %m, %x
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"

#include "dialects/tkgpu/TkGpuRecurrenceOps.h"
#include "passes/layout/TileComponents.h"
#include "passes/machine/limits/Rows.h"
#include "passes/pipeline/MovedOperations.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_HOISTLOADS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::hoist_loads;

static bool waits(Operation &op) {
  return isReduction(&op) || isa<gpu::ScanOp, RecurrenceOp, AsyncWaitOp>(op) ||
         op.getNumRegions() > 0;
}

/// How many elements of a load a thread has.
static int64_t elementsOfThread(gpu::LoadOp load) {
  if (!isTile(load.getResult()))
    return 1;
  LayoutAttr layout = getLayout(load.getType());
  return layout ? layout.getNumRegisters() : std::numeric_limits<int64_t>::max();
}

/// Is a reduction in the same block of code computed from `load`?
static bool feedsReduction(gpu::LoadOp load) {
  llvm::SetVector<Operation *> users;
  users.insert(load);
  for (unsigned i = 0; i < users.size(); ++i) {
    if (i > 0 && isReduction(users[i]))
      return true;
    for (Operation *user : users[i]->getUsers())
      if (user->getBlock() == load->getBlock())
        users.insert(user);
  }
  return false;
}

/// Most elements of a thread that `load` may hold.
static int64_t mostElements(gpu::LoadOp load, int64_t maxElements) {
  int64_t all = 0;
  for (auto other : load->getBlock()->getOps<gpu::LoadOp>())
    all += std::min(elementsOfThread(other), littleInAll + 1);
  return all <= littleInAll && feedsReduction(load) ? littleInAll : maxElements;
}

/// Returns how many loads are moved in front of the first operation of `block` that `waitsHere`.
static unsigned hoistLoads(Block &block, int64_t maxElements,
                           llvm::function_ref<bool(Operation &)> waitsHere) {
  auto first = llvm::find_if(block, waitsHere);
  if (first == block.end())
    return 0;
  SmallVector<gpu::LoadOp> loads;
  for (Operation &op : llvm::make_range(first, block.end()))
    if (auto load = dyn_cast<gpu::LoadOp>(op))
      loads.push_back(load);
  unsigned numMoved = 0;
  for (gpu::LoadOp load : loads) {
    llvm::SetVector<Operation *> moved;
    auto mayMove = [&](Operation *op) {
      auto other = dyn_cast<gpu::LoadOp>(op);
      return !waits(*op) && (!other || elementsOfThread(other) <= mostElements(other, maxElements));
    };
    if (!collectMoved(load, &*first, moved, mayMove))
      continue;
    for (Operation *op : moved) {
      op->moveBefore(&*first);
      numMoved += isa<gpu::LoadOp>(op);
    }
  }
  return numMoved;
}

/// Is `block` that of a loop around one product of warpgroups that it waits for, and no other loop
/// or product?
static bool isLoopOfProduct(Block &block) {
  unsigned products = 0;
  for (Operation &op : block) {
    if (isa<DotOp>(op) || op.getNumRegions() > 0)
      return false;
    products += isa<WarpgroupDotOp>(op);
  }
  return products == 1 && isa<scf::ForOp>(block.getParentOp());
}

static bool waitsForOperands(Operation &op) { return isa<PhaseWaitOp, WarpgroupDotOp>(op); }

namespace {

struct HoistLoads : tk::impl::HoistLoadsBase<HoistLoads> {
  using Base::Base;

  void runOnOperation() override {
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      bool areProducts = hasProducts(function);
      function.walk([&](Block *block) {
        if (!areProducts)
          numHoisted += hoistLoads(*block, maxElements, waits);
        else if (isLoopOfProduct(*block))
          numHoisted += hoistLoads(*block, maxElements, waitsForOperands);
      });
    }
  }
};

} // namespace
