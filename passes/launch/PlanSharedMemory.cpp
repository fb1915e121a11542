//===- PlanSharedMemory.cpp - offsets, waits and barriers -----------------===//
//
// This pass gives every buffer in shared memory its offset, and inserts the waits and barriers that
// the accesses need.
//
// 1. In a cluster, two consecutive reductions along both axes of a tile become one exchange. So do
//    two reductions of rows that do not need each other.
// 2. Copies that no pipeline waits for are waited for just before the first load that may need
//    them.
// 3. A buffer is live from its first to its last use, both widened to the outermost loop around
//    them. A buffer of `cp.async` copies is live until they are waited for. A buffer that
//    warpgroups use independently is live throughout. A buffer that TMA fills is live from the
//    start: the thread that issues the loads waits for no other thread, and does not order earlier
//    accesses to the same bytes.
//    In a block of one warp, for which a barrier costs little, a buffer that each iteration of a
//    loop stores before it reads is live between these alone.
// 4. The largest buffer is placed first, at the lowest offset that no buffer takes which is live at
//    the same time. Results that lie in pipeline stages get the offset of these stages.
// 5. Thread-private staging follows after all buffers, then the mbarriers.
// 6. `shared_bytes` of the kernel is the sum. More than the target has is an error.
// 7. Barriers stand where accesses of two threads conflict (SharedHazards).
//
// Before: %a = alloc_shared : 16 KB; ... last use of %a; %b = alloc_shared : 8 KB; first use of %b
// After:  %a = alloc_shared offset 0; ...; barrier; %b = alloc_shared offset 0; ...
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuExchange.h"
#include "passes/Passes.h"
#include "passes/machine/Machine.h"
#include "passes/pipeline/Rings.h"
#include "passes/pipeline/SharedHazards.h"
#include "passes/plan/ScheduleLimits.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/MathExtras.h"

namespace tk {
#define GEN_PASS_DEF_PLANSHAREDMEMORY
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

static void insertWait(Operation *before) {
  OpBuilder builder(before);
  AsyncCommitOp::create(builder, before->getLoc());
  AsyncWaitOp::create(builder, before->getLoc(), 0);
}

/// Closes the copies that no commit follows in `block` before anything could read them.
static void insertWaits(Block &block) {
  bool isOpen = false;
  for (Operation &op : block) {
    if (isa<CopyAsyncOp>(op))
      isOpen = true;
    else if (isa<AsyncCommitOp>(op))
      isOpen = false;
    else if (isOpen && (isa<LocalLoadOp>(op) || op.getNumRegions() > 0 ||
                        op.hasTrait<OpTrait::IsTerminator>())) {
      insertWait(&op);
      isOpen = false;
    }
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        insertWaits(inner);
  }
}

//===----------------------------------------------------------------------===//
// Offsets
//===----------------------------------------------------------------------===//

namespace {

struct Buffer {
  AllocSharedOp alloc;
  int64_t number = 0, size = 0, first = 0, last = 0, offset = 0;
  bool isLiveFromStart = false;
  bool meets(const Buffer &other) const {
    return (isLiveFromStart || first <= other.last) &&
           (other.isLiveFromStart || other.first <= last);
  }
};

} // namespace

/// The outermost loop around `op`, or `op`.
static Operation *outermostLoop(Operation *op) {
  Operation *outermost = op;
  for (Operation *parent = op->getParentOp(); !isa<FuncOp>(parent); parent = parent->getParentOp())
    if (isa<LoopLikeOpInterface>(parent))
      outermost = parent;
  return outermost;
}

/// What waits for all copies in flight behind `op`, whichever way the program goes there; null if
/// nothing does.
static Operation *waitBehind(Operation *op) {
  for (; !isa<FuncOp>(op); op = op->getParentOp())
    for (Operation *next = op->getNextNode(); next; next = next->getNextNode())
      if (auto wait = dyn_cast<AsyncWaitOp>(next); wait && wait.getPending() == 0)
        return next;
  return nullptr;
}

/// Does each iteration of a loop store all of `alloc` before it reads it, and does nothing else use
/// it?
static bool isStoredInIteration(AllocSharedOp alloc) {
  LocalStoreOp first;
  Block *block = nullptr;
  for (Operation *user : alloc->getUsers()) {
    if (!isa<LocalStoreOp, LocalLoadOp>(user) || (block && user->getBlock() != block))
      return false;
    block = user->getBlock();
    if (auto store = dyn_cast<LocalStoreOp>(user);
        store && (!first || store->isBeforeInBlock(first)))
      first = store;
  }
  if (!first || !isa<scf::ForOp>(block->getParentOp()) ||
      cast<RankedTensorType>(first.getValue().getType()).getShape() != alloc.getType().getShape())
    return false;
  return llvm::all_of(alloc->getUsers(), [&](Operation *user) {
    return user == first || first->isBeforeInBlock(user);
  });
}

static SmallVector<Buffer> findBuffers(FuncOp function) {
  DenseMap<Operation *, std::pair<int64_t, int64_t>> spans;
  int64_t clock = 0;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) { spans[op].first = clock++; });
  function.walk([&](Operation *op) {
    int64_t last = spans[op].first;
    op->walk([&](Operation *inner) { last = std::max(last, spans[inner].first); });
    spans[op].second = last;
  });
  SmallVector<Buffer> buffers;
  function.walk([&](AllocSharedOp alloc) {
    Buffer buffer{alloc, int64_t(buffers.size()), alloc.getType().getSizeInBytes(), clock, 0, 0};
    const bool isInIteration = function.getBlockWarps() == 1 && isStoredInIteration(alloc);
    SmallVector<Operation *> users(alloc->getUsers());
    while (!users.empty()) {
      Operation *user = users.pop_back_val();
      if (isa<StageOp>(user))
        llvm::append_range(users, user->getUsers());
      auto [first, last] = spans[isInIteration ? user : outermostLoop(user)];
      auto store = dyn_cast<BulkStoreOp>(user);
      if (store && store.getWarpgroupAxis())
        first = 0, last = clock;
      if (isa<CopyAsyncOp>(user)) {
        Operation *wait = waitBehind(outermostLoop(user));
        last = wait ? std::max(last, spans[wait].first) : clock;
      }
      buffer.isLiveFromStart |= isa<BulkCopyOp>(user);
      buffer.first = std::min(buffer.first, first);
      buffer.last = std::max(buffer.last, last);
    }
    buffers.push_back(buffer);
  });
  return buffers;
}

/// Returns how many bytes the buffers take together.
static int64_t placeBuffers(FuncOp function) {
  SmallVector<Buffer> buffers = findBuffers(function);
  llvm::sort(buffers, [](const Buffer &a, const Buffer &b) {
    return std::tuple(-a.size, a.first, a.number) < std::tuple(-b.size, b.first, b.number);
  });
  int64_t total = 0;
  AllocSharedOp holder;
  for (Buffer &buffer : buffers)
    if (isBuffer(buffer.alloc, BufferUse::HoldsResults))
      holder = buffer.alloc;
  SmallVector<Buffer> inStages;
  llvm::erase_if(buffers, [&](const Buffer &buffer) {
    bool isInStages = isBuffer(buffer.alloc, BufferUse::InStages);
    if (isInStages)
      inStages.push_back(buffer);
    return isInStages;
  });
  for (auto [number, buffer] : llvm::enumerate(buffers)) {
    auto placed = ArrayRef(buffers).take_front(number);
    bool moved = true;
    while (moved) {
      moved = false;
      for (const Buffer &other : placed) {
        bool overlaps =
            buffer.offset < other.offset + other.size && other.offset < buffer.offset + buffer.size;
        if (!overlaps || !buffer.meets(other))
          continue;
        buffer.offset = llvm::alignTo(other.offset + other.size, swizzleAlignment);
        moved = true;
      }
    }
    total = std::max(total, buffer.offset + buffer.size);
    buffer.alloc.setOffset(buffer.offset);
  }
  for (Buffer &buffer : inStages)
    buffer.alloc.setOffset(holder.getOffset());
  return total;
}

/// Places what threads keep for themselves from `total` on, all of it live throughout; returns
/// where it ends.
static int64_t placePrivate(FuncOp function, int64_t total) {
  function.walk([&](AllocPrivateOp alloc) {
    total = llvm::alignTo(total, vectorBytes);
    alloc.setOffset(total);
    total += alloc.getType().getBytesOfThread() * function.getBlockWarps() * 32;
  });
  return total;
}

/// Places barriers with phases from `total` on; returns where they end.
static int64_t placePhases(FuncOp function, int64_t total) {
  function.walk([&](AllocPhasesOp alloc) {
    total = llvm::alignTo(total, barrierBytes);
    alloc.setOffset(total);
    total += alloc.getType().getStages() * barrierBytes;
  });
  return total;
}

namespace {

struct PlanSharedMemory : tk::impl::PlanSharedMemoryBase<PlanSharedMemory> {
  using Base::Base;

  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<TargetAttr>(targetAttrName);
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      joinAxes(function);
      joinNeighbours(function);
      insertWaits(*function.getBlock());
      int64_t bytes = placePrivate(function, placeBuffers(function));
      bytes = placePhases(function, bytes);
      function.setSharedBytes(bytes);
      const int64_t all = bytes + exchangeBytesOf(function);
      if (target && all > target.getShared()) {
        reportSharedLimit(function, all, target);
        return signalPassFailure();
      }
      numBarriers += insertBarriers(function);
    }
  }
};

} // namespace
