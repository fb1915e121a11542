// Matrix products of a warpgroup (wgmma): four warps, m = 64 rows, asynchronous. Operands come from
// shared memory by descriptors, or A from registers; the accumulator is in registers: register i of
// a thread is row 16 warp + lane / 4 + 8 (i / 2 % 2), column 8 (i / 4) + 2 (lane % 4) + i % 2.
#pragma once

#include "finite.cuh"
#include "ones.cuh"
#include "warpgroup_operands.cuh"

namespace tk {

// How chunks of 16 bytes are permuted in shared memory: bits 4 and up of an address are flipped by
// its bits 7 and up, in spans of so many bytes.
enum class Swizzle : int { none = 0, bytes128 = 1, bytes64 = 2, bytes32 = 3 };

// Describes an operand in shared memory. `leading` and `stride` are in bytes, multiples of 16:
//   k contiguous: `stride` from one group of 8 rows to the next; `leading` from the first 16 bytes
//     of k to the second, where there is no swizzle (otherwise they follow each other)
//   m or n contiguous, swizzled: `leading` from one span of it to the next, `stride` from one group
//     of 8 k to the next
//   m or n contiguous, no swizzle: `stride` from 16 bytes of it to the next, `leading` from one
//     group of 8 k to the next
TK_DEVICE u64 matrix_descriptor(const void *shared, int leading, int stride, Swizzle swizzle) {
  const u32 low = (shared_address(shared) & 0x3ffff) >> 4 | (u32)leading >> 4 << 16;
  const u32 high = (u32)stride >> 4 | (u32)swizzle << 30;
  return (u64)high << 32 | low;
}
// The same `bytes` further on in shared memory.
TK_DEVICE u64 descriptor_advance(u64 descriptor, int bytes) {
  const u32 low = (u32)descriptor + (u32)(bytes >> 4);
  return descriptor >> 32 << 32 | low;
}
// In one addition of 64 bits, which nothing is carried in: the compiler leaves the result where a
// product takes it, but 32 bits it would join with the others again. Where warpgroups take turns
// that is 1 % slower.
TK_DEVICE u64 descriptor_plus(u64 descriptor, int bytes) { return descriptor + (u64)(bytes >> 4); }

// Descriptors of a factor's `n` spans, the k-th bytes(k) behind `first`, for a loop that does not
// move it. The compiler does not know that one follows from another, and keeps all of them in the
// uniform registers where products take them; it would copy them for each product otherwise.
template <int n> struct HeldDescriptors {
  u64 at[n];
  template <class Bytes> TK_DEVICE HeldDescriptors(u64 first, const Bytes &bytes) {
    asm volatile("" : "+l"(first)); // its bits, too: an addition that is an or has 32 of them
    for_each<n>([&](int k) {
      at[k] = descriptor_plus(first, bytes(k));
      asm volatile("" : "+l"(at[k]));
    });
  }
  TK_DEVICE u64 operator[](int k) const { return at[k]; }
};

// Before the first product, and whenever other instructions have written registers that the next
// one takes.
TK_DEVICE void warpgroup_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// Closes the warpgroup's group of products.
TK_DEVICE void warpgroup_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Until at most `pending` of the latest groups are incomplete.
template <int pending> TK_DEVICE void warpgroup_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}
// Keeps the compiler from moving accesses to an accumulator across this point.
template <int n> TK_DEVICE void fence_registers(float (&x)[n]) {
  for_each<n>([&](int i) { asm volatile("" : "+f"(x[i])::"memory"); });
}
template <int n> TK_DEVICE void fence_registers(int (&x)[n]) {
  for_each<n>([&](int i) { asm volatile("" : "+r"(x[i])::"memory"); });
}

// The product for element types A and B and n columns. There is one where the kernel's text has
// said TK_WARPGROUP_MMA(types, n): each takes the compiler a while to read.
template <class A, class B, int n> struct WarpgroupMma;

// acc (n / 2 registers a thread) = a b + (accumulate ? acc : 0) for k = 32 bytes of elements.
// transpose_a: m is contiguous in shared memory, not k; transpose_b: n is. For 16-bit types only.
template <class A, class B, int n, bool transpose_a = false, bool transpose_b = false, class C>
TK_DEVICE void warpgroup_mma(C *acc, u64 a, u64 b, int accumulate) {
  static_assert(sizeof(A) == 2 || !(transpose_a || transpose_b), "only 16-bit types transpose");
  WarpgroupMma<A, B, n>::template shared<transpose_a, transpose_b>(acc, a, b, accumulate);
}
// A from registers: 16 bytes a thread, each warp's 16 rows as a fragment of mma_m16n8.
template <class A, class B, int n, bool transpose_b = false, class C>
TK_DEVICE void warpgroup_mma(C *acc, const A *a, u64 b, int accumulate) {
  static_assert(sizeof(A) == 2 || !transpose_b, "only 16-bit types transpose");
  constexpr int word = 4 / sizeof(A);
  WarpgroupMma<A, B, n>::template registers<transpose_b>(acc, word_of(a), word_of(a + word),
                                                         word_of(a + 2 * word),
                                                         word_of(a + 3 * word), b, accumulate);
}

// And sums += the sums of a's rows: eight more columns of b, behind the others, hold ones.
template <class A, class B, int n, bool transpose_b = false, class C>
TK_DEVICE void warpgroup_mma_and_sums(C *acc, C *sums, const A *a, u64 b, int accumulate) {
  C all[n / 2 + 4];
  for_each<n / 2>([&](int i) { all[i] = acc[i]; });
  for_each<4>([&](int i) { all[n / 2 + i] = sums[i]; });
  warpgroup_mma<A, B, n + 8, transpose_b>(all, a, b, accumulate);
  for_each<n / 2>([&](int i) { acc[i] = all[i]; });
  for_each<4>([&](int i) { sums[i] = all[n / 2 + i]; });
}
// Zeros of which the compiler does not know: those that it knows of it sets where products are in
// flight, which are then serialized.
template <int n> TK_DEVICE void clear_registers(float (&x)[n]) {
  for_each<n>([&](int i) { asm volatile("mov.f32 %0, 0f00000000;" : "+f"(x[i])); });
}

// Four products in a row, of which the first adds to what is there if `accumulate`.
template <class A, class B, int n, bool transpose_a, bool transpose_b, class C>
TK_DEVICE void four_products(C *acc, u64 a0, u64 a1, u64 a2, u64 a3, const u64 (&b)[4],
                             int accumulate) {
  const u64 a[] = {a0, a1, a2, a3};
  WarpgroupMma<A, B, n>::template four_shared<transpose_a, transpose_b>(acc, a, b, accumulate);
}
template <class A, class B, int n, bool, bool transpose_b, class C>
TK_DEVICE void four_products(C *acc, const A *a0, const A *a1, const A *a2, const A *a3,
                             const u64 (&b)[4], int accumulate) {
  const A *const a[] = {a0, a1, a2, a3};
  u32 words[16];
  for_each<16>([&](int i) { words[i] = word_of(a[i / 4] + i % 4 * (4 / sizeof(A))); });
  WarpgroupMma<A, B, n>::template four_registers<transpose_b>(acc, words, b, accumulate);
}
template <class A, class B, int n, bool transpose_a, bool transpose_b, class C>
TK_DEVICE void one_product(C *acc, u64 a, u64 b, int accumulate) {
  warpgroup_mma<A, B, n, transpose_a, transpose_b>(acc, a, b, accumulate);
}
template <class A, class B, int n, bool, bool transpose_b, class C>
TK_DEVICE void one_product(C *acc, const A *a, u64 b, int accumulate) {
  warpgroup_mma<A, B, n, transpose_b>(acc, a, b, accumulate);
}

// The product of `spans` times 32 bytes of k: a(k) and b(k) are the operands of the k-th. Four are
// one statement, for the compiler goes through all accumulators once for each.
template <class A, class B, int n, bool transpose_a, bool transpose_b, int spans, class C,
          class OfA, class OfB>
TK_DEVICE void warpgroup_mma(C *acc, const OfA &a, const OfB &b, int accumulate) {
  static_assert(sizeof(A) == 2 || !(transpose_a || transpose_b), "only 16-bit types transpose");
  TK_UNROLL
  for (int k = 0; k + 4 <= spans; k += 4) {
    const u64 of_b[] = {b(k), b(k + 1), b(k + 2), b(k + 3)};
    four_products<A, B, n, transpose_a, transpose_b>(acc, a(k), a(k + 1), a(k + 2), a(k + 3), of_b,
                                                     k != 0 || accumulate);
  }
  TK_UNROLL
  for (int k = spans / 4 * 4; k < spans; ++k)
    one_product<A, B, n, transpose_a, transpose_b>(acc, a(k), b(k), k != 0 || accumulate);
}

} // namespace tk

// Declares the product of these types (bf16, f16, tf32, e4m3, e5m2, e4m3_e5m2, e5m2_e4m3, i8) with n
// columns: a multiple of 8 up to 256; for i8 8, 24, or a multiple of 16. Stands outside functions.
#define TK_WARPGROUP_MMA(types, n) TK_WARPGROUP_DECLARE(types, n)
#define TK_WARPGROUP_DECLARE(types, n) TK_WARPGROUP_##types(n, TK_AFTER_##n)

#define TK_WARPGROUP_bf16(n, ...)                                                                  \
  TK_WARPGROUP_DEFINE(n, bf16, bf16, float, "f", "k16.f32.bf16.bf16", two_bytes, __VA_ARGS__)
#define TK_WARPGROUP_f16(n, ...)                                                                   \
  TK_WARPGROUP_DEFINE(n, f16, f16, float, "f", "k16.f32.f16.f16", two_bytes, __VA_ARGS__)
#define TK_WARPGROUP_tf32(n, ...)                                                                  \
  TK_WARPGROUP_DEFINE(n, float, float, float, "f", "k8.f32.tf32.tf32", floating, __VA_ARGS__)
#define TK_WARPGROUP_e4m3(n, ...)                                                                  \
  TK_WARPGROUP_DEFINE(n, f8e4m3, f8e4m3, float, "f", "k32.f32.e4m3.e4m3", floating, __VA_ARGS__)
#define TK_WARPGROUP_e5m2(n, ...)                                                                  \
  TK_WARPGROUP_DEFINE(n, f8e5m2, f8e5m2, float, "f", "k32.f32.e5m2.e5m2", floating, __VA_ARGS__)
#define TK_WARPGROUP_e4m3_e5m2(n, ...)                                                             \
  TK_WARPGROUP_DEFINE(n, f8e4m3, f8e5m2, float, "f", "k32.f32.e4m3.e5m2", floating, __VA_ARGS__)
#define TK_WARPGROUP_e5m2_e4m3(n, ...)                                                             \
  TK_WARPGROUP_DEFINE(n, f8e5m2, f8e4m3, float, "f", "k32.f32.e5m2.e4m3", floating, __VA_ARGS__)
#define TK_WARPGROUP_i8(n, ...)                                                                    \
  TK_WARPGROUP_DEFINE(n, i8, i8, int, "r", "k32.s32.s8.s8", integer, __VA_ARGS__)

// What follows the predicate: the factors 1 of A and B, then, from operands named in t, whether those
// in shared memory are transposed.
#define TK_FACTORS_two_bytes(t) ", 1, 1, " t
#define TK_FACTORS_floating(t) ", 1, 1"
#define TK_FACTORS_integer(t) ""

#define TK_WARPGROUP_ONE(n, types, a, b, accumulate, factors)                                      \
  "wgmma.mma_async.sync.aligned.m64n" #n types " {" TK_TEXT_##n "}, " a ", " b                     \
                                                                ", " accumulate factors ";\n\t"
#define TK_WARPGROUP_TEXT(accumulate, products)                                                    \
  "{\n\t.reg .pred p, yes;\n\tsetp.ne.b32 p, " accumulate                                          \
  ", 0;\n\tsetp.eq.b32 yes, 0, 0;\n\t" products "}"
#define TK_WARPGROUP_FOUR(n, types, a0, a1, a2, a3, b0, b1, b2, b3, accumulate, factors)           \
  TK_WARPGROUP_TEXT(accumulate, TK_WARPGROUP_ONE(n, types, a0, b0, "p", factors)                   \
                                    TK_WARPGROUP_ONE(n, types, a1, b1, "yes", factors)             \
                                        TK_WARPGROUP_ONE(n, types, a2, b2, "yes", factors)         \
                                            TK_WARPGROUP_ONE(n, types, a3, b3, "yes", factors))
#define TK_FRAGMENT(r0, r1, r2, r3) "{" r0 ", " r1 ", " r2 ", " r3 "}"

// r0 ... r23: the names of the operands after the accumulators.
#define TK_WARPGROUP_DEFINE(n, A, B, C, c, types, kind, ...)                                       \
  TK_WARPGROUP_DEFINE_NAMED(n, A, B, C, c, types, kind, __VA_ARGS__)
#define TK_WARPGROUP_DEFINE_NAMED(n, A, B, C, c, types, kind, r0, r1, r2, r3, r4, r5, r6, r7, r8,  \
                                  r9, r10, r11, r12, r13, r14, r15, r16, r17, r18, r19, r20, r21,  \
                                  r22, r23)                                                        \
  namespace tk {                                                                                   \
  template <> struct WarpgroupMma<A, B, n> {                                                       \
    template <bool transpose_a, bool transpose_b>                                                  \
    TK_DEVICE static void shared(C *acc, u64 a, u64 b, int accumulate) {                           \
      asm volatile(TK_WARPGROUP_TEXT(                                                              \
                       r2, TK_WARPGROUP_ONE(n, types, r0, r1, "p", TK_FACTORS_##kind(r3 ", " r4))) \
                   : TK_REGISTERS_##n(c)                                                           \
                   : "l"(a), "l"(b), "r"(accumulate), "n"((int)transpose_a),                       \
                     "n"((int)transpose_b));                                                       \
    }                                                                                              \
    template <bool transpose_a, bool transpose_b>                                                  \
    TK_DEVICE static void four_shared(C *acc, const u64 (&a)[4], const u64 (&b)[4],                \
                                      int accumulate) {                                            \
      asm volatile(TK_WARPGROUP_FOUR(n, types, r0, r1, r2, r3, r4, r5, r6, r7, r8,                 \
                                     TK_FACTORS_##kind(r9 ", " r10))                               \
                   : TK_REGISTERS_##n(c)                                                           \
                   : "l"(a[0]), "l"(a[1]), "l"(a[2]), "l"(a[3]), "l"(b[0]), "l"(b[1]), "l"(b[2]),  \
                     "l"(b[3]), "r"(accumulate), "n"((int)transpose_a), "n"((int)transpose_b));    \
    }                                                                                              \
    template <bool transpose_b>                                                                    \
    TK_DEVICE static void registers(C *acc, u32 a0, u32 a1, u32 a2, u32 a3, u64 b,                 \
                                    int accumulate) {                                              \
      asm volatile(TK_WARPGROUP_TEXT(r5, TK_WARPGROUP_ONE(n, types, TK_FRAGMENT(r0, r1, r2, r3),   \
                                                          r4, "p", TK_FACTORS_##kind(r6)))         \
                   : TK_REGISTERS_##n(c)                                                           \
                   : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(accumulate),                  \
                     "n"((int)transpose_b));                                                       \
    }                                                                                              \
    template <bool transpose_b>                                                                    \
    TK_DEVICE static void four_registers(C *acc, const u32 (&a)[16], const u64 (&b)[4],            \
                                         int accumulate) {                                         \
      asm volatile(TK_WARPGROUP_FOUR(n, types, TK_FRAGMENT(r0, r1, r2, r3),                        \
                                     TK_FRAGMENT(r4, r5, r6, r7), TK_FRAGMENT(r8, r9, r10, r11),   \
                                     TK_FRAGMENT(r12, r13, r14, r15), r16, r17, r18, r19, r20,     \
                                     TK_FACTORS_##kind(r21))                                       \
                   : TK_REGISTERS_##n(c)                                                           \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]),  \
                     "r"(a[7]), "r"(a[8]), "r"(a[9]), "r"(a[10]), "r"(a[11]), "r"(a[12]),          \
                     "r"(a[13]), "r"(a[14]), "r"(a[15]), "l"(b[0]), "l"(b[1]), "l"(b[2]),          \
                     "l"(b[3]), "r"(accumulate), "n"((int)transpose_b));                           \
    }                                                                                              \
  };                                                                                               \
  }
