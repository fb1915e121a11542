// What ../scalar.cuh does in one instruction, bit by bit.
#pragma once

namespace tk {

TK_DEVICE float to_float(bf16 x) { return as_float((u32)x.bits << 16); }
TK_DEVICE float to_float(f16 x) {
  const u32 sign = (u32)(x.bits & 0x8000) << 16, magnitude = x.bits & 0x7fff;
  if (magnitude >= 0x7c00) // infinity, or NaN, which loses its payload
    return as_float(magnitude == 0x7c00 ? sign | 0x7f800000 : 0x7fffffff);
  if (magnitude >= 0x0400)
    return as_float(sign | ((magnitude << 13) + ((127 - 15) << 23)));
  const float tiny = (float)magnitude * 5.9604644775390625e-8f; // 2^-24
  return sign ? -tiny : tiny;
}
TK_DEVICE float to_float(f8e4m3 x) { return decode_e4m3(x); }

// To nearest even, by adding half a unit of the last place that is kept; NaN is 0x7fff.
template <> TK_DEVICE bf16 from_float<bf16>(float x) {
  const u32 bits = as_bits(x);
  if (x != x)
    return bf16{0x7fff};
  return bf16{(u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
template <> TK_DEVICE f16 from_float<f16>(float x) {
  const u32 bits = as_bits(x), sign = bits >> 16 & 0x8000;
  u32 magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return f16{0x7fff};
  if (magnitude >= 0x477ff000) // 65520, halfway to what would be the next number
    return f16{(u16)(sign | 0x7c00)};
  if (magnitude < 0x38800000) { // below 2^-14: adding 0.5 rounds to a multiple of 2^-24
    const u32 code = as_bits(as_float(magnitude) + 0.5f) - as_bits(0.5f);
    return f16{(u16)(sign | code)};
  }
  magnitude += 0xfff + (magnitude >> 13 & 1);
  return f16{(u16)(sign | ((magnitude >> 13) - ((127 - 15) << 10)))};
}
template <> TK_DEVICE f8e4m3 from_float<f8e4m3>(float x) {
  return f8e4m3{encode_f8<3, 7, 0x7e>(x)};
}
template <> TK_DEVICE f8e5m2 from_float<f8e5m2>(float x) {
  return f8e5m2{encode_f8<2, 15, 0x7b>(x)};
}
TK_DEVICE u32 scale2(u32 pair, HighAndLow<bf16> scale) {
  auto one = [&](u16 bits) {
    const double x = to_float(bf16{bits});
    const bf16 low = from_double<bf16>(x * to_float(scale.low));
    return (u32)from_double<bf16>(x * to_float(scale.high) + to_float(low)).bits;
  };
  return one((u16)pair) | one((u16)(pair >> 16)) << 16;
}
TK_DEVICE u32 halves_of(u32 low, u32 high) { return (low & 0xffff) | high << 16; }
TK_DEVICE u32 masked_or(u32 x, u32 mask, u32 bits) { return (x & mask) | bits; }
template <class T> TK_DEVICE u32 fused_pair(u32 x, u32 y, u32 z) {
  auto one = [&](int half) {
    auto number = [&](u32 pair) { return (double)to_float(T{(u16)(pair >> half)}); };
    return (u32)from_double<T>(number(x) * number(y) + number(z)).bits << half;
  };
  return one(0) | one(16);
}
template <class T> struct Integers {
  struct Pair {
    T low, high;
  };
  TK_DEVICE static Pair convert(u32 biased, int half, float factor = 1.0f) {
    auto one = [&](int byte) {
      return from_float<T>(factor * ((biased >> 8 * byte & 0xff) - 128.0f));
    };
    return {one(2 * half), one(2 * half + 1)};
  }
  TK_DEVICE static Pair reduced(u32 biased, int half) { return convert(biased, half, 1.0f / 64); }
  TK_DEVICE static Pair convert(u16 bytes) { return convert(bytes ^ 0x8080u, 0); }
};

TK_DEVICE float round_to_odd(double x) {
  float y = (float)x;
  if (x != x || (double)y == x)
    return y;
  const double magnitude = x < 0 ? -x : x;
  if ((double)(y < 0 ? -y : y) > magnitude) // an infinity becomes the largest finite number
    y = as_float(as_bits(y) - 1);
  return as_float(as_bits(y) | 1);
}

TK_DEVICE u32 multiply_wide(u32 a, u32 b, u32 &high) {
  const u64 product = (u64)a * b;
  high = (u32)(product >> 32);
  return (u32)product;
}

template <class F> TK_DEVICE i64 clamp_any(F x) {
  if (x >= (F)9223372036854775808.0)
    return 0x7fffffffffffffffll;
  return x < (F)-9223372036854775808.0 ? -0x7fffffffffffffffll - 1 : (i64)x;
}
TK_DEVICE i64 clamp_to_i64(float x) { return clamp_any(x); }
TK_DEVICE i64 clamp_to_i64(double x) { return clamp_any(x); }
template <class F> TK_DEVICE int clamp_to_int(F x) {
  const i64 y = clamp_any(x);
  return y > 0x7fffffff ? 0x7fffffff : y < -0x7fffffffll - 1 ? -0x7fffffff - 1 : (int)y;
}
TK_DEVICE int clamp_to_i32(float x) { return clamp_to_int(x); }
TK_DEVICE int clamp_to_i32(double x) { return clamp_to_int(x); }
TK_DEVICE int round_up_to_i32(float x) { return x != x ? 0 : clamp_to_int(ceilf(x)); }

TK_DEVICE float maximum(float a, float b) {
  if (a != a || b != b)
    return as_float(0x7fffffff);
  return a > b || (a == b && !(as_bits(a) >> 31)) ? a : b;
}
TK_DEVICE float minimum(float a, float b) {
  if (a != a || b != b)
    return as_float(0x7fffffff);
  return a < b || (a == b && as_bits(a) >> 31) ? a : b;
}

// NaN that the host's arithmetic makes has a sign.
TK_DEVICE int ordered(float x) { return x != x ? 0x7fffffff : (int)as_bits(x); }

TK_DEVICE float divide_approx(float a, float b) { return a / b; }
// What chooses a way for the whole warp chooses it for each thread here.
TK_DEVICE bool any_in_warp(bool x) { return x; }
TK_DEVICE u32 pair_mask(u32 word, int bit) {
  return (word >> bit & 1 ? 0xffffu : 0u) | (word >> (bit + 1) & 1 ? 0xffff0000u : 0u);
}
TK_DEVICE float rescaled(float x, float factor) { return factor == 1.0f ? x : x * factor; }
TK_DEVICE float exp2_approx(float x) {
  const float y = ::exp2f(x);
  return y < 1.17549435e-38f ? 0.0f : y;
}
TK_DEVICE float reciprocal_approx(float x) { return 1.0f / x; }
TK_DEVICE float rsqrt_approx(float x) { return ::rsqrtf(x); }
TK_DEVICE float zero_if_low(float b) { return b == -infinity() ? 0.0f : b; }
TK_DEVICE float one_by_zero(float x, float b) { return b == 0 ? 1.0f : x; }

} // namespace tk
