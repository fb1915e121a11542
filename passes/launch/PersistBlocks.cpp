//===- PersistBlocks.cpp - persistent blocks ------------------------------===//
//
// A block that computes one tile does not overlap the tile's epilogue with other work. A persistent
// block computes several tiles, so that TMA loads of the next tile run during the epilogue of the
// present one. The pass runs on functions whose schedule asks for persistent blocks.
//
// 1. Replace the block's number by the induction variable of a loop over tiles. The loop begins at
//    the block's number and steps by the grid size. Operations that do not depend on it stay in
//    front.
// 2. If a loop's bounds depend on the tile, as with a causal mask, tiles differ in work. Walk every
//    other round of tiles backwards, so that a block with much work in one round has little in the
//    next. Begin with the last round, which is incomplete and has the least work for each tile: a
//    launch's first tiles overlap with nothing. Tiles of a window then also read keys that the
//    round before has read.
// 3. Launch as many blocks as the schedule asks for on each multiprocessor, but not more than
//    tiles. At run time no more blocks are launched than are resident at once.
// 4. The tiles may be segments of a work-centric decomposition (`tkgpu.shares`). A block then goes
//    through the segments of its share, from its entry in the table to the next entry.
//
// The pass declines functions that use the block's number more than once or along another grid
// axis.
//
// Speed with the last round first, relative to last, with 16384 keys on an H100: 1.03 to 1.035 for
// windows of 512 to 2048 keys, 0.993 to 1.017 for a causal mask.
//
//   tkgpu.launch @f grid(%tiles, ...)         tkgpu.launch @f grid(min(%tiles, 132), ...)
//   %p = tkgpu.program_id x              =>   scf.for %p = program_id to %tiles step num_programs {
//   ... store                                   ... store
//                                             }
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/analysis/Declines.h"
#include "passes/analysis/TileLoops.h"
#include "passes/layout/BulkBox.h"
#include "passes/machine/TileFacts.h"
#include "passes/tiling/PartLocations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/MathExtras.h"

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

void tk::moveIntoLoop(FuncOp function, scf::ForOp loop) {
  llvm::DenseSet<Operation *> inside;
  for (Operation &op : loop.getBody()->without_terminator())
    inside.insert(&op);
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

/// Do the bounds of a loop follow from the number of the block?
static bool variesInWork(FuncOp function, ProgramIdOp id) {
  llvm::DenseSet<Operation *> dependent = {id};
  bool varies = false;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    auto depends = [&](Value operand) { return dependent.contains(operand.getDefiningOp()); };
    if (llvm::any_of(op->getOperands(), depends) && op->getNumRegions() == 0)
      dependent.insert(op);
    if (auto loop = dyn_cast<scf::ForOp>(op))
      varies |= depends(loop.getLowerBound()) || depends(loop.getUpperBound());
  });
  return varies;
}

/// A loop over the block's rounds from the last one on, in which `tile` is the number of its tile:
/// of `step` tiles each, taken in order in even rounds and backwards in odd ones.
static scf::ForOp alternatingLoop(OpBuilder &builder, Location loc, Value first, Value step,
                                  Value tiles, Value &tile) {
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto isOdd = [&](Value round) -> Value {
    Value bit = arith::RemSIOp::create(builder, loc, round, constant(2));
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, bit, constant(0));
  };
  Value furthest = arith::SubIOp::create(builder, loc, step, constant(1));
  Value backwards = arith::SubIOp::create(builder, loc, furthest, first);
  auto placeIn = [&](Value round) -> Value {
    return arith::SelectOp::create(builder, loc, isOdd(round), backwards, first);
  };
  // The last round may not have a tile for everybody.
  Value whole = arith::DivSIOp::create(builder, loc, tiles, step);
  Value rest = arith::RemSIOp::create(builder, loc, tiles, step);
  Value placeOfRest = placeIn(whole);
  Value hasMore = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, placeOfRest, rest);
  Value more = arith::SelectOp::create(builder, loc, hasMore, constant(1), constant(0));
  Value rounds = arith::AddIOp::create(builder, loc, whole, more);
  nameValue(backwards, "place_backwards");
  nameValue(whole, "whole_rounds");
  nameValue(rest, "tiles_of_rest");
  nameValue(placeOfRest, "place_in_rest");
  nameValue(hasMore, "has_tile_of_rest");
  nameValue(rounds, "rounds");
  auto loop =
      scf::ForOp::create(builder, named("for rounds_done", loc), constant(0), rounds, constant(1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value last = arith::SubIOp::create(builder, loc, rounds, constant(1));
  Value round = arith::SubIOp::create(builder, loc, last, loop.getInductionVar());
  Value before = arith::MulIOp::create(builder, loc, round, step);
  Value place = placeIn(round);
  tile = arith::AddIOp::create(builder, loc, before, place);
  nameValue(round, "round");
  nameValue(place, "place");
  nameValue(tile, "tile");
  return loop;
}

/// Lets at most `blocks` go through the tiles, a multiple of `unit`.
static void persist(FuncOp function, LaunchArguments arguments, int64_t blocks, int64_t unit) {
  ProgramIdOp id = findProgramId(function);
  LaunchOp launch = arguments.getLaunch();
  Location loc = id.getLoc();
  Value tiles = arguments.addIndex(launch.getGridX(), "tiles");
  OpBuilder host(launch);
  Value places = arith::ConstantIndexOp::create(host, loc, llvm::alignDown(blocks, unit));
  launch.getGridXMutable().assign(arith::MinSIOp::create(host, loc, launch.getGridX(), places));
  launch.setResident(true);

  OpBuilder builder(function.getBlock()->getTerminator());
  Value step = NumProgramsOp::create(builder, loc, GridAxis::X);
  Value first = ProgramIdOp::create(builder, loc, GridAxis::X);
  bool varies = variesInWork(function, id);
  scf::ForOp loop;
  Value tile;
  if (varies) {
    loop = alternatingLoop(builder, loc, first, step, tiles, tile);
  } else {
    const Location where = isa<NameLoc>(loc) ? loc : named("for tile", loc);
    loop = scf::ForOp::create(builder, where, first, tiles, step);
    tile = loop.getInductionVar();
  }
  id.getResult().replaceAllUsesWith(tile);
  id.erase();
  moveIntoLoop(function, loop);
}

/// Lets each block go through the tiles of its share.
static void goThroughShare(FuncOp function, LaunchArguments arguments, DenseI64ArrayAttr shares) {
  ProgramIdOp id = findProgramId(function);
  LaunchOp launch = arguments.getLaunch();
  Location loc = id.getLoc();
  OpBuilder host(launch);
  Value places = arith::ConstantIndexOp::create(host, loc, shares[1]);
  launch.getGridXMutable().assign(arith::MinSIOp::create(host, loc, launch.getGridX(), places));

  OpBuilder builder(function.getBlock()->getTerminator());
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  auto firstOf = [&](Value share) -> Value {
    ArrayAttr noMasks = builder.getArrayAttr({});
    ArrayAttr isScalar = builder.getArrayAttr({builder.getDenseI64ArrayAttr({})});
    Value first = gpu::LoadOp::create(builder, loc, builder.getI32Type(),
                                      function.getBlock()->getArgument(shares[0]), share, one,
                                      ValueRange(), Value(), isScalar, noMasks);
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), first);
  };
  Value share = ProgramIdOp::create(builder, loc, GridAxis::X);
  Value begin = firstOf(share);
  Value end = firstOf(arith::AddIOp::create(builder, loc, share, one));
  auto loop = scf::ForOp::create(builder, named("for work_unit", loc), begin, end, one);
  id.getResult().replaceAllUsesWith(loop.getInductionVar());
  id.erase();
  moveIntoLoop(function, loop);
}

namespace {

struct PersistBlocks : tk::impl::PersistBlocksBase<PersistBlocks> {
  using PersistBlocksBase::PersistBlocksBase;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    auto target = getOperation()->getAttrOfType<TargetAttr>(targetAttrName);
    if (!target)
      return;
    patterns.run("work-units", [&] {
      for (FuncOp function : getOperation().getOps<FuncOp>())
        if (DenseI64ArrayAttr units = getPlan(function).workUnits)
          if (auto arguments = argumentsToLoop(function)) {
            goThroughShare(function, *arguments, units);
            ++numPersistent;
          }
    });
    patterns.run("tiles", [&] {
      for (FuncOp function : getOperation().getOps<FuncOp>()) {
        ScheduleAttr tiles = getTiles(function);
        if (!tiles || !tiles.getPersistent() || getPlan(function).workUnits) {
          decline(function, "tk-persist-blocks:tiles",
                  "the plan gives each block one tile, or work units");
          continue;
        }
        if (auto arguments = argumentsToLoop(function)) {
          // Where there are many, steps of whole vectors cost none (tk-align-rows).
          int64_t unit = function.getCluster();
          if (tiles.getPersistent() > 1)
            unit = std::max<int64_t>(unit, halvesOfVector);
          persist(function, *arguments, target.getProcessors() * tiles.getPersistent(), unit);
          ++numPersistent;
        }
      }
    });
  }

private:
  /// The launch of a function whose blocks may go through several tiles.
  static std::optional<LaunchArguments> argumentsToLoop(FuncOp function) {
    if (!getTiles(function) || getPlan(function).carriesTiles || !findProgramId(function)) {
      decline(function, "tk-persist-blocks",
              "the function does not use its block's number once, along x");
      return std::nullopt;
    }
    return LaunchArguments::of(function);
  }
};

} // namespace
