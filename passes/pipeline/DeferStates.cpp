//===- DeferStates.cpp - partial softmax states for each thread -----------===//
//
// A loop carries a maximum and sums of exponentials relative to it, as an online softmax does. In
// each iteration, the warps of a block synchronise twice: for the maximum and for the sums. Partial
// softmax states can be combined at any time, so that each thread can keep a state of its own.
//
// 1. The pass finds a carried f32 maximum that starts at -inf, and carried sums that start at 0.
//    Only exponentials that are summed, and the rescaling factors of these sums, may read the
//    maximum. Maximum and sums become tiles with an element for each thread along the axis.
// 2. An iteration reduces what the thread has (`tkgpu.reduce_in_threads`), relative to the thread's
//    own maximum (`tkgpu.spread_in_threads`).
// 3. After the loop, the maxima of the threads are reduced. The sums are rescaled to the maximum of
//    all threads, and reduced.
//
//   for %m, %l {                            for %m, %l { // tile<64x16>: 16 threads a column
//     %s = reduce <max> %x axis 1             %s = reduce_in_threads <max> %x axis 1
//     %n = maximumf %m, %s                    %n = maximumf %m, %s
//     %e = exp_diff %x, broadcast %n    →     %e = exp_diff %x, spread_in_threads %n axis 1
//     %t = reduce <sum> %e axis 1             %t = reduce_in_threads <sum> %e axis 1
//     yield %n, %l * exp_diff(%m, %n) + %t    yield %n, %l * exp_diff(%m, %n) + %t
//   }                                       }
//                                           %M = reduce <max> %m axis 1
//                                           %L = reduce <sum> %l * exp_diff(%m, broadcast %M)
//
// The pass takes only reductions across warps, which synchronise through shared memory. It declines
// kernels with matrix products: their layouts want whole rows, and they have no registers to spare.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"

#include "dialects/tk/TkDialect.h"
#include "dialects/tkgpu/TkGpuLayout.h"
#include "passes/layout/TileComponents.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SetVector.h"

namespace tk {
#define GEN_PASS_DEF_DEFERSTATES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

namespace {

/// A sum of exponentials that a loop carries, `carried * factor + sum`.
struct StateSum {
  unsigned number = 0; ///< of the argument
  gpu::ReduceOp sum;
  arith::AddFOp add;
  arith::MulFOp scale;
  ExpDiffOp factor;
};

/// A maximum that a loop carries, and the sums under it.
struct State {
  unsigned number = 0; ///< of the maximum's argument
  gpu::ReduceOp here;  ///< the step's own
  arith::MaximumFOp most;
  SmallVector<BroadcastOp> spreads;
  SmallVector<StateSum> sums;
};

} // namespace

/// Of `op`, the operand that is not `known`.
static Value otherOperand(Operation *op, Value known) {
  return op->getOperand(op->getOperand(0) == known ? 1 : 0);
}

/// The only user of `value` that is a `T`, or null: others may use it too.
template <typename T> static T soleUser(Value value) {
  return value.hasOneUse() ? dyn_cast<T>(*value.user_begin()) : T();
}

/// The maximum that argument `number` of `loop` is, without its sums.
static std::optional<State> matchMaximum(scf::ForOp loop, unsigned number) {
  State state{number, {}, {}, {}, {}};
  BlockArgument carried = loop.getRegionIterArg(number);
  state.most = loop.getYieldedValues()[number].getDefiningOp<arith::MaximumFOp>();
  if (!state.most || state.most->getBlock() != loop.getBody() ||
      !llvm::is_contained(state.most->getOperands(), carried) ||
      !getElementTypeOrSelf(carried.getType()).isF32() ||
      !matchPattern(loop.getInitArgs()[number], m_NegInfFloat()))
    return std::nullopt;
  state.here = otherOperand(state.most, carried).getDefiningOp<gpu::ReduceOp>();
  if (!state.here || state.here.getKind() != ReduceKind::Max || !state.here->hasOneUse() ||
      state.here->getBlock() != loop.getBody())
    return std::nullopt;
  auto layout = getLayout(state.here.getSource().getType());
  if (!layout || axisBits(layout, state.here.getAxis()).warps == 0)
    return std::nullopt;
  return state;
}

/// Reads the products with a factor that takes sums under the carried maximum to sums under the
/// step's.
static bool matchSums(scf::ForOp loop, State &state, ExpDiffOp factor) {
  return llvm::all_of(factor->getUsers(), [&](Operation *user) {
    StateSum found{0, {}, {}, dyn_cast<arith::MulFOp>(user), factor};
    found.add = found.scale ? soleUser<arith::AddFOp>(found.scale.getResult()) : arith::AddFOp();
    auto yield = found.add ? soleUser<scf::YieldOp>(found.add.getResult()) : scf::YieldOp();
    if (!yield || yield->getParentOp() != loop)
      return false;
    found.number = found.add->use_begin()->getOperandNumber();
    BlockArgument carried = loop.getRegionIterArg(found.number);
    found.sum = otherOperand(found.add, found.scale).getDefiningOp<gpu::ReduceOp>();
    state.sums.push_back(found);
    return otherOperand(found.scale, factor) == carried && carried.hasOneUse() && found.sum &&
           found.sum.getKind() == ReduceKind::Sum && found.sum->hasOneUse() &&
           found.sum->getBlock() == loop.getBody() &&
           found.sum.getSource().getType() == state.here.getSource().getType() &&
           found.sum.getAxis() == state.here.getAxis() &&
           matchPattern(loop.getInitArgs()[found.number], m_AnyZeroFloat());
  });
}

/// Is `value`, linear in an exponential, of use for the state's sums alone? Adds it, and what is so
/// computed from it, to `linear`.
static bool isSummed(Value value, const State &state, llvm::SetVector<Value> &linear) {
  if (!linear.insert(value))
    return false; // the second time: a product of two
  return !value.use_empty() && llvm::all_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<gpu::ReduceOp>(user))
      return llvm::any_of(state.sums, [&](const StateSum &sum) { return sum.sum == user; });
    if (auto select = dyn_cast<arith::SelectOp>(user))
      return use.getOperandNumber() == 1 &&
             matchPattern(select.getFalseValue(), m_AnyZeroFloat()) &&
             isSummed(select.getResult(), state, linear);
    return isa<arith::MulFOp>(user) && isSummed(user->getResult(0), state, linear);
  });
}

/// Are the maximum and its copies of use for exponentials that are summed, and for factors, alone?
static bool isUsedForSums(scf::ForOp loop, State &state) {
  llvm::SetVector<Value> linear;
  for (OpOperand &use : state.most->getUses()) {
    if (auto spread = dyn_cast<BroadcastOp>(use.getOwner())) {
      state.spreads.push_back(spread);
      continue;
    }
    auto factor = dyn_cast<ExpDiffOp>(use.getOwner());
    auto isOfSum = [&](const StateSum &sum) { return sum.factor == factor; };
    if (use.getOwner() != loop.getBody()->getTerminator() &&
        (!factor || llvm::none_of(state.sums, isOfSum)))
      return false;
  }
  for (BroadcastOp spread : state.spreads)
    for (OpOperand &use : spread->getUses()) {
      auto weight = dyn_cast<ExpDiffOp>(use.getOwner());
      if (!weight || weight.getA() == spread.getResult() ||
          weight.getType() != state.here.getSource().getType() ||
          !isSummed(weight.getResult(), state, linear))
        return false;
    }
  return true;
}

static std::optional<State> matchState(scf::ForOp loop, unsigned number) {
  std::optional<State> state = matchMaximum(loop, number);
  if (!state)
    return std::nullopt;
  BlockArgument carried = loop.getRegionIterArg(number);
  for (Operation *user : carried.getUsers()) {
    auto factor = dyn_cast<ExpDiffOp>(user);
    if (user != state->most &&
        (!factor || factor.getA() != carried || factor.getB() != state->most.getResult() ||
         !matchSums(loop, *state, factor)))
      return std::nullopt;
  }
  if (state->sums.empty() || !isUsedForSums(loop, *state))
    return std::nullopt;
  llvm::sort(state->sums, [](auto &a, auto &b) { return a.number < b.number; });
  return state;
}

/// Gives argument `number` of a loop another type and start, and returns what the loop leaves.
static OpResult retype(scf::ForOp loop, unsigned number, Type type, TypedAttr start) {
  OpBuilder outside(loop);
  loop.getInitArgsMutable()[number].set(arith::ConstantOp::create(outside, loop.getLoc(), start));
  loop.getRegionIterArg(number).setType(type);
  auto result = cast<OpResult>(loop.getResult(number));
  result.setType(type);
  return result;
}

/// What the threads have of a tile, in place of what `reduce` makes of it.
static RankedTensorType reduceInThreads(gpu::ReduceOp reduce) {
  OpBuilder builder(reduce);
  auto parts = ReduceInThreadsOp::create(builder, reduce.getLoc(), reduce.getSource(),
                                         reduce.getKind(), reduce.getAxis());
  reduce.replaceAllUsesWith(parts.getResult());
  reduce.erase();
  return cast<RankedTensorType>(parts.getType());
}

/// `value`, which all threads along `axis` have, for each of them.
static Value forThreads(OpBuilder &builder, Location loc, RankedTensorType parts, Value value,
                        int64_t axis) {
  SmallVector<int64_t> others;
  for (int64_t a = 0; a < parts.getRank(); ++a)
    if (a != axis)
      others.push_back(a);
  return BroadcastOp::create(builder, loc, parts, value, others);
}

static void defer(scf::ForOp loop, State &state) {
  Location loc = state.here.getLoc();
  const int64_t axis = state.here.getAxis();
  const Type ofRows = state.here.getType();
  const RankedTensorType parts = reduceInThreads(state.here);
  state.most.getResult().setType(parts);
  for (BroadcastOp spread : state.spreads) {
    OpBuilder builder(spread);
    spread.replaceAllUsesWith(
        SpreadInThreadsOp::create(builder, loc, spread.getType(), state.most.getResult(), axis)
            .getResult());
    spread.erase();
  }
  OpBuilder behind(loop);
  auto start = DenseElementsAttr::get(
      parts, llvm::APFloat::getInf(llvm::APFloat::IEEEsingle(), /*Negative=*/true));
  OpResult maxima = retype(loop, state.number, parts, start);
  behind.setInsertionPointAfter(loop);
  auto most = gpu::ReduceOp::create(behind, loc, ofRows, maxima, ReduceKind::Max, axis);
  maxima.replaceAllUsesExcept(most, most);
  Value everywhere = forThreads(behind, loc, parts, most, axis);
  for (StateSum &sum : state.sums) {
    reduceInThreads(sum.sum);
    for (Operation *op :
         {sum.factor.getOperation(), sum.scale.getOperation(), sum.add.getOperation()})
      op->getResult(0).setType(parts);
    OpResult own = retype(loop, sum.number, parts, cast<TypedAttr>(behind.getZeroAttr(parts)));
    IRMapping toAll;
    toAll.map(sum.factor.getA(), maxima);
    toAll.map(sum.factor.getB(), everywhere);
    Value factor = behind.clone(*sum.factor, toAll)->getResult(0);
    auto scaled = arith::MulFOp::create(behind, loc, parts, own, factor);
    auto total = gpu::ReduceOp::create(behind, loc, ofRows, scaled, ReduceKind::Sum, axis);
    own.replaceAllUsesExcept(total, scaled);
  }
}

namespace {

struct DeferStates : tk::impl::DeferStatesBase<DeferStates> {
  void runOnOperation() override {
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      if (hasProducts(function))
        continue;
      SmallVector<scf::ForOp> loops;
      function.walk([&](scf::ForOp loop) { loops.push_back(loop); });
      for (scf::ForOp loop : loops)
        for (unsigned number = 0, count = loop.getNumRegionIterArgs(); number < count; ++number)
          if (std::optional<State> state = matchState(loop, number)) {
            defer(loop, *state);
            ++numStates;
          }
    }
  }
};

} // namespace
