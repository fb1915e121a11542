// Warp-level matrix products. Twin of ../matrix.cuh.
#pragma once

namespace tk {

template <int words, bool transposed, class T>
TK_DEVICE void load_matrix(T *y, const T *row, Place place = {}) {
  static_assert(words == 1 || words == 2 || words == 4, "ldmatrix loads 1, 2 or 4 matrices");
  static_assert(!transposed || sizeof(T) == 2, "ldmatrix transposes 16-bit elements");
  tk_emu_engine->load_matrix(y, row, words, transposed, place);
}

template <int words, bool transposed, class T>
TK_DEVICE void store_matrix(T *row, const T *x, Place place = {}) {
  static_assert(words == 1 || words == 2 || words == 4, "stmatrix stores 1, 2 or 4 matrices");
  static_assert(!transposed || sizeof(T) == 2, "stmatrix transposes 16-bit elements");
  tk_emu_engine->store_matrix(row, x, words, transposed, place);
}

#define TK_MMA(products, A, B, C)                                                                  \
  TK_DEVICE void mma_m16n8(C *c, const A *a, const B *b, Place place = {}) {                       \
    tk_emu_engine->multiply(::tk::emu::Products::products, c, a, b, place);                        \
  }
TK_MMA(bf16, bf16, bf16, float)
TK_MMA(f16, f16, f16, float)
TK_MMA(tf32, float, float, float)
TK_MMA(i8, i8, i8, int)
TK_MMA(e4m3, f8e4m3, f8e4m3, float)
TK_MMA(e5m2, f8e5m2, f8e5m2, float)
TK_MMA(e4m3_e5m2, f8e4m3, f8e5m2, float)
TK_MMA(e5m2_e4m3, f8e5m2, f8e4m3, float)
#undef TK_MMA

TK_DEVICE void mma_m16n8(double *c, const double *a, const double *b, Place place = {}) {
  tk_emu_engine->multiply_f64(c, a, b, place);
}

// To nearest, halves away from zero.
TK_DEVICE float round_to_tf32(float x) {
  const u32 bits = as_bits(x);
  return (bits & 0x7f800000) == 0x7f800000 ? x : as_float((bits + 0x1000) & ~0x1fffu);
}

} // namespace tk
