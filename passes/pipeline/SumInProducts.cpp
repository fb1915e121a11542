//===- SumInProducts.cpp - row sums by the matrix unit --------------------===//
//
// A loop whose rounded softmax numerators are the left operand of a product adds up their rows,
// too. These additions slow the product: accumulators and arithmetic share the ports of the
// register file. With eight extra columns of the right operand that contain ones, the matrix unit
// computes the row sums. That costs a sixteenth of the product's time at 128 columns. It pays for
// 8-bit numerators, and for 16-bit ones in unordered warpgroups, which are bound by their
// instructions (H100, windows with a soft cap: +2 to +3 %). Ordered warpgroups wait for the
// product.
//
// 1. The pass finds a loop that carries numerators to the next iteration's product: p' = round w.
//    The loop carries a sum, too, to which each iteration adds the rows of its own numerators: l' =
//    l * factor + reduce sum w. The loops that it takes both from must do the same, up to
//    numerators before the first loop.
// 2. The tiles of the right operand get the extra columns. For 16-bit operands, tk-specialize-warps
//    must have placed them.
// 3. The sums lag one iteration behind, as the product does. For 8 bits, an iteration's sums begin
//    at zero and are added in f32, because the matrix unit keeps 14 bits of 8-bit products. Over
//    one iteration it loses at most 2^-8 of the sum.
// 4. The sums of the last product are added after it.
//
//   for (%l, %o, %p) {                        for (%l, %o, %p, %s) {
//     %x = wait (dot %p, %v, %o)                %x, %y = wait (dot %p, %v, %o), (sums %p, %v, %s)
//     yield %l * %f + sum %w,            →      yield (%l + first %y) * %f,
//           %x * %f, round %w                         %x * %f, round %w, clear %y
//   }                                         }
//   wait (dot %p, %v, %o)                     %x, %y = wait (dot ...), (sums ...); %l + first %y
//
// 5. For 16 bits without a factor, the sums are carried as accumulators of the matrix unit, in
//    place of the threads' own sums. Every column holds the row's sum.
//
//   for (%l, %o, %p) {                        for (%s, %o, %p) {
//     yield %l + sum in threads %w, ...  →      yield sums %p, %v, %s, ...
//   }                                         }
//   reduce sum %l                             first (sums %p, %v, %s)
//
// The sums are those of the rounded numerators, as the product's are (docs/reference/numerics.md).
// The pass takes only sums that results are divided by; a logarithm would show the rounding.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/pipeline/WeightChain.h"

#include "dialects/tkgpu/TkGpuPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_SUMINPRODUCTS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

RankedTensorType WeightChain::sumsType() {
  auto type = cast<RankedTensorType>(last.dot.getAcc().getType());
  return RankedTensorType::get({type.getDimSize(0), kColumnsOfOnes}, type.getElementType(), layout);
}

/// Has the product sum its weights, too, from `sums` on; gives what it has summed once it is
/// waited for.
static Value addSums(WeightChain::Product &product, Value sums) {
  WarpgroupDotOp dot = product.dot;
  WarpgroupWaitOp wait = product.wait;
  OpBuilder builder(dot);
  builder.setInsertionPointAfter(dot);
  SmallVector<Value> sources(wait.getSources());
  sources.push_back(WarpgroupSumsOp::create(builder, dot.getLoc(), dot.getA(), dot.getB(), sums));
  builder.setInsertionPoint(wait);
  product.wait = WarpgroupWaitOp::create(builder, wait.getLoc(), sources, wait.getPending());
  wait.replaceAllUsesWith(product.wait.getResults().drop_back());
  wait.erase();
  return product.wait.getResults().back();
}

/// `before` and the rows of what is `waited` for, behind that.
static Value addRows(OpBuilder &builder, Value before, Value waited) {
  Value rows = FirstInThreadsOp::create(builder, waited.getLoc(), before.getType(), waited, 1);
  return arith::AddFOp::create(builder, waited.getLoc(), before, rows);
}

/// Has a loop carry what its product has summed, from `sums` on; gives what it ends with.
Value WeightChain::rewriteStep(Step &step, Value sums) {
  IRRewriter rewriter(step.loop);
  // What is carried is cleared where the product is waited for: below.
  auto keep = [](OpBuilder &, Location, ArrayRef<BlockArgument> added) -> SmallVector<Value> {
    return {added.front()};
  };
  step.loop = cast<scf::ForOp>(
      *step.loop.replaceWithAdditionalYields(rewriter, ValueRange(sums), false, keep));
  const unsigned sumsAt = step.loop.getNumResults() - 1;
  BlockArgument carried = step.loop.getRegionIterArg(step.sumAt);
  Value waited = addSums(step.product, step.loop.getRegionIterArg(sumsAt));
  // Behind the wait, or behind the step's own sum, if that is later.
  const bool isLater = step.product.wait->isBeforeInBlock(step.sum.sum);
  rewriter.setInsertionPointAfter(isLater ? step.sum.sum.getOperation() : step.product.wait);
  Value sum = addRows(rewriter, carried, waited);
  Location loc = step.rescaled.getLoc();
  const unsigned side = step.rescaled.getLhs() == carried ? 1 : 0;
  Value next = arith::MulFOp::create(rewriter, loc, sum, step.rescaled->getOperand(side));
  Value cleared = ClearOp::create(rewriter, loc, sums.getType(), waited);
  auto yield = cast<scf::YieldOp>(step.loop.getBody()->getTerminator());
  yield.setOperand(step.sumAt, next);
  yield.setOperand(sumsAt, cleared);
  step.sum.sum.erase();
  step.sum.rows->erase();
  step.rescaled.erase();
  return step.loop.getResult(sumsAt);
}

/// Each step's sums begin at zero, and threads add them to those before.
void WeightChain::rewriteSteps() {
  RankedTensorType type = sumsType();
  OpBuilder builder(steps.front().loop);
  Location loc = last.dot.getLoc();
  Value zeros = arith::ConstantOp::create(builder, loc, cast<TypedAttr>(builder.getZeroAttr(type)));
  Value sums = ClearOp::create(builder, loc, type, zeros);
  initial.sum.replaceAllUsesWith(initial.before);
  initial.sum.erase();
  initial.rows->erase();
  for (Step &step : steps)
    sums = rewriteStep(step, sums);
  Value total = steps.back().loop.getResult(steps.back().sumAt);
  Value waited = addSums(last, sums);
  builder.setInsertionPointAfter(last.wait);
  Value all = addRows(builder, total, waited);
  total.replaceAllUsesExcept(all, all.getDefiningOp());
}

/// What reads `parts`, what threads had of rows, reads `sums` instead, whose columns are the rows.
static void replaceParts(Value parts, Value sums) {
  for (OpOperand &use : llvm::make_early_inc_range(parts.getUses())) {
    Operation *user = use.getOwner();
    if (isa<WarpgroupSumsOp>(user))
      continue;
    OpBuilder builder(user);
    if (auto reduce = dyn_cast<gpu::ReduceOp>(user)) {
      reduce.replaceAllUsesWith(
          FirstInThreadsOp::create(builder, reduce.getLoc(), reduce.getType(), sums, 1)
              .getResult());
      reduce.erase();
      continue;
    }
    auto branch = cast<scf::IfOp>(user->getParentOp());
    const unsigned number = use.getOperandNumber();
    Value result = branch.getResult(number);
    scf::YieldOp other = user == branch.thenYield() ? branch.elseYield() : branch.thenYield();
    builder.setInsertionPoint(other);
    other.setOperand(number, arith::ConstantOp::create(builder, branch.getLoc(),
                                                       builder.getZeroAttr(sums.getType())));
    use.set(sums);
    result.setType(sums.getType());
    replaceParts(result, result);
  }
}

/// Sums go on from step to step in the matrix unit's registers.
void WeightChain::carrySums() {
  RankedTensorType type = sumsType();
  OpBuilder builder(steps.front().loop);
  Value sums = arith::ConstantOp::create(builder, last.dot.getLoc(), builder.getZeroAttr(type));
  Type ofRows = initial.before.getType();
  for (Step &step : steps) {
    BlockArgument carried = step.loop.getRegionIterArg(step.sumAt);
    step.loop.getInitArgsMutable()[step.sumAt].set(sums);
    carried.setType(type);
    Value waited = addSums(step.product, carried);
    step.loop.getBody()->getTerminator()->setOperand(step.sumAt, waited);
    step.sum.sum.erase();
    step.sum.rows->erase();
    sums = step.loop.getResult(step.sumAt);
    sums.setType(type);
  }
  initial.sum.erase();
  initial.rows->erase();
  Value waited = addSums(last, sums);
  if (cast<ShapedType>(ofRows).getRank() > 1)
    return replaceParts(sums, waited);
  builder.setInsertionPointAfter(last.wait);
  Value rows = FirstInThreadsOp::create(builder, last.dot.getLoc(), ofRows, waited, 1);
  sums.replaceUsesWithIf(rows,
                         [](OpOperand &use) { return !isa<WarpgroupSumsOp>(use.getOwner()); });
}

/// Gives the tiles of a ring so many columns of ones.
static void setOnes(AllocSharedOp ring, int64_t count) {
  ring.getResult().setType(ring.getType().withOnes(count));
  for (Operation *user : ring->getUsers()) {
    Value stage = cast<StageOp>(user).getResult();
    stage.setType(cast<SharedType>(stage.getType()).withOnes(count));
  }
}

void WeightChain::rewrite() {
  setOnes(ring, kColumnsOfOnes);
  if (areCarried())
    carrySums();
  else
    rewriteSteps();
}

/// Ones that no product reads are left out.
static void dropOnes(FuncOp function) {
  function.walk([](AllocSharedOp alloc) {
    auto isSummed = [](Operation *user) {
      return llvm::any_of(user->getUsers(), llvm::IsaPred<WarpgroupSumsOp>);
    };
    if (alloc.getType().getOnes() > 0 && llvm::none_of(alloc->getUsers(), isSummed))
      setOnes(alloc, 0);
  });
}

namespace {
struct SumInProducts : tk::impl::SumInProductsBase<SumInProducts> {
  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<TargetAttr>(targetAttrName);
    if (!target)
      return;
    SmallVector<WarpgroupDotOp> dots;
    getOperation().walk([&](WarpgroupDotOp dot) { dots.push_back(dot); });
    for (WarpgroupDotOp dot : dots)
      if (std::optional<WeightChain> chain = WeightChain::endingIn(dot, target.getShared())) {
        changePlan(dot->getParentOfType<FuncOp>(),
                   [](KernelPlan &plan) { plan.rowSums = RowSums::Mma; });
        chain->rewrite();
        ++numSums;
      }
    for (FuncOp function : getOperation().getOps<FuncOp>())
      dropOnes(function);
  }
};
} // namespace
