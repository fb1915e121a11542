//===- Simplify.cpp - fold, merge and hoist at the level of tensors -------===//
//
// Inlining and fusion leave equal expressions, equal reductions and invariant factors behind.
// Passes that match patterns need one canonical form. This pass produces that form. Its patterns
// run in this order:
//
// 1. `fold`: fold, canonicalise and merge equal scalar expressions with MLIR's drivers. Four
//    further rewrites run with them:
//    * compare narrow integers with indices as indices, which have 32 bits on a GPU;
//    * truncate the elements of an integer sum instead of the sum;
//    * move the masked value of a selection to the second operand;
//    * fold a comparison of a clamped float with a value outside of its limits.
// 2. `form-windows`: let ranges of a bounded length begin at 0 (FormWindows.cpp).
// 3. `unroll`: write out reductions of a few elements (UnrollReductions.cpp).
// 4. `order-indices`: order the indices of a reduction as they lie in memory (OrderIndices.cpp).
// 5. `merge-equal`: replace a reduction or scan by an equal one that dominates it. Indices may have
//    different names.
// 6. `separate-products`: split a sum of several products into one sum each (SeparateProducts.cpp).
// 7. `hoist-factors`: apply an invariant factor to the sum instead of to each element
//    (HoistFactors.cpp).
// 8. `group-factors`: multiply the factors of a sum in the order that makes two operands of them
//    (GroupFactors.cpp).
// 9. `reuse-weights`: replace `exp(x - logsumexp)` by a softmax numerator over its sum
//    (SummedWeights.cpp).
// 10. `running-maxima`: take exponentials under the running maximum if they are taken under the
//    greater of it and another value (RunningReferences.cpp).
//
// `fold` runs again after `unroll` and at the end if anything changed. `merge-equal` runs last,
// too.
//
//   %s = tk.reduce [sum] ["j"] {mulf (tk.div_or_zero %e, %z), %v}
//     =>                                                                    // hoist-factors
//   %t = tk.reduce [sum] ["j"] {mulf %e, %v}
//   %s = tk.div_or_zero %t, %z
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/normalize/Simplify.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/tensor/normalize/BandProducts.h"
#include "passes/tensor/normalize/GroupFactors.h"
#include "passes/tensor/normalize/PadConditions.h"
#include "passes/tensor/normalize/RunningReferences.h"
#include "passes/tensor/normalize/SeparateProducts.h"

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

  /// Is `value` made of indices, narrower integers and small constants, and nothing but these and
  /// the limits between them?
  static bool isNarrow(Value value, bool isLimit = false) {
    if (auto cast = value.getDefiningOp<arith::IndexCastOp>())
      return cast.getIn().getType().isIndex();
    if (auto extension = value.getDefiningOp<arith::ExtSIOp>())
      return extension.getIn().getType().getIntOrFloatBitWidth() <= 32;
    APInt number;
    if (isLimit && matchPattern(value, m_ConstantInt(&number)))
      return number.isSignedIntN(32);
    Operation *op = value.getDefiningOp();
    return isa_and_nonnull<arith::MinSIOp, arith::MaxSIOp>(op) &&
           isNarrow(op->getOperand(0), true) && isNarrow(op->getOperand(1), true);
  }

  static Value asIndex(OpBuilder &builder, Location loc, Value value) {
    Operation *op = value.getDefiningOp();
    if (auto cast = dyn_cast<arith::IndexCastOp>(op))
      return cast.getIn();
    APInt number;
    if (matchPattern(value, m_ConstantInt(&number)))
      return arith::ConstantIndexOp::create(builder, loc, number.getSExtValue());
    if (auto extension = dyn_cast<arith::ExtSIOp>(op))
      return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), extension.getIn());
    Value left = asIndex(builder, loc, op->getOperand(0)),
          right = asIndex(builder, loc, op->getOperand(1));
    return isa<arith::MinSIOp>(op) ? arith::MinSIOp::create(builder, loc, left, right).getResult()
                                   : arith::MaxSIOp::create(builder, loc, left, right).getResult();
  }

  LogicalResult matchAndRewrite(arith::CmpIOp compare, PatternRewriter &rewriter) const override {
    using P = arith::CmpIPredicate;
    bool isUnsigned = llvm::is_contained({P::ult, P::ule, P::ugt, P::uge}, compare.getPredicate());
    auto isCast = [](Value value) { return value.getDefiningOp<arith::IndexCastOp>() != nullptr; };
    // Of two of a kind nothing is gained, or nothing known.
    if (isUnsigned || isCast(compare.getLhs()) == isCast(compare.getRhs()))
      return failure();
    if (!isNarrow(compare.getLhs()) || !isNarrow(compare.getRhs()))
      return failure();
    Value left = asIndex(rewriter, compare.getLoc(), compare.getLhs()),
          right = asIndex(rewriter, compare.getLoc(), compare.getRhs());
    rewriter.replaceOpWithNewOp<arith::CmpIOp>(compare, compare.getPredicate(), left, right);
    return success();
  }
};

/// The lower bits of `value` as a `type`, computed from lower bits where that is free.
static Value truncate(OpBuilder &builder, Location loc, Value value, IntegerType type) {
  Operation *op = value.getDefiningOp();
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return arith::ConstantOp::create(
        builder, loc, builder.getIntegerAttr(type, number.sextOrTrunc(type.getWidth())));
  if (auto choice = dyn_cast_or_null<arith::SelectOp>(op)) {
    Value a = truncate(builder, loc, choice.getTrueValue(), type);
    Value b = truncate(builder, loc, choice.getFalseValue(), type);
    return arith::SelectOp::create(builder, loc, choice.getCondition(), a, b);
  }
  if (auto cast = dyn_cast_or_null<arith::IndexCastOp>(op);
      cast && cast.getIn().getType().isIndex())
    return truncate(builder, loc, cast.getIn(), type);
  if (value.getType().isIndex())
    return arith::IndexCastOp::create(builder, loc, type, value);
  return arith::TruncIOp::create(builder, loc, type, value);
}

/// trunci (tk.reduce [sum] {%x : i64}) is tk.reduce [sum] {trunci %x}: sums wrap around.
struct SumLowerBits : OpRewritePattern<arith::TruncIOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncIOp trunc, PatternRewriter &rewriter) const override {
    auto reduce = trunc.getIn().getDefiningOp<ReduceOp>();
    auto type = dyn_cast<IntegerType>(trunc.getType());
    if (!reduce || reduce.isOnline() || reduce.getKind(0) != ReduceKind::Sum || !type ||
        type.getWidth() < 32 || !reduce->hasOneUse())
      return failure();
    rewriter.setInsertionPoint(reduce);
    auto narrow = cast<ReduceOp>(rewriter.clone(*reduce));
    narrow.getResult(0).setType(type);
    YieldOp yield = narrow.getYield();
    rewriter.setInsertionPoint(yield);
    Value term = truncate(rewriter, yield.getLoc(), yield.getValues()[0], type);
    rewriter.modifyOpInPlace(yield, [&] { yield->setOperand(0, term); });
    rewriter.replaceOp(trunc, narrow.getResults());
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

/// %x % 1 is 0, and 7 / 2 is 3: the dialect of these operations makes no constants.
template <class Division> struct DivideConstants : OpRewritePattern<Division> {
  using OpRewritePattern<Division>::OpRewritePattern;

  LogicalResult matchAndRewrite(Division division, PatternRewriter &rewriter) const override {
    SmallVector<OpFoldResult> folded;
    if (failed(division->fold(folded)) || folded.empty())
      return failure();
    auto number = dyn_cast_or_null<TypedAttr>(dyn_cast<Attribute>(folded.front()));
    if (!number)
      return failure();
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(division, number);
    return success();
  }
};

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

static void foldExpressions(Operation *root) {
  MLIRContext *context = root->getContext();
  RewritePatternSet patterns(context);
  patterns.add<CompareAsIndex, SumLowerBits, MaskSecond, BeyondLimits, DivideConstants<FloorDivOp>,
               DivideConstants<FloorModOp>>(context);
  for (Dialect *dialect : context->getLoadedDialects())
    dialect->getCanonicalizationPatterns(patterns);
  for (RegisteredOperationName name : context->getRegisteredOperations())
    name.getCanonicalizationPatterns(patterns, context);
  FrozenRewritePatternSet frozen(std::move(patterns));
  root->walk([&](KernelOp kernel) { (void)applyPatternsGreedily(kernel, frozen); });
}

static void mergeExpressions(Operation *root) {
  IRRewriter rewriter(root->getContext());
  DominanceInfo dominance(root);
  eliminateCommonSubExpressions(rewriter, dominance, root);
}

/// The reductions in `root`, inner ones before those that they are part of.
static SmallVector<ReduceOp> collectReductions(Operation *root) {
  SmallVector<ReduceOp> reduces;
  root->walk([&](ReduceOp reduce) { reduces.push_back(reduce); });
  return reduces;
}

namespace {
struct SimplifyPass : tk::impl::SimplifyBase<SimplifyPass> {
  using SimplifyBase::SimplifyBase;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    bool changed = true;
    auto fold = [&] {
      if (changed) {
        patterns.run("fold", [&] { foldExpressions(getOperation()); });
        patterns.run("merge-expressions", [&] { mergeExpressions(getOperation()); });
      }
      changed = false;
    };
    auto forComputes = [&](StringRef name, llvm::function_ref<void(ComputeOp)> rewrite) {
      patterns.run(name,
                   [&] { getOperation()->walk([&](ComputeOp compute) { rewrite(compute); }); });
    };
    auto merge = [&](ComputeOp compute) { numMerged += mergeEqualReductions(compute); };
    fold();
    const bool isForGpu = getOperation()->hasAttr(gpu::targetAttrName);
    patterns.run("pad-conditions", [&] {
      SmallVector<ComputeOp> computes;
      getOperation()->walk([&](ComputeOp compute) { computes.push_back(compute); });
      for (ComputeOp compute : computes)
        changed |= padConditions(compute, /*splits=*/isForGpu);
    });
    fold();
    patterns.run("band-products", [&] {
      SmallVector<ComputeOp> computes;
      getOperation()->walk([&](ComputeOp compute) { computes.push_back(compute); });
      for (ComputeOp compute : computes)
        changed |= isForGpu && formBandProducts(compute);
    });
    fold();
    patterns.run("form-windows", [&] {
      for (ReduceOp reduce : collectReductions(getOperation()))
        changed |= countRange(reduce) || formWindow(reduce);
    });
    fold();
    patterns.run("unroll", [&] {
      for (ReduceOp reduce : collectReductions(getOperation()))
        changed |= unrollReduction(reduce);
    });
    fold();
    patterns.run("only-terms", [&] {
      for (ReduceOp reduce : collectReductions(getOperation()))
        changed |= takeOnlyTerm(reduce);
    });
    fold();
    patterns.run("form-scans", [&] {
      for (ReduceOp reduce : collectReductions(getOperation()))
        changed |= formScan(reduce);
      SmallVector<ScanOp> scans;
      getOperation()->walk([&](ScanOp scan) { scans.push_back(scan); });
      for (ScanOp scan : scans)
        changed |= shiftScan(scan);
    });
    fold();
    forComputes("order-indices", [&](ComputeOp compute) {
      compute->walk([&](ReduceOp reduce) { numOrdered += orderIndices(reduce); });
    });
    // Merging makes the divisors of one row equal; factors leave inner sums before outer ones.
    forComputes("merge-equal", merge);
    forComputes("separate-products", [&](ComputeOp compute) {
      for (ReduceOp reduce : collectReductions(compute))
        changed |= separateProducts(reduce);
    });
    forComputes("hoist-factors", [&](ComputeOp compute) {
      for (ReduceOp reduce : collectReductions(compute))
        if (hoistFactors(reduce)) {
          ++numHoisted;
          changed = true;
        }
    });
    // Factors that do not vary have left.
    forComputes("group-factors", [&](ComputeOp compute) {
      for (ReduceOp reduce : collectReductions(compute))
        changed |= groupFactors(reduce);
    });
    forComputes("reuse-weights",
                [&](ComputeOp compute) { changed |= reuseSummedWeights(compute) > 0; });
    forComputes("running-maxima", [&](ComputeOp compute) {
      for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>()))
        changed |= reduce.isOnline() && referToRunningMaxima(reduce);
    });
    fold();
    forComputes("merge-equal", merge);
  }
};
} // namespace
