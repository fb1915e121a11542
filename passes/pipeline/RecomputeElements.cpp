//===- RecomputeElements.cpp - results of masked weights, one by one ------===//
//
// A tile multiplies all its rows with the same values. A row whose mask leaves out a value that is
// NaN or infinite gets 0 times it, which is NaN. Where tk-guard-masked-values does not remove such
// results, this pass has a thread compute them again, each by itself and term by term.
//
// 1. A kernel with masks that differ between rows of a tile has a tkgpu.element for each result.
// 2. The pass finds the tiles that are stored to the result, in f32 or f64 before they are rounded,
//    and the place of their elements in the tensor.
// 3. It puts a tkgpu.repair in front of the rounding. Tiles whose elements are finite only test
//    that.
// 4. An element first takes weights that are the same for all terms, so that no score is computed.
//    If that is not finite, the row sees such a value, and the result is what it then has. Else the
//    element is computed as the program says.
//
//   tkgpu.element "f" result 0 { ... yield %x }    %p = tkgpu.repair %o { (%row, %column)
//   func f { %b = truncf %o; store %b, %i, %e }  →   %y = element of %i + %row, %e + %column
//                                                    yield %y }
//                                                  %b = truncf %p; store %b, %i, %e
//
// 5. Sums of softmax numerators that another launch joins are under a reference, which the tile
//    stores to another result: an element is multiplied by exp(own reference - the tile's).
//
// A thread whose row sums have left their range (tk-keep-references) repairs nothing: its sums may
// be infinite, and the block computes them again.
//
// In place, a thread may read of what is replaced the element that it stores, before it does. If an
// element depends on more of its tile, threads repair it together, before any of them stores a part
// of the tile. They then synchronise once for each tile.
//
// Beside many sums of mma.sync registers do not suffice for an element. It is then computed behind
// the store of its tile, which no longer needs registers, and stored again.
//
// The values are those of the program, but the sums are added in another order than a tile's.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/Notes.h"
#include "passes/layout/BulkBox.h"
#include "passes/layout/TileComponents.h"
#include "passes/machine/limits/MaskedDots.h"
#include "passes/pipeline/GuardPasses.h"
#include "passes/pipeline/RepairedTile.h"

#include "dialects/tkgpu/TkGpuFiniteOps.h"
#include "dialects/tkgpu/TkGpuPlan.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_RECOMPUTEELEMENTS
#include "passes/pipeline/GuardPasses.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

static bool hasWarpgroupProducts(FuncOp function) {
  return function.walk([](WarpgroupDotOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

namespace {

struct RecomputeElements : tk::impl::RecomputeElementsBase<RecomputeElements> {
  void runOnOperation() override {
    for (auto element : getOperation().getOps<ElementOp>())
      if (auto [function, tiles] = find(element); tiles)
        for (const StoredTile &stored : *tiles)
          sums[function] += registersOfTile(stored.tile.getType()) *
                            getElementTypeOrSelf(stored.tile.getType()).getIntOrFloatBitWidth() /
                            32;
    for (auto element : llvm::make_early_inc_range(getOperation().getOps<ElementOp>())) {
      recompute(element);
      element.erase();
    }
  }

  std::pair<FuncOp, std::optional<SmallVector<StoredTile>>> find(ElementOp element) {
    auto function = SymbolTable::lookupNearestSymbolFrom<FuncOp>(
        getOperation(), StringAttr::get(&getContext(), element.getFunction()));
    auto arguments = function ? LaunchArguments::of(function) : std::nullopt;
    if (!arguments)
      return {};
    return {function, findTiles(function, arguments->getLaunch(), element.getResultNumber())};
  }

  /// Would the code for single elements spill what threads hold beside it? Threads that feed
  /// mma.sync from registers have fewer than those whose operands stay in shared memory.
  bool needsRegisters(FuncOp function) {
    return !hasWarpgroupProducts(function) &&
           sums[function] > limits::masked_dots::kMostSumsOfElements;
  }

  void recompute(ElementOp element) {
    auto [function, tiles] = find(element);
    if (!function)
      return;
    LaunchOp launch = LaunchArguments::of(function)->getLaunch();
    bool areRepaired = tiles.has_value();
    Value references;
    if (element.getReferenceNumber())
      references =
          function.getBlock()->getArgument(launch.getArgs().size() + *element.getReferenceNumber());
    SmallVector<RepairOp> repairs;
    for (StoredTile &tile : tiles.value_or(SmallVector<StoredTile>())) {
      // With each sum by itself, results of 128 columns spill less.
      if (references || element.getReadsTile())
        joinParts(tile);
      auto known = llvm::find_if(repairs, [&](RepairOp op) {
        return op.getSource() == tile.tile && op->getBlock() == tile.rounding->getBlock() &&
               op->isBeforeInBlock(tile.rounding);
      });
      RepairOp op = known != repairs.end()
                        ? *known
                        : addRepair(function, element, tile, references, needsRegisters(function));
      areRepaired &= op != nullptr;
      if (!op)
        continue;
      if (op.getStored()) {
        // Else ptxas may give up registers that the sums need for more blocks at once.
        if (!function.getMinBlocks())
          function.setMinBlocks(1);
        ++numTiles;
        continue;
      }
      tile.rounding->replaceUsesOfWith(tile.tile, op.getResult());
      if (known != repairs.end())
        continue;
      repairs.push_back(op);
      ++numTiles;
    }
    note(launch, "tk-recompute-elements", areRepaired ? Verdict::Derived : Verdict::Declined,
         areRepaired ? "a result that is not finite is computed again, term by term"
         : tiles     ? "the place of a stored element, or its row's reference, is not known"
                     : "what is stored is no tile of f32 or f64 that is rounded");
  }

  llvm::DenseMap<Operation *, int64_t> sums; ///< of a thread, by function
};

} // namespace
