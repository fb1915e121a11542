//===- SummedWeights.cpp - sharing the exponentials of a sum --------------===//
//
// Part of tk-simplify. The gradient of a loss is exp(x - z). Here z is the logarithm of the sum s
// of all exponentials, which is computed relative to the greatest x, m. Since
//
//   exp(x - (m + log s)) = exp(x - m) / s,
//
// the gradient is an element of that sum divided by s. A row that keeps its elements computes one
// exponential for each of them instead of two. The reciprocal of s is one number for each row.
//
// Rows with infinities keep their results. If all elements are -inf, s is 0, and 0 times 1 / 0 is
// NaN, as is the exponential of -inf - -inf. If the source sets z to inf for m = inf, 1 replaces 1
// / s, which is NaN: exp_diff(x, inf) is 0 or NaN, as exp(x - inf) is.
//
// Under a sum over the same range the quotient is that of a softmax, whose division is hoisted out
// of the sum. (Examples are a softmax by its logarithm, and attention whose logsumexp is a result.)
// The divisor then gives the quotients of rows with infinities: NaN if m is -inf, and 1 in place of
// s if the source sets z to inf.
//
//   %m = tk.reduce [max] {%x}                             %p = exp_diff %x, %m
//   %s = tk.reduce [sum] {exp_diff %x, %m}                %f = select (%m == inf), 1, 1 / %s
//   %z = select (%m == inf), inf, (addf %m, log %s)   =>  %w = mulf %p, %f
//   %w = math.exp (subf %x, %z)
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/normalize/Simplify.h"

#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-simplify";

namespace {

/// The logarithm of a sum of exponentials.
struct LogSum {
  Value bound;      ///< m
  ReduceOp sum;     ///< of exp_diff(term, m)
  Value isInfinite; ///< where it is inf whatever the sum is; may be null
  Value getTerm() { return sum.getYield().getValues()[0].getDefiningOp<ExpDiffOp>().getA(); }
};

} // namespace

/// The plain reduction over one index of which `value` is the result.
static ReduceOp getReduction(Value value, ReduceKind kind) {
  auto reduce = value.getDefiningOp<ReduceOp>();
  bool isPlain = reduce && !reduce.isOnline() && reduce.getNumAccumulators() == 1 &&
                 reduce.getNumIndices() == 1 && reduce.getKind(0) == kind;
  return isPlain ? reduce : ReduceOp();
}

/// Is `bound` the greatest of the terms whose exponentials under it `sum` has?
static bool isGreatestTerm(Value bound, ReduceOp sum) {
  ReduceOp greatest = getReduction(bound, ReduceKind::Max);
  auto weight = sum.getYield().getValues()[0].getDefiningOp<ExpDiffOp>();
  if (!greatest || !weight || weight.getB() != bound || !haveSameRanges(greatest, sum))
    return false;
  ScalarEquality equality;
  equality.identify(greatest.getIndex(0), sum.getIndex(0));
  return equality.equal(greatest.getYield().getValues()[0], weight.getA());
}

/// `isInfinite`, if that compares `bound` with inf.
static bool comparesWithInfinity(Value isInfinite, Value bound) {
  auto compare = isInfinite.getDefiningOp<arith::CmpFOp>();
  return compare && compare.getPredicate() == arith::CmpFPredicate::OEQ &&
         compare.getLhs() == bound && matchPattern(compare.getRhs(), m_PosInfFloat());
}

static std::optional<LogSum> matchLogSum(Value z) {
  auto select = z.getDefiningOp<arith::SelectOp>();
  if (select && !matchPattern(select.getTrueValue(), m_PosInfFloat()))
    return std::nullopt;
  auto add = (select ? select.getFalseValue() : z).getDefiningOp<arith::AddFOp>();
  if (!add)
    return std::nullopt;
  for (unsigned i : {0u, 1u}) {
    Value bound = add->getOperand(i);
    auto log = add->getOperand(1 - i).getDefiningOp<math::LogOp>();
    ReduceOp sum = log ? getReduction(log.getOperand(), ReduceKind::Sum) : ReduceOp();
    if (sum && isGreatestTerm(bound, sum) &&
        (!select || comparesWithInfinity(select.getCondition(), bound)))
      return LogSum{bound, sum, select ? select.getCondition() : Value()};
  }
  return std::nullopt;
}

/// Is `value` the term of `sum` at the place of one of the statement's indices?
static bool isTermOf(Value value, LogSum logSum, ComputeOp compute) {
  ReduceOp sum = logSum.sum;
  return llvm::any_of(compute.getBlock()->getArguments(), [&](BlockArgument index) {
    ScalarEquality equality;
    equality.identify(index, sum.getIndex(0));
    return matchPattern(sum.getLower()[0], m_Zero()) &&
           compute.getExtents()[index.getArgNumber()] == sum.getUpper()[0] &&
           equality.equal(value, logSum.getTerm());
  });
}

/// Says so where an exponential is a term over its sum.
static void noteReuse(LogSum logSum) {
  note(logSum.sum, passName, Verdict::Derived,
       "an exponential relative to the logarithm of the " + describe(logSum.sum) +
           " is one of its elements, divided by it");
}

/// Is `value`, in the body of `around`, the term of `sum` at the same place of the same range?
static bool isTermUnder(ReduceOp around, Value value, LogSum logSum) {
  ReduceOp sum = logSum.sum;
  if (around.isOnline() || around.getNumIndices() != 1 || around->isAncestor(sum) ||
      !haveSameRanges(around, sum))
    return false;
  ScalarEquality equality;
  equality.identify(around.getIndex(0), sum.getIndex(0));
  return equality.equal(value, logSum.getTerm());
}

/// What the terms of `logSum` are divided by to be the exponentials under it.
static Value createDivisor(OpBuilder &builder, Location loc, LogSum logSum) {
  Value sum = logSum.sum.getResult(0);
  auto type = cast<FloatType>(sum.getType());
  auto constant = [&](const APFloat &value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, value));
  };
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  if (logSum.isInfinite)
    sum = arith::SelectOp::create(builder, loc, logSum.isInfinite,
                                  constant(APFloat::getOne(semantics)), sum);
  Value least = constant(APFloat::getInf(semantics, /*Negative=*/true));
  Value isLeast =
      arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, logSum.bound, least);
  return arith::SelectOp::create(builder, loc, isLeast, constant(APFloat::getNaN(semantics)), sum);
}

static unsigned reuseUnderSums(ComputeOp compute) {
  SmallVector<math::ExpOp> exps;
  compute.walk([&](math::ExpOp exp) {
    if (isa<ReduceOp>(exp->getParentOp()))
      exps.push_back(exp);
  });
  unsigned numReused = 0;
  for (math::ExpOp exp : exps) {
    auto around = cast<ReduceOp>(exp->getParentOp());
    auto difference = exp.getOperand().getDefiningOp<arith::SubFOp>();
    std::optional<LogSum> z = difference ? matchLogSum(difference.getRhs()) : std::nullopt;
    if (!z || !isTermUnder(around, difference.getLhs(), *z))
      continue;
    OpBuilder builder(around), inner(exp);
    Value divisor = createDivisor(builder, exp.getLoc(), *z);
    Value weight = ExpDiffOp::create(inner, exp.getLoc(), difference.getLhs(), z->bound);
    exp.replaceAllUsesWith(DivOrZeroOp::create(inner, exp.getLoc(), weight, divisor).getResult());
    exp.erase();
    noteReuse(*z);
    ++numReused;
  }
  return numReused;
}

unsigned tk::reuseSummedWeights(ComputeOp compute) {
  unsigned numReused = reuseUnderSums(compute);
  for (auto exp : llvm::to_vector(compute.getBlock()->getOps<math::ExpOp>())) {
    auto difference = exp.getOperand().getDefiningOp<arith::SubFOp>();
    std::optional<LogSum> z = difference ? matchLogSum(difference.getRhs()) : std::nullopt;
    if (!z || !isTermOf(difference.getLhs(), *z, compute))
      continue;
    OpBuilder builder(exp);
    Location loc = exp.getLoc();
    auto type = cast<FloatType>(exp.getType());
    Value one = arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, 1.0));
    Value factor = arith::DivFOp::create(builder, loc, one, z->sum.getResult(0));
    if (z->isInfinite)
      factor = arith::SelectOp::create(builder, loc, z->isInfinite, one, factor);
    Value weight = ExpDiffOp::create(builder, loc, difference.getLhs(), z->bound);
    exp.replaceAllUsesWith(arith::MulFOp::create(builder, loc, weight, factor).getResult());
    exp.erase();
    noteReuse(*z);
    ++numReused;
  }
  return numReused;
}
