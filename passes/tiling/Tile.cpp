//===- Tile.cpp - from statements to programs of one block ----------------===//
//
// Every tk.compute with tiles in its plan becomes a launch of a function over tiles:
//   1. Each index of the compute is cut into tiles of the schedule's size; a block has one tile of
//      each. What one tile holds entirely has no grid axis.
//   2. The scalar body is rebuilt over tiles (BlockProgram.h), reductions as loops over tiles.
//   3. Extents that a tile does not divide are masked, unless facts prove that it does.
//   4. The compute is replaced by the launch; grid extents are arithmetic on its extents.
//
// Before, with tiles = #tkgpu.schedule<tile = [128, 128], reduce = [32]>:
//   %c = tk.compute ["i", "j"] in (%M, %N) { sum_k a[i, k] * b[k, j] }
// After:
//   %c = tkgpu.launch @gemm_c grid(%tiles, %one, %one) args(%a, %b, ...) shapes(%M, %N)
//   tkgpu.func @gemm_c { scf.for %k = 0 to %K step 32 { load a; load b; tkgpu.dot } store }
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/Refusal.h"
#include "passes/machine/Machine.h"
#include "passes/parallel/ScheduleBlock.h"
#include "passes/tiling/BlockProgram.h"

#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tk {
#define GEN_PASS_DEF_TILE
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

namespace {

/// The number of blocks: the product of the numbers of tiles.
Value gridExtent(OpBuilder &builder, Location loc, ArrayRef<BlockProgram::GridAxis> axes) {
  Value total;
  for (const BlockProgram::GridAxis &axis : axes) {
    Value tiles = axis.extent;
    if (axis.tile != 1) {
      Value round = arith::ConstantIndexOp::create(builder, loc, axis.tile - 1);
      Value size = arith::ConstantIndexOp::create(builder, loc, axis.tile);
      tiles = arith::AddIOp::create(builder, loc, tiles, round);
      tiles = FloorDivOp::create(builder, loc, tiles.getType(), tiles, size);
    }
    if (axis.atLeastOne) {
      Value one = arith::ConstantIndexOp::create(builder, loc, 1);
      tiles = arith::MaxSIOp::create(builder, loc, tiles, one);
    }
    if (axis.blocks != 1) {
      Value blocks = arith::ConstantIndexOp::create(builder, loc, axis.blocks);
      tiles = arith::MulIOp::create(builder, loc, tiles, blocks);
    }
    total = total ? Value(arith::MulIOp::create(builder, loc, total, tiles)) : tiles;
  }
  return total ? total : arith::ConstantIndexOp::create(builder, loc, 1);
}

/// The smallest tiles: each thread an element, each reduction one term at a time. More warps than a
/// block has are those of a cluster.
gpu::ScheduleAttr withoutReductionTiles(gpu::ScheduleAttr schedule) {
  SmallVector<int64_t> ones(schedule.getReduce().size(), 1);
  return gpu::ScheduleAttr::get(schedule.getContext(), schedule.getTile(), ones, schedule.getLoop(),
                                schedule.getWarps(), schedule.getPerThread(), schedule.getVector(),
                                1, schedule.getGroup(), 0, schedule.getCluster(), {}, 1);
}

/// A schedule block may ask for more of a tile than threads can hold.
LogicalResult checkTilesFit(KernelOp kernel, gpu::FuncOp func) {
  const int64_t threads = 32 * int64_t(func.getNumWarps());
  const WalkResult walked = func.walk([&](Operation *op) {
    for (Type type : op->getResultTypes()) {
      auto tile = dyn_cast<RankedTensorType>(type);
      if (!tile || tile.getNumElements() <= mostOutputsOfThread * threads)
        continue;
      std::optional<Location> place = placeOfKey(kernel, {"tile", "coarsen"});
      refuse(place ? *place : kernel.getLoc(), Refusal::ScheduleDoesNotFit)
          << "a tile of " << tile.getNumElements() << " terms leaves "
          << tile.getNumElements() / threads << " to each of " << threads
          << " threads, which hold at most " << mostOutputsOfThread;
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

struct Tile : tk::impl::TileBase<Tile> {
  using TileBase::TileBase;

  LogicalResult tile(KernelOp kernel, ComputeOp compute) {
    auto schedule = gpu::getTiles(compute);
    if (!schedule)
      return compute.emitError("expected a #tkgpu.plan with tiles on the statement, got none: run "
                               "tk-select-schedule first");
    if (naive)
      schedule = withoutReductionTiles(schedule);
    std::string name = kernel.getSymName().str();
    for (Attribute result : compute.getNames())
      name += "_" + identifierOf(cast<StringAttr>(result).getValue());
    std::string unique = name;
    for (unsigned n = 1; SymbolTable::lookupSymbolIn(kernel->getParentOp(), unique); ++n)
      unique = name + "_" + std::to_string(n);
    OpBuilder moduleBuilder(kernel);
    PresentTerms present = addPresentTerms(compute, Conditions::OfElements);
    BlockProgram program(kernel, compute, schedule, present);
    FailureOr<gpu::FuncOp> func = program.build(moduleBuilder, unique);
    if (failed(func) || failed(checkTilesFit(kernel, *func)))
      return failure();
    OpBuilder builder(compute);
    Location loc = compute.getLoc();
    Value grid = gridExtent(builder, loc, program.getGrid());
    if (func->isSpread()) {
      Value blocks = arith::ConstantIndexOp::create(builder, loc, func->getCluster());
      grid = arith::MulIOp::create(builder, loc, grid, blocks);
    }
    Value one = arith::ConstantIndexOp::create(builder, loc, 1);
    SmallVector<Value> shapes;
    for (unsigned r = 0; r < compute.getNumResults(); ++r)
      for (unsigned i : compute.getIndicesOf(r))
        shapes.push_back(compute.getExtents()[i]);
    auto launch = gpu::LaunchOp::create(builder, loc, compute.getResultTypes(), unique, grid, one,
                                        one, program.getArguments(), shapes);
    launch->setAttr("names", compute.getNamesAttr());
    compute.replaceAllUsesWith(launch.getResults());
    compute.erase();
    return success();
  }

  void runOnOperation() override {
    SmallVector<KernelOp> kernels(getOperation().getOps<KernelOp>());
    for (KernelOp kernel : kernels) {
      SmallVector<ComputeOp> computes(kernel.getBody().getOps<ComputeOp>());
      for (ComputeOp compute : computes) {
        if (failed(tile(kernel, compute)))
          return signalPassFailure();
        ++numTiled;
      }
    }
  }
};

} // namespace
