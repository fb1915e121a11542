//===- JoinedRings.cpp - what is copied for windows of joined ends --------===//
//
// The part of tk-join-ends (JoinEnds.cpp) that is about shared memory.
//
//===----------------------------------------------------------------------===//
#include "passes/pipeline/JoinEnds.h"

#include "passes/analysis/ScalarExpr.h"
#include "passes/pipeline/Rings.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using PhasesValue = TypedValue<PhasesType>;

/// Where the ring of keys and values is `count` stages behind `from`.
RingPosition EndJoiner::advance(Location loc, RingPosition from, unsigned count) {
  Value next = arith::AddIOp::create(builder, loc, from.slot, constant(loc, count));
  Value wraps =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, next, constant(loc, slots));
  Value behind = arith::SubIOp::create(builder, loc, next, constant(loc, slots));
  Value turned = arith::SubIOp::create(builder, loc, constant(loc, 1), from.parity);
  return {choose(wraps, behind, next), choose(wraps, turned, from.parity)};
}

void EndJoiner::createEnter(RingPlace place, RingPosition at) {
  auto enter = cast<PhaseWaitOp>(builder.clone(*place.enter));
  enter.getSlotMutable().assign(at.slot);
  enter.getParityMutable().assign(at.parity);
}

void EndJoiner::createLeave(RingPlace place, RingPosition at) {
  cast<PhaseArriveOp>(builder.clone(*place.leave)).getSlotMutable().assign(at.slot);
}

/// The copy of the terms from `key` on, at `at`; `program` is how it is done in a step.
RingPosition EndJoiner::createCopy(ArrayRef<Operation *> program, Value key, RingPosition at) {
  IRMapping mapping;
  mapping.map(copies.getInductionVar(), key);
  auto enter = cast<PhaseWaitOp>(program.front());
  auto turned = enter.getParity().getDefiningOp<arith::SubIOp>();
  mapping.map(enter.getSlot(), at.slot);
  mapping.map(turned.getRhs(), at.parity);
  for (Operation *op : program) {
    for (Value operand : op->getOperands())
      cloneSlice(builder, operand, op->getBlock(), mapping);
    builder.clone(*op, mapping);
  }
  return advance(enter.getLoc(), at);
}

/// All copies of a tile in the order in which they are read: keys a step before values.
void EndJoiner::createCopies(Block *block, const StepRange &range, RingPosition at) {
  Location loc = copies.getLoc();
  builder.setInsertionPointToStart(block);
  SmallVector<Operation *> ofKeys = findCopyOf(copies, keys), ofValues = findCopyOf(copies, values);
  auto copyIf = [&](Value condition, ArrayRef<Operation *> program, Value key, RingPosition from) {
    auto branch = scf::IfOp::create(builder, loc, ValueRange{from.slot, from.parity}.getTypes(),
                                    condition, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    RingPosition behind = createCopy(program, key, from);
    scf::YieldOp::create(builder, loc, ValueRange{behind.slot, behind.parity});
    builder.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(builder, loc, ValueRange{from.slot, from.parity});
    return RingPosition{branch.getResult(0), branch.getResult(1)};
  };
  auto isBefore = [&](Value a, Value b) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, a, b);
  };
  Value step = constant(loc, rows);
  Value second = arith::AddIOp::create(builder, loc, range.first, step);
  Value from = choose(range.isJoined, second, range.first);
  at = createCopy(ofKeys, range.last, at);
  at = copyIf(range.isJoined, ofKeys, range.first, at);
  at = copyIf(isBefore(from, range.last), ofKeys, from, at);
  at = createCopy(ofValues, range.last, at);
  at = copyIf(range.isJoined, ofValues, range.first, at);
  auto loop =
      scf::ForOp::create(builder, loc, from, range.last, step, ValueRange{at.slot, at.parity});
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value key = loop.getInductionVar();
    Value next = arith::AddIOp::create(builder, loc, key, step);
    RingPosition inside = {loop.getRegionIterArg(0), loop.getRegionIterArg(1)};
    inside = copyIf(isBefore(next, range.last), ofKeys, next, inside);
    inside = createCopy(ofValues, key, inside);
    scf::YieldOp::create(builder, loc, ValueRange{inside.slot, inside.parity});
  }
  scf::YieldOp::create(builder, loc, loop.getResults());
}

/// The copies of the last step come first, and those of the first step next.
void EndJoiner::orderCopies() {
  auto outer = copies->getParentOfType<scf::ForOp>();
  Location loc = copies.getLoc();
  builder.setInsertionPoint(copies);
  IRMapping mapping;
  mapping.map(tiles.getInductionVar(), outer.getInductionVar());
  auto copyScalar = [&](Value value) { return cloneFrom(builder, value, roles, mapping); };
  Value lower = copyScalar(own.mask.beforeLower.getLhs());
  Value upperMost = copyScalar(steps.getUpperBound());
  StepRange range = createRange(loc, {lower, copyScalar(own.mask.beforeLower.getRhs()),
                                      copyScalar(own.mask.behindUpper.getRhs()), upperMost});
  Value isAny = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, lower, upperMost);
  auto enter = cast<PhaseWaitOp>(findCopyOf(copies, keys).front());
  auto slot = cast<BlockArgument>(enter.getSlot());
  auto parity = cast<BlockArgument>(enter.getParity().getDefiningOp<arith::SubIOp>().getRhs());
  RingPosition at = {copies.getTiedLoopInit(slot)->get(), copies.getTiedLoopInit(parity)->get()};
  auto branch = scf::IfOp::create(builder, loc, ValueRange{at.slot, at.parity}.getTypes(), isAny,
                                  /*withElseRegion=*/true);
  createCopies(branch.thenBlock(), range, at);
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, ValueRange{at.slot, at.parity});
  // Where the ring of values was is no longer looked at.
  for (auto [init, result] : llvm::zip_equal(copies.getInitArgs(), copies.getResults()))
    result.replaceAllUsesWith(init == at.slot     ? branch.getResult(0)
                              : init == at.parity ? branch.getResult(1)
                                                  : init);
  copies.erase();
}

/// Puts a tile's results into the stage that its rows had, which is left in the next tile, behind
/// its second step: until then they have been stored.
void EndJoiner::placeResults() {
  Location loc = results.getLoc();
  auto rowsOf = ofRows.stage.getSource().getDefiningOp<AllocSharedOp>();
  const int64_t stages = rowsOf.getType().getShape()[0];
  Value slot = ofRows.stage.getStage(), phases = ofRows.leave.getPhases();
  builder.setInsertionPoint(results);
  auto inStages =
      AllocSharedOp::create(builder, loc, results.getType().withStages(stages), nullptr);
  setBuffer(inStages, BufferUse::InStages);
  setBuffer(rowsOf, BufferUse::HoldsResults);
  for (Operation *piece : llvm::make_early_inc_range(results->getUsers())) {
    builder.setInsertionPoint(piece);
    Value ofTile = StageOp::create(builder, loc, results.getType(), inStages, slot);
    cast<StageOp>(piece).getSourceMutable().assign(ofTile);
  }
  results.erase();
  // Stages are left by what left them, a tile later.
  for (Operation *user : llvm::make_early_inc_range(slot.getUsers()))
    if (auto arrive = dyn_cast<PhaseArriveOp>(user))
      arrive.erase();
  for (Operation &op : llvm::make_early_inc_range(*tiles.getBody()))
    if (isa<BulkStoreWaitOp>(op))
      op.erase();
  auto leaveBefore = [&] {
    Value before = arith::SubIOp::create(builder, loc, constant(loc, 1), slot);
    BulkStoreWaitOp::create(builder, loc, 0, /*warpgroup=*/true);
    PhaseArriveOp::create(builder, loc, phases, before, /*cluster=*/false);
  };
  builder.setInsertionPoint(steps);
  leaveBefore();
  builder.setInsertionPointToStart(branch.elseBlock());
  leaveBefore();
  // The copies' program: the second stage has been left once before it is first filled.
  for (Operation *user : phases.getUsers())
    if (auto wait = dyn_cast<PhaseWaitOp>(user)) {
      builder.setInsertionPoint(wait);
      auto turned = wait.getParity().getDefiningOp<arith::SubIOp>();
      Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, wait.getSlot(),
                                            constant(loc, 0));
      wait.getParityMutable().assign(choose(isFirst, turned, turned.getRhs()));
    }
}

/// Keys and values share stages: what the last step's keys and the first one's would take from a
/// ring of their own, values leave to them.
void EndJoiner::shareStages() {
  Location loc = keys.stage.getLoc();
  auto ofKeys = keys.stage.getSource().getDefiningOp<AllocSharedOp>(),
       ofValues = values.stage.getSource().getDefiningOp<AllocSharedOp>();
  builder.setInsertionPoint(ofKeys);
  auto shared = AllocSharedOp::create(builder, loc,
                                      SharedType(keys.stage.getType()).withStages(slots), nullptr);
  auto replacePhases = [&](PhasesValue a, PhasesValue b) {
    auto old = a.getDefiningOp<AllocPhasesOp>();
    builder.setInsertionPoint(old);
    auto joined = AllocPhasesOp::create(builder, loc, PhasesType::get(builder.getContext(), slots),
                                        old.getArrivals(), nullptr);
    for (Value phases : {Value(a), Value(b)}) {
      phases.replaceAllUsesWith(joined);
      phases.getDefiningOp()->erase();
    }
  };
  PhasesValue full = keys.enter.getPhases(), fullOfValues = values.enter.getPhases();
  PhasesValue empty = keys.leave.getPhases(), emptyOfValues = values.leave.getPhases();
  for (AllocSharedOp alloc : {ofKeys, ofValues}) {
    alloc.getResult().replaceAllUsesWith(shared);
    alloc.erase();
  }
  replacePhases(full, fullOfValues);
  replacePhases(empty, emptyOfValues);
}

/// A step of the loop: its keys come before the values of the step before.
void EndJoiner::shareSteps() {
  Location loc = steps.getLoc();
  builder.setInsertionPointToStart(steps.getBody());
  RingPosition at = {keys.stage.getStage(), keys.enter.getParity()};
  RingPosition ofValues = advance(loc, at), behind = advance(loc, at, 2);
  values.enter.getSlotMutable().assign(ofValues.slot);
  values.enter.getParityMutable().assign(ofValues.parity);
  values.stage.getStageMutable().assign(ofValues.slot);
  values.leave.getSlotMutable().assign(ofValues.slot);
  keys.nextSlot.replaceAllUsesWith(behind.slot);
  keys.nextParity.replaceAllUsesWith(behind.parity);
}

/// The last values of a tile come before the next tile's first keys.
void EndJoiner::shareClosing() {
  Location loc = closing.getLoc();
  auto numberOf = [&](Value argument) { return cast<BlockArgument>(argument).getArgNumber() - 1; };
  Value slotOfValues = steps.getResult(numberOf(valuesSlot)),
        parityOfValues = steps.getResult(numberOf(valuesParity));
  RingPosition at = {steps.getResult(numberOf(keys.stage.getStage())),
                     steps.getResult(numberOf(keys.enter.getParity()))};
  builder.setInsertionPoint(closing);
  RingPosition behind = advance(loc, at);
  // The next tile's keys, then the values in their place.
  auto isInClosing = [&](OpOperand &use) { return closing->isProperAncestor(use.getOwner()); };
  at.slot.replaceUsesWithIf(behind.slot, isInClosing);
  at.parity.replaceUsesWithIf(behind.parity, isInClosing);
  auto isAtValues = [&](OpOperand &use) {
    return isInClosing(use) && isa<PhaseWaitOp, PhaseArriveOp, StageOp>(use.getOwner());
  };
  slotOfValues.replaceUsesWithIf(at.slot, isAtValues);
  parityOfValues.replaceUsesWithIf(at.parity, isAtValues);
}
