//===- Simplify.cpp - merge equal reductions, move factors out of sums ----===//
//
// 1. Fold, canonicalise and merge equal scalar expressions with the upstream drivers.
//    Indices are compared with narrower integers as indices: on a GPU those have 32 bits.
// 2. Merge a reduction or scan with an equal one that dominates it; indices may be named otherwise.
// 3. For each sum, take apart its term along multiplication, division, negation, selection against
//    zero, and roundings of a normalised softmax weight; whatever factor does not vary with the
//    sum's indices is applied to the sum instead of to each term. Where the range may be empty and
//    the factor infinite or NaN, the result is kept at 0.
// 4. Fold again.
//
// Value changes are those that language.md allows: sums may be reassociated, and the declared
// rounding of a softmax weight may be applied before its division.
//
//   %s = tk.reduce [sum] ["j"] {                     %t = tk.reduce [sum] ["j"] {
//     %p = tk.div_or_zero %e, %z                       %q = mulf %e, %v
//     %q = mulf %p, %v                         =>      tk.yield %q }
//     tk.yield %q }                                  %s = tk.div_or_zero %t, %z
//
//===----------------------------------------------------------------------===//
#include "passes/fusion/Simplify.h"

#include "passes/Passes.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

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

} // namespace

static constexpr llvm::StringLiteral passName = "tk-simplify";

/// One linear operation that was taken off a term: `op` applied to the sum and `operand`.
struct LinearFactor {
  enum Kind { Multiply, Divide, DivideOrZero, Negate, Select } kind;
  Value operand; // null for Negate; the condition for Select
  arith::FastMathFlags flags = arith::FastMathFlags::none;
};

namespace {
/// Takes the factors that do not vary with a sum's indices off its term.
class FactorExtractor {
public:
  FactorExtractor(ReduceOp reduce)
      : reduce(reduce), varies(reduce.getBlock()->getArguments()), builder(reduce.getYield()) {}

  /// The term without its invariant factors, which are appended to `factors`.
  Value extract(Value term);
  SmallVector<LinearFactor> factors;

private:
  bool isHoistable(Value value);
  Value extractFromRounding(arith::ExtFOp ext);

  ReduceOp reduce;
  Dependence varies;
  OpBuilder builder;
};
} // namespace

/// Outside the sum a load happens even where the range is empty. Bounds proofs may rest on the
/// range not being empty; an index that follows an enclosing iteration does not need that.
static bool canLoadEarlier(LoadOp load) {
  return load.getPad() || llvm::all_of(load.getIndices(), [](Value index) {
           return !getIterationIndices(index).empty();
         });
}

bool FactorExtractor::isHoistable(Value value) {
  if (varies.on(value))
    return false;
  for (Operation *op : getSlice(value, reduce.getBlock())) {
    WalkResult walk = op->walk([](LoadOp load) {
      return canLoadEarlier(load) ? WalkResult::advance() : WalkResult::interrupt();
    });
    if (walk.wasInterrupted())
      return false;
  }
  return true;
}

Value FactorExtractor::extractFromRounding(arith::ExtFOp ext) {
  auto trunc = ext.getIn().getDefiningOp<arith::TruncFOp>();
  auto weight = trunc ? trunc.getIn().getDefiningOp<DivOrZeroOp>() : DivOrZeroOp();
  // Unnormalised weights lie in [0, 1]; 8-bit floats would need scaling to keep the small ones.
  if (!weight || trunc.getType().getIntOrFloatBitWidth() != 16 || !isHoistable(weight.getB()))
    return ext;
  factors.push_back({LinearFactor::DivideOrZero, weight.getB()});
  Value rounded = arith::TruncFOp::create(builder, trunc.getLoc(), trunc.getType(), weight.getA());
  return arith::ExtFOp::create(builder, ext.getLoc(), ext.getType(), rounded);
}

Value FactorExtractor::extract(Value term) {
  Operation *op = term.getDefiningOp();
  if (!op || !varies.on(term))
    return term;
  if (auto mul = dyn_cast<arith::MulFOp>(op)) {
    for (auto [kept, factor] :
         {std::pair(mul.getLhs(), mul.getRhs()), std::pair(mul.getRhs(), mul.getLhs())})
      if (isHoistable(factor)) {
        factors.push_back({LinearFactor::Multiply, factor});
        return extract(kept);
      }
    Value lhs = extract(mul.getLhs()), rhs = extract(mul.getRhs());
    if (lhs == mul.getLhs() && rhs == mul.getRhs())
      return term;
    return arith::MulFOp::create(builder, mul.getLoc(), lhs, rhs);
  }
  if (auto div = dyn_cast<arith::DivFOp>(op); div && isHoistable(div.getRhs())) {
    factors.push_back({LinearFactor::Divide, div.getRhs()});
    return extract(div.getLhs());
  }
  if (auto div = dyn_cast<DivOrZeroOp>(op); div && isHoistable(div.getB())) {
    factors.push_back({LinearFactor::DivideOrZero, div.getB()});
    return extract(div.getA());
  }
  if (auto neg = dyn_cast<arith::NegFOp>(op)) {
    factors.push_back({LinearFactor::Negate, {}});
    return extract(neg.getOperand());
  }
  if (auto select = dyn_cast<arith::SelectOp>(op);
      select && isHoistable(select.getCondition()) && isZero(select.getFalseValue())) {
    factors.push_back({LinearFactor::Select, select.getCondition()});
    return extract(select.getTrueValue());
  }
  if (auto ext = dyn_cast<arith::ExtFOp>(op))
    return extractFromRounding(ext);
  return term;
}

/// True if `value` is a constant, so that 0 times it is 0 (a kernel's own scalars are not known to
/// be finite).
static bool isFiniteConstant(Value value) {
  FloatAttr attr;
  return matchPattern(value, m_Constant(&attr)) && attr.getValue().isFinite() &&
         !attr.getValue().isZero();
}

/// Applies `factors` to `sum`, the innermost one first.
static Value applyFactors(OpBuilder &builder, ReduceOp reduce, Value sum,
                          ArrayRef<LinearFactor> factors) {
  Location loc = reduce.getLoc();
  IRMapping hoisted;
  bool mayMakeNaN = false;
  for (const LinearFactor &factor : llvm::reverse(factors)) {
    Value operand =
        factor.operand ? cloneSlice(builder, factor.operand, reduce.getBlock(), hoisted) : Value();
    switch (factor.kind) {
    case LinearFactor::Multiply:
      sum = arith::MulFOp::create(builder, loc, sum, operand);
      mayMakeNaN |= !isFiniteConstant(operand);
      break;
    case LinearFactor::Divide:
      sum = arith::DivFOp::create(builder, loc, sum, operand);
      mayMakeNaN |= !isFiniteConstant(operand);
      break;
    case LinearFactor::DivideOrZero:
      sum = DivOrZeroOp::create(builder, loc, sum, operand);
      break;
    case LinearFactor::Negate:
      sum = arith::NegFOp::create(builder, loc, sum);
      break;
    case LinearFactor::Select: {
      Value zero = createIdentity(builder, loc, ReduceKind::Sum, sum.getType());
      sum = arith::SelectOp::create(builder, loc, operand, sum, zero);
      break;
    }
    }
  }
  if (!mayMakeNaN)
    return sum;
  Value any;
  for (auto [lower, upper] : llvm::zip_equal(reduce.getLower(), reduce.getUpper())) {
    Value some = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, lower, upper);
    any = any ? arith::AndIOp::create(builder, loc, any, some).getResult() : some;
  }
  Value zero = createIdentity(builder, loc, ReduceKind::Sum, sum.getType());
  return arith::SelectOp::create(builder, loc, any, sum, zero);
}

/// Returns true if a factor left the sum.
static bool hoistFactors(ReduceOp reduce) {
  if (reduce.isOnline() || reduce.getKind(0) != ReduceKind::Sum ||
      !isa<FloatType>(reduce.getResult(0).getType()))
    return false;
  FactorExtractor extractor(reduce);
  Value term = extractor.extract(reduce.getYield().getValues()[0]);
  if (extractor.factors.empty())
    return false;
  OpBuilder builder(reduce->getContext());
  builder.setInsertionPointAfter(reduce);
  reduce.getYield()->setOperand(0, term);
  Value sum = reduce.getResult(0);
  SmallPtrSet<Operation *, 8> before;
  for (Operation *user : sum.getUsers())
    before.insert(user);
  Value scaled = applyFactors(builder, reduce, sum, extractor.factors);
  sum.replaceUsesWithIf(scaled, [&](OpOperand &use) { return before.contains(use.getOwner()); });
  note(reduce, passName, Verdict::Derived,
       "a factor that does not vary is applied to the " + describe(reduce) +
           " and not to its terms");
  return true;
}

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
  patterns.add<CompareAsIndex>(context);
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
      // Merging makes the divisors of one row equal; factors leave inner sums before outer ones.
      numMerged += mergeEqualReductions(compute);
      SmallVector<ReduceOp> reduces;
      compute->walk([&](ReduceOp reduce) { reduces.push_back(reduce); });
      for (ReduceOp reduce : reduces)
        if (hoistFactors(reduce)) {
          ++numHoisted;
          changed = true;
        }
    });
    if (changed)
      foldAndMerge(getOperation());
    getOperation()->walk([&](ComputeOp compute) { numMerged += mergeEqualReductions(compute); });
  }
};
} // namespace
