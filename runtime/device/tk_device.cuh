// The primitives that emitted kernels are written in, in PTX. The emulator implements the same
// functions for the host; README.md in this folder lists them with what each one means.
// Headers that both share: types, math, reduce, random. NVRTC compiles this without any other header.
#pragma once

#define TK_DEVICE __device__ __forceinline__
#define TK_UNROLL _Pragma("unroll")

namespace tk {

// Where in the source a primitive is called: nothing here, the emulator reports it.
struct Place {};

// Calls `body` with 0 .. n-1, unrolled, so that register arrays stay in registers.
template <int n, class Body> TK_DEVICE void for_each(Body &&body) {
#pragma unroll
  for (int i = 0; i < n; ++i)
    body(i);
}

} // namespace tk

#include "types.cuh"
#include "scalar.cuh"
#include "math.cuh"
#include "warp.cuh"
#include "memory.cuh"
#include "reduce.cuh"
#include "matrix.cuh"
#include "random.cuh"
