//===- AlternateWarpgroups.cpp - ping-pong scheduling ---------------------===//
//
// Warpgroups that run the same loop issue their products at the same time. They queue for the
// matrix unit, and leave it idle together while they compute on the results. This pass orders the
// consumer warpgroups, so that the arithmetic of one runs under the products of another. It takes
// loops with several products in flight (tk-overlap-chains).
//
// 1. A warpgroup waits for its turn before the first product of an iteration (`turn take`). If the
//    loop carries a product in flight (tk-overlap-scores), this wait follows the wait for that
//    product.
// 2. The warpgroup gives the turn to the next one after it has issued its last product (`turn
//    pass`). If the loop carries a product in flight, it does so before it waits for the
//    iteration's own first product.
// 3. A warpgroup whose loop ends earlier (tk-bound-warpgroups) passes the turn on until the other
//    loops end, so that every turn that is passed is taken. It does so once before the products
//    after its loop, and then each time that it has released the stages of an iteration that is not
//    its own. In another order, the others could wait for a stage while this warpgroup waits for
//    its turn.
//
//   for %j = %a to %own {                     for %j = %a to %own {
//     %s = dot ...; %p = dot ...                turn take; %s = dot ...; %p = dot ...; turn pass
//     wait %s pending 1; ...                    wait %s pending 1; ...
//   }                                    →    }
//   %last = dot ...                           if next < %end { turn take; turn pass }
//                                             %last = dot ...
//   for %j = next to %end {                   for %j = next to %end {
//     phase_wait; phase_arrive                  phase_wait; phase_arrive
//   }                                           if %j + 1 < %end { turn take; turn pass }
//                                             }
//
// The pass does not order loops that one warpgroup ends earlier by design (tk-stagger-warpgroups),
// nor kernels of unordered warpgroups (`takeTurns` in Rings.h). In the latter, pattern `wait-ahead`
// lets an iteration wait for all its stages before its first product, if the later products
// multiply numerators of the iteration before. A wait between two products would keep the matrix
// unit idle, and the stages of the later products arrive before that of the first one.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/machine/Machine.h"
#include "passes/pipeline/LoopSteps.h"
#include "passes/pipeline/Rings.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "dialects/tkgpu/TkGpuLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_ALTERNATEWARPGROUPS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// The block's products that begin together, two or more, while the first is waited for, or the one
/// that adds to it; those that follow are of what is computed from them.
static SmallVector<WarpgroupDotOp> findTogether(Block *block) {
  SmallVector<WarpgroupDotOp> dots(block->getOps<WarpgroupDotOp>());
  if (dots.size() < 2)
    return {};
  WarpgroupDotOp first = dots.front();
  while (first->hasOneUse() && isa<WarpgroupDotOp>(*first->user_begin()))
    first = cast<WarpgroupDotOp>(*first->user_begin());
  if (!first->hasOneUse())
    return {};
  auto wait = dyn_cast<WarpgroupWaitOp>(*first->user_begin());
  if (!wait || wait.getPending() == 0 || wait->getBlock() != block)
    return {};
  llvm::erase_if(dots, [&](WarpgroupDotOp dot) { return wait->isBeforeInBlock(dot); });
  return dots.size() < 2 ? SmallVector<WarpgroupDotOp>() : dots;
}

/// Does one of the warpgroups end the loop around `block` earlier (tk-stagger-warpgroups)?
static bool areStaggered(Block *block) {
  return llvm::any_of(block->getOps<scf::IfOp>(), [](scf::IfOp branch) {
    return !branch.thenBlock()->getOps<TurnOp>().empty();
  });
}

/// The wait for a product of the iteration before, which the loop carries, if `first` follows one.
static WarpgroupWaitOp findCarriedWait(WarpgroupDotOp first) {
  for (Operation *op = first->getPrevNode(); op; op = op->getPrevNode())
    if (auto wait = dyn_cast<WarpgroupWaitOp>(op);
        wait && llvm::all_of(wait->getOperands(), llvm::IsaPred<BlockArgument>))
      return wait;
  return {};
}

/// Takes a turn for the products of an iteration and passes it on. Where it works on a product of
/// the iteration before, the turn begins with that work and ends where the first of `dots` is
/// waited for: so warpgroups stay half an iteration apart, and one's maxima run under the other's
/// exponentials. By themselves they may settle at a quarter.
static void alternate(ArrayRef<WarpgroupDotOp> dots) {
  OpBuilder builder(dots.front());
  WarpgroupWaitOp carried = findCarriedWait(dots.front());
  if (carried)
    builder.setInsertionPointAfter(carried);
  TurnOp::create(builder, dots.front()->getLoc(), TurnStep::Take);
  builder.setInsertionPointAfter(dots.back());
  if (carried)
    builder.setInsertionPoint(*dots.front()->user_begin());
  TurnOp::create(builder, dots.back()->getLoc(), TurnStep::Pass);
}

/// Waits for the stages of all products before the first of them begins, if the others multiply
/// what was computed in the iteration before: their stages are brought before that of the first.
static bool waitAhead(ArrayRef<WarpgroupDotOp> dots) {
  Operation *first = dots.front();
  while (first && !isa<PhaseWaitOp>(first))
    first = first->getPrevNode();
  bool areCarried = llvm::all_of(dots.drop_front(),
                                 [](WarpgroupDotOp dot) { return isa<BlockArgument>(dot.getA()); });
  if (!first || !areCarried)
    return false;
  auto isThere = [&](Value value) {
    Operation *source = value.getDefiningOp();
    return !source || source->getBlock() != first->getBlock() || source->isBeforeInBlock(first);
  };
  SmallVector<PhaseWaitOp> late;
  for (Operation *op = dots.front(); op != dots.back(); op = op->getNextNode()) {
    auto wait = dyn_cast<PhaseWaitOp>(op);
    if (wait && llvm::all_of(wait->getOperands(), isThere))
      late.push_back(wait);
    else if (wait || isa<PhaseArriveOp>(op) || op->getNumRegions() > 0)
      return false;
  }
  for (PhaseWaitOp wait : late)
    wait->moveBefore(first);
  return !late.empty();
}

/// A turn of the others, in a step that begins at `at`, if there is one before `end`.
static void handOn(OpBuilder &builder, Location loc, Value at, Value end) {
  Value isTurn = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, at, end);
  auto branch = scf::IfOp::create(builder, loc, isTurn, /*withElseRegion=*/false);
  OpBuilder inside = branch.getThenBodyBuilder();
  TurnOp::create(inside, loc, TurnStep::Take);
  TurnOp::create(inside, loc, TurnStep::Pass);
}

/// The loop in which a warpgroup leaves the stages of steps that `loop` does not have for it.
static scf::ForOp findRest(scf::ForOp loop) {
  llvm::SmallPtrSet<Value, 4> phases;
  loop.walk([&](PhaseArriveOp arrive) { phases.insert(arrive.getPhases()); });
  Operation *around = isa<scf::IfOp>(loop->getParentOp()) ? loop->getParentOp() : loop;
  for (Operation *op = around->getNextNode(); op; op = op->getNextNode())
    if (auto rest = dyn_cast<scf::ForOp>(op))
      if (llvm::any_of(rest.getOps<PhaseArriveOp>(),
                       [&](PhaseArriveOp arrive) { return phases.contains(arrive.getPhases()); }))
        return rest;
  return {};
}

/// Has a warpgroup whose iterations are over hand the turn on.
static void completeTurns(scf::ForOp loop) {
  auto own = loop.getUpperBound().getDefiningOp<OfWarpgroupOp>();
  scf::ForOp rest = own ? findRest(loop) : scf::ForOp();
  if (!rest)
    return;
  Location loc = loop.getLoc();
  OpBuilder builder(loop->getContext());
  builder.setInsertionPointAfter(loop);
  Value lower = loop.getLowerBound(), end = rest.getUpperBound(), step = loop.getStep();
  handOn(builder, loc, createStepBehind(builder, loc, lower, own, step), end);
  builder.setInsertionPoint(rest.getBody()->getTerminator());
  handOn(builder, loc, arith::AddIOp::create(builder, loc, rest.getInductionVar(), step), end);
}

/// Do warpgroups divide the columns of a product? They meet in each step, and have no turns.
static bool shareRows(FuncOp function) {
  return function
      .walk([](WarpgroupDotOp dot) {
        LayoutAttr layout = getLayout(dot.getType());
        return layout && axisBits(layout, 1).warps ? WalkResult::interrupt()
                                                   : WalkResult::advance();
      })
      .wasInterrupted();
}

namespace {

struct AlternateWarpgroups : tk::impl::AlternateWarpgroupsBase<AlternateWarpgroups> {
  using AlternateWarpgroupsBase::AlternateWarpgroupsBase;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    SmallVector<WarpRolesOp> inTurns, apart;
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      if (function.getNumWarps() < 2 * warpsOfWarpgroup || shareRows(function))
        continue;
      WarpRolesOp roles;
      function.walk([&](WarpRolesOp op) { roles = op; });
      if (roles)
        (takeTurns(function) ? inTurns : apart).push_back(roles);
    }
    patterns.run("ping-pong", [&] {
      for (WarpRolesOp roles : inTurns)
        takeTurnsIn(roles);
    });
    patterns.run("wait-ahead", [&] {
      for (WarpRolesOp roles : apart)
        waitAheadIn(roles);
    });
  }

private:
  void waitAheadIn(WarpRolesOp roles) {
    roles.getConsumer().walk([&](Block *block) {
      SmallVector<WarpgroupDotOp> dots = findTogether(block);
      numAhead += !dots.empty() && waitAhead(dots);
    });
  }

  void takeTurnsIn(WarpRolesOp roles) {
    unsigned loops = 0;
    roles.getConsumer().walk([&](Block *block) {
      SmallVector<WarpgroupDotOp> dots = findTogether(block);
      if (dots.empty() || areStaggered(block))
        return;
      alternate(dots);
      if (auto loop = dyn_cast<scf::ForOp>(block->getParentOp()))
        completeTurns(loop);
      ++loops;
    });
    if (loops == 0)
      return;
    numLoops += loops;
    changePlan(roles->getParentOfType<FuncOp>(),
               [](KernelPlan &plan) { plan.order = WarpgroupOrder::PingPong; });
    auto builder = OpBuilder::atBlockBegin(&roles.getConsumer().front());
    TurnOp::create(builder, roles.getLoc(), TurnStep::Begin);
  }
};

} // namespace
