//===- ScalarExpand.cpp - scalar operations in terms of arith -------------===//
#include "passes/lowering/cpu/ScalarExpand.h"

#include "dialects/tk/TkDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tk;
using namespace tk::cpu;

//===----------------------------------------------------------------------===//
// ScalarBuilder
//===----------------------------------------------------------------------===//

Value ScalarBuilder::real(double value, Type type) {
  return arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, value));
}
Value ScalarBuilder::integer(int64_t value, Type type) {
  return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
}
Value ScalarBuilder::add(Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return arith::AddFOp::create(builder, loc, a, b);
  return arith::AddIOp::create(builder, loc, a, b);
}
Value ScalarBuilder::sub(Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return arith::SubFOp::create(builder, loc, a, b);
  return arith::SubIOp::create(builder, loc, a, b);
}
Value ScalarBuilder::mul(Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return arith::MulFOp::create(builder, loc, a, b);
  return arith::MulIOp::create(builder, loc, a, b);
}
Value ScalarBuilder::fma(Value a, Value b, Value c) {
  return math::FmaOp::create(builder, loc, a, b, c);
}
Value ScalarBuilder::bitcast(Value a, Type type) {
  return arith::BitcastOp::create(builder, loc, type, a);
}
Value ScalarBuilder::select(Value condition, Value a, Value b) {
  return arith::SelectOp::create(builder, loc, condition, a, b);
}
Value ScalarBuilder::less(Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, a, b);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, a, b);
}
Value ScalarBuilder::equal(Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, a, b);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, a, b);
}
Value ScalarBuilder::isNan(Value a) {
  return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO, a, a);
}
Value ScalarBuilder::shl(Value a, int64_t bits) {
  return arith::ShLIOp::create(builder, loc, a, integer(bits, a.getType()));
}
Value ScalarBuilder::shr(Value a, int64_t bits) {
  return arith::ShRUIOp::create(builder, loc, a, integer(bits, a.getType()));
}
Value ScalarBuilder::bitAnd(Value a, Value b) { return arith::AndIOp::create(builder, loc, a, b); }
Value ScalarBuilder::bitOr(Value a, Value b) { return arith::OrIOp::create(builder, loc, a, b); }

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// Floor division or remainder. Never divides by 0 or -1, so that nothing traps.
static Value emitFloor(ScalarBuilder &s, Value a, Value b, bool remainder) {
  Type type = a.getType();
  Value zero = s.integer(0, type), one = s.integer(1, type), minusOne = s.integer(-1, type);
  Value byZero = s.equal(b, zero), byMinusOne = s.equal(b, minusOne);
  Value safe = s.select(s.builder.createOrFold<arith::OrIOp>(s.loc, byZero, byMinusOne), one, b);
  Value quotient = arith::DivSIOp::create(s.builder, s.loc, a, safe);
  Value rest = s.sub(a, s.mul(quotient, safe));
  Value nonzero = arith::CmpIOp::create(s.builder, s.loc, arith::CmpIPredicate::ne, rest, zero);
  Value mixed = arith::XOrIOp::create(s.builder, s.loc, s.less(rest, zero), s.less(safe, zero));
  Value adjust = s.bitAnd(nonzero, mixed);
  if (remainder) {
    Value result = s.select(adjust, s.add(rest, safe), rest);
    return s.select(byZero, zero, result);
  }
  Value result = s.select(adjust, s.sub(quotient, one), quotient);
  result = s.select(byMinusOne, s.sub(zero, a), result);
  return s.select(byZero, zero, result);
}

//===----------------------------------------------------------------------===//
// Dispatch
//===----------------------------------------------------------------------===//

/// An f64 as the f32 that narrower types round as they would round the f64 (Boldo and Melquiond,
/// Emulation of FMA and correctly rounded sums, 2008): of the two neighbours the one whose last bit
/// is 1.
static Value emitRoundToOdd(ScalarBuilder &s, Value x) {
  Type f32 = s.builder.getF32Type(), i32 = s.builder.getI32Type();
  Value nearest = arith::TruncFOp::create(s.builder, s.loc, f32, x);
  Value back = arith::ExtFOp::create(s.builder, s.loc, x.getType(), nearest);
  // Not where one is NaN.
  Value isInexact = arith::CmpFOp::create(s.builder, s.loc, arith::CmpFPredicate::ONE, back, x);
  Value bits = s.bitcast(nearest, i32);
  Value isEven = s.equal(s.bitAnd(bits, s.integer(1, i32)), s.integer(0, i32));
  Value isBelow = s.less(math::AbsFOp::create(s.builder, s.loc, back),
                         math::AbsFOp::create(s.builder, s.loc, x));
  Value neighbour = s.add(bits, s.select(isBelow, s.integer(1, i32), s.integer(-1, i32)));
  Value odd = s.select(s.bitAnd(isInexact, isEven), neighbour, bits);
  return s.bitcast(odd, f32);
}

static Value emitConversion(ScalarBuilder &s, Operation *op, Value x) {
  Type to = op->getResult(0).getType(), f32 = s.builder.getF32Type();
  bool narrow = isa<arith::TruncFOp>(op);
  if (narrow && x.getType().isF64() && to.isF16())
    return arith::TruncFOp::create(s.builder, s.loc, to, emitRoundToOdd(s, x));
  if (narrow && isEmulated(to)) {
    if (x.getType().isF64())
      x = emitRoundToOdd(s, x);
    else if (!x.getType().isF32())
      x = isEmulated(x.getType()) ? emitWiden(s.builder, s.loc, x, f32)
                                  : arith::ExtFOp::create(s.builder, s.loc, f32, x).getResult();
    return emitNarrow(s.builder, s.loc, x, to);
  }
  if (!narrow && isEmulated(x.getType())) {
    Value wide = emitWiden(s.builder, s.loc, x, f32);
    if (to.isF32())
      return wide;
    if (to.getIntOrFloatBitWidth() < 32)
      return isEmulated(to) ? emitNarrow(s.builder, s.loc, wide, to)
                            : arith::TruncFOp::create(s.builder, s.loc, to, wide).getResult();
    return arith::ExtFOp::create(s.builder, s.loc, to, wide);
  }
  return {};
}

/// An integer as a float that is emulated, by way of f32, or of f64 where that may not hold it.
static Value emitFromInteger(ScalarBuilder &s, Operation *op, Value x) {
  Type to = op->getResult(0).getType();
  if (!isEmulated(to))
    return {};
  const bool fits = !x.getType().isIndex() && x.getType().getIntOrFloatBitWidth() <= 24;
  Type wide = fits ? Type(s.builder.getF32Type()) : Type(s.builder.getF64Type());
  Value exact = isa<arith::SIToFPOp>(op)
                    ? arith::SIToFPOp::create(s.builder, s.loc, wide, x).getResult()
                    : arith::UIToFPOp::create(s.builder, s.loc, wide, x).getResult();
  return emitNarrow(s.builder, s.loc, fits ? exact : emitRoundToOdd(s, exact), to);
}

/// Functions of f32; those of f64 are left to the library.
static Value emitFunction(ScalarBuilder &s, Operation *op, ValueRange x) {
  OpBuilder &b = s.builder;
  if (!x[0].getType().isF32())
    return {};
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](math::ExpOp) { return emitExp(b, s.loc, x[0]); })
      .Case([&](math::TanhOp) { return emitTanh(b, s.loc, x[0]); })
      .Case([&](math::Exp2Op) { return emitExp2(b, s.loc, x[0]); })
      .Case([&](math::ExpM1Op) { return emitExpM1(b, s.loc, x[0]); })
      .Case([&](math::LogOp) { return emitLog(b, s.loc, x[0]); })
      .Case([&](math::Log2Op) { return emitLog2(b, s.loc, x[0]); })
      .Case([&](math::Log1pOp) { return emitLog1p(b, s.loc, x[0]); })
      .Case([&](math::ErfOp) { return emitErf(b, s.loc, x[0]); })
      .Case([&](math::SinOp) { return emitSin(b, s.loc, x[0]); })
      .Case([&](math::CosOp) { return emitCos(b, s.loc, x[0]); })
      .Case([&](math::PowFOp) { return emitPow(b, s.loc, x[0], x[1]); });
}

Value tk::cpu::expandScalar(OpBuilder &builder, Operation *op, ValueRange operands) {
  ScalarBuilder s(builder, op->getLoc());
  Value special =
      llvm::TypeSwitch<Operation *, Value>(op)
          .Case([&](FloorDivOp) { return emitFloor(s, operands[0], operands[1], false); })
          .Case([&](FloorModOp) { return emitFloor(s, operands[0], operands[1], true); })
          .Case([&](arith::FloorDivSIOp) { return emitFloor(s, operands[0], operands[1], false); })
          .Case<arith::CeilDivSIOp, arith::CeilDivUIOp>([&](auto) {
            // Sizes, which are never negative; ceil(a / b) = -floor(-a / b) in any case.
            Value zero = s.integer(0, operands[0].getType());
            Value down = emitFloor(s, s.sub(zero, operands[0]), operands[1], false);
            return s.sub(zero, down);
          })
          .Case([&](ExpDiffOp) { return emitExpDiff(builder, s.loc, operands[0], operands[1]); })
          .Case([&](DivOrZeroOp) {
            Value zero = s.real(0, operands[1].getType());
            Value quotient = arith::DivFOp::create(builder, s.loc, operands[0], operands[1]);
            return s.select(s.equal(operands[1], zero), operands[0], quotient);
          })
          .Case([&](RandOp rand) {
            return emitRand(builder, s.loc, operands[0], operands[1], rand.getType());
          })
          .Case<math::ExpOp, math::TanhOp, math::Exp2Op, math::ExpM1Op, math::LogOp, math::Log2Op,
                math::Log1pOp, math::ErfOp, math::SinOp, math::CosOp, math::PowFOp>(
              [&](auto) { return emitFunction(s, op, operands); })
          .Case<arith::TruncFOp, arith::ExtFOp>(
              [&](auto) { return emitConversion(s, op, operands[0]); })
          .Case<arith::SIToFPOp, arith::UIToFPOp>(
              [&](auto) { return emitFromInteger(s, op, operands[0]); })
          .Default([](Operation *) { return Value(); });
  return special;
}
