//===- RepeatedTiles.cpp - tiles that a block may compute twice -----------===//
//
// A loop over tiles becomes the body of a loop of two passes. The second pass has the same tiles if
// the flag is set by then, else none.
//
//===----------------------------------------------------------------------===//
#include "passes/pipeline/RepeatedTiles.h"

#include "passes/pipeline/Rings.h"
#include "passes/tiling/PartLocations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

bool tk::haveRoomForFlag(FuncOp function) {
  auto target = function->getParentOfType<ModuleOp>()->getAttrOfType<TargetAttr>(targetAttrName);
  if (!target)
    return true;
  int64_t bytes = kPhaseRoom + kNoteRoom;
  function.walk([&](AllocSharedOp alloc) {
    if (!isBuffer(alloc, BufferUse::InStages))
      bytes += llvm::alignTo(alloc.getType().getSizeInBytes(), swizzleAlignment);
  });
  return bytes <= target.getShared();
}

OpBuilder tk::beforeBarrier(WarpRolesOp roles) {
  OpBuilder builder(roles);
  for (Operation *op = roles->getPrevNode(); op; op = op->getPrevNode())
    if (isa<BarrierOp>(op)) {
      builder.setInsertionPoint(op);
      break;
    }
  return builder;
}

bool tk::canRepeat(scf::ForOp tiles) {
  WalkResult result = tiles.walk([](Operation *op) {
    if (isa<PhaseWaitOp, PhaseArriveOp, PhaseExpectOp, BulkCopyOp, BulkStoreOp, BulkStoreWaitOp,
            LocalLoadOp, LocalStoreOp, AsyncFenceOp, BarrierOp, TurnOp, WarpgroupDotOp,
            WarpgroupWaitOp, gpu::LoadOp, gpu::StoreOp, gpu::ReduceOp>(op))
      return WalkResult::advance();
    return op->getNumRegions() > 0 || isMemoryEffectFree(op) ? WalkResult::advance()
                                                             : WalkResult::interrupt();
  });
  return !result.wasInterrupted() && tiles->use_empty();
}

Value tk::repeatTiles(scf::ForOp tiles, Value phases) {
  Location loc = tiles.getLoc();
  OpBuilder builder(tiles);
  auto constant = [&](int64_t number) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, number);
  };
  SmallVector<unsigned> positions;
  SmallVector<Value> begin;
  for (auto [number, init] : llvm::enumerate(tiles.getInitArgs()))
    if (init.getType().isIndex()) {
      positions.push_back(number);
      begin.push_back(init);
    }
  Value zero = constant(0), one = constant(1);
  auto passes = scf::ForOp::create(builder, named("for pass", loc), zero, constant(2), one, begin);
  builder.setInsertionPointToStart(passes.getBody());
  Value isAgain =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, passes.getInductionVar(), zero);
  nameValue(isAgain, "is_second_pass");
  auto end = scf::IfOp::create(builder, loc, TypeRange(builder.getIndexType()), isAgain,
                               /*withElseRegion=*/true);
  Value all = tiles.getUpperBound();
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(end.thenBlock());
    Value isDoubted = DoubtedOp::create(builder, loc, phases);
    Value again = arith::SelectOp::create(builder, loc, isDoubted, all, tiles.getLowerBound());
    scf::YieldOp::create(builder, loc, again);
    builder.setInsertionPointToStart(end.elseBlock());
    scf::YieldOp::create(builder, loc, all);
  }
  tiles->moveAfter(end);
  tiles.setUpperBound(end.getResult(0));
  SmallVector<Value> positionsBehind;
  for (auto [place, number] : llvm::enumerate(positions)) {
    tiles.getInitArgsMutable()[number].assign(passes.getRegionIterArg(place));
    positionsBehind.push_back(tiles.getResult(number));
  }
  builder.setInsertionPointAfter(tiles);
  scf::YieldOp::create(builder, loc, positionsBehind);
  return isAgain;
}
