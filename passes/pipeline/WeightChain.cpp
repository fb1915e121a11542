//===- WeightChain.cpp - loops that sum the rows of their weights ---------===//
//
// The analysis of tk-sum-in-products: from the product behind the last loop backwards, each loop
// that carries both weights and their sum, up to weights before the first loop. All products of the
// chain read tiles of one circular buffer.
//
//===----------------------------------------------------------------------===//
#include "passes/pipeline/WeightChain.h"

#include "passes/machine/limits/Loops.h"
#include "passes/pipeline/Rings.h"

#include "dialects/tkgpu/TkGpuProducts.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::sum_in_products;

/// The product whose left operand is `weights`, the only one that reads them.
static std::optional<WeightChain::Product> productOf(Value weights) {
  if (!weights.hasOneUse())
    return std::nullopt;
  auto dot = dyn_cast<WarpgroupDotOp>(*weights.user_begin());
  if (!dot || dot.getA() != weights || dot.getAccumulate() || isPromoted(dot) ||
      !dot.getResult().hasOneUse())
    return std::nullopt;
  auto wait = dyn_cast<WarpgroupWaitOp>(*dot.getResult().user_begin());
  if (!wait || wait->getBlock() != dot->getBlock())
    return std::nullopt;
  return WeightChain::Product{dot, wait};
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
