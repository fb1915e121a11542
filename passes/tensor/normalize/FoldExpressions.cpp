//===- FoldExpressions.cpp - patterns that fold scalar expressions --------===//
#include "passes/tensor/normalize/Simplify.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <limits>

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

void tk::foldExpressions(Operation *root) {
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
