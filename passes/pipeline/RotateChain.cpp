//===- RotateChain.cpp - the second product an iteration later ------------===//
//
// The rewriting of tk-overlap-chains (OverlapChains.cpp): the first iteration's scores before the
// loop, in each iteration the second product of the one before, and the last one behind the loop.
//
//===----------------------------------------------------------------------===//
#include "passes/pipeline/ChainOverlap.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// Everything but what moves, with the first product begun before `before`'s second one.
ChainOverlap::State ChainOverlap::firstPart(IRMapping &mapping, bool withSecond,
                                            const State &before) {
  State after;
  after.carried = before.carried;
  Value pendingSum;
  for (auto [argument, value] : llvm::zip_equal(loop.getRegionIterArgs(), before.carried))
    mapping.map(argument, value);
  auto sumArgument = loop.getRegionIterArg(sum);
  auto waitForSecond = [&](Location loc) {
    if (!pendingSum)
      return;
    auto wait = WarpgroupWaitOp::create(builder, loc, std::exchange(pendingSum, Value()), 0);
    mapping.map(sumArgument, wait.getResult(0));
    // The stage is left once it has been read; then the ring goes on.
    for (Operation *op : secondOps)
      if (isa<PhaseArriveOp>(op) || (isMemoryEffectFree(op) && !isa<StageOp>(op)))
        builder.clone(*op, mapping);
  };
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (secondOps.contains(&op) || llvm::is_contained(conversions, &op))
      continue;
    if (&op == firstWait) {
      Value scores = mapping.lookup(first.getResult());
      if (withSecond) {
        for (Operation *moved : secondOps)
          if (isa<PhaseWaitOp, StageOp>(moved))
            builder.clone(*moved, mapping);
        auto dot =
            WarpgroupDotOp::create(builder, second.getLoc(), second.getType(), before.weights,
                                   mapping.lookup(second.getB()), before.carried[sum],
                                   /*accumulate=*/Value(), second.getPrecision());
        pendingSum = dot.getResult();
      }
      auto wait = WarpgroupWaitOp::create(builder, firstWait.getLoc(), scores, withSecond ? 1 : 0);
      mapping.map(firstWait.getResult(0), wait.getResult(0));
      continue;
    }
    bool readsSum = false;
    op.walk([&](Operation *inner) {
      readsSum |= llvm::is_contained(inner->getOperands(), Value(sumArgument));
    });
    if (readsSum)
      waitForSecond(op.getLoc());
    builder.clone(op, mapping);
  }
  waitForSecond(loop.getLoc());
  for (Operation *op : llvm::reverse(conversions))
    builder.clone(*op, mapping);
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  for (auto [i, value] : llvm::enumerate(yield.getOperands())) {
    if (i == sum)
      after.carried[i] = mapping.lookupOrDefault(second.getAcc());
    else if (!llvm::is_contained(positions, unsigned(i)) || withSecond)
      after.carried[i] = mapping.lookupOrDefault(value);
  }
  after.weights = mapping.lookupOrDefault(second.getA());
  return after;
}

/// The last iteration's second product; positions advance.
Value ChainOverlap::secondPart(const State &state, SmallVectorImpl<Value> &carried) {
  IRMapping mapping;
  for (auto [argument, value] : llvm::zip_equal(loop.getRegionIterArgs(), state.carried))
    mapping.map(argument, value);
  mapping.map(second.getA(), state.weights);
  mapping.map(second.getAcc(), state.carried[sum]);
  for (Operation *op : secondOps)
    builder.clone(*op, mapping);
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  carried = state.carried;
  for (unsigned number : positions)
    carried[number] = mapping.lookupOrDefault(yield.getOperand(number));
  return carried[sum] = mapping.lookup(secondWait.getResult(0));
}

/// Where a stage around the loop is left that is the first product's left operand and nothing else.
PhaseArriveOp ChainOverlap::leavesFirst() {
  auto stage = first.getA().getDefiningOp<StageOp>();
  // Each ring has a position of its own, if loops carry it.
  if (!stage || stage->getBlock() != loop->getBlock() || !stage->hasOneUse() ||
      !isa<BlockArgument>(stage.getStage()))
    return {};
  for (Operation *user : stage.getStage().getUsers()) {
    auto arrive = dyn_cast<PhaseArriveOp>(user);
    if (arrive && arrive->getBlock() == loop->getBlock() && loop->isBeforeInBlock(arrive))
      return arrive;
  }
  return {};
}

/// How the stage of the tile before, which has had its results, is left.
SmallVector<Operation *> ChainOverlap::leavesBefore() {
  Operation *next = loop->getNextNode(); // behind sums that threads add up
  while (next && isMemoryEffectFree(next) && !next->hasTrait<OpTrait::IsTerminator>())
    next = next->getNextNode();
  auto wait = dyn_cast_or_null<BulkStoreWaitOp>(next);
  auto arrive = wait ? dyn_cast_or_null<PhaseArriveOp>(wait->getNextNode()) : PhaseArriveOp();
  return arrive ? SmallVector<Operation *>{wait, arrive} : SmallVector<Operation *>();
}

void ChainOverlap::apply() {
  Location loc = loop.getLoc();
  beginTogether();
  PhaseArriveOp leave = leavesFirst();
  // The tile before is stored by the time that this one's first scores have been worked on.
  SmallVector<Operation *> behindOpening = leavesBefore();
  Value lower = loop.getLowerBound(), upper = loop.getUpperBound(), step = loop.getStep();
  Value isAny = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, lower, upper);
  auto branch = scf::IfOp::create(builder, loc, loop.getResultTypes(), isAny, true);
  builder.setInsertionPointToStart(branch.thenBlock());
  State state;
  state.carried = SmallVector<Value>(loop.getInitArgs());
  IRMapping peeled;
  peeled.map(loop.getInductionVar(), lower);
  state = firstPart(peeled, /*withSecond=*/false, state);
  for (Operation *op : behindOpening)
    builder.clone(*op);
  Value from = arith::AddIOp::create(builder, loc, lower, step);
  SmallVector<Value> inits = state.carried;
  inits.push_back(state.weights);
  auto rotated = scf::ForOp::create(builder, loc, from, upper, step, inits);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(rotated.getBody());
    IRMapping mapping;
    mapping.map(loop.getInductionVar(), rotated.getInductionVar());
    State inside;
    inside.carried = llvm::to_vector_of<Value>(rotated.getRegionIterArgs().drop_back());
    inside.weights = rotated.getRegionIterArgs().back();
    inside = firstPart(mapping, /*withSecond=*/true, inside);
    inside.carried.push_back(inside.weights);
    scf::YieldOp::create(builder, loc, inside.carried);
  }
  State last;
  last.carried = llvm::to_vector_of<Value>(rotated.getResults().drop_back());
  last.weights = rotated.getResults().back();
  if (leave)
    builder.clone(*leave);
  SmallVector<Value> results;
  secondPart(last, results);
  scf::YieldOp::create(builder, loc, results);
  builder.setInsertionPointToStart(branch.elseBlock());
  if (leave)
    builder.clone(*leave);
  for (Operation *op : behindOpening)
    builder.clone(*op);
  scf::YieldOp::create(builder, loc, loop.getInitArgs());
  loop.replaceAllUsesWith(branch.getResults());
  loop.erase();
  if (leave)
    leave.erase();
  for (Operation *op : behindOpening)
    op->erase();
}
