//===- CutStores.cpp - compute and store long tiles in chunks -------------===//
//
// A thread may have more elements of a stored tile than it has registers. An operation on a whole
// tile computes all its elements before the next operation begins. This pass computes and stores
// such a tile in chunks.
//
// 1. The pass takes stores of tiles of one axis in kernels without matrix products, and stores to
//    thread-private staging in shared memory. A thread must have more than 32 elements, or more
//    than 16 if the kernel has misalignment shifts (`tkgpu.funnel`), which need two loads for one
//    tile.
// 2. The tile is cut into chunks of 16 elements for each thread. All operations that lead only to
//    stores are computed for one chunk at a time (TilePieces.h).
// 3. If a loop's rows arrive in thread-private staging of one stage, shorter tiles are cut, too,
//    into up to four chunks. A chunk of the next row can then arrive where one has been read
//    (tk-refill-parts).
// 4. In blocks of 512 or more threads, the loads for the first chunk move before the last reduction
//    in front of the store. A multiprocessor holds only one or two such blocks, and little else
//    would be in flight while they synchronise. With misalignment shifts the loads stay.
// 5. For stores to thread-private staging, the loads of two chunks stand before the first shift. A
//    thread then waits for memory half as often.
//
// Before: %f = extf %x; %y = %f * %s; store %y, y[%j]
// After:  %x0 = extract %x at 0; %f0 = extf %x0; %y0 = %f0 * %s; store %y0, y[extract %j at 0];
//         %x1 = extract %x at n / 2; ...
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuPrivateOps.h"
#include "passes/Passes.h"
#include "passes/layout/TileComponents.h"
#include "passes/layout/TilePieces.h"
#include "passes/machine/limits/Rows.h"
#include "passes/pipeline/MovedOperations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_CUTSTORES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::cut_stores;

/// Are elements computed from pairs of loads?
static bool hasFunnels(FuncOp function) {
  return function.walk([](FunnelOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// What `op` stores to memory that outlasts the function, or is its thread's own; null if nothing.
static Value storedValue(Operation *op) {
  if (auto store = dyn_cast<StoreOp>(op))
    return store.getValue();
  auto store = dyn_cast<PrivateStoreOp>(op);
  return store && !store.getOffsets() ? store.getValue() : Value();
}

/// Elements of a thread's part of the row that `value`, stored by `store`, is computed from, whose
/// memory the next row fills as soon as they are read; 0 if there is no such memory.
static int64_t refilledAtOnce(Operation *store, Value value) {
  if (!isa<scf::ForOp>(store->getParentOp()) || !readsPrivate(value))
    return 0;
  for (auto copy : store->getBlock()->getOps<CopyPrivateOp>()) {
    PrivateType memory = copy.getTarget().getType();
    if (memory.getStages() == 1)
      return std::max<int64_t>(getLayout(memory.getTile()).getNumRegisters() / partsOfRefilled,
                               memory.getVector());
  }
  return 0;
}

/// How many parts a stored tile is computed in.
static int64_t countParts(Operation *store) {
  Value value = storedValue(store);
  auto tile = value ? dyn_cast<RankedTensorType>(value.getType()) : RankedTensorType();
  LayoutAttr layout = tile ? getLayout(tile) : LayoutAttr();
  if (!layout || tile.getRank() != 1 || layout.getHeld() != 0)
    return 1;
  if (int64_t part = refilledAtOnce(store, value); part != 0 && part <= elementsOfPart)
    return std::max<int64_t>(layout.getNumRegisters() / part, 1);
  int64_t most = hasFunnels(store->getParentOfType<FuncOp>()) ? elementsOfPart : mostElements;
  if (layout.getNumRegisters() <= most)
    return 1;
  return layout.getNumRegisters() / elementsOfPart;
}

/// Does a loop use tiles that were loaded before it, so that they have registers of their own?
static bool holdsTiles(Operation *loop) {
  return !isa<FuncOp>(loop) && llvm::any_of(*loop->getBlock(), [&](Operation &op) {
    auto load = dyn_cast<gpu::LoadOp>(op);
    return load && isTile(load.getResult()) &&
           llvm::any_of(load->getUsers(), [&](Operation *user) { return loop->isAncestor(user); });
  });
}

/// The operations before `end`, from the one behind `before` on; all if that is null.
static auto operationsBetween(Operation *before, Operation *end) {
  Block::iterator begin = before ? std::next(before->getIterator()) : end->getBlock()->begin();
  return llvm::make_range(begin, end->getIterator());
}

static Operation *firstFunnel(llvm::iterator_range<Block::iterator> operations) {
  auto funnel = llvm::find_if(operations, [](Operation &op) { return isa<FunnelOp>(op); });
  return funnel == operations.end() ? nullptr : &*funnel;
}

/// Begins what `operations` load of tiles at `place`, which stands before them.
static void loadAt(Operation *place, llvm::iterator_range<Block::iterator> operations) {
  SmallVector<gpu::LoadOp> loads;
  for (Operation &op : operations)
    if (auto load = dyn_cast<gpu::LoadOp>(op); load && isTile(load.getResult()))
      loads.push_back(load);
  for (gpu::LoadOp load : loads) {
    llvm::SetVector<Operation *> moved;
    if (collectMoved(load, place, moved, [](Operation *) { return true; }))
      for (Operation *op : moved)
        op->moveBefore(place);
  }
}

/// Moves the loads of tiles between the last reduction before `store` and `store` before the
/// former.
static void loadBeforeMeeting(StoreOp store) {
  auto function = store->getParentOfType<FuncOp>();
  // Two loads a tile would take the registers of another block.
  if (function.getBlockWarps() * 32 < threadsOfHalf || hasFunnels(function))
    return;
  Operation *meeting = store;
  while (meeting && !isReduction(meeting))
    meeting = meeting->getPrevNode();
  if (!meeting || holdsTiles(meeting->getParentOp()))
    return;
  loadAt(meeting, operationsBetween(meeting, store));
}

/// Cuts the first of `stores`, those that are still whole. Returns false, and leaves the store,
/// where the parts are not registers of every thread.
static bool cutStore(ArrayRef<Operation *> stores) {
  Operation *store = stores.front();
  int64_t numParts = countParts(store);
  auto tile = cast<RankedTensorType>(storedValue(store).getType());
  int64_t length = tile.getDimSize(0) / numParts;
  if (!partLayout(getLayout(tile), length))
    return false;
  SmallVector<std::pair<unsigned, TilePieces>> tiles; // operands that are cut, and their parts
  for (auto [number, operand] : llvm::enumerate(store->getOperands()))
    if (isTile(operand))
      tiles.emplace_back(number, TilePieces(operand, stores));
  OpBuilder builder(store);
  Operation *joined = nullptr; // the first that is, of the parts that are loaded at once
  for (int64_t part = 0; part < numParts; ++part) {
    Operation *before = store->getPrevNode();
    SmallVector<Value> operands(store->getOperands());
    for (auto &[number, pieces] : tiles) {
      pieces.clear();
      operands[number] = pieces.build(builder, store->getOperand(number), part * length, length);
    }
    Operation *stored = builder.clone(*store);
    stored->setOperands(operands);
    if (auto kept = dyn_cast<PrivateStoreOp>(stored)) {
      kept.setOffsets(part * length);
      if (joined && part % partsLoadedAtOnce != 0)
        loadAt(joined, operationsBetween(before, stored));
      else
        joined = firstFunnel(operationsBetween(before, stored));
    } else if (part == 0) {
      loadBeforeMeeting(cast<StoreOp>(stored));
    }
  }
  store->erase();
  return true;
}

namespace {

struct CutStores : tk::impl::CutStoresBase<CutStores> {
  void runOnOperation() override {
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      if (hasProducts(function))
        continue;
      SmallVector<Operation *> stores;
      function.walk([&](Operation *op) {
        if (countParts(op) > 1)
          stores.push_back(op);
      });
      for (ArrayRef<Operation *> whole = stores; !whole.empty(); whole = whole.drop_front())
        numCut += cutStore(whole);
      function.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
        if (isOpTriviallyDead(op))
          op->erase();
      });
    }
  }
};

} // namespace
