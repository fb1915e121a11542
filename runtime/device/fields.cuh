// Fields of up to 4 bits of a word, scaled to floats of 16 bits in pairs.
#pragma once

namespace tk {

// A field is added to a number `first` whose mantissa has room for it: as its bits, `left` from the
// last one, in both halves of a word. The sum is exact, and so is its difference from `first` and a
// multiple of 2^-left of up to 16 in size. Adding `rounding` to an f32 and taking it off rounds to
// such a multiple.
template <class T> struct FieldBits;
template <> struct FieldBits<bf16> {
  static constexpr int left = 3;
  static constexpr u32 bits = 0x41804180, one = 0x3f803f80;
  static constexpr float first = 16.0f, rounding = 1572864.0f; // 1.5 * 2^20
};
template <> struct FieldBits<f16> {
  static constexpr int left = 0;
  static constexpr u32 bits = 0x64006400, one = 0x3c003c00;
  static constexpr float first = 1024.0f, rounding = 12582912.0f; // 1.5 * 2^23
};

template <class T> TK_DEVICE u32 both(float x) { return pack2<T>(x, x); }

// The bits of a word from bit `at` on; what is behind a byte is 0.
TK_DEVICE u32 bits_from(i8 x, int at) { return (u32)(u8)x >> at; }
TK_DEVICE u32 bits_from(u8 x, int at) { return (u32)x >> at; }
TK_DEVICE u32 bits_from(i32 x, int at) { return (u32)(x >> at); }

// Two fields that are neighbours in a word, as its lowest bits: a product puts both into place.
template <class T, int bits> TK_DEVICE u32 place_neighbours(u32 fields) {
  constexpr int left = FieldBits<T>::left;
  return fields * (1u << left | 1u << (16 - bits + left));
}

// Two fields, at bit `low` of `x` and at bit `high` of `y`, as `first` and as many of 1. `step` is
// their difference if that is known, else -1.
template <class T, int bits, int step, class W>
TK_DEVICE u32 field_pair(W x, W y, int low, int high) {
  constexpr int left = FieldBits<T>::left;
  constexpr u32 ones = (1u << bits) - 1;
  u32 placed;
  if constexpr (sizeof(W) == 1 && step != 0) {
    // Both numbers are known where this is compiled, or the comparison is not made. Of a whole byte
    // what is behind the fields is masked.
    if (low == 0 && high == bits && x == y)
      placed = place_neighbours<T, bits>((u8)x);
    else if (high == low + bits && x == y)
      placed = place_neighbours<T, bits>(bits_from(x, low));
    else
      placed = (bits_from(x, low) & ones) << left | bits_from(y, high) << (16 + left);
  } else if constexpr (sizeof(W) == 1) {
    placed = ((u32)(u8)x | (u32)(u8)y << 16) << left >> low;
  } else if (step == bits && x == y) {
    placed = place_neighbours<T, bits>(bits_from(x, low) & (ones << bits | ones));
  } else {
    placed = halves_of(bits_from(x, low), bits_from(y, high)) << left;
  }
  return masked_or(placed, (ones << left) | (ones << (16 + left)), FieldBits<T>::bits);
}

// (field - zero(r)) * scale(r) of registers r, each field `bits` of a word from bit at(r) on.
// Neighbours have zero and scale in common. Zeros up to 16 in size are split: the difference from
// the nearest multiple is exact, and what is left of them is scaled and rounded to T, with an error
// of up to 2^-13 of the scale. Others, and scales of which products may not be finite, take the way
// by f32. Where scales have more bits than T has (`exact` is false), their rest is multiplied
// first.
template <int bits, bool exact, int step, class T, class W, int n, class At, class Zero,
          class Scale>
TK_DEVICE void scale_fields(T (&y)[n], const W (&x)[n], const At &at, const Zero &zero,
                            const Scale &scale) {
  static_assert(n % 2 == 0, "pairs are converted");
  using Bits = FieldBits<T>;
  bool is_plain = true;
  for_each<n / 2>([&](int i) {
    const float z = zero(2 * i), s = scale(2 * i);
    is_plain &= ::fabsf(z) <= 16.0f & ::fabsf(s) <= 0x1p100f;
    if constexpr (!exact)
      is_plain &= s == 0.0f | ::fabsf(s) >= 0x1p-100f;
  });
  auto put = [&](int i, u32 pair) { memcpy(&y[2 * i], &pair, 4); };
  if (any_in_warp(!is_plain)) {
    for_each<n / 2>([&](int i) {
      auto one = [&](int r) {
        return ((float)(int)(bits_from(x[r], at(r)) & ((1u << bits) - 1)) - zero(r)) * scale(r);
      };
      put(i, pack2<T>(one(2 * i), one(2 * i + 1)));
    });
    return;
  }
  for_each<n / 2>([&](int i) {
    const float z = zero(2 * i), s = scale(2 * i);
    const float near = (z + Bits::rounding) - Bits::rounding;
    const u32 rest = both<T>((near - z) * s);
    const u32 fields = field_pair<T, bits, step>(x[2 * i], x[2 * i + 1], at(2 * i), at(2 * i + 1));
    const u32 difference = fused_pair<T>(fields, Bits::one, both<T>(-Bits::first - near));
    if constexpr (exact) {
      put(i, fused_pair<T>(difference, both<T>(s), rest));
    } else {
      const HighAndLow<T> parts = high_and_low<T>(s);
      const u32 low = fused_pair<T>(difference, repeated(parts.low.bits), rest);
      put(i, fused_pair<T>(difference, repeated(parts.high.bits), low));
    }
  });
}

} // namespace tk
