// Elements that are NaN or infinite. Included by warpgroup.cuh, the device's or its twin.
#pragma once

namespace tk {

// In each word: the bits of exponents (of e4m3 also those of mantissas), their lowest ones, and the
// bits above them.
template <class T> struct NotFinite;
template <> struct NotFinite<bf16> {
  static constexpr u32 bits = 0x7f807f80, one = 0x00800080, above = 0x80008000;
};
template <> struct NotFinite<f16> {
  static constexpr u32 bits = 0x7c007c00, one = 0x04000400, above = 0x80008000;
};
template <> struct NotFinite<f8e4m3> {
  static constexpr u32 bits = 0x7f7f7f7f, one = 0x01010101, above = 0x80808080;
};
template <> struct NotFinite<f8e5m2> {
  static constexpr u32 bits = 0x7c7c7c7c, one = 0x04040404, above = 0x80808080;
};

// Waits for the next phase of `loaded`, and sets the elements of `stage`, of n words of shared
// memory, that are not finite to 0. If there is one, notes it. Products may read them, and other
// threads the note, behind an arrival of this thread.
template <int n, class T>
TK_DEVICE void keep_finite(T *stage, PhaseBarrier *loaded, int &parity, PhaseBarrier *notes,
                           Place place = {}) {
  using Bits = NotFinite<T>;
  constexpr int width = 8 * (int)sizeof(T);
  phase_wait(loaded, parity, place);
  parity ^= 1;
  u32 *const words = reinterpret_cast<u32 *>(stage);
  bool is_any = false;
  for (int i = 0; i < n; i += 4) {
    u32 word[4], any = 0;
    load<4>(word, words + i);
    for_each<4>([&](int r) { any |= ((word[r] & Bits::bits) + Bits::one) & Bits::above; });
    if (any == 0)
      continue;
    for_each<4>([&](int r) {
      const u32 found = ((word[r] & Bits::bits) + Bits::one) & Bits::above;
      word[r] &= ~((found >> (width - 1)) * ((1u << width) - 1));
    });
    store<4>(words + i, word);
    is_any = true;
  }
  if (is_any)
    note(notes);
  fence_async_proxy(place);
}

} // namespace tk
