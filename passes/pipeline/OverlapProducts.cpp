//===- OverlapProducts.cpp - products in flight across iterations ---------===//
//
// A loop that waits for its products in each iteration leaves the matrix unit idle between them.
// Pattern `across-iterations` takes loops that accumulate `wgmma` products from shared memory and
// do nothing else with them:
//
// 1. The waits of an iteration become one wait after the last product. It leaves this iteration's
//    products in flight, and waits for those of the iteration before.
// 2. Stages that an iteration has read are released one iteration later, and the last one after the
//    loop. The first iteration releases none. The pass declines circular buffers of one stage.
// 3. The wait for everything stands after the loop. If the loop ends with passing a turn, the wait
//    follows that, so that the products of another warpgroup's tile follow these ones.
// 4. If the loop is known to run, accumulators that start from zero need no zeros: the products of
//    the first iteration do not accumulate.
//
//   for %k, %acc {                             for %k, %acc, %before {
//     phase_wait %full[%slot]                    phase_wait %full[%slot]
//     %p = warpgroup_dot ..., %acc               %p = warpgroup_dot ..., %acc
//     %d = warpgroup_wait %p pending 0     →     %d = warpgroup_wait %p pending 1
//     phase_arrive %empty[%slot]                 if not the first { phase_arrive %empty[%before] }
//     yield %d                                   yield %d, %slot
//   }                                          }
//                                              warpgroup_wait pending 0; phase_arrive %empty[last]
//
// Pattern `within-iterations` reorders the iterations of other loops, such as those of attention
// gradients with two products of scores (OrderProducts.cpp). Products whose results threads add up
// in f32 are complete in each iteration, and are declined.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/analysis/Declines.h"
#include "passes/pipeline/OrderProducts.h"

#include "dialects/tkgpu/TkGpuProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_OVERLAPPRODUCTS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

namespace {

class ProductOverlap {
public:
  explicit ProductOverlap(scf::ForOp loop) : loop(loop), builder(loop.getContext()) {}

  bool analyse();
  void apply();

private:
  bool isAccumulated(WarpgroupDotOp dot);
  bool isKnownToRun();
  void startFromZero(WarpgroupDotOp dot, Value isLater);

  scf::ForOp loop;
  OpBuilder builder;
  SmallVector<WarpgroupDotOp> dots;
  SmallVector<WarpgroupWaitOp> waits;
  SmallVector<PhaseArriveOp> arrivals;
};

} // namespace

/// Does the product take what the loop carries, and is it but waited for and carried on? What the
/// threads add up is complete at once.
bool ProductOverlap::isAccumulated(WarpgroupDotOp dot) {
  if (isPromoted(dot))
    return false;
  auto carried = dyn_cast<BlockArgument>(dot.getAcc());
  if (!carried || carried.getOwner() != loop.getBody() || !carried.hasOneUse() || !dot->hasOneUse())
    return false;
  auto wait = dyn_cast<WarpgroupWaitOp>(*dot->user_begin());
  if (!wait || wait.getPending() != 0 || wait.getNumResults() != 1 || !wait->hasOneUse())
    return false;
  OpOperand *yielded = loop.getTiedLoopYieldedValue(carried);
  waits.push_back(wait);
  return yielded->get() == wait.getResult(0);
}

bool ProductOverlap::analyse() {
  for (Operation &op : *loop.getBody()) {
    if (auto dot = dyn_cast<WarpgroupDotOp>(op)) {
      // A stage that has been left belongs to the copies; no product of this iteration reads it.
      if (!isAccumulated(dot) || !arrivals.empty() || !isa<SharedType>(dot.getA().getType()))
        return false;
      dots.push_back(dot);
    } else if (auto arrive = dyn_cast<PhaseArriveOp>(op)) {
      // The only stage must be left before the next iteration waits for it.
      if (arrive.getPhases().getType().getStages() < 2)
        return false;
      arrivals.push_back(arrive);
    } else if (op.getNumRegions() > 0) {
      return false;
    } else if (!isa<WarpgroupWaitOp, PhaseWaitOp>(op) && !isMemoryEffectFree(&op)) {
      return false;
    }
  }
  return !dots.empty();
}

bool ProductOverlap::isKnownToRun() {
  std::optional<int64_t> first = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> end = getConstantIntValue(loop.getUpperBound());
  return first && end && *first < *end;
}

void ProductOverlap::startFromZero(WarpgroupDotOp dot, Value isLater) {
  OpOperand *initial = loop.getTiedLoopInit(cast<BlockArgument>(dot.getAcc()));
  bool isZero =
      matchPattern(initial->get(), m_AnyZeroFloat()) || matchPattern(initial->get(), m_Zero());
  if (!isZero || !isKnownToRun())
    return;
  OpBuilder before(loop);
  initial->set(UndefinedOp::create(before, loop.getLoc(), initial->get().getType()));
  isLater.getDefiningOp()->moveBefore(loop.getBody(), loop.getBody()->begin());
  dot.getAccumulateMutable().assign(isLater);
}

void ProductOverlap::apply() {
  Location loc = loop.getLoc();
  // One wait for all, after the last product; a wait of an earlier one would be for the wrong ones.
  builder.setInsertionPointAfter(dots.back());
  SmallVector<Value> products;
  for (WarpgroupDotOp dot : dots)
    products.push_back(dot.getResult());
  auto together = WarpgroupWaitOp::create(builder, dots.back().getLoc(), products, dots.size());
  for (auto [i, wait] : llvm::enumerate(waits)) {
    wait.getResult(0).replaceAllUsesWith(together.getResult(i));
    wait.erase();
  }
  SmallVector<unsigned> positions;
  for (Value result : together.getResults())
    positions.push_back(result.use_begin()->getOperandNumber());

  IRRewriter rewriter(loop);
  SmallVector<Value> none(arrivals.size(), arith::ConstantIndexOp::create(rewriter, loc, 0));
  auto slots = [&](OpBuilder &, Location, ArrayRef<BlockArgument>) {
    return llvm::map_to_vector(arrivals,
                               [](PhaseArriveOp arrive) -> Value { return arrive.getSlot(); });
  };
  size_t count = loop.getNumResults();
  auto replaced = cast<LoopLikeOpInterface>(loop.getOperation())
                      .replaceWithAdditionalYields(rewriter, none, false, slots);
  loop = cast<scf::ForOp>(replaced->getOperation());

  auto leave = [&](Value condition, ValueRange before) {
    if (arrivals.empty())
      return;
    auto branch = scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    for (auto [arrive, slot] : llvm::zip_equal(arrivals, before))
      PhaseArriveOp::create(builder, arrive.getLoc(), arrive.getPhases(), slot,
                            arrive.getCluster());
  };
  builder.setInsertionPoint(loop.getBody()->getTerminator());
  Value isLater = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                        loop.getInductionVar(), loop.getLowerBound());
  leave(isLater, loop.getRegionIterArgs().drop_front(count));
  for (WarpgroupDotOp dot : dots)
    startFromZero(dot, isLater);

  auto turn = dyn_cast<TurnOp>(loop->getNextNode());
  bool isPassed = turn && turn.getStep() == TurnStep::Pass;
  builder.setInsertionPointAfter(isPassed ? turn : loop);
  SmallVector<Value> results;
  for (unsigned position : positions)
    results.push_back(loop.getResult(position));
  auto finished = WarpgroupWaitOp::create(builder, loc, results, 0);
  for (auto [result, done] : llvm::zip_equal(results, finished.getResults()))
    result.replaceAllUsesExcept(done, finished);
  Value hasRun = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                       loop.getLowerBound(), loop.getUpperBound());
  leave(hasRun, loop.getResults().drop_front(count));
  for (PhaseArriveOp arrive : arrivals)
    arrive.erase();
}

namespace {

struct OverlapProducts : tk::impl::OverlapProductsBase<OverlapProducts> {
  using OverlapProductsBase::OverlapProductsBase;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    patterns.run("across-iterations", [&] {
      llvm::erase_if(loops, [&](scf::ForOp loop) {
        ProductOverlap overlap(loop);
        if (!overlap.analyse())
          return decline(loop, "tk-overlap-products:across-iterations",
                         "no product of the loop may run on into the next iteration");
        overlap.apply();
        ++numLoops;
        return true;
      });
    });
    patterns.run("within-iterations", [&] {
      for (scf::ForOp loop : loops)
        numLoops += orderProducts(loop);
    });
  }
};

} // namespace
