// Sine and cosine in f32, within 1.5 ulp for all arguments, without local memory. The library's
// functions keep the bits of 2 / pi of large arguments in an array.
#pragma once

namespace tk {

// x as n quarters of a turn and a rest of at most an eighth: x = n pi/2 + rest.
struct QuarterTurns {
  float rest;
  u32 n; // modulo 4

  TK_DEVICE explicit QuarterTurns(float x) {
    // Adding 1.5 * 2^23 rounds to an integer, which the lowest bits hold.
    const float turns = ::fmaf(x, 0x1.45f306p-1f, 0x1.8p23f), whole = turns - 0x1.8p23f;
    n = as_bits(turns);
    rest = ::fmaf(whole, -0x1.921fb0p+0f, x);
    rest = ::fmaf(whole, -0x1.5110b4p-22f, rest);
    rest = ::fmaf(whole, -0x1.846988p-48f, rest);
    if (!(::fabsf(x) <= 71476.0f))
      take_large(x);
  }

private:
  // 32 of the bits of `high`, `low` from bit `shift` of `high` on.
  TK_DEVICE static u32 window(u32 high, u32 low, u32 shift) {
    return (u32)(((u64)high << 32 | low) << shift >> 32);
  }

  // By Payne and Hanek, for x of 2^16 and more.
  //   1. x is m 2^(e + 17 - 32) with a whole number m of 32 bits. Of 2/pi the 96 bits from bit e on
  //      count: those ahead of them give multiples of 4 quarters, those behind too little.
  //   2. The highest 64 bits of the product are two of n, and a fraction of a quarter turn.
  TK_DEVICE void take_large(float x) {
    const u32 bits = as_bits(x), m = bits << 8 | 0x80000000u, exponent = bits >> 23 & 255;
    const u32 e = exponent - 143, shift = e & 31;
    const bool is_far = e >= 64, is_odd = e & 32;
    const u32 a =
        is_far ? (is_odd ? 0xabe8fa9au : 0x0a94fe13u) : (is_odd ? 0xc1b72722u : 0x0000517cu);
    const u32 b =
        is_far ? (is_odd ? 0x6ee06db1u : 0xabe8fa9au) : (is_odd ? 0x0a94fe13u : 0xc1b72722u);
    const u32 c =
        is_far ? (is_odd ? 0x4acc9e21u : 0x6ee06db1u) : (is_odd ? 0xabe8fa9au : 0x0a94fe13u);
    const u32 d =
        is_far ? (is_odd ? 0xc820ff28u : 0x4acc9e21u) : (is_odd ? 0x6ee06db1u : 0xabe8fa9au);
    u64 product = (u64)m * window(c, d, shift);
    product = (u64)m * window(b, c, shift) + (product >> 32);
    product += (u64)(m * window(a, b, shift)) << 32;
    const u32 whole = (u32)(product >> 62) + (u32)(product >> 61 & 1);
    const i64 fraction = (i64)(product << 2) >> 2;
    const float size = (float)((double)fraction * 0x1.921fb54442d18p-62); // pi/2 2^-62
    const bool is_negative = bits >> 31;
    n = is_negative ? 0 - whole : whole;
    rest = is_negative ? -size : size;
    if (exponent == 255) // infinity and NaN
      rest = x - x;
  }
};

// The sine of n quarter turns and the rest: of odd n the cosine of the rest, negative from 2 on.
TK_DEVICE float sine_of(const QuarterTurns &x, u32 more) {
  const u32 n = x.n + more;
  const bool is_odd = n & 1;
  const float square = x.rest * x.rest, first = is_odd ? 1.0f : x.rest;
  // The zero keeps the sign of a sine of -0.
  const float times = ::fmaf(first, square, 0.0f);
  float p = is_odd ? 2.44677067e-5f : 2.86567956e-6f;
  p = ::fmaf(p, square, is_odd ? -1.38877297e-3f : -1.98559923e-4f);
  p = ::fmaf(p, square, is_odd ? 4.16666567e-2f : 8.33338592e-3f);
  p = ::fmaf(p, square, is_odd ? -0.5f : -1.66666672e-1f);
  p = ::fmaf(p, times, first);
  return as_float(as_bits(p) ^ (n & 2) << 30);
}

TK_DEVICE float sin(float x) { return sine_of(QuarterTurns(x), 0); }
TK_DEVICE float cos(float x) { return sine_of(QuarterTurns(x), 1); }
TK_DEVICE double sin(double x) { return ::sin(x); }
TK_DEVICE double cos(double x) { return ::cos(x); }

} // namespace tk
