//===- CommonQuotients.cpp - quotients by a value of all pairs ------------===//
//
// Part of tk-pack-operands. An element of a pairwise contraction may be divided by a value of the
// sum's index alone, as in a distance with a length scale: ((x[n, d] - z[m, d]) / s[d])^2. A
// quotient takes 14 instructions or more, its reciprocal can be had once for all pairs.
//
// 1. With r = 1 / s, rounded, `q = a * r` is corrected once: `q + (a - q * s) * r`, by two fused
//    multiply-adds. The result is a / s as IEEE 754 rounds it (Markstein), unless a step of it
//    leaves the range of normal numbers.
// 2. No step does if s is from 2^-40 to 2^40 in size, and the dividend is 0 or from 2^-84 to 2^61.
//    The dividend is a value of a row or a column, or a sum or difference of both. These are
//    multiples of 2^-84 if each value is 0 or from 2^-60 to 2^60 in size.
// 3. Values outside of these ranges become NaN as they are stored. All operations up to the sum are
//    such that it is NaN then. The reader computes such sums again, with quotients.
// 4. A quotient of -0 may be 0. No sum of products, squares or absolute values tells these apart.
//
//   divf (subf %x, %z), %s
//     =>
//   %r = divf 1, %s'; %a = subf %x', %z'; %q = mulf %a, %r; fma (fma -%q, %s', %a), %r, %q
//                                               with %v' = %v is in its range ? %v : NaN
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/split/CommonQuotients.h"

#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

/// Sizes of dividends' values, and of divisors.
static constexpr float leastTerm = 0x1p-60, mostTerm = 0x1p60, leastDivisor = 0x1p-40,
                       mostDivisor = 0x1p40;

namespace {

/// The pairs that a sum is over.
struct Pairs {
  ReduceOp reduce;
  Value row, column;

  bool varies(Value value, Value index) const {
    return llvm::is_contained(getIterationIndices(value), index);
  }
  /// Is `value` one of a row or a column alone?
  bool isOfSide(Value value) const {
    return value.getType().isF32() && !(varies(value, row) && varies(value, column));
  }
  bool isCommon(Value divisor) const {
    Value index = ReduceOp(reduce).getIndex(0);
    return divisor.getType().isF32() && varies(divisor, index) && !varies(divisor, row) &&
           !varies(divisor, column);
  }
  SmallVector<arith::DivFOp> quotients() const;
};

} // namespace

/// Is the sum NaN if `value` is, and the same whatever the sign of `value` is if that is 0?
static bool reachesSum(Value value, ReduceOp reduce) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (user->getBlock() != reduce.getBlock())
      return false;
    return isa<YieldOp>(user) ||
           (isa<arith::MulFOp, arith::AddFOp, arith::SubFOp, arith::NegFOp, math::AbsFOp>(user) &&
            reachesSum(user->getResult(0), reduce));
  });
}

SmallVector<arith::DivFOp> Pairs::quotients() const {
  SmallVector<arith::DivFOp> found;
  if (ReduceOp(reduce).getKind(0) != ReduceKind::Sum)
    return found;
  for (auto quotient : ReduceOp(reduce).getBlock()->getOps<arith::DivFOp>()) {
    Value dividend = quotient.getLhs();
    Operation *sum = dividend.getDefiningOp();
    const bool isSum = isa_and_nonnull<arith::AddFOp, arith::SubFOp>(sum) &&
                       isOfSide(sum->getOperand(0)) && isOfSide(sum->getOperand(1));
    if (isCommon(quotient.getRhs()) && !isOfSide(dividend) && isSum &&
        reachesSum(quotient.getResult(), reduce))
      found.push_back(quotient);
  }
  return found;
}

bool tk::hasCommonQuotients(ReduceOp reduce, Value row, Value column) {
  return !Pairs{reduce, row, column}.quotients().empty();
}

/// A constant of f32 ahead of the compute op that `builder` is in.
static Value createConstant(OpBuilder &builder, Location loc, const APFloat &number) {
  Operation *around = builder.getBlock()->getParentOp();
  OpBuilder outside(around->getParentOfType<ComputeOp>());
  return arith::ConstantOp::create(outside, loc,
                                   outside.getFloatAttr(outside.getF32Type(), number));
}

/// `value` where its size is from `least` to `most`, or where it is 0 if it may be; else NaN.
static Value guard(OpBuilder &builder, Location loc, Value value, float least, float most,
                   bool mayBeZero) {
  auto constant = [&](float number) { return createConstant(builder, loc, APFloat(number)); };
  auto compare = [&](arith::CmpFPredicate predicate, Value a, float b) -> Value {
    return arith::CmpFOp::create(builder, loc, predicate, a, constant(b));
  };
  Value size = math::AbsFOp::create(builder, loc, value);
  Value isInside =
      arith::AndIOp::create(builder, loc, compare(arith::CmpFPredicate::OGE, size, least),
                            compare(arith::CmpFPredicate::OLE, size, most));
  if (mayBeZero)
    isInside = arith::OrIOp::create(builder, loc, isInside,
                                    compare(arith::CmpFPredicate::OEQ, size, 0.0F));
  Value none = createConstant(builder, loc, APFloat::getQNaN(APFloat::IEEEsingle()));
  return arith::SelectOp::create(builder, loc, isInside, value, none);
}

void tk::multiplyByReciprocals(ReduceOp reduce, Value row, Value column) {
  DenseMap<Value, Value> guarded, divisors, reciprocals;
  for (arith::DivFOp quotient : Pairs{reduce, row, column}.quotients()) {
    OpBuilder builder(quotient);
    Location loc = quotient.getLoc();
    Value &divisor = divisors[quotient.getRhs()], &reciprocal = reciprocals[quotient.getRhs()];
    if (!divisor) {
      divisor = guard(builder, loc, quotient.getRhs(), leastDivisor, mostDivisor, false);
      Value one = createConstant(builder, loc, APFloat(1.0F));
      reciprocal = arith::DivFOp::create(builder, loc, one, divisor);
    }
    Operation *dividend = builder.clone(*quotient.getLhs().getDefiningOp());
    for (OpOperand &operand : dividend->getOpOperands()) {
      Value &own = guarded[operand.get()];
      if (!own) {
        builder.setInsertionPoint(dividend);
        own = guard(builder, loc, operand.get(), leastTerm, mostTerm, true);
      }
      operand.set(own);
    }
    builder.setInsertionPoint(quotient);
    Value a = dividend->getResult(0), first = arith::MulFOp::create(builder, loc, a, reciprocal);
    Value negated = arith::NegFOp::create(builder, loc, first);
    Value rest = math::FmaOp::create(builder, loc, negated, divisor, a);
    quotient.replaceAllUsesWith(
        math::FmaOp::create(builder, loc, rest, reciprocal, first).getResult());
    quotient.erase();
  }
}
