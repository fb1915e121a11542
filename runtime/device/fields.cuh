// Fields of 4 bits of a byte, scaled to floats of 16 bits in pairs.
#pragma once

namespace tk {

// A field is added to a number `first` whose mantissa has room for it: as its bits, `left` from the
// last one, in both halves of a word. The sum is exact, and so is its difference from `first` and a
// multiple of 1 / `steps` of up to 16 in size. Adding `rounding` to an f32 and taking it off rounds
// to such a multiple.
template <class T> struct FieldBits;
template <> struct FieldBits<bf16> {
  static constexpr int left = 3;
  static constexpr u32 mask = 0x00780078, bits = 0x41804180, one = 0x3f803f80;
  static constexpr float first = 16.0f, rounding = 1572864.0f; // 1.5 * 2^20
};
template <> struct FieldBits<f16> {
  static constexpr int left = 0;
  static constexpr u32 mask = 0x000f000f, bits = 0x64006400, one = 0x3c003c00;
  static constexpr float first = 1024.0f, rounding = 12582912.0f; // 1.5 * 2^23
};

template <class T> TK_DEVICE u32 both(float x) { return pack2<T>(x, x); }

// Two fields, at bit `low` of `x` and at bit `high` of `y`, as `first` and as many of 1.
template <class T> TK_DEVICE u32 field_pair(u8 x, u8 y, int low, int high) {
  using Bits = FieldBits<T>;
  constexpr int left = Bits::left;
  // A product puts both halves of a byte into place.
  const u32 placed = low == 0 && high == 4 && x == y
                         ? x * (1u << left | 1u << (12 + left))
                         : ((u32)x << left >> low) | ((u32)y << (16 + left) >> high);
  return (placed & Bits::mask) | Bits::bits;
}

// (field - zero(r)) * scale(r) of registers r, each field 4 bits of a byte from bit at(r) on.
// Neighbours have zero and scale in common. Zeros up to 16 in size are split: the difference from
// the nearest multiple is exact, and what is left of them is scaled and rounded to T, with an error
// of up to 2^-13 of the scale. Others, and scales of which products may not be finite, take the way
// by f32. Where scales have more bits than T has (`exact` is false), their rest is multiplied first.
template <bool exact, class T, class B, int n, class At, class Zero, class Scale>
TK_DEVICE void scale_fields(T (&y)[n], const B (&x)[n], const At &at, const Zero &zero,
                            const Scale &scale) {
  static_assert(n % 2 == 0 && sizeof(B) == 1, "pairs of bytes are converted");
  using Bits = FieldBits<T>;
  bool is_plain = true;
  for_each<n / 2>([&](int i) {
    const float z = zero(2 * i), s = scale(2 * i);
    is_plain &= z >= -16.0f & z <= 16.0f & s >= -0x1p100f & s <= 0x1p100f;
    if constexpr (!exact)
      is_plain &= s == 0.0f | s >= 0x1p-100f | s <= -0x1p-100f;
  });
  auto put = [&](int i, u32 pair) { memcpy(&y[2 * i], &pair, 4); };
  if (any_in_warp(!is_plain)) {
    for_each<n / 2>([&](int i) {
      auto one = [&](int r) {
        return ((float)((u8)x[r] >> at(r) & 15) - zero(r)) * scale(r);
      };
      put(i, pack2<T>(one(2 * i), one(2 * i + 1)));
    });
    return;
  }
  for_each<n / 2>([&](int i) {
    const float z = zero(2 * i), s = scale(2 * i);
    const float near = (z + Bits::rounding) - Bits::rounding;
    const u32 rest = both<T>((near - z) * s);
    const u32 fields = field_pair<T>((u8)x[2 * i], (u8)x[2 * i + 1], at(2 * i), at(2 * i + 1));
    const u32 difference = fused_pair<T>(fields, Bits::one, both<T>(-(Bits::first + near)));
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
