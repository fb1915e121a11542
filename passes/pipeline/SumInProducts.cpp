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
#include "passes/machine/limits/Loops.h"
#include "passes/pipeline/Rings.h"
#include "passes/pipeline/WeightSums.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuProducts.h"

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

using namespace limits::sum_in_products;

namespace {

/// A product of carried weights, and what waits for it.
struct Product {
  WarpgroupDotOp dot;
  WarpgroupWaitOp wait;
};

/// One loop of a chain, whose argument `sumAt` carries the sum.
struct Step {
  scf::ForOp loop;
  unsigned sumAt = 0;
  StepSum sum;
  arith::MulFOp rescaled; ///< of the sum that is carried; null if it is carried as it is
  Product product;
};

/// A chain of loops, from weights before the first to the product behind the last.
class WeightChain {
public:
  static std::optional<WeightChain> endingIn(WarpgroupDotOp last, int64_t sharedBytes);
  void rewrite();

private:
  bool collect(Value sum, Value weights);
  bool collectLoop(scf::ForOp loop, unsigned sumAt, unsigned weightsAt);
  bool readRing(int64_t sharedBytes);
  RankedTensorType sumsType();
  Value rewriteStep(Step &step, Value sums);
  void rewriteSteps();
  void carrySums();

  /// Are sums carried as the product is, and not a step's at a time?
  bool areCarried() const { return !steps.front().rescaled; }

  SmallVector<Step> steps; ///< the first loop first
  StepSum initial;
  Product last;
  AllocSharedOp ring;
  LayoutAttr layout;
};

} // namespace

/// The product whose left operand is `weights`, the only one that reads them.
static std::optional<Product> productOf(Value weights) {
  if (!weights.hasOneUse())
    return std::nullopt;
  auto dot = dyn_cast<WarpgroupDotOp>(*weights.user_begin());
  if (!dot || dot.getA() != weights || dot.getAccumulate() || isPromoted(dot) ||
      !dot.getResult().hasOneUse())
    return std::nullopt;
  auto wait = dyn_cast<WarpgroupWaitOp>(*dot.getResult().user_begin());
  if (!wait || wait->getBlock() != dot->getBlock())
    return std::nullopt;
  return Product{dot, wait};
}

/// Does `sum`, what threads have of rows, become rows and nothing else, or zero in another branch?
static bool becomesRows(Value sum) {
  return llvm::all_of(sum.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<gpu::ReduceOp>(user))
      return true;
    auto branch = isa<scf::YieldOp>(user) ? dyn_cast<scf::IfOp>(user->getParentOp()) : scf::IfOp();
    if (!branch)
      return false;
    scf::YieldOp other = user == branch.thenYield() ? branch.elseYield() : branch.thenYield();
    return matchPattern(other.getOperand(use.getOperandNumber()), m_AnyZeroFloat()) &&
           becomesRows(branch.getResult(use.getOperandNumber()));
  });
}

bool WeightChain::collectLoop(scf::ForOp loop, unsigned sumAt, unsigned weightsAt) {
  Step step;
  step.loop = loop, step.sumAt = sumAt;
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  std::optional<StepSum> sum = stepSumOf(yield.getOperand(sumAt), yield.getOperand(weightsAt));
  std::optional<Product> product = productOf(loop.getRegionIterArg(weightsAt));
  BlockArgument carried = loop.getRegionIterArg(sumAt);
  if (!sum || !product || product->dot->getBlock() != loop.getBody() || !carried.hasOneUse() ||
      !sum->sum->hasOneUse() || product->wait->getBlock() != sum->sum->getBlock())
    return false;
  if (isByteFloat(product->dot.getB().getType().getElementType())) {
    step.rescaled = sum->before.getDefiningOp<arith::MulFOp>();
    if (!step.rescaled || !step.rescaled->hasOneUse() ||
        !llvm::is_contained(step.rescaled->getOperands(), carried))
      return false;
  } else if (sum->before != carried || takeTurns(loop->getParentOfType<FuncOp>())) {
    return false;
  }
  step.sum = *sum, step.product = *product;
  steps.insert(steps.begin(), step);
  return collect(loop.getInitArgs()[sumAt], loop.getInitArgs()[weightsAt]);
}

/// Both values are those of a loop that is followed, or of weights before all loops.
bool WeightChain::collect(Value sum, Value weights) {
  if (auto loop = sum.getDefiningOp<scf::ForOp>()) {
    if (weights.getDefiningOp() != loop || !sum.hasOneUse() || !weights.hasOneUse())
      return false;
    return collectLoop(loop, cast<OpResult>(sum).getResultNumber(),
                       cast<OpResult>(weights).getResultNumber());
  }
  std::optional<StepSum> first = stepSumOf(sum, weights);
  if (!first || !sum.hasOneUse())
    return false;
  initial = *first;
  return !areCarried() || matchPattern(first->before, m_AnyZeroFloat());
}

/// All products read tiles of one ring, whose ones have room: those of sums that are carried are
/// there already.
bool WeightChain::readRing(int64_t sharedBytes) {
  SmallVector<WarpgroupDotOp> dots = {last.dot};
  for (const Step &step : steps)
    dots.push_back(step.product.dot);
  for (WarpgroupDotOp dot : dots) {
    auto stage = dot.getB().getDefiningOp<StageOp>();
    auto alloc = stage ? stage.getSource().getDefiningOp<AllocSharedOp>() : AllocSharedOp();
    if (!alloc || (ring && alloc != ring))
      return false;
    ring = alloc;
  }
  const bool hasOnes = ring.getType().getOnes() == kColumnsOfOnes;
  if (!canHaveOnes(last.dot.getB().getType()) || (areCarried() && !hasOnes) ||
      !llvm::all_of(ring->getUsers(), llvm::IsaPred<StageOp>))
    return false;
  auto function = last.dot->getParentOfType<FuncOp>();
  int64_t bytes = kOtherBytes + ring.getType().withOnes(kColumnsOfOnes).getSizeInBytes() -
                  ring.getType().getSizeInBytes();
  function.walk([&](AllocSharedOp alloc) { bytes += alloc.getType().getSizeInBytes(); });
  auto rows = cast<RankedTensorType>(last.dot.getType()).getDimSize(0);
  layout = warpgroupAccumulatorLayout(function.getContext(), rows, kColumnsOfOnes,
                                      function.getNumWarps());
  // One block of 64 rows for each warpgroup: four sums a thread.
  if ((bytes > sharedBytes && !hasOnes) || !layout || layout.getNumRegisters() != 4)
    return false;
  auto before = cast<RankedTensorType>(initial.before.getType());
  LayoutAttr ofRows = getLayout(before);
  // What threads have of rows can be replaced, but not added to.
  if (before.getRank() > 1)
    return areCarried() && sliceLayout(ofRows, 1) == sliceLayout(layout, 1);
  return ofRows == sliceLayout(layout, 1);
}

std::optional<WeightChain> WeightChain::endingIn(WarpgroupDotOp dot, int64_t sharedBytes) {
  auto weights = dyn_cast<OpResult>(dot.getA());
  auto loop = weights ? dyn_cast<scf::ForOp>(weights.getOwner()) : scf::ForOp();
  std::optional<Product> product = loop ? productOf(weights) : std::nullopt;
  if (!product || loop->getBlock() != dot->getBlock())
    return std::nullopt;
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  for (unsigned i = 0, e = loop.getNumResults(); i < e; ++i) {
    if (!stepSumOf(yield.getOperand(i), yield.getOperand(weights.getResultNumber())))
      continue;
    WeightChain chain;
    chain.last = *product;
    auto isBehind = [&](Operation *user) {
      Operation *at = product->wait->getBlock()->findAncestorOpInBlock(*user);
      return at && product->wait->isBeforeInBlock(at);
    };
    const bool areParts = cast<ShapedType>(loop.getResult(i).getType()).getRank() > 1;
    if (llvm::all_of(loop.getResult(i).getUsers(), isBehind) && isDivisor(loop.getResult(i)) &&
        (!areParts || becomesRows(loop.getResult(i))) &&
        chain.collectLoop(loop, i, weights.getResultNumber()) && chain.readRing(sharedBytes))
      return chain;
  }
  return std::nullopt;
}

RankedTensorType WeightChain::sumsType() {
  auto type = cast<RankedTensorType>(last.dot.getAcc().getType());
  return RankedTensorType::get({type.getDimSize(0), kColumnsOfOnes}, type.getElementType(), layout);
}

/// Has the product sum its weights, too, from `sums` on; gives what it has summed once it is
/// waited for.
static Value addSums(Product &product, Value sums) {
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
