// The primitives that emitted kernels are written in, in PTX. The emulator implements the same
// functions for the host and shares the headers types, math, sine, division, soft_cap, reduce and
// random; README.md in this folder lists them with what each one means. NVRTC compiles this without
// any other header.
#pragma once

#define TK_DEVICE __device__ __forceinline__
#define TK_UNROLL _Pragma("unroll")
#define TK_KEEP_LOOP _Pragma("unroll 1")

namespace tk {

// Where in the source a primitive is called: nothing here, the emulator reports it.
struct Place {};

// Calls `body` with 0 .. n-1, unrolled, so that register arrays stay in registers.
template <int n, class Body> TK_DEVICE void for_each(Body &&body) {
  TK_UNROLL
  for (int i = 0; i < n; ++i)
    body(i);
}

} // namespace tk

// clang-format off: each uses those before it.
#include "types.cuh"
#include "scalar.cuh"
#include "fields.cuh"
#include "fields.cuh"
#include "math.cuh"
#include "division.cuh"
#include "sine.cuh"
#include "soft_cap.cuh"
#include "warp.cuh"
#include "memory.cuh"
#include "reduce.cuh"
#include "recurrence.cuh"
#include "histogram.cuh"
#include "sort.cuh"
#include "pairs.cuh"
#include "matrix.cuh"
#include "random.cuh"
// clang-format on
