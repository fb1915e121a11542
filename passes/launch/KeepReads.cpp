//===- KeepReads.cpp - L2 evict-last hints for rows -----------------------===//
//
// A launch may read and write many times the size of the L2. It takes 0.5 to 3 % less time if lines
// that are read stay in the L2 longer than lines that are written. A launch that moves less gains
// nothing, and the next launch finds less of its own data. The number of blocks says how much a
// launch moves.
//
// 1. The pass takes launches with a one-dimensional grid on architectures with TMA, where this has
//    been measured. The kernel reduces rows in straight-line code, without matrix products. It
//    waits for no other launch, and replaces no parameter.
// 2. The pass adds up the bytes of the tiles that a block loads or stores at addresses that depend
//    on the block's number.
// 3. Unmasked loads of such tiles by 16-byte vectors get the number of blocks from which on a
//    launch moves 400 MiB, eight times the L2 of an H200. A launch of as many blocks loads them
//    with an evict-last hint.
//
// The pass declines if the grid is known to be smaller, or if a thread has no registers left for
// the hint's policy.
//
// Before: %x = load %a[%row]; %s = reduce %x; store (%x * %s), %b[%row]
// After:  %x = load %a[%row] {tkgpu.kept_from = 17067}; ...
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuCountOps.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuPrivateOps.h"
#include "passes/Passes.h"
#include "passes/analysis/Declines.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/layout/TileComponents.h"
#include "passes/machine/Costs.h"
#include "passes/machine/Machine.h"
#include "passes/machine/TileFacts.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/MathExtras.h"

namespace tk {
#define GEN_PASS_DEF_KEEPREADS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// Does `value` follow from the block's number?
static bool dependsOnBlock(Value value) {
  Operation *op = value.getDefiningOp();
  return op && (isa<ProgramIdOp>(op) || llvm::any_of(op->getOperands(), dependsOnBlock));
}

/// Bytes of the elements of a tile.
static int64_t bytesOf(Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  Type element = type.getElementType();
  int64_t bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 64;
  return type.getNumElements() * llvm::divideCeil(bits, 8);
}

/// Has a thread registers for a policy beside `rows`? More tiles that come behind a reduction than
/// are held across it are loaded ahead of it as far as registers go; so are rows in several parts.
static bool hasRegistersLeft(FuncOp function, ArrayRef<gpu::LoadOp> rows) {
  int64_t held = 0, behind = 0;
  bool isBehind = false;
  llvm::SmallDenseSet<Value> buffers;
  for (gpu::LoadOp load : rows) {
    held += registersOfTile(load.getType());
    if (!buffers.insert(load.getBuffer()).second)
      return false;
  }
  for (Operation &op : *function.getBlock()) {
    isBehind |= isReduction(&op);
    if (auto load = dyn_cast<gpu::LoadOp>(op); load && isBehind && isTile(load.getResult()))
      behind += registersOfTile(load.getType());
  }
  const int64_t threads = function.getBlockWarps() * 32;
  const int64_t limit = registersOfProcessor / (threads * function.getMinBlocks().value_or(1));
  return behind <= held || held + behind + workingRegisters <= limit;
}

/// Is all that `function` does with memory in a row, and what it reads there before it begins?
static bool isStraight(FuncOp function) {
  bool reduces = false;
  for (Operation &op : *function.getBlock()) {
    if (op.getNumRegions() > 0 && !isReduction(&op))
      return false;
    if (isa<LaunchWaitOp, LastBlockOp, DrawOp>(op))
      return false;
    reduces |= isReduction(&op);
  }
  return reduces && !hasProducts(function) && !getPlan(function).inPlace;
}

namespace {

struct KeepReads : tk::impl::KeepReadsBase<KeepReads> {
  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<TargetAttr>(targetAttrName);
    if (hasFeature(target, Feature::BulkCopies))
      getOperation().walk([&](LaunchOp launch) { keep(launch); });
  }

  void keep(LaunchOp launch) {
    auto function = SymbolTable::lookupNearestSymbolFrom<FuncOp>(launch, launch.getKernelAttr());
    auto kernel = launch->getParentOfType<KernelOp>();
    constexpr StringLiteral pass = "tk-keep-reads";
    if (!function || !kernel || !isStraight(function) ||
        !matchPattern(launch.getGridY(), m_One()) || !matchPattern(launch.getGridZ(), m_One())) {
      decline(launch, pass, "the launch is no straight reduction of rows over one grid axis");
      return;
    }
    llvm::SmallVector<gpu::LoadOp> loads;
    int64_t moved = 0;
    for (Operation &op : *function.getBlock()) {
      auto isOfBlock = [](ValueRange indices) { return llvm::any_of(indices, dependsOnBlock); };
      if (auto load = dyn_cast<gpu::LoadOp>(op);
          load && isTile(load.getResult()) && isOfBlock(load.getIndices())) {
        moved += bytesOf(load.getResult());
        loads.push_back(load);
      } else if (auto store = dyn_cast<gpu::StoreOp>(op);
                 store && isTile(store.getValue()) && isOfBlock(store.getIndices())) {
        moved += bytesOf(store.getValue());
      }
    }
    if (moved == 0 || !hasRegistersLeft(function, loads)) {
      decline(launch, pass, "a thread has no registers left for the hint's policy");
      return;
    }
    // A cluster's blocks share what its program moves.
    int64_t least = llvm::divideCeil(cost::bytesThatNeedHints * function.getCluster(), moved);
    std::optional<int64_t> most = getSizeFact(kernel, launch.getGridX()).upper;
    if (most && *most < least) {
      decline(launch, pass, "the L2 holds what the launch moves");
      return;
    }
    for (gpu::LoadOp load : loads) {
      auto type = cast<RankedTensorType>(load.getResult().getType());
      if (!load.getMasks().empty() || load.getRun() != 1 || !type.getElementType().isIntOrFloat() ||
          load.getVector() * type.getElementTypeBitWidth() !=
              vectorBits) // the access that has a form with a hint
        continue;
      addCacheHint(load, CacheAttr::get(&getContext(), /*once=*/false, /*common=*/false, least));
      ++numKept;
    }
  }
};

} // namespace
