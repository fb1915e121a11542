//===- DeferExchanges.cpp - combine a row's sum after the loop ------------===//
//
// An attention loop adds up softmax numerators in each iteration, for which the lanes that share a
// row exchange their sums. If the iteration is bound by instruction issue, each thread can sum its
// own elements instead, and the lanes exchange once after the loop.
//
// 1. The pass finds a sum that the loop carries from zero on. An iteration may scale it by a number
//    for the row, and adds the sum of a row that lanes of one warp share. The carried sum becomes a
//    tile with an element for each thread.
// 2. An iteration adds what the thread has (`tkgpu.reduce_in_threads`).
// 3. After the loop, a reduction combines the sums of the threads.
//
//   for %l {                                         for %l { // tile<64x4>: four lanes a row
//     %s = reduce <sum> %p axis 1              →       %s = reduce_in_threads <sum> %p axis 1
//     yield %l * %f + %s                               yield %l * broadcast %f + %s
//   }                                                }
//                                                    reduce <sum> %l axis 1
//
// The matrix unit of sm_90 does 128 multiply-adds of 16 bits in the time of one exponential. The
// pass takes loops whose `wgmma` products do at most 128 multiply-adds a score, or 256 in windows.
// With more, the iteration is bound by the products, and the exchange runs under them. The limit
// does not hold for unordered warpgroups, which are bound by their instructions. Loops with
// `mma.sync` products have no registers for the threads' sums.
//
//   gain, H200, 16-bit operands        128 a score   256 a score     512 a score
//   ordered warpgroups                 +1 %          -3 to -2 %
//   unordered warpgroups                             +0.4 to +1.1 %
//   windows                                          0 to +1 %       -2 %
//   windows with a bias                              +1 to +2 %
//   windows, tk-join-ends (by hand)                  +4 to +6 %
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/machine/limits/Loops.h"
#include "passes/pipeline/Rings.h"
#include "passes/pipeline/StepMasks.h"

#include "dialects/tkgpu/TkGpuLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_DEFEREXCHANGES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::defer_exchanges;

namespace {

/// A sum that a loop carries, `carried * factor + sum`.
struct CarriedSum {
  unsigned number = 0; ///< of the argument
  gpu::ReduceOp sum;
  arith::AddFOp add;
  arith::MulFOp scale; ///< null: the factor is 1
};

} // namespace

/// Multiply-adds of the loop's products.
static int64_t multiplyAddsOf(scf::ForOp loop) {
  int64_t count = 0;
  for (auto dot : loop.getOps<WarpgroupDotOp>()) {
    auto rows = cast<RankedTensorType>(dot.getType());
    SharedType b = dot.getB().getType();
    count += rows.getNumElements() * b.getShape()[0];
  }
  return count;
}

/// Multiply-adds a score up to which threads' parts are kept: of windows twice as many.
static int64_t largestShare(scf::ForOp loop) {
  const bool isWindow = llvm::any_of(loop.getOps<scf::IfOp>(), isMaskOfEnds);
  return isWindow ? 2 * kMultiplyAdds : kMultiplyAdds;
}

static std::optional<CarriedSum> matchSum(scf::ForOp loop, unsigned number) {
  // Beside the accumulators of mma.sync the parts have no registers.
  if (!loop.getOps<DotOp>().empty())
    return std::nullopt;
  CarriedSum found{number, {}, {}, {}};
  BlockArgument carried = loop.getRegionIterArg(number);
  found.add = loop.getYieldedValues()[number].getDefiningOp<arith::AddFOp>();
  if (!found.add || !found.add->hasOneUse() || !carried.hasOneUse() ||
      !matchPattern(loop.getInitArgs()[number], m_AnyZeroFloat()))
    return std::nullopt;
  for (Value operand : found.add->getOperands()) {
    if (auto reduce = operand.getDefiningOp<gpu::ReduceOp>())
      found.sum = reduce;
    else
      found.scale = operand.getDefiningOp<arith::MulFOp>();
  }
  Operation *user = *carried.user_begin();
  if (!found.sum || found.sum.getKind() != ReduceKind::Sum || !found.sum->hasOneUse() ||
      found.sum->getBlock() != loop.getBody() ||
      user != (found.scale ? found.scale.getOperation() : found.add.getOperation()) ||
      (found.scale && !found.scale->hasOneUse()))
    return std::nullopt;
  AxisBits bits = axisBits(getLayout(found.sum.getSource().getType()), found.sum.getAxis());
  bool isTile = isa<RankedTensorType>(found.sum.getType());
  if (!isTile || bits.lanes == 0 || (bits.warps != 0 && loop.getOps<WarpgroupDotOp>().empty()))
    return std::nullopt;
  // Warpgroups that divide columns would meet for it in each iteration.
  if (bits.warps != 0)
    return found;
  auto terms = cast<RankedTensorType>(found.sum.getSource().getType());
  if (multiplyAddsOf(loop) > largestShare(loop) * terms.getNumElements() &&
      takeTurns(loop->getParentOfType<FuncOp>()))
    return std::nullopt;
  return found;
}

/// Lets the loop carry the threads' parts of a sum instead.
static void defer(scf::ForOp loop, CarriedSum found) {
  OpBuilder builder(found.add);
  Location loc = found.sum.getLoc();
  int64_t axis = found.sum.getAxis();
  BlockArgument carried = loop.getRegionIterArg(found.number);
  Value parts =
      ReduceInThreadsOp::create(builder, loc, found.sum.getSource(), found.sum.getKind(), axis);
  auto type = cast<RankedTensorType>(parts.getType());
  Value before = carried;
  if (found.scale) {
    SmallVector<int64_t> rows;
    for (int64_t a = 0; a < type.getRank(); ++a)
      if (a != axis)
        rows.push_back(a);
    Value factor = found.scale.getLhs() == carried ? found.scale.getRhs() : found.scale.getLhs();
    Value spread = BroadcastOp::create(builder, loc, type, factor, rows);
    before = arith::MulFOp::create(builder, loc, type, carried, spread);
  }
  Value after = arith::AddFOp::create(builder, loc, type, before, parts);
  found.add.replaceAllUsesWith(after);
  found.add.erase();
  if (found.scale)
    found.scale.erase();
  Type ofRows = carried.getType();
  OpBuilder outside(loop);
  loop.getInitArgsMutable()[found.number].set(
      arith::ConstantOp::create(outside, loc, outside.getZeroAttr(type)));
  carried.setType(type);
  OpResult result = cast<OpResult>(loop.getResult(found.number));
  result.setType(type);
  outside.setInsertionPointAfter(loop);
  auto total = gpu::ReduceOp::create(outside, loc, ofRows, result, found.sum.getKind(), axis);
  result.replaceAllUsesExcept(total, total);
  found.sum.erase();
}

namespace {

struct DeferExchanges : tk::impl::DeferExchangesBase<DeferExchanges> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      for (unsigned number = 0, count = loop.getNumRegionIterArgs(); number < count; ++number)
        if (std::optional<CarriedSum> sum = matchSum(loop, number)) {
          defer(loop, *sum);
          ++numSums;
        }
  }
};

} // namespace
