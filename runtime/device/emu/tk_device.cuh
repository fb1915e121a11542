// The primitives for the host: what emitted kernels include when they are compiled for the
// emulator. Twin of ../tk_device.cuh; types, math, division, soft_cap, reduce and random are
// that folder's.
#pragma once

#include "engine.h"

// The words of CUDA C++ that emitted text uses.
#define __global__
#define __launch_bounds__(...)
#define __grid_constant__
#define __cluster_dims__(...)

#define TK_DEVICE inline
#define TK_UNROLL
#define TK_KEEP_LOOP

namespace tk {

template <int n, class Body> TK_DEVICE void for_each(Body &&body) {
  for (int i = 0; i < n; ++i)
    body(i);
}

} // namespace tk

// Set by whoever loads the object.
static tk::emu::Engine *tk_emu_engine;
extern "C" void tk_emu_attach(tk::emu::Engine *engine) { tk_emu_engine = engine; }

// clang-format off: each uses those before it.
#include "host.cuh"
#include "types.cuh"
#include "scalar.cuh"
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
#include "entry.cuh"
// clang-format on
