// Scalar functions. Those of CUDA's library are within 2 ulp in f32 without fast-math options;
// what is not is built from ones that are.
#pragma once

namespace tk {

#define TK_FLOAT_AND_DOUBLE(name, single, twice)                                                   \
  TK_DEVICE float name(float x) { return ::single(x); }                                            \
  TK_DEVICE double name(double x) { return ::twice(x); }
TK_FLOAT_AND_DOUBLE(exp, expf, exp)
TK_FLOAT_AND_DOUBLE(exp2, exp2f, exp2)
TK_FLOAT_AND_DOUBLE(expm1, expm1f, expm1)
TK_FLOAT_AND_DOUBLE(log, logf, log)
TK_FLOAT_AND_DOUBLE(log2, log2f, log2)
TK_FLOAT_AND_DOUBLE(log10, log10f, log10)
TK_FLOAT_AND_DOUBLE(log1p, log1pf, log1p)
TK_FLOAT_AND_DOUBLE(rsqrt, rsqrtf, rsqrt)
TK_FLOAT_AND_DOUBLE(tanh, tanhf, tanh)
TK_FLOAT_AND_DOUBLE(tan, tanf, tan)
TK_FLOAT_AND_DOUBLE(erf, erff, erf)
TK_FLOAT_AND_DOUBLE(floor, floorf, floor)
TK_FLOAT_AND_DOUBLE(ceil, ceilf, ceil)
TK_FLOAT_AND_DOUBLE(trunc, truncf, trunc)
TK_FLOAT_AND_DOUBLE(round, roundf, round)
TK_FLOAT_AND_DOUBLE(round_even, rintf, rint)
TK_FLOAT_AND_DOUBLE(abs, fabsf, fabs)
#undef TK_FLOAT_AND_DOUBLE
TK_DEVICE double sqrt(double x) { return ::sqrt(x); }
// As IEEE 754 has it, without the library's branch: the hardware's reciprocal root times x, which a
// multiply-add corrects by what is left of x. Of zeros and infinities nothing is.
TK_DEVICE float sqrt(float x) {
  const bool is_small = ::fabsf(x) < 0x1p-96f;
  const float scaled = is_small ? x * 0x1p64f : x, inverse = rsqrt_approx(scaled);
  const float first = scaled * inverse;
  const float root = ::fmaf(::fmaf(-first, first, scaled), inverse * 0.5f, first);
  const float back = root * (is_small ? 0x1p-32f : 1.0f);
  return x == 0.0f || x == infinity() ? x : back;
}

template <class T> TK_DEVICE T abs_integer(T x) { return x < 0 ? (T)-x : x; }

template <class T> TK_DEVICE T pow_integer(T x, i64 n) {
  const bool inverse = n < 0;
  T result = 1;
  for (u64 m = inverse ? 0 - (u64)n : (u64)n; m; m >>= 1, x *= x)
    if (m & 1)
      result *= x;
  return inverse ? (T)(T(1) / result) : result;
}
TK_DEVICE float copysign(float x, float y) { return ::copysignf(x, y); }
TK_DEVICE double copysign(double x, double y) { return ::copysign(x, y); }
TK_DEVICE float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
TK_DEVICE double fma(double a, double b, double c) { return ::fma(a, b, c); }
// Rounded: never part of a multiply-add.
TK_DEVICE float multiply(float a, float b) { return ::__fmul_rn(a, b); }
TK_DEVICE double multiply(double a, double b) { return ::__dmul_rn(a, b); }
template <class T> TK_DEVICE T multiply_add(T a, T b, T c) { return a * b + c; }
TK_DEVICE float multiply_add(float a, float b, float c) { return ::fmaf(a, b, c); }
TK_DEVICE double multiply_add(double a, double b, double c) { return ::fma(a, b, c); }

// The logarithm to base 2 of a positive finite number, as a sum of two numbers: within 2^-38 of it.
//   1. x is 2^e m with m from 2/3 to 4/3. With r = (m - 1) / (m + 1), log(m) is 2 atanh(r).
//   2. atanh(r) is r (1 + r^2 / 3 + r^4 p(r^2)). Only p has the precision of one number.
struct PairOfLog2 {
  float high, low;
  TK_DEVICE explicit PairOfLog2(float x) {
    const bool is_small = x < 0x1p-126f;
    const u32 bits = as_bits(is_small ? x * 0x1p24f : x);
    const u32 shift = (bits - 0x3f2aaaabu) & 0xff800000u;
    const float e = ::fmaf((float)(int)shift, 0x1p-23f, is_small ? -24.0f : 0.0f);
    const float f = as_float(bits - shift) - 1.0f;
    const float sum = f + 2.0f, sum_low = f - (sum - 2.0f), inverse = reciprocal_approx(sum);
    const float r = multiply(f, inverse);
    const float r_low = inverse * ::fmaf(-r, sum_low, ::fmaf(-r, sum, f));
    const float u = multiply(r, r), u_low = ::fmaf(r + r, r_low, ::fmaf(r, r, -u));
    float p = ::fmaf(1.0f / 13, u, 1.0f / 11);
    p = ::fmaf(p, u, 1.0f / 9);
    p = ::fmaf(p, u, 1.0f / 7);
    p = ::fmaf(p, u, 1.0f / 5);
    const float third = 0x1.555556p-2f, third_low = -0x1.555556p-27f;
    const float w = multiply(u, third), tail = multiply(multiply(u, u), p);
    const float w_low = ::fmaf(u_low, third, ::fmaf(u, third_low, ::fmaf(u, third, -w)));
    const float a = w + tail, a_low = ((w - a) + tail) + w_low;
    const float ra = multiply(r, a);
    const float ra_low = ::fmaf(r_low, a, ::fmaf(r, a_low, ::fmaf(r, a, -ra)));
    const float t = r + ra, t_low = ((r - t) + ra) + (ra_low + r_low);
    const float base = 0x1.715476p+1f, base_low = 0x1.4ae0cp-25f; // 2 / log(2)
    const float log = multiply(t, base);
    const float log_low = ::fmaf(t_low, base, ::fmaf(t, base_low, ::fmaf(t, base, -log)));
    high = e + log;
    low = ((e - high) + log) + log_low;
  }
};
// 2^g for |g| up to 1/2, within 1 ulp.
TK_DEVICE float exp2_of_half(float g) {
  float p = ::fmaf(0x1.ffcbfcp-17f, g, 0x1.430912p-13f);
  p = ::fmaf(p, g, 0x1.5d87fep-10f);
  p = ::fmaf(p, g, 0x1.3b2ab6p-7f);
  p = ::fmaf(p, g, 0x1.c6b08ep-5f);
  p = ::fmaf(p, g, 0x1.ebfbep-3f);
  p = ::fmaf(p, g, 0x1.62e43p-1f);
  return ::fmaf(p, g, 1.0f);
}
// x^y within 1 ulp, with the results of C's pow for zeros, infinities, NaN and negative x. The
// library's powf is within 4 ulp only.
TK_DEVICE float pow(float x, float y) {
  const float size = ::fabsf(x);
  const PairOfLog2 log(size);
  const float product = multiply(y, log.high);
  // Beyond these bounds the result is 0 or infinite.
  const float most = ::fminf(::fmaxf(product, -160.0f), 160.0f), whole = ::rintf(most);
  const float rest = most == product ? ::fmaf(y, log.low, ::fmaf(y, log.high, -product)) : 0.0f;
  const int n = (int)whole, half = n >> 1;
  const float first = as_float((u32)(half + 127) << 23),
              second = as_float((u32)(n - half + 127) << 23);
  float result = exp2_of_half((most - whole) + rest) * first * second;
  const bool is_up = y > 0.0f;
  if (size == 0.0f || size == infinity()) // no logarithm
    result = (size == 0.0f) == is_up ? 0.0f : infinity();
  const float half_y = y * 0.5f;
  const bool is_integer = ::truncf(y) == y, is_odd = is_integer && ::truncf(half_y) != half_y;
  const bool is_negative = as_bits(x) >> 31;
  if (is_negative && is_odd)
    result = -result;
  if (is_negative && !is_integer && size != 0.0f && size != infinity())
    result = as_float(0x7fc00000);
  if (x != x || y != y)
    result = x + y;
  if (size == 1.0f && ::fabsf(y) == infinity())
    result = 1.0f;
  return y == 0.0f || x == 1.0f ? 1.0f : result;
}
TK_DEVICE double pow(double x, double y) { return ::pow(x, y); }
template <class T> TK_DEVICE T mod(T x, T y) { return x % y; }
TK_DEVICE float mod(float x, float y) { return ::fmodf(x, y); }
TK_DEVICE double mod(double x, double y) { return ::fmod(x, y); }

// Minimum and maximum that are NaN if an operand is; those of floats are in scalar.cuh.
TK_DEVICE double maximum(double a, double b) { return a != a ? a : b != b ? b : ::fmax(a, b); }
TK_DEVICE double minimum(double a, double b) { return a != a ? a : b != b ? b : ::fmin(a, b); }
template <class T> TK_DEVICE T maximum(T a, T b) { return a > b ? a : b; }
template <class T> TK_DEVICE T minimum(T a, T b) { return a < b ? a : b; }
// Those that return the other operand.
TK_DEVICE float max_number(float a, float b) { return ::fmaxf(a, b); }
TK_DEVICE float min_number(float a, float b) { return ::fminf(a, b); }
TK_DEVICE double max_number(double a, double b) { return ::fmax(a, b); }
TK_DEVICE double min_number(double a, double b) { return ::fmin(a, b); }

// exp(a - b), 0 where a is -inf: chosen before the exponential, around which the compiler would
// branch.
TK_DEVICE float exp_diff(float a, float b) { return ::expf(a == -infinity() ? a : a - b); }
TK_DEVICE double exp_diff(double a, double b) {
  return a == -(double)infinity() ? 0.0 : ::exp(a - b);
}
// -b log2(e), but a finite number for -inf: what is added to that stays, and no element needs a
// choice.
TK_DEVICE float exp_offset(float b) {
  return ::fminf(-(b * 1.4426950408889634f), 3.4028234663852886e38f);
}
// The same for a <= b where the result is of use for 16 bits: 2^(a c) over 2^(b c). The relative
// error of the former grows with a - b, to 2^-19 at exp(-30); b c is rounded, to the same number
// for all a under one b.
TK_DEVICE float exp_diff_approx(float a, float b) {
  return exp2_approx(::fmaf(a, 1.4426950408889634f, exp_offset(b)));
}
// What a logarithm of base 2 takes instead of c. Where |b| is 2^30, what b c is rounded by makes
// all exponentials under b 2^64 times as large or small. From there on they are 1, or those of
// numbers 64 or more away: base 4 does as well as e then, and its products are exact. No other
// offset lies between those of the two.
TK_DEVICE float exp_base(float b) { return ::fabsf(b) < 0x1p30f ? 1.4426950408889634f : 2.0f; }
TK_DEVICE float wide_offset(float b) { return ::fminf(-(b * exp_base(b)), 3.4028234663852886e38f); }
// exp_diff_approx for b of any size: a few instructions more, for each b.
TK_DEVICE float wide_exp_diff(float a, float b) {
  return exp2_approx(::fmaf(a, exp_base(b), wide_offset(b)));
}
// What takes its results under a to those under b, with the same two rounded products.
TK_DEVICE float exp_scale_approx(float a, float b) {
  const float scale = exp2_approx(wide_offset(b) - wide_offset(a));
  return a == b ? 1.0f : scale;
}
// What takes weights under a to weights under b: as exact as they are, and 1 where a is b. A
// difference of products that are rounded before is too, but orders an attention loop's
// exponentials before its wait for the product, which costs 3 %.
TK_DEVICE float scaled_rescale(float a, float b, float scale) {
  return exp2_approx((a - zero_if_low(b)) * (scale * 1.4426950408889634f));
}
TK_DEVICE float rescale_approx(float a, float b) { return scaled_rescale(a, b, 1); }
// exp_diff_approx of a * scale and b * scale, for a positive scale, and its binary logarithm.
TK_DEVICE float scaled_exponent(float a, float b, float scale) {
  const float c = scale * 1.4426950408889634f, safe = zero_if_low(b);
  return ::fmaf(a, c, -(safe * c));
}
TK_DEVICE float scaled_exp_diff(float a, float b, float scale) {
  return exp2_approx(scaled_exponent(a, b, scale));
}
// The same times 2^power.
TK_DEVICE float scaled_exponent(float a, float b, float scale, int power) {
  const float c = scale * 1.4426950408889634f, safe = zero_if_low(b);
  return ::fmaf(a, c, ::fmaf(-safe, c, (float)power));
}
TK_DEVICE float scaled_exp_diff(float a, float b, float scale, int power) {
  return exp2_approx(scaled_exponent(a, b, scale, power));
}
// exp(x) where the result is of use for 16 bits: the relative error is 2^-22 and 2^-24 of x.
TK_DEVICE float exp_approx(float x) { return exp2_approx(x * 1.4426950408889634f); }
// erf(x) with an absolute error of 2^-22, most of it that of ex2: 1 - 2^-y for |x|, where y is a
// polynomial without constant term, fitted to -log2(erfc(x)) on [0, 4] for the least error of the
// result; it grows further on.
TK_DEVICE float erf_approx(float x) {
  const float a = ::fabsf(x);
  float y = 4.53578333891036e-05f;
  y = ::fmaf(y, a, -4.45501364e-04f);
  y = ::fmaf(y, a, 1.48942140e-03f);
  y = ::fmaf(y, a, 7.74662305e-04f);
  y = ::fmaf(y, a, -2.82537091e-02f);
  y = ::fmaf(y, a, 1.48481627e-01f);
  y = ::fmaf(y, a, 9.18416391e-01f);
  y = ::fmaf(y, a, 1.62790859e+00f);
  return ::copysignf(1.0f - exp2_approx(-(y * a)), x);
}

// Bit c is whether the place of a thread's register c is below `bound`: the first `run` registers
// hold places from `start` on, the next ones those from `start + step` on, up to n <= 32 registers.
template <int run, int step, int n, class T> TK_DEVICE u32 places_below(T bound, T start) {
  const T end = start + n / run * step;
  const u32 reach = (u32)(minimum<T>(maximum<T>(bound, start), end) - start);
  const u32 count = reach / step * run + minimum<u32>(reach % step, run);
  return n == 32 && count == 32 ? ~0u : (1u << count) - 1;
}

// Two neighbours of 16 bits, of which `mask` leaves what it has bits for.
template <class T> TK_DEVICE void keep_pair(T *to, const T *from, u32 mask) {
  static_assert(sizeof(T) == 2);
  u32 pair;
  memcpy(&pair, from, sizeof pair);
  pair &= mask;
  memcpy(to, &pair, sizeof pair);
}

// The number along a row that an element of its tile of `length` elements is, where the tile is
// rotated by `shift` <= vector. Only elements of the first vector go around the end; once loops over
// registers are unrolled, it is known which those are. Elements from `length` on, if there are any,
// stay where they are.
template <int length, int vector, class I, bool has_more = false>
TK_DEVICE I rotated(I thread, I reg, I shift) {
  if (has_more && thread + reg >= length)
    return thread + reg;
  const I place = thread + reg - shift;
  if (reg >= vector)
    return place;
  return (length & (length - 1)) == 0 ? place & (length - 1) : place < 0 ? place + length : place;
}

// Quotient towards minus infinity and its remainder; 0 for a divisor of 0.
template <class T> TK_DEVICE T floor_div(T a, T b) {
  if (b == 0)
    return 0;
  if (b == -1)
    return (T)(0 - a);
  const T q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}
template <class T> TK_DEVICE T floor_mod(T a, T b) {
  if (b == 0 || b == -1)
    return 0;
  const T r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
// Shifts by the width and beyond give 0, or copies of the sign.
template <class T> TK_DEVICE T shift_left(T a, T b) {
  return (u64)b < sizeof(T) * 8 ? (T)((u64)a << b) : (T)0;
}
template <class T> TK_DEVICE T shift_right(T a, T b) {
  return a >> ((u64)b < sizeof(T) * 8 ? b : (T)(sizeof(T) * 8 - 1));
}

} // namespace tk
