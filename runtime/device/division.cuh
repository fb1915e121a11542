// Division of floats: quotients that are rounded as IEEE 754 has it, without a branch, and
// approximate ones. What quotients by one number have in common is computed once.
#pragma once

namespace tk {

// What many numbers are divided by. Its reciprocal is a normal number, whatever its size is.
struct Divisor {
  float divisor, reciprocal, scale;
  TK_DEVICE explicit Divisor(float y) {
    const float size = ::fabsf(y);
    scale = size > 0x1p100f ? 0x1p-64f : size < 0x1p-100f ? 0x1p64f : 1.0f;
    divisor = y * scale;
    reciprocal = 1.0f / divisor;
  }
};
// The quotient as it is rounded, but for an error of 1 ulp below 2^-100: a product, and two
// corrections by what is left. Of infinities, zeros and NaN nothing is.
TK_DEVICE float divide(float x, const Divisor &by) {
  const float scaled = x * by.scale, first = scaled * by.reciprocal;
  float y = ::fmaf(::fmaf(-first, by.divisor, scaled), by.reciprocal, first);
  y = ::fmaf(::fmaf(-y, by.divisor, scaled), by.reciprocal, y);
  return ::fabsf(y) > 0 ? y : first;
}

// What quotients by y have in common.
//   1. A power of two takes |y| to between 2^-23 and 4, where neither it nor its reciprocal is
//      subnormal. The scale has the sign of y.
//   2. The hardware's reciprocal, corrected once, is rounded as IEEE 754 has it.
struct ExactDivisor {
  float scale, divisor, hardware, reciprocal;
  TK_DEVICE explicit ExactDivisor(float y) {
    const u32 exponent = as_bits(y) & 0x7f800000;
    const int exact = 0x7e800000 - (int)exponent, least = 0x00800000;
    scale = ::copysignf(as_float((u32)(exact > least ? exact : least)), y);
    divisor = y * scale;
    hardware = reciprocal_approx(divisor);
    reciprocal = ::fmaf(::fmaf(-divisor, hardware, 1.0f), hardware, hardware);
  }
};
// x / y as IEEE 754 has it, without a branch: a thread has several under way at once, and what is
// stored of them stays one access.
//   1. x is scaled as y is, and by 2^64 or 2^-4: the quotient is then a normal number, and so is
//      what a correction leaves of x.
//   2. A product with the reciprocal, corrected once, is the quotient rounded (Markstein).
//   3. The scale is taken back. A result that is subnormal by that is rounded for the second time.
//      What it leaves of x is compared with half of a step of such numbers, which is exact, also
//      where both are equal.
//   4. Zeros, infinities and NaN leave a quotient that is not above 0: their product with the
//      hardware's reciprocal is the result.
TK_DEVICE float divide(float x, const ExactDivisor &by) {
  const float plain = x * by.scale;
  const bool is_small = ::fabsf(plain) < 0x1p-96f;
  const float up = is_small ? 0x1p64f : 0x1p-4f, back = is_small ? 0x1p-64f : 0x1p4f;
  const float scaled = x * (by.scale * up);
  const float first = scaled * by.reciprocal;
  const float quotient = ::fmaf(::fmaf(-by.divisor, first, scaled), by.reciprocal, first);
  const float near = quotient * back;
  const float rest = ::fmaf(-by.divisor, near * up, scaled);
  const float beyond_half = ::fmaf(by.divisor, -0x1p-86f, ::fabsf(rest));
  const float steps = ::fmaf(beyond_half, by.reciprocal * 0x1p85f, 0.5f);
  const float subnormal = ::fmaf(::copysignf(steps, rest), 0x1p-149f, near);
  const float y = ::fabsf(near) <= 0x1p-126f ? subnormal : near;
  return ::fabsf(quotient) > 0.0f ? y : plain * by.hardware;
}
TK_DEVICE float divide(float x, float y) { return divide(x, ExactDivisor(y)); }
// 1 / y, likewise. No subnormal result lies halfway between two others.
TK_DEVICE float inverse(float y) {
  const ExactDivisor by(::fabsf(y));
  const float back = as_float(0x7f000000 - as_bits(by.scale));
  const float near = by.reciprocal * by.scale;
  const float rest = ::fmaf(-by.divisor, near * back, 1.0f);
  const float subnormal = ::fmaf(rest * by.reciprocal, by.scale, near);
  const float result = near <= 0x1p-126f ? subnormal : near;
  return ::copysignf(result == result ? result : by.hardware * by.scale, y);
}

// What many numbers are divided by within 2 ulp. A power of two takes it to where its reciprocal is a
// normal number; where that loses a quotient's operand, the quotient is 0 or infinite.
struct ApproxDivisor {
  float scale, reciprocal;
  TK_DEVICE explicit ApproxDivisor(float y) {
    const float size = ::fabsf(y);
    scale = size > 0x1p100f ? 0x1p-64f : size < 0x1p-100f ? 0x1p64f : 1.0f;
    reciprocal = reciprocal_approx(y * scale);
  }
};
TK_DEVICE float divide_approx(float x, const ApproxDivisor &by) {
  return x * by.scale * by.reciprocal;
}

// a / b within 2 ulp where 1 / b is a normal number; for larger b, a * 0.
TK_DEVICE float divide_by_reciprocal(float a, float b) { return a * reciprocal_approx(b); }
// a / b, and a where b is 0: of weights, whose sum is 0 where each of them is.
template <class T> TK_DEVICE T div_or_zero(T a, T b) { return b == 0 ? a : a / b; }
// The same where 1 / b is a normal number and the quotient is of use for 16 bits. One b serves
// many a.
TK_DEVICE float div_or_zero_approx(float a, float b) {
  return a * one_by_zero(reciprocal_approx(b), b);
}
// Within 2 ulp for a <= b (terms over their sum). A row has one divisor, and so one scale and one
// reciprocal. There is no branch: products are in flight beside it.
TK_DEVICE float div_or_zero(float a, float b) {
  const float scale = ApproxDivisor(b).scale;
  const float quotient = a * scale * inverse(b * scale);
  return b == 0 ? a : quotient;
}

// What many indices are divided by, with the same quotients as floor_div. Each takes seven
// instructions, where a division takes 25.
//   1. 2^s is the least power of two that is not below |y|. The factor is 2^(31 + s) / |y|, rounded
//      up: it has 32 bits, and its product with a number below 2^31 has the quotient above bit 31 + s.
//   2. With a divisor of 32 bits, y 2^(32 - s), the factor is a quotient of 2^63. Floats give its 22
//      highest bits, a second quotient the others but for the last one, which a comparison gives.
//   3. For numbers below 0 it divides -1 - x, whose quotient is -1 - q.
struct IndexDivisor {
  int divisor, sign, mask;
  u32 factor, shift;
  TK_DEVICE explicit IndexDivisor(int y) {
    divisor = y;
    sign = y < 0 ? -1 : 1;
    mask = y == 0 ? 0 : -1; // quotients by 0 are 0
    const u32 size = y == 0 ? 1 : y < 0 ? 0 - (u32)y : (u32)y;
    shift = 0;
    TK_UNROLL for (u32 step = 16; step > 0; step /= 2) if (size - 1 >> shift >> step) shift += step;
    shift += size > 1;
    const u64 wide = (u64)size << (32 - shift);
    const float inverse = 1.0f / (float)wide;
    const u64 first = (u64)(inverse * 0x1.fffff8p62f);
    const i64 rest = (i64)((1ull << 63) - first * wide), more = (i64)((float)rest * inverse);
    const i64 last = rest - more * (i64)wide;
    factor = (u32)(first + (u64)more) + (last > 0) + (last > (i64)wide);
  }
};
TK_DEVICE int floor_div(int x, const IndexDivisor &by) {
  const int number = (int)((u32)x * (u32)by.sign), flip = number >> 31;
  const u32 quotient = (u32)((u64)((u32)(number ^ flip) * 2) * by.factor >> 32) >> by.shift;
  return ((int)quotient ^ flip) & by.mask;
}
TK_DEVICE int floor_mod(int x, const IndexDivisor &by) {
  return (x - floor_div(x, by) * by.divisor) & by.mask;
}

} // namespace tk
