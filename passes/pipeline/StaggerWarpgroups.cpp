//===- StaggerWarpgroups.cpp - results under the others' products ---------===//
//
// Two warpgroups that share a block's tile end their contraction together, and leave the matrix
// unit idle during the epilogue. If one ends earlier, its epilogue runs under the other one's last
// products, and the other one's epilogue under the first products of the next tile. The pass takes
// consumers of two warpgroups with a loop over tiles. The loop inside must contain nothing but
// products that stay in flight, from one circular buffer.
//
// 1. The first warpgroup leads: it signals (`turn lead`) when it has issued its products of the
//    last iteration.
// 2. The second one follows: it waits for that signal (`turn follow`) before the products of its
//    last iterations, one fewer than the buffer's stages. It still holds the stage before those.
//    With more iterations, the first warpgroup could wait for a stage while the second one waits
//    for it.
//
// In between they run unordered: if stages are late, the second one catches up, and no product is
// late for that. In loops with fewer iterations, the second warpgroup waits in the first one.
//
// A buffer that holds the steps of two tiles does not keep the first warpgroup from a second signal
// before the second one has waited for the first signal. The barrier would take both signals for
// one of each warpgroup, and the second warpgroup would wait forever. So only loops of more steps
// than half the stages are ordered.
//
//   for %k ... {                              %long = steps > stages / 2
//     phase_wait                              for %k ... {
//     %d = dot ...                              if %long and last iterations begin at %k {
//     ...                                →        turn follow
//   }                                           }
//                                               phase_wait
//                                               %d = dot ...
//                                               if %long and %k is the last { turn lead }
//                                               ...
//                                             }
//
// The pass declines loops with arithmetic on accumulators or register operands, buffers of one
// stage, clusters whose blocks share stages, kernels that give each warpgroup its own tiles, and
// loops that are known to be short.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"

#include "passes/analysis/Declines.h"
#include "passes/machine/TileFacts.h"

#include "dialects/tkgpu/TkGpuPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_STAGGERWARPGROUPS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// Is `op` a product from shared memory, or what brings its operands and lets go of them?
static bool isPartOfProducts(Operation *op) {
  if (auto dot = dyn_cast<WarpgroupDotOp>(op))
    return llvm::none_of(dot->getOperands().take_front(2),
                         [](Value factor) { return isa<RankedTensorType>(factor.getType()); });
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return branch->getNumResults() == 0 && branch.elseBlock() == nullptr &&
           llvm::all_of(*branch.thenBlock(),
                        [](Operation &inner) { return isa<PhaseArriveOp, scf::YieldOp>(inner); });
  // Sums that are waited for in each step are added up there.
  if (auto wait = dyn_cast<WarpgroupWaitOp>(op))
    return wait.getPending() > 0;
  if (isa<PhaseWaitOp, PhaseArriveOp, StageOp, scf::YieldOp>(op))
    return true;
  return op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
         llvm::all_of(op->getResultTypes(), [](Type type) { return type.isIntOrIndex(); });
}

namespace {

/// A loop over the steps of a tile's sums.
struct Products {
  scf::ForOp loop;
  PhaseWaitOp wait;    ///< for a step's stage
  WarpgroupDotOp last; ///< of a step's products
};

} // namespace

/// Does `arrive` let go of the step's stage, which is at `slot`, or of that of the step before?
static bool isSoon(PhaseArriveOp arrive, scf::ForOp loop, Value slot) {
  if (arrive.getSlot() == slot)
    return true;
  auto carried = dyn_cast<BlockArgument>(arrive.getSlot());
  return carried && carried.getOwner() == loop.getBody() && carried.getArgNumber() > 0 &&
         loop.getYieldedValues()[carried.getArgNumber() - 1] == slot;
}

/// The loop whose products are all of the consumer's, if it is the only one in a loop over tiles.
static std::optional<Products> findProducts(WarpRolesOp roles) {
  Products found;
  bool isOnly = true;
  roles.getConsumer().walk([&](WarpgroupDotOp dot) {
    auto loop = dyn_cast<scf::ForOp>(dot->getParentOp());
    isOnly &= loop && (!found.loop || found.loop == loop);
    found.loop = loop;
    found.last = dot;
  });
  auto tiles =
      isOnly && found.loop ? dyn_cast<scf::ForOp>(found.loop->getParentOp()) : scf::ForOp();
  if (!tiles || tiles->getParentOp() != roles ||
      !llvm::all_of(*found.loop.getBody(), [](Operation &op) { return isPartOfProducts(&op); }))
    return std::nullopt;
  SmallVector<PhaseWaitOp> waits(found.loop.getOps<PhaseWaitOp>());
  if (waits.size() != 1)
    return std::nullopt;
  found.wait = waits.front();
  WalkResult walked = found.loop.walk([&](PhaseArriveOp arrive) {
    bool isLeft = !arrive.getCluster() && isSoon(arrive, found.loop, found.wait.getSlot());
    return isLeft ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (walked.wasInterrupted())
    return std::nullopt;
  return found;
}

/// A turn of `step` under `condition`.
static void createTurn(OpBuilder &builder, Location loc, Value condition, TurnStep step) {
  auto branch = scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/false);
  OpBuilder inside = branch.getThenBodyBuilder();
  TurnOp::create(inside, loc, step);
}

/// Steps up to which the first warpgroup may be two signals ahead: the buffer holds them twice.
static int64_t mostUnorderedSteps(Products products) {
  return products.wait.getPhases().getType().getStages() / 2;
}

/// Is the loop known to have no more than mostUnorderedSteps?
static bool isShort(Products products) {
  std::optional<APInt> steps = products.loop.getStaticTripCount();
  return steps && steps->sle(mostUnorderedSteps(products));
}

/// Whether the loop has more steps than mostUnorderedSteps; nothing where that is known.
static Value createIsLong(Products products) {
  scf::ForOp loop = products.loop;
  if (loop.getStaticTripCount())
    return Value();
  Location loc = loop.getLoc();
  OpBuilder builder(loop);
  Value most = arith::ConstantIndexOp::create(builder, loc, mostUnorderedSteps(products));
  Value length = arith::SubIOp::create(builder, loc, loop.getUpperBound(), loop.getLowerBound());
  Value span = arith::MulIOp::create(builder, loc, loop.getStep(), most);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, length, span);
}

static void stagger(Products products) {
  scf::ForOp loop = products.loop;
  Location loc = loop.getLoc();
  Value isLong = createIsLong(products);
  OpBuilder builder(products.wait);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto compare = [&](arith::CmpIPredicate predicate, Value a, Value b) -> Value {
    return arith::CmpIOp::create(builder, loc, predicate, a, b);
  };
  const int64_t steps = products.wait.getPhases().getType().getStages() - 1;
  Value at = loop.getInductionVar(), step = loop.getStep();
  // The last steps begin at the first one with no more than theirs to go.
  Value left = arith::SubIOp::create(builder, loc, loop.getUpperBound(), at);
  Value span = arith::MulIOp::create(builder, loc, step, constant(steps));
  Value before = arith::AddIOp::create(builder, loc, left, step);
  Value isLate = compare(arith::CmpIPredicate::sle, left, span);
  Value wasEarly = compare(arith::CmpIPredicate::sgt, before, span);
  Value isFirst = compare(arith::CmpIPredicate::eq, at, loop.getLowerBound());
  Value begins = arith::OrIOp::create(builder, loc, wasEarly, isFirst);
  auto inLongLoops = [&](Value condition) -> Value {
    return isLong ? arith::AndIOp::create(builder, loc, isLong, condition) : condition;
  };
  Value isHere = arith::AndIOp::create(builder, loc, isLate, begins);
  createTurn(builder, loc, inLongLoops(isHere), TurnStep::Follow);
  builder.setInsertionPointAfter(products.last);
  Value isLast = compare(arith::CmpIPredicate::sle, left, step);
  createTurn(builder, loc, inLongLoops(isLast), TurnStep::Lead);
}

namespace {

struct StaggerWarpgroups : tk::impl::StaggerWarpgroupsBase<StaggerWarpgroups> {
  void runOnOperation() override {
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      constexpr StringLiteral pass = "tk-stagger-warpgroups";
      if (function.getNumWarps() != warpsOfTwoWarpgroups || function.getTeams() != 1) {
        decline(function, pass, "the function has no two warpgroups that share a tile");
        continue;
      }
      SmallVector<WarpRolesOp> roles(function.getOps<WarpRolesOp>());
      std::optional<Products> products =
          roles.size() == 1 ? findProducts(roles.front()) : std::nullopt;
      if (!products || products->wait.getPhases().getType().getStages() < 2) {
        decline(function, pass, "no loop multiplies plain operands from a buffer of two stages");
        continue;
      }
      if (isShort(*products)) {
        decline(function, pass, "the buffer holds the steps of two tiles");
        continue;
      }
      stagger(*products);
      changePlan(function, [](KernelPlan &plan) { plan.order = WarpgroupOrder::Staggered; });
      ++numLoops;
    }
  }
};

} // namespace
