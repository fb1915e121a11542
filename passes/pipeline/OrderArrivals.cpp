//===- OrderArrivals.cpp - release pipeline stages in time ----------------===//
//
// A warp that has read a pipeline stage releases it by arriving at an mbarrier. No value depends on
// an arrival, and ptxas moves it after the arithmetic that follows. In attention, ptxas moves it
// after most of an iteration's exponentials, and the release comes a third of an iteration late. A
// circular buffer with spare stages loses nothing by that. A circular buffer that the operands of
// two products share has no spare stage.
//
// 1. The pass finds circular buffers of which a block of code releases stages at several places.
// 2. An arrival may follow a wait for accumulators that are then multiplied by a factor for the
//    row. The factor is taken from the arrival (`tkgpu.arrive_before`), so that the multiplication
//    depends on it. The factor must be known before the arrival.
//
//   %s = warpgroup_wait %sum pending 0        %s = warpgroup_wait %sum pending 0
//   phase_arrive %empty[%slot]                %g = arrive_before %empty[%slot], %f
//   %t = mulf %s, broadcast %f          →     %t = mulf %s, broadcast %g
//
// Arrivals at the mbarriers of other blocks of a cluster stay. Speed relative to without, H100, a
// window of 1024 keys with joined boundary tiles (tk-join-ends): 1.01 to 1.02
// (lab/results/2026-11-26-h200-windows-joined-ends.md).
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "dialects/tkgpu/TkGpuProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_ORDERARRIVALS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// Is the factor of `scaling`, one for each row, there when `arrive` comes?
static bool isFactorKnown(arith::MulFOp scaling, PhaseArriveOp arrive) {
  Value factor = scaling.getRhs().getDefiningOp<BroadcastOp>().getSource();
  Operation *op = factor.getDefiningOp();
  return op->getBlock() != arrive->getBlock() || op->isBeforeInBlock(arrive);
}

/// The scaling of sums that were waited for before `arrive`, if it comes after it in the same
/// block.
static arith::MulFOp findScaling(PhaseArriveOp arrive) {
  for (Operation *op = arrive->getPrevNode(); op; op = op->getPrevNode()) {
    auto wait = dyn_cast<WarpgroupWaitOp>(op);
    if (!wait)
      continue;
    if (wait.getPending() != 0)
      return {};
    for (Value sums : wait.getResults())
      for (Operation *user : sums.getUsers())
        if (auto product = dyn_cast<arith::MulFOp>(user);
            product && product->getBlock() == arrive->getBlock() && isRescaledSum(product) &&
            arrive->isBeforeInBlock(product) && isFactorKnown(product, arrive))
          return product;
    return {};
  }
  return {};
}

/// Does the block of `arrive` leave stages of its ring at other places, too?
static bool isShared(PhaseArriveOp arrive) {
  return llvm::count_if(arrive.getPhases().getUsers(), [&](Operation *user) {
           return isa<PhaseArriveOp>(user) && user->getBlock() == arrive->getBlock();
         }) > 1;
}

/// Computes the factor of `scaling` after the arrival.
static void orderBefore(PhaseArriveOp arrive, arith::MulFOp scaling) {
  auto spread = scaling.getRhs().getDefiningOp<BroadcastOp>();
  OpBuilder builder(arrive);
  Value factor = ArriveBeforeOp::create(builder, arrive.getLoc(), arrive.getPhases(),
                                        arrive.getSlot(), spread.getSource());
  builder.setInsertionPoint(scaling);
  auto later = cast<BroadcastOp>(builder.clone(*spread));
  later.getSourceMutable().assign(factor);
  scaling.getRhsMutable().assign(later);
  if (spread->use_empty())
    spread.erase();
  arrive.erase();
}

namespace {

struct OrderArrivals : tk::impl::OrderArrivalsBase<OrderArrivals> {
  void runOnOperation() override {
    SmallVector<std::pair<PhaseArriveOp, arith::MulFOp>> found;
    getOperation().walk([&](PhaseArriveOp arrive) {
      if (arrive.getCluster() || !isShared(arrive))
        return;
      if (arith::MulFOp scaling = findScaling(arrive))
        found.emplace_back(arrive, scaling);
    });
    for (auto [arrive, scaling] : found) {
      orderBefore(arrive, scaling);
      ++numArrivals;
    }
  }
};

} // namespace
