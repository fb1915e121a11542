//===- ScalarFunctions.cpp - functions of f32 as polynomials --------------===//
//
// Each function in arithmetic without branches or tables, within 2 ulp of f32, special values
// included, so that loops over it vectorise. Polynomials were fitted in the least maximum of the
// weighted error over the reduced range.
//
//===----------------------------------------------------------------------===//
#include "passes/lowering/cpu/ScalarExpand.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace tk::cpu;

static constexpr double infinity = std::numeric_limits<double>::infinity();

static Value quietNan(ScalarBuilder &s, Type type) {
  return s.real(std::numeric_limits<double>::quiet_NaN(), type);
}

/// Horner's scheme, the highest coefficient first.
static Value polynomial(ScalarBuilder &s, Value x, ArrayRef<double> coefficients) {
  Value p = s.real(coefficients.front(), x.getType());
  for (double c : coefficients.drop_front())
    p = s.fma(p, x, s.real(c, x.getType()));
  return p;
}

//===----------------------------------------------------------------------===//
// Logarithms
//===----------------------------------------------------------------------===//

namespace {
/// x = 2^exponent * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)]; log(1 + f) = f + tail.
struct Logarithm {
  Value exponent, f, tail;
};
} // namespace

static Logarithm reducedLog(ScalarBuilder &s, Value x) {
  Type f32 = x.getType(), i32 = s.builder.getI32Type();
  Value isSmall = s.less(x, s.real(std::ldexp(1.0, -126), f32)); // subnormal
  Value scaled = s.select(isSmall, s.mul(x, s.real(std::ldexp(1.0, 24), f32)), x);
  Value bits = s.bitcast(scaled, i32), root = s.integer(0x3F3504F3, i32); // sqrt(1/2)
  Value e = arith::ShRSIOp::create(s.builder, s.loc, s.sub(bits, root), s.integer(23, i32));
  Value f = s.sub(s.bitcast(s.sub(bits, s.shl(e, 23)), f32), s.real(1, f32));
  Value exponent = arith::SIToFPOp::create(s.builder, s.loc, f32, e);
  exponent = s.sub(exponent, s.select(isSmall, s.real(24, f32), s.real(0, f32)));
  Value p = polynomial(s, f,
                       {0.0691798329, -0.117796667, 0.118660353, -0.123857982, 0.142199188,
                        -0.166691974, 0.20002152, -0.249999866, 0.333333105});
  Value square = s.mul(f, f);
  Value tail = s.fma(s.mul(square, f), p, s.mul(square, s.real(-0.5, f32)));
  return {exponent, f, tail};
}

/// What a logarithm is where x is 0, negative, infinite or NaN.
static Value withSpecialLogs(ScalarBuilder &s, Value x, Value result) {
  Type type = x.getType();
  Value zero = s.real(0, type), high = s.real(infinity, type);
  result = s.select(s.equal(x, high), high, result);
  result = s.select(s.equal(x, zero), s.real(-infinity, type), result);
  Value isInvalid = arith::CmpFOp::create(s.builder, s.loc, arith::CmpFPredicate::ULT, x, zero);
  return s.select(isInvalid, quietNan(s, type), result);
}

Value tk::cpu::emitLog(OpBuilder &builder, Location loc, Value x) {
  ScalarBuilder s(builder, loc);
  Type f32 = x.getType();
  auto [e, f, tail] = reducedLog(s, x);
  // ln 2 in two parts, the first so short that its product with e is exact.
  Value low = s.fma(e, s.real(-2.12194440e-4, f32), tail);
  return withSpecialLogs(s, x, s.fma(e, s.real(0.693359375, f32), s.add(f, low)));
}

Value tk::cpu::emitLog2(OpBuilder &builder, Location loc, Value x) {
  ScalarBuilder s(builder, loc);
  auto [e, f, tail] = reducedLog(s, x);
  Value factor = s.real(0.442695040888963407, x.getType()); // 1 / ln 2 - 1
  Value low = s.fma(f, factor, s.fma(tail, factor, tail));
  return withSpecialLogs(s, x, s.add(e, s.add(f, low)));
}

Value tk::cpu::emitLog1p(OpBuilder &builder, Location loc, Value x) {
  ScalarBuilder s(builder, loc);
  Type f32 = x.getType();
  // log(1 + x) of the rounded sum, and what the rounding lost.
  Value sum = s.add(x, s.real(1, f32));
  Value lost = s.sub(x, s.sub(sum, s.real(1, f32)));
  Value correction = arith::DivFOp::create(builder, loc, lost, sum);
  Value log = emitLog(builder, loc, sum);
  Value isPlain = s.bitAnd(s.less(s.real(0, f32), sum), s.less(sum, s.real(infinity, f32)));
  return s.select(isPlain, s.add(log, correction), log);
}

//===----------------------------------------------------------------------===//
// The error function
//===----------------------------------------------------------------------===//

Value tk::cpu::emitErf(OpBuilder &builder, Location loc, Value x) {
  ScalarBuilder s(builder, loc);
  Type f32 = x.getType();
  Value magnitude = math::AbsFOp::create(builder, loc, x);
  // Near 0: x + x p(x^2).
  Value p = polynomial(s, s.mul(x, x),
                       {8.21542344e-05, -0.00081059651, 0.00519779697, -0.0268581044, 0.112836726,
                        -0.376126319, 0.128379166});
  Value small = s.fma(x, p, x);
  // Further out: 1 - exp(x q(x)); beyond 4 that rounds to 1.
  Value limit = s.real(4, f32);
  Value t = s.select(s.less(limit, magnitude), limit, magnitude);
  Value q = polynomial(s, t,
                       {-5.15088323e-06, 4.82022624e-05, 3.60646045e-05, -0.00289230049,
                        0.0226120092, -0.105202913, -0.635656536, -1.12854493});
  Value large = s.sub(s.real(1, f32), emitExp(builder, loc, s.mul(t, q)));
  large = math::CopySignOp::create(builder, loc, large, x);
  return s.select(s.less(s.real(0.93, f32), magnitude), large, small);
}

//===----------------------------------------------------------------------===//
// Sine and cosine
//===----------------------------------------------------------------------===//

namespace {
/// |x| = (quadrant + fraction) * pi / 2 with |fraction| <= 1/2; angle = fraction * pi / 2.
struct Angle {
  Value quadrant, angle; ///< i64, of which the lowest two bits count; f32
};
} // namespace

/// Payne and Hanek's reduction in 64-bit integers. |x| = m * 2^e with a 24-bit m, and a window of
/// 64 bits of 2/pi, chosen by e, holds those that x * 2/pi needs: higher ones are multiples of a
/// turn, lower ones below what f32 can tell. So the error does not grow with x.
static Angle reduceAngle(ScalarBuilder &s, Value magnitude) {
  OpBuilder &b = s.builder;
  Type i32 = b.getI32Type(), i64 = b.getI64Type(), f32 = magnitude.getType();
  Value bits = s.bitcast(magnitude, i32);
  // Below 1/2 the angle is x itself: there the shift, at least 0, does not matter.
  Value shift32 = s.sub(s.shr(bits, 23), s.integer(126, i32));
  shift32 = s.select(s.less(shift32, s.integer(0, i32)), s.integer(0, i32), shift32);
  Value shift = arith::ExtUIOp::create(b, s.loc, i64, shift32);
  Value mantissa = s.bitOr(s.bitAnd(bits, s.integer(0x7FFFFF, i32)), s.integer(0x800000, i32));
  // 2/pi * 2^38, then the bits that follow: at a shift of 0, the window's unit is 2^-62 turns / 4.
  Value w0 = s.integer(0x28BE60DB93, i64);
  Value w1 = s.integer(int64_t(0x91054A7F09D5F47DULL), i64);
  Value w2 = s.integer(0x4D377036D8A5664F, i64);
  auto atLeast = [&](int64_t bound) -> Value {
    return arith::CmpIOp::create(b, s.loc, arith::CmpIPredicate::sge, shift, s.integer(bound, i64));
  };
  Value high = s.select(atLeast(128), w2, s.select(atLeast(64), w1, w0));
  Value low = s.select(atLeast(64), w2, w1);
  Value k = s.bitAnd(shift, s.integer(63, i64));
  Value rest = arith::SubIOp::create(b, s.loc, s.integer(63, i64), k);
  Value window = s.bitOr(arith::ShLIOp::create(b, s.loc, high, k),
                         arith::ShRUIOp::create(b, s.loc, s.shr(low, 1), rest));
  Value product = s.mul(arith::ExtUIOp::create(b, s.loc, i64, mantissa), window);
  // Rounded to a quadrant, and what is over, as a signed number.
  Value half = s.integer(int64_t(1) << 61, i64);
  Value rounded = s.add(product, half);
  Value fraction = s.sub(s.bitAnd(rounded, s.integer((int64_t(1) << 62) - 1, i64)), half);
  Type f64 = b.getF64Type();
  Value angle =
      s.mul(arith::SIToFPOp::create(b, s.loc, f64, fraction), s.real(std::ldexp(M_PI_2, -62), f64));
  Value isSmall = s.less(magnitude, s.real(0.5, f32));
  return {s.select(isSmall, s.integer(0, i64), s.shr(rounded, 62)),
          s.select(isSmall, magnitude, arith::TruncFOp::create(b, s.loc, f32, angle))};
}

/// The sine of |x| + turns / 4, for x that is finite.
static Value sineOf(ScalarBuilder &s, Value magnitude, int64_t turns) {
  Type f32 = magnitude.getType(), i64 = s.builder.getI64Type();
  auto [quadrant, r] = reduceAngle(s, magnitude);
  Value square = s.mul(r, r);
  Value sine =
      polynomial(s, square, {2.71830777e-06, -0.000198393347, 0.00833332911, -0.166666672});
  sine = s.fma(s.mul(square, r), sine, r);
  Value cosine =
      polynomial(s, square, {-2.72102028e-07, 2.47995195e-05, -0.00138888834, 0.0416666679});
  cosine = s.fma(s.mul(square, square), cosine, s.fma(square, s.real(-0.5, f32), s.real(1, f32)));
  Value turned = s.add(quadrant, s.integer(turns, i64));
  auto has = [&](int64_t bit) {
    return s.equal(s.bitAnd(turned, s.integer(bit, i64)), s.integer(bit, i64));
  };
  Value result = s.select(has(1), cosine, sine);
  return s.select(has(2), arith::NegFOp::create(s.builder, s.loc, result), result);
}

static Value finiteOrNan(ScalarBuilder &s, Value magnitude, Value result) {
  Value isFinite = s.less(magnitude, s.real(infinity, magnitude.getType()));
  return s.select(isFinite, result, quietNan(s, magnitude.getType()));
}

Value tk::cpu::emitSin(OpBuilder &builder, Location loc, Value x) {
  ScalarBuilder s(builder, loc);
  Value magnitude = math::AbsFOp::create(builder, loc, x);
  Value sine = sineOf(s, magnitude, 0);
  Value isNegative =
      s.less(s.bitcast(x, builder.getI32Type()), s.integer(0, builder.getI32Type())); // -0 too
  sine = s.select(isNegative, arith::NegFOp::create(builder, loc, sine), sine);
  return finiteOrNan(s, magnitude, sine);
}

Value tk::cpu::emitCos(OpBuilder &builder, Location loc, Value x) {
  ScalarBuilder s(builder, loc);
  Value magnitude = math::AbsFOp::create(builder, loc, x);
  return finiteOrNan(s, magnitude, sineOf(s, magnitude, 1));
}

//===----------------------------------------------------------------------===//
// Powers
//===----------------------------------------------------------------------===//

/// log2 of a positive f32 given as f64, by the series of artanh((m - 1) / (m + 1)): within 1e-12.
static Value wideLog2(ScalarBuilder &s, Value x) {
  Type f64 = x.getType(), i64 = s.builder.getI64Type();
  Value bits = s.bitcast(x, i64), root = s.integer(0x3FE6A09E667F3BCD, i64); // sqrt(1/2)
  Value e = arith::ShRSIOp::create(s.builder, s.loc, s.sub(bits, root), s.integer(52, i64));
  Value m = s.bitcast(s.sub(bits, s.shl(e, 52)), f64), one = s.real(1, f64);
  Value t = arith::DivFOp::create(s.builder, s.loc, s.sub(m, one), s.add(m, one));
  Value p = polynomial(s, s.mul(t, t),
                       {1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0});
  Value scaled = s.mul(s.mul(t, s.real(2 / M_LN2, f64)), p);
  return s.add(arith::SIToFPOp::create(s.builder, s.loc, f64, e), scaled);
}

/// 2^z in f64 for |z| up to 1000, within 1e-11.
static Value wideExp2(ScalarBuilder &s, Value z) {
  Type f64 = z.getType(), i64 = s.builder.getI64Type();
  Value magic = s.real(std::ldexp(1.5, 52), f64);
  Value shifted = s.add(z, magic);
  Value r = s.mul(s.sub(z, s.sub(shifted, magic)), s.real(M_LN2, f64));
  Value p = polynomial(s, r,
                       {1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24,
                        1.0 / 6, 0.5, 1.0, 1.0});
  Value n = s.sub(s.bitcast(shifted, i64), s.bitcast(magic, i64));
  return s.mul(p, s.bitcast(s.shl(s.add(n, s.integer(1023, i64)), 52), f64));
}

Value tk::cpu::emitPow(OpBuilder &builder, Location loc, Value x, Value y) {
  ScalarBuilder s(builder, loc);
  Type f32 = x.getType(), f64 = builder.getF64Type();
  Value zero = s.real(0, f32), one = s.real(1, f32);
  Value magnitude = math::AbsFOp::create(builder, loc, x);
  Value base = arith::ExtFOp::create(builder, loc, f64, magnitude);
  Value exponent = arith::ExtFOp::create(builder, loc, f64, y);
  Value log = wideLog2(s, base);
  log = s.select(s.equal(base, s.real(0, f64)), s.real(-infinity, f64), log);
  // Of infinity and NaN the series knows nothing; they are their own logarithms.
  log = s.select(s.less(base, s.real(infinity, f64)), log, base);
  Value z = s.mul(exponent, log), limit = s.real(400, f64), low = s.real(-400, f64);
  z = s.select(s.less(limit, z), limit, z);
  z = s.select(s.less(z, low), low, z);
  // Beyond f32's range in either direction this rounds to infinity or 0.
  Value power = arith::TruncFOp::create(builder, loc, f32, wideExp2(s, z));
  power = s.select(s.isNan(z), quietNan(s, f32), power);
  // A negative base has real powers at integers only, negative ones at odd integers.
  auto isWhole = [&](Value value) {
    return s.equal(math::FloorOp::create(builder, loc, value), value);
  };
  Value isInteger = isWhole(y), isEven = isWhole(s.mul(y, s.real(0.5, f32)));
  Type i32 = builder.getI32Type();
  Value isNegative = s.less(s.bitcast(x, i32), s.integer(0, i32)); // -0 too
  Value isSigned =
      s.bitAnd(isNegative, s.bitAnd(isInteger, s.equal(isEven, s.integer(0, isEven.getType()))));
  Value result = s.select(isSigned, arith::NegFOp::create(builder, loc, power), power);
  Value isFinite = s.less(magnitude, s.real(infinity, f32));
  Value isInvalid = s.bitAnd(s.bitAnd(s.less(x, zero), isFinite),
                             s.equal(isInteger, s.integer(0, isInteger.getType())));
  result = s.select(isInvalid, quietNan(s, f32), result);
  // 1 to any power and anything to the power of 0 are 1, NaN included; (-1)^inf is too.
  Value steepness = math::AbsFOp::create(builder, loc, y);
  Value isUnit = s.bitAnd(s.equal(x, s.real(-1, f32)), s.equal(steepness, s.real(infinity, f32)));
  isUnit = s.bitOr(isUnit, s.bitOr(s.equal(x, one), s.equal(y, zero)));
  return s.select(isUnit, one, result);
}
