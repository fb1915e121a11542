//===- HoistFactors.cpp - hoisting invariant factors out of sums ----------===//
//
// Part of tk-simplify. The rewrite takes the element of a sum apart along multiplication, division,
// negation, selection against zero, and roundings of a normalised softmax numerator. A factor that
// does not vary with the sum's indices is applied to the sum instead of to each element.
//
// These factors stay in the sum:
// * A factor that may be infinite. 0 * inf is NaN in one element, while the sum times inf need not
//   be.
// * A divisor that may be 0. The sum of softmax numerators is an exception: division by 0 leaves
//   the numerator unchanged (tk.div_or_zero).
// * A selection against zero beside another factor that varies, because 0 * NaN is NaN.
// If the range may be empty and the factor may be NaN, the result is kept at 0.
//
// language.md allows these changes of value: sums may be reassociated, and the declared rounding of
// a softmax result may be applied before its division. The rewrite declines if the element uses the
// rounded numerator elsewhere (w * log(w)), because two numerators with different errors would
// result. A rounding that only the matrix unit asks for may come before the division also if a
// linear operation stands between the two (dropout, a tensor of factors).
//
//   %s = tk.reduce [sum] ["j"] {                     %t = tk.reduce [sum] ["j"] {
//     %p = tk.div_or_zero %e, %z                       %q = mulf %e, %v
//     %q = mulf %p, %v                         =>      tk.yield %q }
//     tk.yield %q }                                  %s = tk.div_or_zero %t, %z
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/normalize/Simplify.h"

#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-simplify";

/// One linear operation that was taken off a term: `op` applied to the sum and `operand`.
struct LinearFactor {
  enum Kind { Multiply, Divide, DivideOrZero, Negate, Select } kind;
  Value operand; // null for Negate; the condition for Select
};

namespace {
/// Takes the factors that do not vary with a sum's indices off its term.
class FactorExtractor {
public:
  FactorExtractor(ReduceOp reduce)
      : reduce(reduce), varies(reduce.getBlock()->getArguments()), builder(reduce.getYield()) {}

  /// The term without its invariant factors, which are appended to `factors`. `inProduct`: another
  /// factor that varies multiplies it.
  Value extract(Value term, bool inProduct = false);
  SmallVector<LinearFactor> factors;

private:
  bool isHoistable(Value value);
  /// `isSafe`, which a note says where it does not hold.
  bool mayLeave(bool isSafe, StringRef value);
  Value extractFromRounding(arith::ExtFOp ext);
  Value extractFromRoundedFactor(arith::TruncFOp trunc);
  Value withoutDivision(Value value, Value &divisor);

  ReduceOp reduce;
  Dependence varies;
  OpBuilder builder;
};
} // namespace

/// The value of a constant that is neither infinite nor NaN.
static std::optional<APFloat> getFiniteConstant(Value value) {
  FloatAttr attr;
  if (matchPattern(value, m_Constant(&attr)) && attr.getValue().isFinite())
    return attr.getValue();
  return std::nullopt;
}

static bool isFiniteNonZeroConstant(Value value) {
  std::optional<APFloat> constant = getFiniteConstant(value);
  return constant && constant->isNonZero();
}

/// True of min(max(x, a), b) with constants a and b, `Outer` being the minimum; canonical order has
/// them on the right.
template <typename Outer, typename Inner> static bool isClamp(Operation *op) {
  auto outer = dyn_cast<Outer>(op);
  auto inner = outer ? outer.getLhs().template getDefiningOp<Inner>() : Inner();
  return inner && getFiniteConstant(outer.getRhs()) && getFiniteConstant(inner.getRhs());
}

/// True if `value` is finite or NaN whatever the inputs.
static bool isNeverInfinite(Value value) {
  if (getFiniteConstant(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  // Narrower floats do not hold all integers.
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op))
    return value.getType().getIntOrFloatBitWidth() >= 32;
  if (isa<math::SinOp, math::CosOp, math::TanhOp, math::ErfOp>(op))
    return true;
  if (isa<arith::NegFOp, arith::ExtFOp, math::AbsFOp>(op))
    return isNeverInfinite(op->getOperand(0));
  return isClamp<arith::MinimumFOp, arith::MaximumFOp>(op) ||
         isClamp<arith::MaximumFOp, arith::MinimumFOp>(op);
}

/// The reduction of one value that gives `value`, if it is one of kind `kind` over the ranges of
/// `other`.
static ReduceOp getReductionOverSameRanges(Value value, ReduceKind kind, ReduceOp other) {
  auto reduce = value.getDefiningOp<ReduceOp>();
  return reduce && !reduce.isOnline() && reduce.getKind(0) == kind && haveSameRanges(reduce, other)
             ? reduce
             : ReduceOp();
}

/// Is `value` in the terms of `sum` what `largest`, over the same ranges, is the greatest of?
static bool isTermOf(Value value, ReduceOp sum, ReduceOp largest) {
  ScalarEquality same;
  for (auto [index, other] :
       llvm::zip_equal(sum.getBlock()->getArguments(), largest.getBlock()->getArguments()))
    same.identify(index, other);
  return same.equal(value, largest.getYield().getValues()[0]);
}

/// The number of which `exp` is the exponential, less `bound`; null if it is none.
static Value getDistant(Value exp, Value bound) {
  Operation *op = exp.getDefiningOp();
  if (!isa_and_nonnull<math::ExpOp, math::Exp2Op>(op))
    return {};
  auto distance = op->getOperand(0).getDefiningOp<arith::SubFOp>();
  return distance && distance.getRhs() == bound ? distance.getLhs() : Value();
}

/// True of what a sum of exp(x - b) and exp(y - b) are together, b being the greater of max(x) and
/// y: one of them all is exp(0), or NaN, and none is negative.
static bool isSumWithSink(Value value, ReduceOp other) {
  auto both = value.getDefiningOp<arith::AddFOp>();
  for (unsigned n : {0, 1}) {
    ReduceOp sum =
        both ? getReductionOverSameRanges(both->getOperand(n), ReduceKind::Sum, other) : ReduceOp();
    Value exp = sum ? sum.getYield().getValues()[0] : Value();
    Operation *op = exp ? exp.getDefiningOp() : nullptr;
    if (!isa_and_nonnull<math::ExpOp, math::Exp2Op>(op))
      continue;
    auto distance = op->getOperand(0).getDefiningOp<arith::SubFOp>();
    auto bound = distance ? distance.getRhs().getDefiningOp<arith::MaximumFOp>() : nullptr;
    Value sink = bound ? getDistant(both->getOperand(1 - n), bound) : Value();
    for (unsigned m : {0, 1})
      if (sink && bound->getOperand(m) == sink) {
        ReduceOp largest =
            getReductionOverSameRanges(bound->getOperand(1 - m), ReduceKind::Max, sum);
        if (largest && isTermOf(distance.getLhs(), sum, largest))
          return true;
      }
  }
  return false;
}

/// True of a sum of exp(x - max(x)) over the ranges of `other`: one of its terms is exp(0), or NaN,
/// so that it is 0 over empty ranges alone.
static bool isSumOfWeights(Value value, ReduceOp other) {
  if (isSumWithSink(value, other))
    return true;
  ReduceOp sum = getReductionOverSameRanges(value, ReduceKind::Sum, other);
  Operation *exp = sum ? sum.getYield().getValues()[0].getDefiningOp() : nullptr;
  if (!isa_and_nonnull<math::ExpOp, math::Exp2Op>(exp))
    return false;
  auto distance = exp->getOperand(0).getDefiningOp<arith::SubFOp>();
  ReduceOp largest =
      distance ? getReductionOverSameRanges(distance.getRhs(), ReduceKind::Max, sum) : ReduceOp();
  if (!largest)
    return false;
  return isTermOf(distance.getLhs(), sum, largest);
}

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

bool FactorExtractor::mayLeave(bool isSafe, StringRef value) {
  if (!isSafe)
    note(reduce, passName, Verdict::Declined,
         "an operand that does not vary stays inside the " + describe(reduce) + ": it may be " +
             value);
  return isSafe;
}

/// `value`, which is proportional to a weight, without the weight's division, by `divisor`; null if
/// it is not.
Value FactorExtractor::withoutDivision(Value value, Value &divisor) {
  Operation *op = value.getDefiningOp();
  if (auto weight = dyn_cast_or_null<DivOrZeroOp>(op); weight && isHoistable(weight.getB())) {
    divisor = weight.getB();
    return weight.getA();
  }
  if (auto weight = dyn_cast_or_null<arith::DivFOp>(op);
      weight && isHoistable(weight.getRhs()) && isSumOfWeights(weight.getRhs(), reduce)) {
    divisor = weight.getRhs();
    return weight.getLhs();
  }
  auto select = dyn_cast_or_null<arith::SelectOp>(op);
  bool isChoice = select && (isZero(select.getTrueValue()) || isZero(select.getFalseValue()));
  if (!isChoice && !isa_and_nonnull<arith::MulFOp, arith::DivFOp, arith::NegFOp>(op))
    return {};
  unsigned first = isChoice ? 1 : 0;
  unsigned last = isa<arith::DivFOp>(op) ? 0 : op->getNumOperands() - 1;
  for (unsigned n = first; n <= last; ++n)
    if (Value part = withoutDivision(op->getOperand(n), divisor)) {
      Operation *copy = builder.clone(*op);
      copy->setOperand(n, part);
      return copy->getResult(0);
    }
  return {};
}

/// The rounding of something proportional to a weight, before that weight's division; null if it is
/// none. The type must have the range of what is rounded: undivided it is larger.
Value FactorExtractor::extractFromRoundedFactor(arith::TruncFOp trunc) {
  Value divisor;
  if (!trunc->hasAttr(roundedFactorAttr) || !trunc.getType().isBF16() || !trunc->hasOneUse())
    return {};
  Value undivided = withoutDivision(trunc.getIn(), divisor);
  if (!undivided)
    return {};
  factors.push_back({LinearFactor::DivideOrZero, divisor});
  Operation *rounded = builder.clone(*trunc);
  rounded->setOperand(0, undivided);
  return rounded->getResult(0);
}

/// Unnormalised weights lie in [0, 1]. Eight bits hold few numbers below 1: there the weights are
/// scaled by the largest power of two that the type holds.
Value FactorExtractor::extractFromRounding(arith::ExtFOp ext) {
  auto trunc = ext.getIn().getDefiningOp<arith::TruncFOp>();
  auto weight =
      trunc ? stripClamps(trunc.getIn(), trunc.getType()).getDefiningOp<DivOrZeroOp>() : nullptr;
  if (trunc && !weight && llvm::all_equal(ext->getUsers()))
    if (Value rounded = extractFromRoundedFactor(trunc))
      return arith::ExtFOp::create(builder, ext.getLoc(), ext.getType(), rounded);
  if (!weight || trunc.getType().getIntOrFloatBitWidth() > 16 || !isHoistable(weight.getB()))
    return ext;
  if (!trunc->hasOneUse() || !llvm::all_equal(ext->getUsers())) {
    note(reduce, passName, Verdict::Declined,
         "the division stays inside the " + describe(reduce) +
             ": the rounded quotient is used in more than one place");
    return ext;
  }
  Location loc = trunc.getLoc();
  Value unnormalised = weight.getA();
  if (trunc.getType().getIntOrFloatBitWidth() == 8) {
    int power = largestPowerOf(trunc.getType());
    auto constant = [&](int exponent) {
      return arith::ConstantOp::create(
          builder, loc, builder.getFloatAttr(unnormalised.getType(), std::ldexp(1.0, exponent)));
    };
    factors.push_back({LinearFactor::Multiply, constant(-power)});
    unnormalised = arith::MulFOp::create(builder, loc, unnormalised, constant(power)).getResult();
  }
  factors.push_back({LinearFactor::DivideOrZero, weight.getB()});
  Value rounded = arith::TruncFOp::create(builder, loc, trunc.getType(), unnormalised);
  return arith::ExtFOp::create(builder, ext.getLoc(), ext.getType(), rounded);
}

Value FactorExtractor::extract(Value term, bool inProduct) {
  Operation *op = term.getDefiningOp();
  if (!op || !varies.on(term))
    return term;
  if (auto mul = dyn_cast<arith::MulFOp>(op)) {
    for (auto [kept, factor] :
         {std::pair(mul.getLhs(), mul.getRhs()), std::pair(mul.getRhs(), mul.getLhs())})
      if (isHoistable(factor) && mayLeave(isNeverInfinite(factor), "infinite")) {
        factors.push_back({LinearFactor::Multiply, factor});
        return extract(kept, inProduct);
      }
    Value lhs = extract(mul.getLhs(), /*inProduct=*/true);
    Value rhs = extract(mul.getRhs(), /*inProduct=*/true);
    if (lhs == mul.getLhs() && rhs == mul.getRhs())
      return term;
    return arith::MulFOp::create(builder, mul.getLoc(), lhs, rhs);
  }
  if (auto div = dyn_cast<arith::DivFOp>(op);
      div && isHoistable(div.getRhs()) &&
      mayLeave(isFiniteNonZeroConstant(div.getRhs()) || isSumOfWeights(div.getRhs(), reduce),
               "0")) {
    factors.push_back({LinearFactor::Divide, div.getRhs()});
    return extract(div.getLhs(), inProduct);
  }
  if (auto div = dyn_cast<DivOrZeroOp>(op); div && isHoistable(div.getB())) {
    factors.push_back({LinearFactor::DivideOrZero, div.getB()});
    return extract(div.getA(), inProduct);
  }
  if (auto neg = dyn_cast<arith::NegFOp>(op)) {
    factors.push_back({LinearFactor::Negate, {}});
    return extract(neg.getOperand(), inProduct);
  }
  if (auto select = dyn_cast<arith::SelectOp>(op); select && !inProduct &&
                                                   isHoistable(select.getCondition()) &&
                                                   isZero(select.getFalseValue())) {
    factors.push_back({LinearFactor::Select, select.getCondition()});
    return extract(select.getTrueValue());
  }
  if (auto ext = dyn_cast<arith::ExtFOp>(op))
    return extractFromRounding(ext);
  return term;
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
      mayMakeNaN |= !isFiniteNonZeroConstant(operand);
      break;
    case LinearFactor::Divide:
      sum = arith::DivFOp::create(builder, loc, sum, operand);
      mayMakeNaN |= !isFiniteNonZeroConstant(operand);
      break;
    case LinearFactor::DivideOrZero:
      sum = DivOrZeroOp::create(builder, loc, sum, operand);
      mayMakeNaN |= !getReductionOverSameRanges(factor.operand, ReduceKind::Sum, reduce);
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

bool tk::hoistFactors(ReduceOp reduce) {
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
       "an operand that does not vary is applied to the result of the " + describe(reduce));
  return true;
}
