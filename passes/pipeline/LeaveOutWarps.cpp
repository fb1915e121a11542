//===- LeaveOutWarps.cpp - warps whose rows belong to the next tile -------===//
//
// Layouts have powers of two of rows and of warps. If a schedule places tiles closer than their
// size, the last rows of a tile are the first rows of the next one, and stores mask them off. If
// these rows belong to the last warps alone, these warps need not run. The schedule's `step` says
// how many they are. The pass needs three properties:
//
// 1. Only `wgmma` computes products.
// 2. No values pass from warp to warp, neither between layouts nor through shared memory.
// 3. Every store has such a mask, and each warpgroup has rows of its own in the stored tile.
//
// The masks of the stores are then always true, and the pass drops them, so that TMA can store the
// results. TMA loads of left operands leave out the rows of these warps. In all other kernels, all
// warps run.
//
// With `#tkgpu.schedule<tile = [256], step = [192], warps = 16>`:
//
// Before: tkgpu.func @f { tkgpu.store %v, %c[...] masks(%inside, %row < 192) }
// After:  tkgpu.func @f { tkgpu.store %v, %c[...] masks(%inside) } {spare_warps = 4}
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"

#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/layout/BulkBox.h"
#include "passes/layout/KeptPlaces.h"
#include "passes/layout/MemoryAccess.h"
#include "passes/pipeline/WarpSpecialization.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_LEAVEOUTWARPS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// Do warps compute products together, or hand values to one another?
static bool doWarpsDepend(FuncOp function) {
  WalkResult walked = function.walk([](Operation *op) {
    return isa<DotOp, LocalStoreOp, CopyAsyncOp>(op) ? WalkResult::interrupt()
                                                     : WalkResult::advance();
  });
  return walked.wasInterrupted() || doWarpsMeet(function);
}

namespace {

/// A mask of a store that holds for all rows but those of spare warps.
struct RowMask {
  StoreOp store;
  unsigned number;
};

struct LeaveOutWarps : tk::impl::LeaveOutWarpsBase<LeaveOutWarps> {
  /// The masks that spare warps make superfluous; nothing if these store rows of their own.
  static std::optional<SmallVector<RowMask>> findMasks(FuncOp function, int64_t spare) {
    SmallVector<RowMask> masks;
    bool all = true;
    function.walk([&](StoreOp store) {
      auto tile = dyn_cast<RankedTensorType>(store.getValue().getType());
      if (!tile)
        return;
      MemoryAccess access = MemoryAccess::of(store);
      bool found = false;
      for (auto [m, mask] : llvm::enumerate(access.masks)) {
        ArrayRef<int64_t> axes = access.maskAxes(m);
        if (axes.size() != 1)
          continue;
        int64_t rows = tile.getDimSize(axes.front());
        int64_t kept = rows - rows * spare / function.getNumWarps();
        if (countKeptPlaces(mask) != kept ||
            !areRowsByWarpgroup(getLayout(tile), axes.front(), rows))
          continue;
        masks.push_back({store, unsigned(m)});
        found = true;
      }
      all &= found;
    });
    return all ? std::optional(masks) : std::nullopt;
  }

  /// Leaves the rows of spare warps out of the left operands that are copied.
  static void leaveOutRows(FuncOp function) {
    std::optional<LaunchArguments> arguments = LaunchArguments::of(function);
    if (!arguments)
      return;
    function.walk([&](AllocSharedOp alloc) {
      BulkCopyOp copy;
      for (Operation *user : alloc->getUsers()) {
        auto brings = dyn_cast<BulkCopyOp>(user);
        auto dot = dyn_cast<WarpgroupDotOp>(user);
        bool isLeft = dot && dot.getA() == alloc.getResult() && dot.getB() != alloc.getResult();
        if (brings ? copy || !canLeaveOutRows(brings) : !isLeft)
          return;
        copy = brings ? brings : copy;
      }
      if (!copy)
        return;
      TensorMapOp map = mapOf(*arguments, copy);
      SharedType type = alloc.getType();
      SmallVector<int64_t> shape(type.getShape()), box(map ? map.getBox() : ArrayRef<int64_t>());
      auto rows = llvm::find(box, shape[0]);
      if (!map || rows == box.end() || llvm::count(box, shape[0]) != 1)
        return;
      *rows = shape[0] = function.getRowsThatRun(shape[0]);
      map.setBox(box);
      alloc.getResult().setType(
          SharedType::get(type.getContext(), shape, type.getElementType(), type.getOrder(),
                          type.getPadding(), type.getChunk(), type.getPerPhase(), type.getPhases(),
                          type.getPanel(), type.getInterleave(), type.getOnes(), type.getPitch()));
    });
  }

  /// Does a copy bring a whole tile, row for row of the product's, by a map of its own?
  static bool canLeaveOutRows(BulkCopyOp copy) {
    SharedType type = copy.getTarget().getType();
    return type.getShape().size() == 2 && type.getAxisOrder()[1] == 0 && !copy.getMulticast() &&
           !copy.getFirstRow() && copy.getDistances().empty() && copy.getMap().hasOneUse();
  }

  static TensorMapOp mapOf(LaunchArguments &arguments, BulkCopyOp copy) {
    auto argument = dyn_cast<BlockArgument>(copy.getMap());
    if (!argument || argument.getArgNumber() >= arguments.getLaunch().getArgs().size())
      return {};
    auto map =
        arguments.getLaunch().getArgs()[argument.getArgNumber()].getDefiningOp<TensorMapOp>();
    return map && map->hasOneUse() && map.getBefore() == 0 ? map : TensorMapOp();
  }

  void runOnOperation() override {
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      auto schedule = getTiles(function);
      int64_t spare = schedule ? schedule.getSpareWarps() : 0;
      if (spare == 0 || doWarpsDepend(function))
        continue;
      std::optional<SmallVector<RowMask>> masks = findMasks(function, spare);
      if (!masks)
        continue;
      for (RowMask &mask : llvm::reverse(*masks))
        dropMask(mask.store, mask.number);
      function.setSpareWarps(spare);
      leaveOutRows(function);
      ++numFunctions;
    }
  }
};

} // namespace
