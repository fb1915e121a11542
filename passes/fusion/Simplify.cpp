//===- Simplify.cpp - merge equal reductions, move factors out of sums ----===//
//
// 1. Fold, canonicalise and merge equal scalar expressions with the upstream drivers.
//    Indices are compared with narrower integers as indices: on a GPU those have 32 bits. Masks
//    stand on the second side of selections. Limited numbers are not asked whether they are outside
//    of wider limits, as conversions to integers ask.
// 2. Order the indices of reductions as memory has them (OrderIndices.cpp).
// 3. Merge a reduction or scan with an equal one that dominates it; indices may be named otherwise.
// 4. Give each product in a sum's terms a sum of its own (SeparateProducts.cpp), and move factors
//    out of sums (HoistFactors.cpp).
// 5. Take exponentials under the logarithm of a sum from its terms (SummedWeights.cpp).
// 6. Make weights under the greater of a running maximum and something else those under the maximum
//    (RunningReferences.cpp).
// 7. Fold again.
//
//===----------------------------------------------------------------------===//
#include "passes/fusion/Simplify.h"

#include "passes/Passes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/fusion/RunningReferences.h"
#include "passes/fusion/SeparateProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <limits>

namespace tk {
#define GEN_PASS_DEF_SIMPLIFY
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

namespace {

/// cmpi (index_cast %i : index to i64), (extsi %n : iN to i64) compares %i with (index_cast %n).
struct CompareAsIndex : OpRewritePattern<arith::CmpIOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::CmpIOp compare, PatternRewriter &rewriter) const override {
    auto asIndex = [&](Value value) -> Value {
      if (auto cast = value.getDefiningOp<arith::IndexCastOp>())
        return cast.getIn().getType().isIndex() ? cast.getIn() : Value();
      auto extension = value.getDefiningOp<arith::ExtSIOp>();
      if (!extension || extension.getIn().getType().getIntOrFloatBitWidth() > 32)
        return {};
      return arith::IndexCastOp::create(rewriter, compare.getLoc(), rewriter.getIndexType(),
                                        extension.getIn());
    };
    using P = arith::CmpIPredicate;
    bool isUnsigned = llvm::is_contained({P::ult, P::ule, P::ugt, P::uge}, compare.getPredicate());
    auto isCast = [](Value value) { return value.getDefiningOp<arith::IndexCastOp>() != nullptr; };
    // Of two of a kind nothing is gained, or nothing known.
    if (isUnsigned || isCast(compare.getLhs()) == isCast(compare.getRhs()))
      return failure();
    Value left = asIndex(compare.getLhs()), right = left ? asIndex(compare.getRhs()) : Value();
    if (!right)
      return failure();
    rewriter.replaceOpWithNewOp<arith::CmpIOp>(compare, compare.getPredicate(), left, right);
    return success();
  }
};

/// Is the opposite of `condition` made of comparisons, too?
static bool hasOpposite(Value condition) {
  Operation *op = condition.getDefiningOp();
  if (isa_and_nonnull<arith::AndIOp, arith::OrIOp>(op))
    return hasOpposite(op->getOperand(0)) && hasOpposite(op->getOperand(1));
  return isa_and_nonnull<arith::CmpIOp>(op);
}

static Value createOpposite(OpBuilder &builder, Value condition) {
  Operation *op = condition.getDefiningOp();
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return arith::CmpIOp::create(builder, op->getLoc(),
                                 arith::invertPredicate(compare.getPredicate()), compare.getLhs(),
                                 compare.getRhs());
  Value a = createOpposite(builder, op->getOperand(0));
  Value b = createOpposite(builder, op->getOperand(1));
  if (isa<arith::AndIOp>(op))
    return arith::OrIOp::create(builder, op->getLoc(), a, b);
  return arith::AndIOp::create(builder, op->getLoc(), a, b);
}

/// select (%j > %i), -inf, %s is select (%j <= %i), %s, -inf: a mask is looked for where its value
/// is the second one. Of two constants the infinite one is the mask's.
struct MaskSecond : OpRewritePattern<arith::SelectOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::SelectOp select, PatternRewriter &rewriter) const override {
    Value masked = select.getTrueValue(), value = select.getFalseValue();
    APFloat number(0.0f), other(0.0f);
    bool isMask = matchPattern(masked, m_ConstantFloat(&number)) && number.isInfinity();
    isMask &= !matchPattern(value, m_ConstantFloat(&other)) || !other.isInfinity();
    isMask |= matchPattern(masked, m_Constant()) && !matchPattern(value, m_Constant());
    if (!isMask || !select.getCondition().getType().isInteger(1) ||
        !hasOpposite(select.getCondition()))
      return failure();
    Value condition = createOpposite(rewriter, select.getCondition());
    rewriter.replaceOpWithNewOp<arith::SelectOp>(select, condition, value, masked);
    return success();
  }
};

/// What a float that is no NaN lies between, by the minima and maxima with constants it is made of.
static std::pair<double, double> limitsOf(Value value) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  FloatAttr constant;
  if (matchPattern(value, m_Constant(&constant)) && !constant.getValue().isNaN())
    return {constant.getValueAsDouble(), constant.getValueAsDouble()};
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<arith::MaximumFOp, arith::MinimumFOp>(op))
    return {-infinity, infinity};
  auto [low, high] = limitsOf(op->getOperand(0));
  auto [otherLow, otherHigh] = limitsOf(op->getOperand(1));
  return isa<arith::MaximumFOp>(op) ? std::pair(std::max(low, otherLow), std::max(high, otherHigh))
                                    : std::pair(std::min(low, otherLow), std::min(high, otherHigh));
}

/// min(max(%x, -127), 127) >= 128 is false, whatever %x is: NaN is in no order.
struct BeyondLimits : OpRewritePattern<arith::CmpFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::CmpFOp compare, PatternRewriter &rewriter) const override {
    using P = arith::CmpFPredicate;
    auto [low, high] = limitsOf(compare.getLhs());
    auto [otherLow, otherHigh] = limitsOf(compare.getRhs());
    P predicate = compare.getPredicate();
    bool isNever =
        (predicate == P::OGE && high < otherLow) || (predicate == P::OGT && high <= otherLow) ||
        (predicate == P::OLE && low > otherHigh) || (predicate == P::OLT && low >= otherHigh);
    if (!isNever || !compare.getType().isInteger(1))
      return failure();
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(compare, rewriter.getBoolAttr(false));
    return success();
  }
};

} // namespace

unsigned tk::mergeEqualReductions(ComputeOp compute) {
  SmallVector<Operation *> kept;
  SmallVector<Operation *> all;
  compute->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<ReduceOp, ScanOp>(op))
      all.push_back(op);
  });
  DominanceInfo dominance(compute);
  llvm::SmallPtrSet<Operation *, 8> erased;
  unsigned merged = 0;
  for (Operation *op : all) {
    if (erased.contains(op))
      continue;
    Operation *same = nullptr;
    for (Operation *earlier : kept)
      if (dominance.properlyDominates(earlier, op, /*enclosingOpOk=*/false) &&
          ScalarEquality().equal(earlier, op)) {
        same = earlier;
        break;
      }
    if (!same) {
      kept.push_back(op);
      continue;
    }
    op->walk([&](Operation *nested) { erased.insert(nested); });
    op->replaceAllUsesWith(same->getResults());
    op->erase();
    ++merged;
  }
  return merged;
}

static void foldAndMerge(Operation *root) {
  MLIRContext *context = root->getContext();
  RewritePatternSet patterns(context);
  patterns.add<CompareAsIndex, MaskSecond, BeyondLimits>(context);
  for (Dialect *dialect : context->getLoadedDialects())
    dialect->getCanonicalizationPatterns(patterns);
  for (RegisteredOperationName name : context->getRegisteredOperations())
    name.getCanonicalizationPatterns(patterns, context);
  FrozenRewritePatternSet frozen(std::move(patterns));
  root->walk([&](KernelOp kernel) { (void)applyPatternsGreedily(kernel, frozen); });
  IRRewriter rewriter(context);
  DominanceInfo dominance(root);
  eliminateCommonSubExpressions(rewriter, dominance, root);
}

namespace {
struct SimplifyPass : tk::impl::SimplifyBase<SimplifyPass> {
  void runOnOperation() override {
    foldAndMerge(getOperation());
    bool changed = false;
    getOperation()->walk([&](ComputeOp compute) {
      compute->walk([&](ReduceOp reduce) { numOrdered += orderIndices(reduce); });
      // Merging makes the divisors of one row equal; factors leave inner sums before outer ones.
      numMerged += mergeEqualReductions(compute);
      auto collect = [&] {
        SmallVector<ReduceOp> reduces;
        compute->walk([&](ReduceOp reduce) { reduces.push_back(reduce); });
        return reduces;
      };
      for (ReduceOp reduce : collect())
        changed |= separateProducts(reduce);
      for (ReduceOp reduce : collect())
        if (hoistFactors(reduce)) {
          ++numHoisted;
          changed = true;
        }
      changed |= reuseSummedWeights(compute) > 0;
      for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>()))
        changed |= reduce.isOnline() && referToRunningMaxima(reduce);
    });
    if (changed)
      foldAndMerge(getOperation());
    getOperation()->walk([&](ComputeOp compute) { numMerged += mergeEqualReductions(compute); });
  }
};
} // namespace
