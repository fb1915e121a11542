//===- KeepRows.cpp - long rows in shared memory --------------------------===//
//
// A block loads its row, reduces it, and computes the result from it. In registers, a long row
// would leave a thread no others, or need so many threads that few blocks fit a multiprocessor.
// Only other blocks load while one reduces. This pass keeps long rows in thread-private staging in
// shared memory.
//
// 1. The pass takes kernels without matrix products whose first reduction, not in a loop or a
//    branch, is across warps.
// 2. Unmasked loads of 16-byte vectors before that reduction, of which a thread has at least 32
//    registers, become `cp.async` copies. Each thread copies what it reads itself
//    (`tkgpu.private`), so that no barrier is needed and layouts stay.
// 3. The wait for the copies stands where the first tile is used, at the latest before the
//    reduction. Later uses read the tiles again (tk-hold-narrow-tiles).
// 4. The rows may not fit for all blocks of a multiprocessor. Everything after the reduction may
//    follow from smaller tiles, such as a rounded sum of rows (NarrowestCut.h). The rows are then
//    loaded to registers, and the staging keeps these tiles.
//
// The pass declines if not even one block's rows fit.
//
// Before: %x = load x[row]; %s = reduce %x; store (%x - %s)
// After:  copy %kept, x[row]; async_commit; async_wait 0; %x = private_load %kept; %s = reduce %x;
//         store (%x - %s)
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuPrivateOps.h"
#include "passes/Passes.h"
#include "passes/analysis/Declines.h"
#include "passes/analysis/NarrowestCut.h"
#include "passes/layout/PrivateTiles.h"
#include "passes/layout/TileComponents.h"
#include "passes/machine/Machine.h"
#include "passes/machine/limits/Rows.h"

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

using namespace limits::keep_rows;

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

static int64_t bytesOf(FuncOp function, ArrayRef<Value> tiles) {
  int64_t bytes = 0;
  for (Value tile : tiles) {
    auto type = cast<RankedTensorType>(tile.getType());
    bytes += type.getNumElements() / function.getCluster() * type.getElementTypeBitWidth() / 8;
  }
  return bytes;
}

/// Does `op` compute each element of a tile of numbers from those of others at the same place?
static bool isElementwise(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() && isMemoryEffectFree(op) &&
         op->getNumRegions() == 0 && op->getNumResults() == 1 && isTile(op->getResult(0)) &&
         getElementTypeOrSelf(op->getResult(0)).isIntOrFloat();
}

/// Of `rows` and what is computed from them before `meeting`, the tiles of the fewest bytes that
/// everything behind it is computed from.
static SmallVector<Value> narrowestTiles(FuncOp function, Operation *meeting,
                                         ArrayRef<Value> rows) {
  NarrowestCut cut;
  SmallVector<Value> tiles;
  DenseMap<Value, unsigned> numbers;
  auto add = [&](Value tile) {
    numbers[tile] = cut.add(isStorable(tile) ? bytesOf(function, tile) : INT32_MAX);
    tiles.push_back(tile);
    return numbers[tile];
  };
  for (Value row : rows)
    cut.addSource(add(row));
  for (Operation &op : llvm::make_range(function.getBlock()->begin(), meeting->getIterator())) {
    auto isOfRows = [&](Value operand) { return numbers.contains(operand); };
    if (!isElementwise(&op) || llvm::none_of(op.getOperands(), isOfRows))
      continue;
    unsigned result = add(op.getResult(0));
    for (Value operand : llvm::make_filter_range(op.getOperands(), isOfRows))
      cut.addUse(numbers[operand], result);
  }
  for (auto [number, tile] : llvm::enumerate(tiles))
    if (llvm::any_of(tile.getUsers(), [&](Operation *user) {
          return meeting->isBeforeInBlock(function.getBlock()->findAncestorOpInBlock(*user));
        }))
      cut.addNeed(number);
  SmallVector<Value> found;
  for (unsigned number : cut.find())
    found.push_back(tiles[number]);
  return found;
}

/// Where the first use of `loads` stands in the function's block, if not behind `last`.
static Operation *firstUse(FuncOp function, ArrayRef<Value> loads, Operation *last) {
  for (Value load : loads)
    for (Operation *user : load.getUsers())
      if (Operation *here = function.getBlock()->findAncestorOpInBlock(*user);
          here->isBeforeInBlock(last))
        last = here;
  return last;
}

/// Lets `loads` come by copies, for which `use`, behind all of them, waits.
static void copyRows(ArrayRef<Value> loads, Operation *use) {
  OpBuilder builder(use->getContext());
  SmallVector<Value> memories;
  Value zero;
  for (Value row : loads) {
    auto load = row.getDefiningOp<gpu::LoadOp>();
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
  Operation *last = loads.back().getDefiningOp();
  builder.setInsertionPointAfter(last);
  AsyncCommitOp::create(builder, last->getLoc());
  builder.setInsertionPoint(use);
  AsyncWaitOp::create(builder, use->getLoc(), 0);
  for (auto [load, memory] : llvm::zip_equal(loads, memories)) {
    Value row = load;
    auto read = PrivateLoadOp::create(builder, row.getLoc(), row.getType(), memory, zero);
    row.replaceAllUsesWith(read.getResult());
    row.getDefiningOp()->erase();
  }
}

/// Lets rows that are loaded before `meeting`, or what is computed from them there, lie in shared
/// memory, of which a multiprocessor has `budget` bytes.
static unsigned keepRows(FuncOp function, Operation *meeting, int64_t budget) {
  SmallVector<Value> rows;
  for (auto load : function.getBlock()->getOps<gpu::LoadOp>())
    if (load->isBeforeInBlock(meeting) && isKept(load))
      rows.push_back(load);
  constexpr StringLiteral pass = "tk-keep-rows";
  if (rows.empty())
    return decline(meeting, pass, "no long row is loaded before the reduction");
  int64_t blocks = std::max<int64_t>(usualThreadsOfProcessor / (function.getBlockWarps() * 32), 1);
  int64_t bytes = bytesOf(function, rows);
  if (bytes * blocks > budget) {
    SmallVector<Value> tiles = narrowestTiles(function, meeting, rows);
    int64_t fewest = bytesOf(function, tiles);
    if (!tiles.empty() && fewest < bytes && fewest * blocks <= budget) {
      for (Value tile : tiles)
        keepInMemory(tile);
      return tiles.size();
    }
  }
  Operation *use = firstUse(function, rows, meeting);
  if (bytes > budget)
    return decline(meeting, pass, "the rows of one block do not fit in shared memory");
  if (use->isBeforeInBlock(rows.back().getDefiningOp()))
    return decline(meeting, pass, "a row is used before the last one is loaded");
  copyRows(rows, use);
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
