// The primitives that emitted kernels are written in, in PTX. The emulator implements the same
// functions for the host; README.md in this folder lists them with what each one means.
// NVRTC compiles this without any other header.
#pragma once

#define TK_DEVICE __device__ __forceinline__

namespace tk {

// A compile-time index that converts to int, for register arrays that must not go to memory.
template <int value> struct Index {
  TK_DEVICE constexpr operator int() const { return value; }
};
template <int... i> struct Indices {};
template <int n, int... i> struct MakeIndices : MakeIndices<n - 1, n - 1, i...> {};
template <int... i> struct MakeIndices<0, i...> {
  using Type = Indices<i...>;
};

// Calls `body` with 0 .. n-1, unrolled by hand of the compiler.
template <int n, class Body> TK_DEVICE void for_each(Body &&body) {
#pragma unroll
  for (int i = 0; i < n; ++i)
    body(i);
}

} // namespace tk

#include "types.cuh"
#include "math.cuh"
#include "warp.cuh"
#include "memory.cuh"
#include "reduce.cuh"
#include "matrix.cuh"
#include "random.cuh"
