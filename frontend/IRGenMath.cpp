// Operators and scalar functions.

#include "frontend/IRGenKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <limits>

namespace tk::frontend {

using namespace mlir;
using sema::Node;
using SOp = sema::Op;

mlir::Value KernelGen::operation(const Node *n) {
  mlir::Location at = loc(n->span);
  if (n->op == SOp::Pow)
    return power(value(n->args[0]), n->args[1]->intValue, sema::isFloat(n->type), at);
  SmallVector<Value> a;
  for (const Node *arg : n->args)
    a.push_back(value(arg));
  switch (n->op) {
  case SOp::Select:
    return arith::SelectOp::create(builder, at, a[0], a[1], a[2]);
  case SOp::Eq:
  case SOp::Ne:
  case SOp::Lt:
  case SOp::Le:
  case SOp::Gt:
  case SOp::Ge:
  case SOp::IsNan:
  case SOp::IsInf:
    return compareOp(n, a, at);
  case SOp::And:
    return arith::AndIOp::create(builder, at, a[0], a[1]);
  case SOp::Or:
    return arith::OrIOp::create(builder, at, a[0], a[1]);
  case SOp::Not:
    return arith::XOrIOp::create(builder, at, a[0], integer(1, builder.getI1Type(), at));
  case SOp::Rand:
    return RandOp::create(builder, at, builder.getF32Type(), a[0], a[1]);
  default:
    return sema::isFloat(n->type) ? floatOp(n, a, at) : integerOp(n, a, at);
  }
}

/// Exact repeated multiplication; a negative exponent is one division at the end.
mlir::Value KernelGen::power(Value base, std::int64_t exponent, bool isFloat, mlir::Location at) {
  mlir::Type type = base.getType();
  auto one = [&] { return isFloat ? number(1, type, at) : integer(1, type, at); };
  auto times = [&](Value x, Value y) -> Value {
    if (isFloat)
      return arith::MulFOp::create(builder, at, x, y);
    return arith::MulIOp::create(builder, at, x, y);
  };
  std::uint64_t rest = static_cast<std::uint64_t>(exponent < 0 ? -exponent : exponent);
  Value result, square = base;
  for (; rest; rest >>= 1) {
    if (rest & 1)
      result = result ? times(result, square) : square;
    if (rest > 1)
      square = times(square, square);
  }
  if (!result)
    return one();
  if (exponent < 0)
    return arith::DivFOp::create(builder, at, one(), result);
  return result;
}

mlir::Value KernelGen::compareOp(const Node *n, ArrayRef<Value> a, mlir::Location at) {
  if (n->op == SOp::IsNan)
    return arith::CmpFOp::create(builder, at, arith::CmpFPredicate::UNO, a[0], a[0]);
  if (n->op == SOp::IsInf) {
    Value magnitude = math::AbsFOp::create(builder, at, a[0]);
    Value inf = number(std::numeric_limits<double>::infinity(), a[0].getType(), at);
    return arith::CmpFOp::create(builder, at, arith::CmpFPredicate::OEQ, magnitude, inf);
  }
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  bool isUnsigned = n->args[0]->type == sema::Type::U8;
  F f = F::OEQ;
  I i = I::eq;
  switch (n->op) {
  case SOp::Ne:
    f = F::UNE, i = I::ne;
    break;
  case SOp::Lt:
    f = F::OLT, i = isUnsigned ? I::ult : I::slt;
    break;
  case SOp::Le:
    f = F::OLE, i = isUnsigned ? I::ule : I::sle;
    break;
  case SOp::Gt:
    f = F::OGT, i = isUnsigned ? I::ugt : I::sgt;
    break;
  case SOp::Ge:
    f = F::OGE, i = isUnsigned ? I::uge : I::sge;
    break;
  default:
    break;
  }
  if (isa<FloatType>(a[0].getType()))
    return arith::CmpFOp::create(builder, at, f, a[0], a[1]);
  return arith::CmpIOp::create(builder, at, i, a[0], a[1]);
}

mlir::Value KernelGen::floatOp(const Node *n, ArrayRef<Value> a, mlir::Location at) {
  mlir::Type type = a[0].getType();
  switch (n->op) {
#define TK_UNARY(NAME, OP)                                                                         \
  case SOp::NAME:                                                                                  \
    return OP::create(builder, at, a[0]);
#define TK_BINARY(NAME, OP)                                                                        \
  case SOp::NAME:                                                                                  \
    return OP::create(builder, at, a[0], a[1]);
    TK_UNARY(Neg, arith::NegFOp)
    TK_BINARY(Add, arith::AddFOp)
    TK_BINARY(Sub, arith::SubFOp)
    TK_BINARY(Mul, arith::MulFOp)
    TK_BINARY(Div, arith::DivFOp)
    TK_BINARY(Min, arith::MinimumFOp)
    TK_BINARY(Max, arith::MaximumFOp)
    TK_BINARY(PowFn, math::PowFOp)
    TK_BINARY(ExpDiff, ExpDiffOp)
    TK_BINARY(DivOrZero, DivOrZeroOp)
    TK_UNARY(Exp, math::ExpOp)
    TK_UNARY(Exp2, math::Exp2Op)
    TK_UNARY(Expm1, math::ExpM1Op)
    TK_UNARY(Log, math::LogOp)
    TK_UNARY(Log2, math::Log2Op)
    TK_UNARY(Log1p, math::Log1pOp)
    TK_UNARY(Sqrt, math::SqrtOp)
    TK_UNARY(Rsqrt, math::RsqrtOp)
    TK_UNARY(Tanh, math::TanhOp)
    TK_UNARY(Erf, math::ErfOp)
    TK_UNARY(Sin, math::SinOp)
    TK_UNARY(Cos, math::CosOp)
    TK_UNARY(Floor, math::FloorOp)
    TK_UNARY(Ceil, math::CeilOp)
    TK_UNARY(Round, math::RoundEvenOp)
    TK_UNARY(Abs, math::AbsFOp)
#undef TK_UNARY
#undef TK_BINARY
  case SOp::Fma:
    return math::FmaOp::create(builder, at, a[0], a[1], a[2]);
  case SOp::Clamp: {
    Value low = arith::MaximumFOp::create(builder, at, a[0], a[1]);
    return arith::MinimumFOp::create(builder, at, low, a[2]);
  }
  case SOp::Rem: {
    // As for integers, the result has the divisor's sign.
    Value zero = number(0, type, at);
    Value r = arith::RemFOp::create(builder, at, a[0], a[1]);
    Value product = arith::MulFOp::create(builder, at, r, a[1]);
    Value wrong = arith::CmpFOp::create(builder, at, arith::CmpFPredicate::OLT, product, zero);
    Value fixed = arith::AddFOp::create(builder, at, r, a[1]);
    return arith::SelectOp::create(builder, at, wrong, fixed, r);
  }
  default:
    return activation(n, a[0], at);
  }
}

mlir::Value KernelGen::activation(const Node *n, Value x, mlir::Location at) {
  mlir::Type type = x.getType();
  auto c = [&](double v) { return number(v, type, at); };
  auto add = [&](Value p, Value q) -> Value { return arith::AddFOp::create(builder, at, p, q); };
  auto mul = [&](Value p, Value q) -> Value { return arith::MulFOp::create(builder, at, p, q); };
  auto sigmoid = [&]() -> Value {
    Value minus = arith::NegFOp::create(builder, at, x);
    Value e = math::ExpOp::create(builder, at, minus);
    return arith::DivFOp::create(builder, at, c(1), add(c(1), e));
  };
  switch (n->op) {
  case SOp::Sigmoid:
    return sigmoid();
  case SOp::Silu: {
    // x / (1 + exp(-x)), one division; x = -inf gives -inf / inf, hence the select.
    Value value = mul(x, sigmoid());
    Value low = arith::CmpFOp::create(builder, at, arith::CmpFPredicate::OEQ, x,
                                      c(-std::numeric_limits<double>::infinity()));
    return arith::SelectOp::create(builder, at, low, c(0), value);
  }
  case SOp::Relu:
    return arith::MaximumFOp::create(builder, at, x, c(0));
  case SOp::Gelu: {
    Value e = math::ErfOp::create(builder, at, mul(x, c(std::sqrt(0.5))));
    return mul(mul(x, c(0.5)), add(e, c(1)));
  }
  case SOp::GeluTanh: {
    Value cube = mul(mul(x, x), x);
    Value inner = mul(add(x, mul(cube, c(0.044715))), c(std::sqrt(2.0 / 3.14159265358979323846)));
    Value t = math::TanhOp::create(builder, at, inner);
    return mul(mul(x, c(0.5)), add(t, c(1)));
  }
  case SOp::Softplus: {
    // max(x, 0) + log1p(exp(-|x|)) does not overflow.
    Value magnitude = math::AbsFOp::create(builder, at, x);
    Value e =
        math::ExpOp::create(builder, at, Value(arith::NegFOp::create(builder, at, magnitude)));
    Value high = arith::MaximumFOp::create(builder, at, x, c(0));
    return add(high, math::Log1pOp::create(builder, at, e));
  }
  case SOp::Sign: {
    Value above = arith::CmpFOp::create(builder, at, arith::CmpFPredicate::OGT, x, c(0));
    Value below = arith::CmpFOp::create(builder, at, arith::CmpFPredicate::OLT, x, c(0));
    Value low = arith::SelectOp::create(builder, at, below, c(-1), x); // keeps 0 and NaN
    return arith::SelectOp::create(builder, at, above, c(1), low);
  }
  default:
    return x;
  }
}

mlir::Value KernelGen::integerOp(const Node *n, ArrayRef<Value> a, mlir::Location at) {
  mlir::Type type = a[0].getType();
  bool isUnsigned = n->type == sema::Type::U8;
  auto c = [&](std::int64_t v) { return integer(v, type, at); };
  auto lower = [&](Value p, Value q) -> Value {
    if (isUnsigned)
      return arith::MinUIOp::create(builder, at, p, q);
    return arith::MinSIOp::create(builder, at, p, q);
  };
  auto higher = [&](Value p, Value q) -> Value {
    if (isUnsigned)
      return arith::MaxUIOp::create(builder, at, p, q);
    return arith::MaxSIOp::create(builder, at, p, q);
  };
  switch (n->op) {
  case SOp::Add:
    return arith::AddIOp::create(builder, at, a[0], a[1]);
  case SOp::Sub:
    return arith::SubIOp::create(builder, at, a[0], a[1]);
  case SOp::Mul:
    return arith::MulIOp::create(builder, at, a[0], a[1]);
  case SOp::Neg:
    return arith::SubIOp::create(builder, at, c(0), a[0]);
  case SOp::FloorDiv:
    return FloorDivOp::create(builder, at, a[0], a[1]);
  case SOp::Rem:
    return FloorModOp::create(builder, at, a[0], a[1]);
  case SOp::Fma: {
    Value product = arith::MulIOp::create(builder, at, a[0], a[1]);
    return arith::AddIOp::create(builder, at, product, a[2]);
  }
  case SOp::Min:
    return lower(a[0], a[1]);
  case SOp::Max:
    return higher(a[0], a[1]);
  case SOp::Clamp:
    return lower(higher(a[0], a[1]), a[2]);
  case SOp::Relu:
    return isUnsigned ? a[0] : higher(a[0], c(0));
  case SOp::Abs:
    return higher(a[0], arith::SubIOp::create(builder, at, c(0), a[0]));
  case SOp::Sign:
    return isUnsigned ? lower(a[0], c(1)) : lower(higher(a[0], c(-1)), c(1));
  case SOp::BitAnd:
    return arith::AndIOp::create(builder, at, a[0], a[1]);
  case SOp::BitOr:
    return arith::OrIOp::create(builder, at, a[0], a[1]);
  case SOp::BitXor:
    return arith::XOrIOp::create(builder, at, a[0], a[1]);
  case SOp::BitNot:
    return arith::XOrIOp::create(builder, at, a[0], c(-1));
  case SOp::Shl:
  case SOp::Shr: {
    // A shift by the width or more is poison in arith; count modulo the width instead.
    Value count = arith::AndIOp::create(builder, at, a[1], c(sema::widthOf(n->type) - 1));
    if (n->op == SOp::Shl)
      return arith::ShLIOp::create(builder, at, a[0], count);
    if (isUnsigned)
      return arith::ShRUIOp::create(builder, at, a[0], count);
    return arith::ShRSIOp::create(builder, at, a[0], count);
  }
  default:
    return a[0];
  }
}

} // namespace tk::frontend
