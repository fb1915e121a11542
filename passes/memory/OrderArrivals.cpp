//===- OrderArrivals.cpp - stages that are left in time -------------------===//
//
// A warp that has read a stage arrives at its barrier. Nothing follows from that, and ptxas moves
// it behind the arithmetic that comes next: in attention behind most of a step's exponentials, a
// third of a step later than it could be. A ring with stages to spare does not mind; one that the
// factors of two products share has none.
//
// 1. Rings are looked for that a block leaves at several places: the products of a chain.
// 2. Where sums have been waited for and are multiplied by a factor for the row, the factor is
//    taken from an arrival (tkgpu.arrive_before) between the two.
//
//   %s = warpgroup_wait %sum pending 0        %s = warpgroup_wait %sum pending 0
//   phase_arrive %empty[%slot]                %g = arrive_before %empty[%slot], %f
//   %t = mulf %s, broadcast %f          →     %t = mulf %s, broadcast %g
//
// A window of 1024 keys whose ends are joined (tk-join-ends), H100: 1.01 to 1.02
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
