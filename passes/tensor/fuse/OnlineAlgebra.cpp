//===- OnlineAlgebra.cpp - factoring a running value out of an element ----===//
//
// The rules find the factor f for an element t that depends on earlier results m and on the indices
// j:
//
//   t does not depend on m         f = 1
//   a * b                          f = f_a * f_b
//   a / c, -a, select(c, a, 0),    f = f_a           where c does not depend on m
//   select(c, 0, a)
//   round16(a)                     f = f_a           the rounding of a softmax numerator may come
//                                                    before its rescaling
//   round8(a)                      f = f_a           where a is an exponential as below, at most 1,
//                                                    times a constant that the type holds
//   exp(e), exp2(e), exp_diff      e = c * (x(j) - v(m)) + w with c > 0 constant and w free of both
//                                  j and m: f = exp(c * (v(old) - v(new)))
//
// In exact arithmetic the last rule holds for every v. In floating point it must not overflow on
// the way. v must therefore bound x over every part of the range: v is the running maximum of x, or
// the larger of that and another value (mirrored for minima). The analysis declines all other
// elements.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/fuse/OnlineAlgebra.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;

namespace tk {

namespace {
class Separator {
public:
  Separator(ReduceOp reduce, ArrayRef<ReduceOp> earlier, std::string &reason)
      : reduce(reduce), earlier(earlier), onEarlier(getResults(earlier)),
        onIndices(reduce.getBlock()->getArguments()), reason(reason) {}

  bool separate(Value term);
  Separation separation;

private:
  struct Leaf {
    Value value;
    double coefficient;
  };

  static SmallVector<Value> getResults(ArrayRef<ReduceOp> reduces) {
    SmallVector<Value> results;
    for (ReduceOp reduce : reduces)
      llvm::append_range(results, reduce.getResults());
    return results;
  }
  bool decline(const Twine &why) {
    if (reason.empty())
      reason = why.str();
    return false;
  }
  bool separateSelect(arith::SelectOp select);
  bool separateRounding(arith::ExtFOp ext);
  bool separateExpDiff(ExpDiffOp diff);
  bool separateExponential(Operation *exp);
  void collectLeaves(Value value, double coefficient, SmallVectorImpl<Leaf> &leaves);
  bool bounds(Value bound, Value term, bool negated);
  bool isBoundedByTermOf(ReduceOp extremum, Value term);

  ReduceOp reduce;
  ArrayRef<ReduceOp> earlier;
  Dependence onEarlier, onIndices;
  std::string &reason;
  bool underSelect = false;
};
} // namespace

/// An operation in the words of a note.
static StringRef describeOperation(Operation *op) {
  if (isa<arith::SubFOp>(op))
    return "a difference";
  if (isa<arith::AddFOp>(op))
    return "a sum of two values";
  if (isa<arith::DivFOp, DivOrZeroOp>(op))
    return "a quotient";
  if (isa<arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp, arith::MinNumFOp>(op))
    return "a maximum or minimum";
  return op->getName().stripDialect();
}

bool Separator::separate(Value term) {
  if (!onEarlier.on(term))
    return true;
  Operation *op = term.getDefiningOp();
  if (!op || llvm::is_contained(earlier, dyn_cast<ReduceOp>(op)))
    return decline("its term uses an earlier result other than through an exponential");
  if (isa<arith::MulFOp>(op))
    return separate(op->getOperand(0)) && separate(op->getOperand(1));
  if (isa<arith::NegFOp>(op))
    return separate(op->getOperand(0));
  if (isa<arith::DivFOp, DivOrZeroOp>(op) && !onEarlier.on(op->getOperand(1)))
    return separate(op->getOperand(0));
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return separateSelect(select);
  if (auto ext = dyn_cast<arith::ExtFOp>(op))
    return separateRounding(ext);
  if (auto diff = dyn_cast<ExpDiffOp>(op))
    return separateExpDiff(diff);
  if (isa<math::ExpOp, math::Exp2Op>(op))
    return separateExponential(op);
  return decline("an earlier result enters its term through " + describeOperation(op) +
                 ", which does not separate into a product");
}

bool Separator::separateSelect(arith::SelectOp select) {
  bool isFirst = isZero(select.getFalseValue());
  if (onEarlier.on(select.getCondition()) || (!isFirst && !isZero(select.getTrueValue())))
    return decline("its term chooses between values that do not share a factor");
  underSelect = true;
  return separate(isFirst ? select.getTrueValue() : select.getFalseValue());
}

/// Is `value` a constant, or 1 where there is none, times a difference's exponential, and within
/// the numbers that `narrow` holds however the running maximum stands?
static bool staysWithin(Value value, Type narrow) {
  APFloat constant(1.0f);
  if (auto product = value.getDefiningOp<arith::MulFOp>();
      product && matchPattern(product.getRhs(), m_ConstantFloat(&constant)))
    value = product.getLhs();
  return value.getDefiningOp<ExpDiffOp>() &&
         std::abs(constant.convertToDouble()) <= std::ldexp(1.0, largestPowerOf(narrow));
}

bool Separator::separateRounding(arith::ExtFOp ext) {
  auto trunc = ext.getIn().getDefiningOp<arith::TruncFOp>();
  if (!trunc || (trunc.getType().getIntOrFloatBitWidth() != 16 &&
                 !staysWithin(trunc.getIn(), trunc.getType())))
    return decline("its term is rounded to a type whose range the running scale could leave");
  return separate(trunc.getIn());
}

/// True if `term` is at most (at least, for a minimum) the term of `extremum` at the same indices.
bool Separator::isBoundedByTermOf(ReduceOp extremum, Value term) {
  ScalarEquality equality;
  for (unsigned n = 0; n < reduce.getNumIndices(); ++n)
    equality.identify(reduce.getIndex(n), extremum.getIndex(n));
  if (equality.equal(term, extremum.getYield().getValues()[0]))
    return true;
  auto select = term.getDefiningOp<arith::SelectOp>();
  return select && isIdentity(select.getFalseValue(), extremum.getKind(0)) &&
         isBoundedByTermOf(extremum, select.getTrueValue());
}

bool Separator::bounds(Value bound, Value term, bool negated) {
  ReduceKind kind = negated ? ReduceKind::Min : ReduceKind::Max;
  if (auto extremum = bound.getDefiningOp<ReduceOp>())
    return llvm::is_contained(earlier, extremum) && extremum.getKind(0) == kind &&
           isBoundedByTermOf(extremum, term);
  Operation *op = bound.getDefiningOp();
  if (!op || !(negated ? isa<arith::MinimumFOp>(op) : isa<arith::MaximumFOp>(op)))
    return false;
  for (unsigned n : {0, 1})
    if (!onEarlier.on(op->getOperand(1 - n)) && bounds(op->getOperand(n), term, negated))
      return true;
  return false;
}

bool Separator::separateExpDiff(ExpDiffOp diff) {
  if (onEarlier.on(diff.getA()) || onIndices.on(diff.getB()))
    return decline("an earlier result and the index do not stand on two sides of a difference");
  if (!bounds(diff.getB(), diff.getA(), /*negated=*/false))
    return decline("the exponent is not bounded by a running maximum of its own terms");
  separation.factors.push_back({diff, diff.getA(), diff.getB()});
  return true;
}

void Separator::collectLeaves(Value value, double coefficient, SmallVectorImpl<Leaf> &leaves) {
  FloatAttr constant;
  Operation *op = value.getDefiningOp();
  if (op && isa<arith::AddFOp, arith::SubFOp>(op)) {
    collectLeaves(op->getOperand(0), coefficient, leaves);
    collectLeaves(op->getOperand(1), isa<arith::SubFOp>(op) ? -coefficient : coefficient, leaves);
  } else if (op && isa<arith::NegFOp>(op)) {
    collectLeaves(op->getOperand(0), -coefficient, leaves);
  } else if (op && isa<arith::MulFOp>(op) &&
             matchPattern(op->getOperand(1), m_Constant(&constant))) {
    collectLeaves(op->getOperand(0), coefficient * constant.getValueAsDouble(), leaves);
  } else if (op && isa<arith::MulFOp>(op) &&
             matchPattern(op->getOperand(0), m_Constant(&constant))) {
    collectLeaves(op->getOperand(1), coefficient * constant.getValueAsDouble(), leaves);
  } else {
    leaves.push_back({value, coefficient});
  }
}

bool Separator::separateExponential(Operation *exp) {
  // All terms -inf make a plain exponential NaN; that is restored after the loop, which it could
  // not be if some terms were replaced by 0.
  if (underSelect)
    return decline("an exponential stands under a selection");
  SmallVector<Leaf> leaves;
  collectLeaves(exp->getOperand(0), 1.0, leaves);
  const Leaf *bound = nullptr;
  for (const Leaf &leaf : leaves) {
    if (!onEarlier.on(leaf.value))
      continue;
    if (bound || onIndices.on(leaf.value))
      return decline("an earlier result does not enter the exponent as one summand with a constant "
                     "coefficient");
    bound = &leaf;
  }
  if (!bound || bound->coefficient == 0 || !std::isfinite(bound->coefficient))
    return decline("an earlier result does not enter the exponent as one summand with a constant "
                   "coefficient");
  bool negated = bound->coefficient > 0;
  const Leaf *term = nullptr;
  for (const Leaf &leaf : leaves) {
    if (&leaf == bound || !onIndices.on(leaf.value))
      continue;
    if (term || leaf.coefficient != -bound->coefficient)
      return decline("the exponent is not a difference between a term and an earlier result");
    term = &leaf;
  }
  if (!term || !bounds(bound->value, term->value, negated))
    return decline("the exponent is not bounded by a running extremum of its own terms");
  double scale = std::abs(bound->coefficient);
  bool isPlain = leaves.size() == 2 && scale == 1.0 && isa<math::ExpOp>(exp);
  separation.factors.push_back({exp, term->value, bound->value, scale, negated, isPlain});
  return true;
}

std::optional<Separation> separate(ReduceOp reduce, ArrayRef<ReduceOp> earlier,
                                   std::string &reason) {
  Separator separator(reduce, earlier, reason);
  Value term = reduce.getYield().getValues()[0];
  if (!separator.separate(term))
    return std::nullopt;
  if (!separator.separation.factors.empty() && reduce.getKind(0) != ReduceKind::Sum) {
    reason = "only a sum can be rescaled";
    return std::nullopt;
  }
  return separator.separation;
}

} // namespace tk
