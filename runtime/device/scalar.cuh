// Scalar functions that are one instruction, or a few chosen by what the machine has. The emulator
// computes the same ones bit by bit.
#pragma once

namespace tk {

// In one instruction also for the upper half of a word: as a shift it would be taken out first.
TK_DEVICE float to_float(bf16 x) {
  float y;
  asm("mov.b32 %0, {%2, %1};" : "=f"(y) : "h"(x.bits), "h"((u16)0));
  return y;
}
TK_DEVICE float to_float(f16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}

#if __CUDA_ARCH__ >= 890
TK_DEVICE u32 halves_of_e4m3(u16 bytes) {
  u32 halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(bytes));
  return halves;
}
TK_DEVICE float to_float(f8e4m3 x) { return to_float(f16{(u16)halves_of_e4m3(x.bits)}); }
#else
TK_DEVICE float to_float(f8e4m3 x) { return decode_e4m3(x); }
#endif

template <> TK_DEVICE u32 pack2<bf16>(float low, float high) {
  u32 y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}
template <> TK_DEVICE u32 pack2<f16>(float low, float high) {
  u32 y;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}
// The upper half of an f16 are the bits of an e5m2.
template <> TK_DEVICE u32 widen2<f16, f8e5m2>(u16 bytes) { return __byte_perm(bytes, 0, 0x1404); }
template <> TK_DEVICE u32 widen2<bf16, f8e5m2>(u16 bytes) {
  const u32 halves = widen2<f16, f8e5m2>(bytes);
  return pack2<bf16>(to_float(f16{(u16)halves}), to_float(f16{(u16)(halves >> 16)}));
}
#if __CUDA_ARCH__ >= 890
template <> TK_DEVICE u32 widen2<f16, f8e4m3>(u16 bytes) { return halves_of_e4m3(bytes); }
template <> TK_DEVICE u32 widen2<bf16, f8e4m3>(u16 bytes) {
  const u32 halves = halves_of_e4m3(bytes);
  return pack2<bf16>(to_float(f16{(u16)halves}), to_float(f16{(u16)(halves >> 16)}));
}
#endif
TK_DEVICE u32 fused2(u32 x, u32 y, u32 z) {
  u32 sum;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(x), "r"(y), "r"(z));
  return sum;
}
// The low halves of two words.
TK_DEVICE u32 halves_of(u32 low, u32 high) { return __byte_perm(low, high, 0x5410); }
// (x & mask) | bits, which the compiler makes two of where both are constants.
TK_DEVICE u32 masked_or(u32 x, u32 mask, u32 bits) {
  u32 y;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(y) : "r"(x), "r"(mask), "r"(bits));
  return y;
}
template <> TK_DEVICE u32 fused_pair<bf16>(u32 x, u32 y, u32 z) { return fused2(x, y, z); }
template <> TK_DEVICE u32 fused_pair<f16>(u32 x, u32 y, u32 z) {
  u32 sum;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(x), "r"(y), "r"(z));
  return sum;
}
TK_DEVICE u32 scale2(u32 pair, HighAndLow<bf16> scale) {
  const u32 minus_zeros = 0x80008000;
  const u32 low = fused2(pair, __byte_perm(scale.low.bits, 0, 0x1010), minus_zeros);
  return fused2(pair, __byte_perm(scale.high.bits, 0, 0x1010), low);
}
// Of four bytes, each 128 more than an integer, the first or the last two as integers.
// Of bf16: as its bits a byte is so many of the smallest denormals; less 128 of what is 2^127 times
// that, and 64 times the difference. Nothing is rounded.
template <> struct Integers<bf16> {
  TK_DEVICE static u32 convert(u32 biased, int half) {
    return fused2(reduced(biased, half), 0x42804280, 0x80008000);
  }
  // 2^-6 of the integers.
  TK_DEVICE static u32 reduced(u32 biased, int half) {
    return fused2(__byte_perm(biased, 0, half ? 0x4342 : 0x4140), 0x7f007f00, 0xc000c000);
  }
  // Of two bytes as they were read, whose ulp is 1 from 128 to 256: 128 and the low seven bits;
  // less 128, or 256 by the eighth bit.
  TK_DEVICE static u32 convert(u16 bytes) {
    const u32 bits = __byte_perm(bytes, 0x43, 0x4140);
    return fused2(bits & 0xff80ff80, 0xbf80bf80, bits & 0xff7fff7f);
  }
};
// Of f16, whose ulp is 1 from 1024 to 2048: 1152 and the integer, and 1152.
template <> struct Integers<f16> {
  TK_DEVICE static u32 convert(u32 biased, int half) {
    const u32 bits = __byte_perm(biased, 0x64, half ? 0x4342 : 0x4140);
    u32 y;
    asm("sub.f16x2 %0, %1, %2;" : "=r"(y) : "r"(bits), "r"(0x64806480));
    return y;
  }
  TK_DEVICE static u32 convert(u16 bytes) { return convert(bytes ^ 0x8080u, 0); }
};
// Of f32 as in to_float.
template <> struct Integers<float> {
  TK_DEVICE static float2 convert(u32 biased, int half) {
    auto one = [&](u32 selector) {
      return as_float(__byte_perm(biased, 0x4b000000, selector)) - 8388736.0f;
    };
    return half ? float2{one(0x7442), one(0x7443)} : float2{one(0x7440), one(0x7441)};
  }
  TK_DEVICE static float2 convert(u16 bytes) { return convert(bytes ^ 0x8080u, 0); }
};

template <> TK_DEVICE bf16 from_float<bf16>(float x) {
  u16 y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return bf16{y};
}
template <> TK_DEVICE f16 from_float<f16>(float x) {
  u16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return f16{y};
}
template <> TK_DEVICE f8e4m3 from_float<f8e4m3>(float x) {
#if __CUDA_ARCH__ >= 890
  u16 y;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(y) : "f"(0.0f), "f"(x));
  return f8e4m3{x != x ? (u8)((as_bits(x) >> 24 & 0x80) | 0x7f) : (u8)y};
#else
  return f8e4m3{encode_f8<3, 7, 0x7e>(x)};
#endif
}
template <> TK_DEVICE f8e5m2 from_float<f8e5m2>(float x) {
#if __CUDA_ARCH__ >= 890
  u16 y;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(y) : "f"(0.0f), "f"(x));
  return f8e5m2{x != x ? (u8)((as_bits(x) >> 24 & 0x80) | 0x7f) : (u8)y};
#else
  return f8e5m2{encode_f8<2, 15, 0x7b>(x)};
#endif
}

#if __CUDA_ARCH__ >= 890
// A NaN is positive.
template <> TK_DEVICE u16 pack2<f8e4m3>(float low, float high) {
  u16 y;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(y) : "f"(high), "f"(low));
  return y;
}
template <> TK_DEVICE u16 pack2<f8e5m2>(float low, float high) {
  u16 y;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(y) : "f"(high), "f"(low));
  return y;
}
#endif

TK_DEVICE float round_to_odd(double x) {
  const float y = __double2float_rz(x);
  return (double)y == x || x != x ? y : as_float(as_bits(y) | 1);
}

// The product's lower half; its upper half is left in `high`. Shifted out of a product in C++, the
// upper half has a zero added to it (ptxas 13.0).
TK_DEVICE u32 multiply_wide(u32 a, u32 b, u32 &high) {
  u32 low;
  asm("{\n.reg .b64 p;\nmul.wide.u32 p, %2, %3;\nmov.b64 {%0, %1}, p;\n}"
      : "=r"(low), "=r"(high)
      : "r"(a), "r"(b));
  return low;
}

// The conversion instruction clamps by itself. One to 64 bits takes several times as long.
TK_DEVICE i64 clamp_to_i64(float x) { return (i64)x; }
TK_DEVICE i64 clamp_to_i64(double x) { return (i64)x; }
TK_DEVICE int clamp_to_i32(float x) { return (int)x; }
TK_DEVICE int clamp_to_i32(double x) { return (int)x; }

// The least integer that is not below x; out of range clamps, NaN is 0.
TK_DEVICE int round_up_to_i32(float x) { return __float2int_ru(x); }

TK_DEVICE float maximum(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
TK_DEVICE float minimum(float a, float b) {
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}

// Of two floats of which one is no negative number the greater one has the greater of these. NaN
// has the greatest: arithmetic makes none with a sign.
TK_DEVICE int ordered(float x) { return __float_as_int(x); }

// a / b within 2 ulp.
TK_DEVICE float divide_approx(float a, float b) {
  float y;
  asm("div.full.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}

// Is x true in any lane of the warp?
TK_DEVICE bool any_in_warp(bool x) { return __any_sync(~0u, x) != 0; }

// 2^x with a relative error of 2^-22, denormals flushed.
TK_DEVICE float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// x * factor, for a factor that is often 1 in all lanes: the product is left out then. Accumulators
// of warpgroups' products share the register file's ports with arithmetic, so each instruction that
// touches registers takes a cycle from such products.
TK_DEVICE float rescaled(float x, float factor) {
  asm("{ .reg .pred p; setp.neu.f32 p, %1, 0f3F800000; @p mul.f32 %0, %0, %1; }"
      : "+f"(x)
      : "f"(factor));
  return x;
}
// Of bits `bit` (even) and the next one of a word, 16 times each. The sign of a byte is what prmt
// spreads.
TK_DEVICE u32 pair_mask(u32 word, int bit) {
  u32 mask;
  const u32 of_byte = 0xcc88u + 0x1111u * (bit >> 3);
  asm("prmt.b32 %0, %1, %2, %3;"
      : "=r"(mask)
      : "r"(word << (7 - (bit & 7))), "r"(word << (6 - (bit & 7))), "r"(of_byte));
  return mask;
}
// 1 / x within an ulp, denormals flushed. Without a branch, so that equal ones are found.
TK_DEVICE float reciprocal_approx(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// 1 / sqrt(x) with a relative error of 2^-22, denormals flushed.
TK_DEVICE float rsqrt_approx(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// Selections, of which the compiler would make two programs where many numbers share one b.
// b, or 0 where b is -inf.
TK_DEVICE float zero_if_low(float b) {
  float y;
  asm("{\n.reg .pred p;\nsetp.eq.f32 p, %1, 0fff800000;\nselp.f32 %0, 0f00000000, %1, p;\n}"
      : "=f"(y)
      : "f"(b));
  return y;
}
// x, or 1 where b is 0.
TK_DEVICE float one_by_zero(float x, float b) {
  float y;
  asm("{\n.reg .pred p;\nsetp.eq.f32 p, %2, 0f00000000;\nselp.f32 %0, 0f3f800000, %1, p;\n}"
      : "=f"(y)
      : "f"(x), "f"(b));
  return y;
}

} // namespace tk
