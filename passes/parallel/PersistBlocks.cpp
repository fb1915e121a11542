//===- PersistBlocks.cpp - blocks that take one tile after the other ------===//
//
// For a function whose schedule asks for it:
// 1. The number of the block becomes the induction variable of a loop over all tiles, from the
//    block's own number on in steps of the grid. What does not depend on it stays before the loop.
// 2. The launch has as many blocks as the machine has processors, or tiles if those are fewer.
//
// What goes on beside the threads, copies above all, can then begin with the next tile while this
// one's results are stored.
//
//   tkgpu.launch @f grid(%tiles, ...)            tkgpu.launch @f grid(min(%tiles, 132), ...)
//   %p = tkgpu.program_id x                →     scf.for %p = program_id to %tiles step
//   num_programs {
//   ... store                                      ... store
//                                                }
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/memory/BulkBox.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_PERSISTBLOCKS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// The function's only number of a block; null if there are several or none.
static ProgramIdOp findProgramId(FuncOp function) {
  SmallVector<ProgramIdOp> ids;
  function.walk([&](ProgramIdOp id) { ids.push_back(id); });
  bool isPlain = ids.size() == 1 && ids.front().getAxis() == GridAxis::X &&
                 ids.front()->getBlock() == function.getBlock();
  return isPlain ? ids.front() : ProgramIdOp();
}

/// Moves all that depends on `tile`, or has an effect, into `body`.
static void moveIntoLoop(FuncOp function, scf::ForOp loop) {
  llvm::DenseSet<Operation *> inside;
  auto dependsOnLoop = [&](Operation *op) {
    WalkResult result = op->walk([&](Operation *inner) {
      bool isStore = !isMemoryEffectFree(inner) && inner->getNumRegions() == 0 &&
                     !inner->hasTrait<OpTrait::IsTerminator>();
      bool uses = llvm::any_of(inner->getOperands(), [&](Value operand) {
        Operation *definition = operand.getDefiningOp();
        return operand == loop.getInductionVar() || (definition && inside.contains(definition));
      });
      return isStore || uses ? WalkResult::interrupt() : WalkResult::advance();
    });
    return result.wasInterrupted();
  };
  Operation *end = loop.getBody()->getTerminator();
  for (Operation &op : llvm::make_early_inc_range(*function.getBlock())) {
    if (&op == loop || isa<gpu::ReturnOp>(op) || !dependsOnLoop(&op))
      continue;
    inside.insert(&op);
    op.moveBefore(end);
  }
}

static void persist(FuncOp function, LaunchArguments arguments, int64_t processors) {
  ProgramIdOp id = findProgramId(function);
  LaunchOp launch = arguments.getLaunch();
  Location loc = id.getLoc();
  Value tiles = arguments.addIndex(launch.getGridX(), "tiles");
  OpBuilder host(launch);
  Value places = arith::ConstantIndexOp::create(
      host, loc, processors / function.getCluster() * function.getCluster());
  launch.getGridXMutable().assign(arith::MinSIOp::create(host, loc, launch.getGridX(), places));

  OpBuilder builder(function.getBlock()->getTerminator());
  Value step = NumProgramsOp::create(builder, loc, GridAxis::X);
  Value first = ProgramIdOp::create(builder, loc, GridAxis::X);
  auto loop = scf::ForOp::create(builder, loc, first, tiles, step);
  id.getResult().replaceAllUsesWith(loop.getInductionVar());
  id.erase();
  moveIntoLoop(function, loop);
}

namespace {

struct PersistBlocks : tk::impl::PersistBlocksBase<PersistBlocks> {
  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<TargetAttr>(targetAttrName);
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      auto schedule = function->getAttrOfType<ScheduleAttr>(scheduleAttrName);
      std::optional<LaunchArguments> arguments = LaunchArguments::of(function);
      if (!target || !schedule || !schedule.getPersistent() || !arguments ||
          !findProgramId(function))
        continue;
      persist(function, *arguments, target.getProcessors());
      ++numPersistent;
    }
  }
};

} // namespace
