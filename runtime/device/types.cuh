// Number types and the conversions between them, bit for bit those of the runtime (Dtype.cpp): to
// nearest even; 8-bit floats saturate, infinities included; NaN stays NaN. Those that are one
// instruction are in scalar.cuh.
#pragma once

namespace tk {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i8 = signed char;
using i16 = short;
using i32 = int;
using i64 = long long;

// Storage only: arithmetic happens in float.
struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};
struct f8e4m3 {
  u8 bits;
};
struct f8e5m2 {
  u8 bits;
};

TK_DEVICE float as_float(u32 bits) { return __uint_as_float(bits); }
TK_DEVICE float infinity() { return as_float(0x7f800000); }
TK_DEVICE u32 as_bits(float x) { return __float_as_uint(x); }
TK_DEVICE double as_double(u64 bits) { return __longlong_as_double((i64)bits); }
TK_DEVICE u64 as_bits(double x) { return (u64)__double_as_longlong(x); }

// ---- To float

TK_DEVICE float to_float(float x) { return x; }
TK_DEVICE float to_float(bf16 x);
// The same by a shift. Beside accumulators ptxas finds registers for it where it does not for
// to_float, which it makes halves of words for early.
TK_DEVICE float shifted_to_float(bf16 x) { return as_float((u32)x.bits << 16); }
TK_DEVICE float to_float(f16 x);
TK_DEVICE float to_float(f8e5m2 x) { return to_float(f16{(u16)(x.bits << 8)}); }
// Where the hardware has no instruction.
TK_DEVICE float decode_e4m3(f8e4m3 x) {
  // The exponents of e4m3 and f16 differ by 8 once the mantissa is aligned.
  const u32 magnitude = x.bits & 0x7f;
  const float y = to_float(f16{(u16)(magnitude << 7)}) * 256.0f;
  const float signless = magnitude == 0x7f ? as_float(0x7fffffff) : y;
  return x.bits & 0x80 ? -signless : signless;
}
TK_DEVICE float to_float(f8e4m3 x);
// Conversions of integers take the hardware four times as long as additions: these are put as the
// last bits of a float whose ulp is 1.
TK_DEVICE float to_float(u16 x) { return as_float(0x4b000000 | x) - 8388608.0f; }
TK_DEVICE float to_float(u8 x) { return to_float((u16)x); }
TK_DEVICE float to_float(i16 x) { return as_float(0x4b008000 ^ (u16)x) - 8421376.0f; }
TK_DEVICE float to_float(i8 x) { return as_float(0x4b000080 ^ (u8)x) - 8388736.0f; }

// ---- From float

// The bits of two floats of 16 or 8 bits.
template <int bytes> struct PairBits {
  using Type = u32;
};
template <> struct PairBits<1> {
  using Type = u16;
};
template <class T> using Pair = typename PairBits<sizeof(T)>::Type;
// Two integers of 8 bits, of which the first one is the low one, to neighbouring floats.
template <class T> struct Integers;
template <class T> TK_DEVICE T from_float(float x);
template <> TK_DEVICE float from_float<float>(float x) { return x; }
// Two f32 to two floats of 16 or 8 bits, the first one in the low half. Where there is an
// instruction for both, it takes the place of this.
template <class T> TK_DEVICE Pair<T> pack2(float low, float high) {
  return (Pair<T>)(from_float<T>(low).bits | (u32)from_float<T>(high).bits << 8 * sizeof(T));
}
// Two floats of 8 bits to those of 16, which hold them.
template <class T, class F> TK_DEVICE u32 widen2(u16 bytes) {
  return pack2<T>(to_float(F{(u8)bytes}), to_float(F{(u8)(bytes >> 8)}));
}
// An 8-bit float with `mantissa` bits, exponent bias `bias` and the largest finite code `largest`,
// where the hardware has no instruction.
template <int mantissa, int bias, u32 largest> TK_DEVICE u8 encode_f8(float x) {
  const u32 bits = as_bits(x);
  const u32 sign = bits >> 24 & 0x80;
  u32 magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return (u8)(sign | 0x7f);
  const float smallest_normal = as_float((u32)(128 - bias) << 23);
  u32 code;
  if (as_float(magnitude) < smallest_normal) {
    // Adding a number whose last bit is the smallest denormal rounds to a multiple of it.
    const float anchor = as_float((u32)(128 - bias + 23 - mantissa) << 23);
    code = as_bits(as_float(magnitude) + anchor) - as_bits(anchor);
  } else {
    constexpr int shift = 23 - mantissa;
    magnitude += (1u << (shift - 1)) - 1 + (magnitude >> shift & 1);
    code = (magnitude >> shift) - ((u32)(127 - bias) << mantissa);
  }
  return (u8)(sign | (code > largest ? largest : code));
}

// The f32 towards zero, its last bit set if that is not exact: rounding it again to at most 22 bits
// rounds the f64 once.
TK_DEVICE float round_to_odd(double x);
template <class T> struct FromDouble {
  TK_DEVICE static T apply(double x) { return from_float<T>(round_to_odd(x)); }
};
template <> struct FromDouble<float> {
  TK_DEVICE static float apply(double x) { return (float)x; }
};
template <class T> TK_DEVICE T from_double(double x) { return FromDouble<T>::apply(x); }

// Whole tiles: pairs become one instruction.
template <class T, int n> TK_DEVICE void narrow(T (&y)[n], const float (&x)[n]) {
  for_each<n>([&](int i) { y[i] = from_float<T>(x[i]); });
}
template <class T, int n> TK_DEVICE void narrow_pairs(T (&y)[n], const float (&x)[n]) {
  if constexpr (n % 2 == 0) {
    for_each<n / 2>([&](int i) {
      const Pair<T> pair = pack2<T>(x[2 * i], x[2 * i + 1]);
      memcpy(&y[2 * i], &pair, sizeof pair);
    });
  } else {
    for_each<n>([&](int i) { y[i] = from_float<T>(x[i]); });
  }
}
// Two bytes that are neighbours stay half a word.
template <class T> TK_DEVICE void copy_pair(T *y, const T *x) {
  u16 pair;
  memcpy(&pair, x, 2);
  memcpy(y, &pair, 2);
}
template <int n> TK_DEVICE void narrow(f8e4m3 (&y)[n], const float (&x)[n]) { narrow_pairs(y, x); }
template <int n> TK_DEVICE void narrow(f8e5m2 (&y)[n], const float (&x)[n]) { narrow_pairs(y, x); }
template <int n> TK_DEVICE void narrow(bf16 (&y)[n], const float (&x)[n]) { narrow_pairs(y, x); }
template <int n> TK_DEVICE void narrow(f16 (&y)[n], const float (&x)[n]) { narrow_pairs(y, x); }
template <class T, class F, int n> TK_DEVICE void widen_pairs(T (&y)[n], const F (&x)[n]) {
  if constexpr (n % 2 == 0) {
    for_each<n / 2>([&](int i) {
      u16 bytes;
      memcpy(&bytes, &x[2 * i], 2);
      const u32 pair = widen2<T, F>(bytes);
      memcpy(&y[2 * i], &pair, 4);
    });
  } else {
    for_each<n>([&](int i) { y[i] = from_float<T>(to_float(x[i])); });
  }
}
template <class T, int n> TK_DEVICE void widen(T (&y)[n], const f8e4m3 (&x)[n]) {
  widen_pairs(y, x);
}
template <class T, int n> TK_DEVICE void widen(T (&y)[n], const f8e5m2 (&x)[n]) {
  widen_pairs(y, x);
}
template <class F, int n> TK_DEVICE void widen_to_float(float (&y)[n], const F (&x)[n]) {
  if constexpr (n % 2 == 0) {
    for_each<n / 2>([&](int i) {
      u16 bytes;
      memcpy(&bytes, &x[2 * i], 2);
      const u32 halves = widen2<f16, F>(bytes);
      y[2 * i] = to_float(f16{(u16)halves});
      y[2 * i + 1] = to_float(f16{(u16)(halves >> 16)});
    });
  } else {
    for_each<n>([&](int i) { y[i] = to_float(x[i]); });
  }
}
template <int n> TK_DEVICE void widen(float (&y)[n], const f8e4m3 (&x)[n]) { widen_to_float(y, x); }
template <int n> TK_DEVICE void widen(float (&y)[n], const f8e5m2 (&x)[n]) { widen_to_float(y, x); }
// Integers to floats that hold them. `word` of them, 2 or 4, are half a word or a word, as they
// were read.
template <int word = 2, class T, int n> TK_DEVICE void widen(T (&y)[n], const i8 (&x)[n]) {
  auto put = [&](int i, const auto &pair) { memcpy(&y[i], &pair, 2 * sizeof(T)); };
  if constexpr (word == 4 && n % 4 == 0) {
    for_each<n / 4>([&](int i) {
      u32 bytes;
      memcpy(&bytes, &x[4 * i], 4);
      put(4 * i, Integers<T>::convert(bytes ^ 0x80808080, 0));
      put(4 * i + 2, Integers<T>::convert(bytes ^ 0x80808080, 1));
    });
  } else if constexpr (n % 2 == 0) {
    for_each<n / 2>([&](int i) {
      u16 bytes;
      memcpy(&bytes, &x[2 * i], 2);
      put(2 * i, Integers<T>::convert(bytes));
    });
  } else {
    for_each<n>([&](int i) { y[i] = from_float<T>(to_float(x[i])); });
  }
}

// An f32 as two bf16, which have all of it but 2^-16: `high` is cut off, `low` the rest. NaN stays
// in the rest, and of an infinity there is none.
template <class T> struct HighAndLow {
  T high, low;
};
template <class T> TK_DEVICE HighAndLow<T> high_and_low(float x) {
  const u32 bits = as_bits(x);
  const float rest = x - as_float(bits & 0xffff0000);
  const float kept = (bits & 0x7fffffff) == 0x7f800000 ? 0.0f : rest;
  return {T{(u16)(bits >> 16)}, T{(u16)pack2<T>(kept, kept)}};
}
// Two floats of 16 bits in a word times two others and more two, each rounded once.
template <class T> TK_DEVICE u32 fused_pair(u32 x, u32 y, u32 z);
// The same 16 bits in both halves of a word.
TK_DEVICE u32 repeated(u16 bits) { return bits | (u32)bits << 16; }
// Two bf16 times a number, rounded with an error of 2^-14 before.
TK_DEVICE u32 scale2(u32 pair, HighAndLow<bf16> scale);
// Integers to what they are times scale(r), which four neighbours that were read at once have in
// common. 2^-6 of them takes less to convert to; a scale that is not below 2^122 counts as
// infinite.
template <class T, int n, class Scale>
TK_DEVICE void scale_integers(T (&y)[n], const i8 (&x)[n], const Scale &scale) {
  static_assert(n % 4 == 0, "words are converted");
  for_each<n / 2>([&](int i) {
    u32 bytes, pair;
    memcpy(&bytes, &x[i / 2 * 4], 4);
    const auto reduced = Integers<T>::reduced(bytes ^ 0x80808080, i % 2);
    memcpy(&pair, &reduced, 4);
    pair = scale2(pair, high_and_low<T>(64.0f * scale(2 * i)));
    memcpy(&y[2 * i], &pair, 4);
  });
}

// Truncated and clamped; x is not NaN.
TK_DEVICE i64 clamp_to_i64(float x);
TK_DEVICE i64 clamp_to_i64(double x);
TK_DEVICE int clamp_to_i32(float x);
TK_DEVICE int clamp_to_i32(double x);
// A float to an integer type: truncated; out of range clamps, NaN is 0.
template <class T, class F> TK_DEVICE T to_integer(F x) {
  constexpr int bits = sizeof(T) * 8;
  constexpr bool is_signed = (T)-1 < (T)0;
  if constexpr (bits == 64) {
    return x != x ? (T)0 : (T)clamp_to_i64(x);
  } else if constexpr (is_signed || bits < 32) {
    constexpr int low = is_signed ? -(int)(((i64)1 << (bits - 1)) - 1) - 1 : 0;
    constexpr int high = (int)(((i64)1 << (bits - (is_signed ? 1 : 0))) - 1);
    const int y = x != x ? 0 : clamp_to_i32(x);
    return (T)(y < low ? low : y > high ? high : y);
  } else {
    constexpr i64 high = ((i64)1 << bits) - 1;
    const i64 y = x != x ? 0 : clamp_to_i64(x);
    return (T)(y < 0 ? 0 : y > high ? high : y);
  }
}

} // namespace tk
