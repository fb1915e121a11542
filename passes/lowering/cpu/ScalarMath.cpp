//===- ScalarMath.cpp - exp, tanh, random numbers, narrow floats ----------===//
#include "passes/lowering/cpu/ScalarExpand.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace tk::cpu;

//===----------------------------------------------------------------------===//
// Exponentials
//===----------------------------------------------------------------------===//

/// Splits x = n ln2 + r with |r| <= ln2 / 2 and returns {exp(r) - 1, bits of n as i32}. n comes
/// from the bits of a float to which 1.5 * 2^23 was added: no conversion that could be undefined.
static std::pair<Value, Value> reducedExpM1(ScalarBuilder &s, Value x) {
  Type f32 = x.getType(), i32 = s.builder.getI32Type();
  Value magic = s.real(12582912.0, f32);
  Value shifted = s.fma(x, s.real(1.44269504088896341, f32), magic);
  Value n = s.sub(shifted, magic);
  Value r = s.fma(n, s.real(-0.693145751953125, f32), x);
  r = s.fma(n, s.real(-1.42860682030941723212e-6, f32), r);
  static const double coefficients[] = {1.9841270e-4, 1.3888889e-3, 8.3333333e-3,
                                        4.1666667e-2, 1.6666667e-1, 0.5};
  Value p = s.real(coefficients[0], f32);
  for (double c : llvm::ArrayRef(coefficients).drop_front())
    p = s.fma(p, r, s.real(c, f32));
  Value m1 = s.fma(s.mul(r, r), p, r);
  Value bits = s.sub(s.bitcast(shifted, i32), s.bitcast(magic, i32));
  return {m1, bits};
}

/// 2^n for n in [-126, 127] given as i32.
static Value powerOfTwo(ScalarBuilder &s, Value n) {
  Value biased = s.add(n, s.integer(127, n.getType()));
  return s.bitcast(s.shl(biased, 23), s.builder.getF32Type());
}

Value tk::cpu::emitExp(OpBuilder &builder, Location loc, Value x) {
  Type f32 = x.getType();
  if (!f32.isF32())
    return math::ExpOp::create(builder, loc, x);
  ScalarBuilder s(builder, loc);
  // Beyond these the result is infinite or 0 anyway. Ordered comparisons let a NaN through.
  Value high = s.real(89.0, f32), low = s.real(-104.0, f32);
  Value clamped = s.select(s.less(high, x), high, x);
  clamped = s.select(s.less(clamped, low), low, clamped);
  auto [m1, n] = reducedExpM1(s, clamped);
  // 2^n in two factors, as n goes from -150 to 128.
  Value half = arith::ShRSIOp::create(builder, loc, n, s.integer(1, n.getType()));
  Value rest = s.sub(n, half);
  Value result = s.add(m1, s.real(1.0, f32));
  return s.mul(s.mul(result, powerOfTwo(s, half)), powerOfTwo(s, rest));
}

Value tk::cpu::emitExpDiff(OpBuilder &builder, Location loc, Value a, Value b) {
  ScalarBuilder s(builder, loc);
  Type type = a.getType();
  Value minusInfinity = s.real(-std::numeric_limits<double>::infinity(), type);
  Value e = emitExp(builder, loc, s.sub(a, b));
  return s.select(s.equal(a, minusInfinity), s.real(0, type), e);
}

Value tk::cpu::emitExp2(OpBuilder &builder, Location loc, Value x) {
  ScalarBuilder s(builder, loc);
  Type f32 = x.getType();
  Value high = s.real(129.0, f32), low = s.real(-151.0, f32);
  Value clamped = s.select(s.less(high, x), high, x);
  clamped = s.select(s.less(clamped, low), low, clamped);
  // 2^x = 2^n exp((x - n) ln 2), where x - n is exact.
  Value magic = s.real(12582912.0, f32);
  Value shifted = s.add(clamped, magic);
  Value fraction = s.sub(clamped, s.sub(shifted, magic));
  Value n = s.sub(s.bitcast(shifted, builder.getI32Type()), s.bitcast(magic, builder.getI32Type()));
  Value m1 = reducedExpM1(s, s.mul(fraction, s.real(0.693147180559945309, f32))).first;
  Value half = arith::ShRSIOp::create(builder, loc, n, s.integer(1, n.getType()));
  Value result = s.add(m1, s.real(1.0, f32));
  return s.mul(s.mul(result, powerOfTwo(s, half)), powerOfTwo(s, s.sub(n, half)));
}

Value tk::cpu::emitExpM1(OpBuilder &builder, Location loc, Value x) {
  ScalarBuilder s(builder, loc);
  Type f32 = x.getType();
  Value high = s.real(89.0, f32), low = s.real(-20.0, f32); // beyond: infinite, or -1
  Value clamped = s.select(s.less(high, x), high, x);
  clamped = s.select(s.less(clamped, low), low, clamped);
  auto [m1, n] = reducedExpM1(s, clamped);
  // Half of 2^n (1 + m1) - 1, as 2^128 is no f32.
  Value half = powerOfTwo(s, s.sub(n, s.integer(1, n.getType())));
  Value result = s.fma(m1, half, s.sub(half, s.real(0.5, f32)));
  return s.add(result, result);
}

Value tk::cpu::emitTanh(OpBuilder &builder, Location loc, Value x) {
  ScalarBuilder s(builder, loc);
  Type f32 = x.getType();
  // tanh(|x|) = u / (u + 2) with u = exp(2|x|) - 1 kept exact for small x by reducedExpM1.
  Value magnitude = math::AbsFOp::create(builder, loc, x);
  Value limit = s.real(10.0, f32);
  Value clamped = s.select(s.less(limit, magnitude), limit, magnitude);
  auto [m1, n] = reducedExpM1(s, s.add(clamped, clamped));
  Value scale = powerOfTwo(s, n);
  Value u = s.fma(m1, scale, s.sub(scale, s.real(1.0, f32)));
  Value result = arith::DivFOp::create(builder, loc, u, s.add(u, s.real(2.0, f32)));
  return math::CopySignOp::create(builder, loc, result, x);
}

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

/// The 64-bit product of two 32-bit words, as {high, low}.
static std::pair<Value, Value> multiplyWide(ScalarBuilder &s, Value a, uint32_t constant) {
  Type i32 = s.builder.getI32Type(), i64 = s.builder.getI64Type();
  Value wide = arith::ExtUIOp::create(s.builder, s.loc, i64, a);
  Value product = s.mul(wide, s.integer(constant, i64));
  return {arith::TruncIOp::create(s.builder, s.loc, i32, s.shr(product, 32)),
          arith::TruncIOp::create(s.builder, s.loc, i32, product)};
}

Value tk::cpu::emitRand(OpBuilder &builder, Location loc, Value seed, Value n, Type type) {
  ScalarBuilder s(builder, loc);
  Type i32 = builder.getI32Type(), i64 = builder.getI64Type();
  auto word = [&](Value value, bool high) -> Value {
    if (value.getType().isIndex())
      value = arith::IndexCastOp::create(builder, loc, i64, value);
    else if (value.getType().getIntOrFloatBitWidth() < 64)
      value = arith::ExtSIOp::create(builder, loc, i64, value);
    if (high)
      value = s.shr(value, 32);
    return arith::TruncIOp::create(builder, loc, i32, value);
  };
  auto exclusiveOr = [&](Value a, Value b) -> Value {
    return arith::XOrIOp::create(builder, loc, a, b);
  };
  auto constant = [&](uint32_t value) { return s.integer(int32_t(value), i32); };
  if (n.getType().isIndex())
    n = arith::IndexCastOp::create(builder, loc, i64, n);
  // Word n % 4 of block n / 4, both rounded down.
  Value place = word(n, false);
  n = arith::ShRSIOp::create(builder, loc, n, s.integer(2, n.getType()));
  Value key0 = word(seed, false), key1 = word(seed, true);
  Value c0 = word(n, false), c1 = word(n, true), c2 = constant(0), c3 = c2;
  for (int round = 0; round < 10; ++round) {
    auto [high0, low0] = multiplyWide(s, c0, 0xD2511F53u);
    auto [high1, low1] = multiplyWide(s, c2, 0xCD9E8D57u);
    c0 = exclusiveOr(exclusiveOr(high1, c1), key0);
    c2 = exclusiveOr(exclusiveOr(high0, c3), key1);
    c1 = low1;
    c3 = low0;
    key0 = s.add(key0, constant(0x9E3779B9u));
    key1 = s.add(key1, constant(0xBB67AE85u));
  }
  auto isSet = [&](uint32_t bit) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                 arith::AndIOp::create(builder, loc, place, constant(bit)),
                                 constant(0));
  };
  Value second = isSet(2);
  Value drawn = s.select(isSet(1), s.select(second, c3, c1), s.select(second, c2, c0));
  Value bits = s.shr(drawn, 8);
  Value real = arith::SIToFPOp::create(builder, loc, type, bits);
  return s.mul(real, s.real(std::ldexp(1.0, -24), type));
}

//===----------------------------------------------------------------------===//
// bf16 and f8
//===----------------------------------------------------------------------===//

bool tk::cpu::isEmulated(Type type) {
  return type.isBF16() || isa<Float8E4M3FNType, Float8E5M2Type>(type);
}

namespace {
struct NarrowFormat {
  int mantissa, bias;
  bool hasInfinity;
  int64_t largest, nan; ///< codes
};
} // namespace

static NarrowFormat formatOf(Type type) {
  if (isa<Float8E4M3FNType>(type))
    return {3, 7, false, 0x7E, 0x7F};
  return {2, 15, true, 0x7B, 0x7E};
}

static Value narrowToBF16(ScalarBuilder &s, Value x, Type to) {
  Type i32 = s.builder.getI32Type(), i16 = s.builder.getIntegerType(16);
  Value bits = s.bitcast(x, i32);
  Value odd = s.bitAnd(s.shr(bits, 16), s.integer(1, i32));
  Value rounded = s.shr(s.add(bits, s.add(odd, s.integer(0x7FFF, i32))), 16);
  Value quiet = s.bitOr(s.shr(bits, 16), s.integer(0x40, i32));
  Value code = s.select(s.isNan(x), quiet, rounded);
  return s.bitcast(arith::TruncIOp::create(s.builder, s.loc, i16, code), to);
}

Value tk::cpu::emitNarrow(OpBuilder &builder, Location loc, Value x, Type to) {
  ScalarBuilder s(builder, loc);
  if (to.isBF16())
    return narrowToBF16(s, x, to);
  NarrowFormat format = formatOf(to);
  Type i32 = builder.getI32Type(), f32 = x.getType();
  Value bits = s.bitcast(x, i32);
  Value sign = s.bitAnd(s.shr(bits, 24), s.integer(0x80, i32));
  Value magnitude = s.bitAnd(bits, s.integer(0x7FFFFFFF, i32));
  // Normal results: round the mantissa to nearest even, rebias the exponent.
  int drop = 23 - format.mantissa;
  Value odd = s.bitAnd(s.shr(magnitude, drop), s.integer(1, i32));
  Value rounded = s.add(magnitude, s.add(odd, s.integer((1 << (drop - 1)) - 1, i32)));
  Value normal =
      s.sub(s.shr(rounded, drop), s.integer((127 - format.bias) << format.mantissa, i32));
  // Subnormal results: adding a power of two lets the adder round at the right place.
  int smallest = 1 - format.bias; // exponent of the smallest normal number
  Value magic = s.real(std::ldexp(1.0, smallest - format.mantissa + 23), f32);
  Value shifted = s.add(s.bitcast(magnitude, f32), magic);
  Value subnormal = s.sub(s.bitcast(shifted, i32), s.bitcast(magic, i32));
  Value limit = s.bitcast(s.real(std::ldexp(1.0, smallest), f32), i32);
  Value code = s.select(s.less(magnitude, limit), subnormal, normal);
  Value largest = s.integer(format.largest, i32);
  code = s.select(s.less(largest, code), largest, code);
  code = s.select(s.isNan(x), s.integer(format.nan, i32), code);
  code = s.bitOr(code, sign);
  return s.bitcast(arith::TruncIOp::create(builder, loc, builder.getI8Type(), code), to);
}

Value tk::cpu::emitWiden(OpBuilder &builder, Location loc, Value x, Type to) {
  ScalarBuilder s(builder, loc);
  Type i32 = builder.getI32Type();
  bool isBF16 = x.getType().isBF16();
  Value code = arith::ExtUIOp::create(builder, loc, i32,
                                      s.bitcast(x, builder.getIntegerType(isBF16 ? 16 : 8)));
  if (isBF16)
    return s.bitcast(s.shl(code, 16), to);
  NarrowFormat format = formatOf(x.getType());
  Value sign = s.shl(s.bitAnd(code, s.integer(0x80, i32)), 24);
  Value magnitude = s.bitAnd(code, s.integer(0x7F, i32));
  // The code's bits in place, with the exponent then scaled: right for subnormal codes as well.
  Value placed = s.bitcast(s.shl(magnitude, 23 - format.mantissa), to);
  Value value = s.mul(placed, s.real(std::ldexp(1.0, 127 - format.bias), to));
  Value firstSpecial = s.integer(format.hasInfinity ? 0x7C : 0x7F, i32);
  Value infinity = s.real(std::numeric_limits<double>::infinity(), to);
  Value nan = s.real(std::numeric_limits<double>::quiet_NaN(), to);
  Value special =
      format.hasInfinity ? s.select(s.equal(magnitude, firstSpecial), infinity, nan) : nan;
  value = s.select(s.less(magnitude, firstSpecial), value, special);
  return s.bitcast(s.bitOr(s.bitcast(value, i32), sign), to);
}
