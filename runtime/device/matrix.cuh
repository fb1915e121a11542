// Warp-level matrix products. Fragments are register arrays in the order of the instruction's
// operands: an accumulator has 4 elements, A 16 bytes, B 8 bytes a thread.
#pragma once

namespace tk {

// `words` (1, 2 or 4) matrices of 8 rows of 16 bytes; lane 8 m + r gives the address of row r of
// matrix m. With `transposed`, of 16-bit elements, each matrix arrives transposed.
template <int words, bool transposed, class T> TK_DEVICE void load_matrix(T *y, const T *row) {
  u32 w[4];
  const u32 address = shared_address(row);
  if constexpr (words == 4 && transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "r"(address)
                 : "memory");
  else if constexpr (words == 4)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "r"(address)
                 : "memory");
  else if constexpr (words == 2 && transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(w[0]), "=r"(w[1])
                 : "r"(address)
                 : "memory");
  else if constexpr (words == 2)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(w[0]), "=r"(w[1])
                 : "r"(address)
                 : "memory");
  else if constexpr (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(w[0])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(w[0])
                 : "r"(address)
                 : "memory");
  for_each<words>([&](int i) { split_word(y + i * (4 / (int)sizeof(T)), w[i]); });
}

#if __CUDA_ARCH__ >= 900
// The reverse of load_matrix: stores `words` words of each thread.
template <int words, bool transposed, class T>
TK_DEVICE void store_matrix(T *row, const T *x) {
  constexpr int n = 4 / (int)sizeof(T);
  const u32 address = shared_address(row);
  if constexpr (words == 4 && transposed)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     address),
                 "r"(word_of(x)), "r"(word_of(x + n)), "r"(word_of(x + 2 * n)),
                 "r"(word_of(x + 3 * n))
                 : "memory");
  else if constexpr (words == 4)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
                 "r"(word_of(x)), "r"(word_of(x + n)), "r"(word_of(x + 2 * n)),
                 "r"(word_of(x + 3 * n))
                 : "memory");
  else if constexpr (words == 2 && transposed)
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(address),
                 "r"(word_of(x)), "r"(word_of(x + n))
                 : "memory");
  else if constexpr (words == 2)
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(address),
                 "r"(word_of(x)), "r"(word_of(x + n))
                 : "memory");
  else if constexpr (transposed)
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(address),
                 "r"(word_of(x))
                 : "memory");
  else
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(address),
                 "r"(word_of(x))
                 : "memory");
}
#endif

#define TK_MMA(types, shape, A, B, C, constraint)                                                  \
  TK_DEVICE void mma_m16n8(C *c, const A *a, const B *b) {                                         \
    constexpr int n = 4 / sizeof(A);                                                               \
    asm("mma.sync.aligned." shape ".row.col." types                                                \
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                         \
        : "+" constraint(c[0]), "+" constraint(c[1]), "+" constraint(c[2]), "+" constraint(c[3])   \
        : "r"(word_of(a)), "r"(word_of(a + n)), "r"(word_of(a + 2 * n)), "r"(word_of(a + 3 * n)),  \
          "r"(word_of(b)), "r"(word_of(b + n)));                                                   \
  }
TK_MMA("f32.bf16.bf16.f32", "m16n8k16", bf16, bf16, float, "f")
TK_MMA("f32.f16.f16.f32", "m16n8k16", f16, f16, float, "f")
TK_MMA("s32.s8.s8.s32", "m16n8k32", i8, i8, int, "r")
#if __CUDA_ARCH__ >= 890
TK_MMA("f32.e4m3.e4m3.f32", "m16n8k32", f8e4m3, f8e4m3, float, "f")
TK_MMA("f32.e5m2.e5m2.f32", "m16n8k32", f8e5m2, f8e5m2, float, "f")
TK_MMA("f32.e4m3.e5m2.f32", "m16n8k32", f8e4m3, f8e5m2, float, "f")
TK_MMA("f32.e5m2.e4m3.f32", "m16n8k32", f8e5m2, f8e4m3, float, "f")
#endif
#undef TK_MMA

TK_DEVICE u32 to_tf32(float x) {
  u32 y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y;
}
TK_DEVICE float round_to_tf32(float x) { return as_float(to_tf32(x)); }
// m16n8k8 on f32 rounded to tf32.
TK_DEVICE void mma_m16n8(float *c, const float *a, const float *b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
      " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(to_tf32(a[0])), "r"(to_tf32(a[1])), "r"(to_tf32(a[2])), "r"(to_tf32(a[3])),
        "r"(to_tf32(b[0])), "r"(to_tf32(b[1])));
}

// m16n8k4. Deeper instructions are no faster, and wait longer for their operands.
TK_DEVICE void mma_m16n8(double *c, const double *a, const double *b) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64"
      " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a[0]), "d"(a[1]), "d"(b[0]));
#else
  for_each<2>([&](int i) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(c[2 * i]), "+d"(c[2 * i + 1])
        : "d"(a[i]), "d"(b[0]));
  });
#endif
}

} // namespace tk
