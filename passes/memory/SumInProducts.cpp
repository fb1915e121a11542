//===- SumInProducts.cpp - sums of weights by the product that takes them -===//
//
// A loop whose weights go on to a product as its left operand, rounded to 8 bits, sums their rows,
// too: an addition for each weight, which costs the products beside it a cycle (accumulators and
// arithmetic share the register file's ports). Eight more columns of the right operand that hold
// ones have the matrix unit sum them, for a sixteenth of the product's time at 128 columns.
//
// 1. A loop carries weights to the next step's product, and a sum of which each step adds the rows
//    of its own weights:  l' = l * factor + reduce sum w,  p' = round w.
//    So do the loops that it takes both from, up to weights before the first.
// 2. The right operand's tiles get rows of ones behind them.
// 3. Sums lag behind by a step, as the product does: l' = (l + sums of p) * factor. A step's sums
//    begin at zero and are added in f32, as the matrix unit keeps 14 bits of 8-bit products: over
//    one step it loses at most 2^-8 of the sum, and that only of weights that the product loses.
// 4. Behind the last product its sums are added, too.
//
//   for (%l, %o, %p) {                        for (%l, %o, %p, %s) {
//     %x = wait (dot %p, %v, %o)                %x, %y = wait (dot %p, %v, %o), (sums %p, %v, %s)
//     %w = ...                                  %w = ...
//     yield %l * %f + sum %w,            →      yield (%l + first %y) * %f,
//           %x * %f, round %w                         %x * %f, round %w, clear %y
//   }                                         }
//   wait (dot %p, %v, %o)                     %x, %y = wait (dot ...), (sums ...); %l + first %y
//
// The weights that are summed are then the rounded ones, which is what the product's are: rows of
// results are normalised by what their weights sum to (docs/numerics.md). So it is for sums that
// results are divided by; a logarithm of them would show the rounding.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_SUMINPRODUCTS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// Columns of ones, the fewest that a product takes; and the most columns that it has.
static constexpr int64_t kOnes = 8, kMostColumns = 256;
/// Bytes of shared memory for what is no tile: barriers.
static constexpr int64_t kOtherBytes = 2048;

namespace {

/// Where a step adds up the rows of its weights.
struct StepSum {
  Value before; ///< what they are added to
  arith::AddFOp sum;
  gpu::ReduceOp rows;
};

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
  arith::MulFOp rescaled; ///< of the sum that is carried
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

  SmallVector<Step> steps; ///< the first loop first
  StepSum initial;
  Product last;
  AllocSharedOp ring;
  LayoutAttr layout;
};

} // namespace

/// The tile that is rounded to become `weights`; null if that is none.
static Value roundedFrom(Value weights) {
  if (auto convert = weights.getDefiningOp<ConvertLayoutOp>())
    weights = convert.getSource();
  auto round = weights.getDefiningOp<arith::TruncFOp>();
  return round ? round.getIn() : Value();
}

/// Is `sum` what rows of the tile that `weights` is rounded from have been added to?
static std::optional<StepSum> stepSumOf(Value sum, Value weights) {
  Value tile = roundedFrom(weights);
  auto add = sum.getDefiningOp<arith::AddFOp>();
  if (!tile || !add)
    return std::nullopt;
  for (unsigned side : {0, 1})
    if (auto rows = add->getOperand(side).getDefiningOp<gpu::ReduceOp>();
        rows && rows.getKind() == ReduceKind::Sum && rows.getSource() == tile &&
        rows.getAxis() == 1 && rows->hasOneUse())
      return StepSum{add->getOperand(1 - side), add, rows};
  return std::nullopt;
}

/// The product whose left operand is `weights`, the only one that reads them.
static std::optional<Product> productOf(Value weights) {
  if (!weights.hasOneUse())
    return std::nullopt;
  auto dot = dyn_cast<WarpgroupDotOp>(*weights.user_begin());
  if (!dot || dot.getA() != weights || dot.getAccumulate() || isPromoted(dot) ||
      !isByteFloat(dot.getB().getType().getElementType()) || !dot.getResult().hasOneUse())
    return std::nullopt;
  auto wait = dyn_cast<WarpgroupWaitOp>(*dot.getResult().user_begin());
  if (!wait || wait->getBlock() != dot->getBlock())
    return std::nullopt;
  return Product{dot, wait};
}

/// Does all that reads `sum` divide by it, or by it times something?
static bool isDivisor(Value sum) {
  return llvm::all_of(sum.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<arith::DivFOp, DivOrZeroOp>(user))
      return use.getOperandNumber() == 1;
    if (isa<scf::YieldOp>(user) && isa<scf::IfOp>(user->getParentOp()))
      return isDivisor(user->getParentOp()->getResult(use.getOperandNumber()));
    return isa<arith::MulFOp, BroadcastOp, ExtractOp, ConvertLayoutOp>(user) &&
           isDivisor(user->getResult(0));
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
  step.rescaled = sum->before.getDefiningOp<arith::MulFOp>();
  if (!step.rescaled || !step.rescaled->hasOneUse() ||
      !llvm::is_contained(step.rescaled->getOperands(), carried))
    return false;
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
  return true;
}

/// All products read tiles of one ring, whose rows of ones have room.
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
  SharedType tile = last.dot.getB().getType();
  if (tile.getAxisOrder() != SmallVector<int64_t>({0, 1}) || tile.getPanel() != 0 ||
      tile.getInterleave() != 1 || tile.getHardwareSwizzle() != 128 ||
      tile.getShape()[1] + kOnes > kMostColumns ||
      !llvm::all_of(ring->getUsers(), [](Operation *user) { return isa<StageOp>(user); }))
    return false;
  auto function = last.dot->getParentOfType<FuncOp>();
  int64_t bytes = kOtherBytes + ring.getType().withOnes(kOnes).getSizeInBytes() -
                  ring.getType().getSizeInBytes();
  function.walk([&](AllocSharedOp alloc) { bytes += alloc.getType().getSizeInBytes(); });
  auto rows = cast<RankedTensorType>(last.dot.getType()).getDimSize(0);
  layout = warpgroupAccumulatorLayout(function.getContext(), rows, kOnes, function.getNumWarps());
  // One block of 64 rows for each warpgroup: four sums a thread.
  return bytes <= sharedBytes && layout && layout.getNumRegisters() == 4 &&
         getLayout(initial.before.getType()) == sliceLayout(layout, 1);
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
    if (llvm::all_of(loop.getResult(i).getUsers(), isBehind) && isDivisor(loop.getResult(i)) &&
        chain.collectLoop(loop, i, weights.getResultNumber()) && chain.readRing(sharedBytes))
      return chain;
  }
  return std::nullopt;
}

RankedTensorType WeightChain::sumsType() {
  auto type = cast<RankedTensorType>(last.dot.getAcc().getType());
  return RankedTensorType::get({type.getDimSize(0), kOnes}, type.getElementType(), layout);
}

namespace {
/// What a product has summed, and a sum with these rows.
struct Added {
  Value waited, sum;
};
} // namespace

/// Has the product sum its weights, too, from `sums` on, and adds the rows to `before`: behind the
/// wait, or behind `behind`, if that is later.
static Added addSums(Product product, Value sums, Value before, Operation *behind) {
  WarpgroupDotOp dot = product.dot;
  WarpgroupWaitOp wait = product.wait;
  const bool isLater = behind && wait->isBeforeInBlock(behind);
  OpBuilder builder(dot);
  builder.setInsertionPointAfter(dot);
  Location loc = dot.getLoc();
  SmallVector<Value> sources(wait.getSources());
  sources.push_back(WarpgroupSumsOp::create(builder, loc, dot.getA(), dot.getB(), sums));
  builder.setInsertionPoint(wait);
  auto both = WarpgroupWaitOp::create(builder, wait.getLoc(), sources, wait.getPending());
  wait.replaceAllUsesWith(both.getResults().drop_back());
  wait.erase();
  builder.setInsertionPointAfter(isLater ? behind : both);
  Value waited = both.getResults().back();
  Value rows = FirstInThreadsOp::create(builder, loc, before.getType(), waited, 1);
  return {waited, arith::AddFOp::create(builder, loc, before, rows)};
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
  Added added = addSums(step.product, step.loop.getRegionIterArg(sumsAt), carried, step.sum.sum);
  rewriter.setInsertionPointAfterValue(added.sum);
  Location loc = step.rescaled.getLoc();
  const unsigned side = step.rescaled.getLhs() == carried ? 1 : 0;
  Value next = arith::MulFOp::create(rewriter, loc, added.sum, step.rescaled->getOperand(side));
  Value cleared = ClearOp::create(rewriter, loc, sums.getType(), added.waited);
  auto yield = cast<scf::YieldOp>(step.loop.getBody()->getTerminator());
  yield.setOperand(step.sumAt, next);
  yield.setOperand(sumsAt, cleared);
  step.sum.sum.erase();
  step.sum.rows.erase();
  step.rescaled.erase();
  return step.loop.getResult(sumsAt);
}

void WeightChain::rewrite() {
  ring.getResult().setType(ring.getType().withOnes(kOnes));
  for (Operation *user : ring->getUsers())
    cast<StageOp>(user).getResult().setType(
        cast<StageOp>(user).getResult().getType().withOnes(kOnes));
  RankedTensorType type = sumsType();
  OpBuilder builder(steps.front().loop);
  Location loc = last.dot.getLoc();
  Value zeros = arith::ConstantOp::create(builder, loc, cast<TypedAttr>(builder.getZeroAttr(type)));
  Value sums = ClearOp::create(builder, loc, type, zeros);
  initial.sum.replaceAllUsesWith(initial.before);
  initial.sum.erase();
  initial.rows.erase();
  for (Step &step : steps)
    sums = rewriteStep(step, sums);
  Value total = steps.back().loop.getResult(steps.back().sumAt);
  Added added = addSums(last, sums, total, /*behind=*/nullptr);
  total.replaceAllUsesExcept(added.sum, added.sum.getDefiningOp());
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
        chain->rewrite();
        ++numSums;
      }
  }
};
} // namespace
