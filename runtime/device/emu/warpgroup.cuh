// Matrix products of a warpgroup. Twin of ../warpgroup.cuh: descriptors have the bits of the
// hardware's, and the engine decodes them.
#pragma once

#include "finite.cuh"
#include "ones.cuh"

namespace tk {

enum class Swizzle : int { none = 0, bytes128 = 1, bytes64 = 2, bytes32 = 3 };

TK_DEVICE u64 matrix_descriptor(const void *shared, int leading, int stride, Swizzle swizzle) {
  const u32 offset = (u32)((const u8 *)shared - (const u8 *)tk_emu_engine->shared_memory());
  const u32 low = (offset & 0x3ffff) >> 4 | (u32)leading >> 4 << 16;
  const u32 high = (u32)stride >> 4 | (u32)swizzle << 30;
  return (u64)high << 32 | low;
}
TK_DEVICE u64 descriptor_advance(u64 descriptor, int bytes) {
  const u32 low = (u32)descriptor + (u32)(bytes >> 4);
  return descriptor >> 32 << 32 | low;
}
TK_DEVICE u64 descriptor_plus(u64 descriptor, int bytes) {
  return descriptor_advance(descriptor, bytes);
}
template <int n> struct HeldDescriptors {
  u64 at[n];
  template <class Bytes> TK_DEVICE HeldDescriptors(u64 first, const Bytes &bytes) {
    for_each<n>([&](int k) { at[k] = descriptor_advance(first, bytes(k)); });
  }
  TK_DEVICE u64 operator[](int k) const { return at[k]; }
};

TK_DEVICE void warpgroup_fence(Place place = {}) { tk_emu_engine->warpgroup_fence(place); }
TK_DEVICE void warpgroup_commit(Place place = {}) { tk_emu_engine->warpgroup_commit(place); }
template <int pending> TK_DEVICE void warpgroup_wait(Place place = {}) {
  tk_emu_engine->warpgroup_wait(pending, place);
}
template <int n> TK_DEVICE void fence_registers(float (&)[n]) {}
template <int n> TK_DEVICE void fence_registers(int (&)[n]) {}

template <class A, class B> struct WarpgroupProducts;
#define TK_PRODUCTS(A, B, products)                                                                \
  template <> struct WarpgroupProducts<A, B> {                                                     \
    static constexpr emu::Products type = emu::Products::products;                                 \
  };
TK_PRODUCTS(bf16, bf16, bf16)
TK_PRODUCTS(f16, f16, f16)
TK_PRODUCTS(float, float, tf32)
TK_PRODUCTS(i8, i8, i8)
TK_PRODUCTS(f8e4m3, f8e4m3, e4m3)
TK_PRODUCTS(f8e5m2, f8e5m2, e5m2)
TK_PRODUCTS(f8e4m3, f8e5m2, e4m3_e5m2)
TK_PRODUCTS(f8e5m2, f8e4m3, e5m2_e4m3)
#undef TK_PRODUCTS

// Declared by TK_WARPGROUP_MMA, as for the hardware.
template <class A, class B, int n> struct WarpgroupMma;

template <class A, class B, int n, bool transpose_a = false, bool transpose_b = false, class C>
TK_DEVICE void warpgroup_mma(C *acc, u64 a, u64 b, int accumulate, Place place = {}) {
  static_assert(sizeof(A) == 2 || !(transpose_a || transpose_b), "only 16-bit types transpose");
  static_assert(WarpgroupMma<A, B, n>::declared, "TK_WARPGROUP_MMA declares the shape");
  tk_emu_engine->warpgroup_mma(WarpgroupProducts<A, B>::type, n, transpose_a, transpose_b, acc,
                               nullptr, a, b, accumulate != 0, place);
}
template <class A, class B, int n, bool transpose_b = false, class C>
TK_DEVICE void warpgroup_mma(C *acc, const A *a, u64 b, int accumulate, Place place = {}) {
  static_assert(sizeof(A) == 2 || !transpose_b, "only 16-bit types transpose");
  static_assert(WarpgroupMma<A, B, n>::declared, "TK_WARPGROUP_MMA declares the shape");
  tk_emu_engine->warpgroup_mma(WarpgroupProducts<A, B>::type, n, false, transpose_b, acc, a, 0, b,
                               accumulate != 0, place);
}
// The columns of ones are a product of their own here: they lie n / 8 groups of rows behind b, or
// as many panels as there are of n columns.
template <class A, class B, int n, bool transpose_b = false, class C>
TK_DEVICE void warpgroup_mma_and_sums(C *acc, C *sums, const A *a, u64 b, int accumulate,
                                      Place place = {}) {
  static_assert(WarpgroupMma<A, B, n + 8>::declared, "TK_WARPGROUP_MMA declares the shape");
  const int group = (int)(b >> 32 & 0x3fff) << 4, panel = (int)(b >> 16 & 0x3fff) << 4;
  const int columns = (256 >> (int)(b >> 62)) / (int)sizeof(B); // of a panel
  const int behind = transpose_b ? n / columns * panel : n / 8 * group;
  tk_emu_engine->warpgroup_mma(WarpgroupProducts<A, B>::type, n, false, transpose_b, acc, a, 0, b,
                               accumulate != 0, place);
  tk_emu_engine->warpgroup_mma(WarpgroupProducts<A, B>::type, 8, false, transpose_b, sums, a, 0,
                               descriptor_advance(b, behind), accumulate != 0, place);
}
template <int n> TK_DEVICE void clear_registers(float (&x)[n]) {
  for_each<n>([&](int i) { x[i] = 0; });
}

template <class A, class B, int n, bool transpose_a, bool transpose_b, class C>
TK_DEVICE void one_product(C *acc, u64 a, u64 b, int accumulate, Place place) {
  warpgroup_mma<A, B, n, transpose_a, transpose_b>(acc, a, b, accumulate, place);
}
template <class A, class B, int n, bool, bool transpose_b, class C>
TK_DEVICE void one_product(C *acc, const A *a, u64 b, int accumulate, Place place) {
  warpgroup_mma<A, B, n, transpose_b>(acc, a, b, accumulate, place);
}
template <class A, class B, int n, bool transpose_a, bool transpose_b, int spans, class C,
          class OfA, class OfB>
TK_DEVICE void warpgroup_mma(C *acc, const OfA &a, const OfB &b, int accumulate, Place place = {}) {
  for (int k = 0; k < spans; ++k)
    one_product<A, B, n, transpose_a, transpose_b>(acc, a(k), b(k), k != 0 || accumulate, place);
}

} // namespace tk

#define TK_WARPGROUP_MMA(types, n) TK_WARPGROUP_DECLARE(TK_WARPGROUP_TYPES_##types, n)
#define TK_WARPGROUP_DECLARE(types, n) TK_WARPGROUP_SHAPE(types, n)
#define TK_WARPGROUP_SHAPE(A, B, n)                                                                \
  namespace tk {                                                                                   \
  template <> struct WarpgroupMma<A, B, n> {                                                       \
    static constexpr bool declared = true;                                                         \
  };                                                                                               \
  }
#define TK_WARPGROUP_TYPES_bf16 bf16, bf16
#define TK_WARPGROUP_TYPES_f16 f16, f16
#define TK_WARPGROUP_TYPES_tf32 float, float
#define TK_WARPGROUP_TYPES_i8 i8, i8
#define TK_WARPGROUP_TYPES_e4m3 f8e4m3, f8e4m3
#define TK_WARPGROUP_TYPES_e5m2 f8e5m2, f8e5m2
#define TK_WARPGROUP_TYPES_e4m3_e5m2 f8e4m3, f8e5m2
#define TK_WARPGROUP_TYPES_e5m2_e4m3 f8e5m2, f8e4m3
