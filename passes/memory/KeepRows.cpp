//===- KeepRows.cpp - long rows wait in shared memory ---------------------===//
//
// A block loads its row, reduces it, and computes from it what it stores. In registers the row
// would leave a thread no others, or there would be so many threads that few blocks fit: but only
// other blocks load while one reduces.
//   1. Functions are looked at whose blocks have one row, over which several warps meet.
//   2. Tiles that are loaded whole, in vectors of 16 bytes, before the first reduction, and of
//      which a thread has more than it can hold beside what it computes, come by asynchronous
//      copies. Each thread brings what it will read itself (tkgpu.private): no barrier is needed,
//      and layouts stay what they are.
//   3. They are awaited where the first of them is used. Later phases read them again
//      (tk-hold-narrow-tiles).
//
// Before: %x = load x[row]; %s = reduce %x; store (%x - %s)
// After:  copy %kept, x[row]; async_commit; async_wait 0; %x = private_load %kept; %s = reduce %x;
//         store (%x - %s)
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/memory/TileComponents.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_KEEPROWS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

static constexpr int64_t vectorBits = 128;
/// Of a thread's 64 registers, those that a row may not take.
static constexpr int64_t mostRegisters = 32;

/// The first reduction in which warps of the function's block meet; null if there is none.
static Operation *firstMeeting(FuncOp function) {
  for (Operation &op : *function.getBlock())
    if (auto reduce = dyn_cast<gpu::ReduceOp>(op)) {
      LayoutAttr layout = getLayout(reduce.getSource().getType());
      return layout && axisBits(layout, reduce.getAxis()).warps != 0 ? &op : nullptr;
    } else if (op.getNumRegions() != 0) {
      return nullptr;
    }
  return nullptr;
}

static bool isKept(gpu::LoadOp load) {
  auto tile = dyn_cast<RankedTensorType>(load.getType());
  LayoutAttr layout = tile ? getLayout(tile) : LayoutAttr();
  if (!layout || !tile.getElementType().isIntOrFloat() || !load.getMasks().empty())
    return false;
  int64_t bits = tile.getElementTypeBitWidth();
  return load.getRun() == 1 && load.getVector() * bits == vectorBits &&
         layout.getNumRegisters() * bits >= mostRegisters * 32;
}

/// Lets rows that are loaded before `meeting` come to shared memory.
static unsigned keepRows(FuncOp function, Operation *meeting, int64_t budget) {
  SmallVector<gpu::LoadOp> rows;
  int64_t bytes = 0;
  for (auto load : function.getBlock()->getOps<gpu::LoadOp>())
    if (load->isBeforeInBlock(meeting) && isKept(load)) {
      auto type = cast<RankedTensorType>(load.getType());
      bytes += type.getNumElements() / function.getCluster() * type.getElementTypeBitWidth() / 8;
      rows.push_back(load);
    }
  if (rows.empty() || bytes > budget)
    return 0;
  Operation *firstUse = meeting;
  for (gpu::LoadOp load : rows)
    for (Operation *user : load->getUsers())
      if (Operation *here = function.getBlock()->findAncestorOpInBlock(*user);
          here->isBeforeInBlock(firstUse))
        firstUse = here;
  if (firstUse->isBeforeInBlock(rows.back()))
    return 0;

  OpBuilder builder(function.getContext());
  SmallVector<Value> memories;
  Value zero;
  for (gpu::LoadOp load : rows) {
    Location loc = load.getLoc();
    builder.setInsertionPoint(load);
    if (!zero)
      zero = arith::ConstantIndexOp::create(builder, loc, 0);
    auto type = PrivateType::get(builder.getContext(), 1, cast<RankedTensorType>(load.getType()),
                                 load.getVector());
    memories.push_back(AllocPrivateOp::create(builder, loc, type, nullptr));
    CopyPrivateOp::create(builder, loc, memories.back(), zero, load.getBuffer(), load.getIndices(),
                          load.getStrides(), load.getMasks(), load.getIndexDims(),
                          load.getMaskDims());
  }
  builder.setInsertionPointAfter(rows.back());
  AsyncCommitOp::create(builder, rows.back().getLoc());
  builder.setInsertionPoint(firstUse);
  AsyncWaitOp::create(builder, firstUse->getLoc(), 0);
  for (auto [load, memory] : llvm::zip_equal(rows, memories)) {
    auto read = PrivateLoadOp::create(builder, load.getLoc(), load.getType(), memory, zero);
    load.replaceAllUsesWith(read.getResult());
    load.erase();
  }
  return rows.size();
}

namespace {

struct KeepRows : tk::impl::KeepRowsBase<KeepRows> {
  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<TargetAttr>(targetAttrName);
    if (!target)
      return;
    for (FuncOp function : getOperation().getOps<FuncOp>())
      if (Operation *meeting = firstMeeting(function); meeting && !hasProducts(function))
        numRows += keepRows(function, meeting, target.getShared());
  }
};

} // namespace
