// RUN: tk-emit-cuda %s | FileCheck %s
// factor * tanh(x * scale), to which something may be added, is one function of a whole tile, if the
// hyperbolic tangent is one of few bits, and scale and factor are numbers for all of the tile.

#tile = #tkgpu.layout<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = []>

// CHECK-LABEL: capped(
// CHECK-NOT: tanh_approx
// CHECK: const tk::ScaledTanh [[P:[a-z_0-9]+]](scale, cap);
// CHECK: tk::scaled_tanh({{[a-z_0-9]+}}, {{[a-z_0-9]+}}, [[P]]);
// CHECK-NOT: tanh_approx
tkgpu.func @capped args ["x", "y", "scale", "cap"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %scale: f32, %cap: f32):
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<128xindex, #tile>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<128xindex, #tile>, index) -> tensor<128xf32, #tile>
  %s = tkgpu.broadcast %scale dims [] : f32 -> tensor<128xf32, #tile>
  %c = tkgpu.broadcast %cap dims [] : f32 -> tensor<128xf32, #tile>
  %in = arith.mulf %v, %s : tensor<128xf32, #tile>
  %t = math.tanh %in {tkgpu.math = #tkgpu.math<approx>} : tensor<128xf32, #tile>
  %out = arith.mulf %c, %t : tensor<128xf32, #tile>
  tkgpu.store %out, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<128xf32, #tile>, !tkgpu.buffer<f32>, tensor<128xindex, #tile>, index) -> ()
  tkgpu.return
} {num_warps = 1 : i64, index_bits = 32 : i64}

// What the product alone is multiplied by stays with it.
// CHECK-LABEL: read_twice(
// CHECK: const tk::ScaledTanh [[P:[a-z_0-9]+]](scale, 1.0f);
// CHECK: tk::scaled_tanh([[T:[a-z_0-9]+]], {{[a-z_0-9]+}}, [[P]]);
// CHECK: (cap * [[T]][r])
tkgpu.func @read_twice args ["x", "y", "scale", "cap"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %scale: f32, %cap: f32):
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<128xindex, #tile>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<128xindex, #tile>, index) -> tensor<128xf32, #tile>
  %s = tkgpu.broadcast %scale dims [] : f32 -> tensor<128xf32, #tile>
  %c = tkgpu.broadcast %cap dims [] : f32 -> tensor<128xf32, #tile>
  %in = arith.mulf %v, %s : tensor<128xf32, #tile>
  %t = math.tanh %in {tkgpu.math = #tkgpu.math<approx>} : tensor<128xf32, #tile>
  %once = arith.mulf %c, %t : tensor<128xf32, #tile>
  %out = arith.addf %once, %t : tensor<128xf32, #tile>
  tkgpu.store %out, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<128xf32, #tile>, !tkgpu.buffer<f32>, tensor<128xindex, #tile>, index) -> ()
  tkgpu.return
} {num_warps = 1 : i64, index_bits = 32 : i64}

// CHECK-LABEL: exact(
// CHECK-NOT: scaled_tanh
// CHECK: tk::tanh(
// CHECK-NOT: scaled_tanh
tkgpu.func @exact args ["x", "y", "scale", "cap"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %scale: f32, %cap: f32):
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<128xindex, #tile>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<128xindex, #tile>, index) -> tensor<128xf32, #tile>
  %s = tkgpu.broadcast %scale dims [] : f32 -> tensor<128xf32, #tile>
  %c = tkgpu.broadcast %cap dims [] : f32 -> tensor<128xf32, #tile>
  %in = arith.mulf %v, %s : tensor<128xf32, #tile>
  %t = math.tanh %in : tensor<128xf32, #tile>
  %out = arith.mulf %c, %t : tensor<128xf32, #tile>
  tkgpu.store %out, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<128xf32, #tile>, !tkgpu.buffer<f32>, tensor<128xindex, #tile>, index) -> ()
  tkgpu.return
} {num_warps = 1 : i64, index_bits = 32 : i64}

// So does one that varies.
// CHECK-LABEL: by_row(
// CHECK: const tk::ScaledTanh [[P:[a-z_0-9]+]](scale, 1.0f);
// CHECK: tk::scaled_tanh([[T:[a-z_0-9]+]], {{[a-z_0-9]+}}, [[P]]);
// CHECK: * [[T]][r])
#rows = #tkgpu.layout<register = [[0, 1], [1, 0]], lane = [[0, 2], [0, 4], [0, 8], [2, 0], [4, 0]], warp = []>
#row = #tkgpu.layout<register = [[1]], lane = [[0], [0], [0], [2], [4]], warp = []>
#column = #tkgpu.layout<register = [[1]], lane = [[2], [4], [8], [0], [0]], warp = []>
tkgpu.func @by_row args ["x", "z", "y", "scale"] {
^bb0(%x: !tkgpu.buffer<f32>, %z: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %scale: f32):
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %i = tkgpu.iota : tensor<8xindex, #row>
  %j = tkgpu.iota : tensor<16xindex, #column>
  %v = tkgpu.load %x[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%c16, %c1) masks() over [] {vector = 2 : i64} : (!tkgpu.buffer<f32>, tensor<8xindex, #row>, tensor<16xindex, #column>, index, index) -> tensor<8x16xf32, #rows>
  %caps = tkgpu.load %z[%i] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 1 : i64} : (!tkgpu.buffer<f32>, tensor<8xindex, #row>, index) -> tensor<8xf32, #row>
  %s = tkgpu.broadcast %scale dims [] : f32 -> tensor<8x16xf32, #rows>
  %c = tkgpu.broadcast %caps dims [0] : tensor<8xf32, #row> -> tensor<8x16xf32, #rows>
  %in = arith.mulf %v, %s : tensor<8x16xf32, #rows>
  %t = math.tanh %in {tkgpu.math = #tkgpu.math<approx>} : tensor<8x16xf32, #rows>
  %out = arith.mulf %c, %t : tensor<8x16xf32, #rows>
  tkgpu.store %out, %y[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%c16, %c1) masks() over [] {vector = 2 : i64} : (tensor<8x16xf32, #rows>, !tkgpu.buffer<f32>, tensor<8xindex, #row>, tensor<16xindex, #column>, index, index) -> ()
  tkgpu.return
} {num_warps = 1 : i64, index_bits = 32 : i64}

// A scale that varies is no coefficient.
// CHECK-LABEL: scaled_by_row(
// CHECK-NOT: caled
// CHECK: tk::tanh_approx(
// CHECK-NOT: caled
tkgpu.func @scaled_by_row args ["x", "z", "y", "cap"] {
^bb0(%x: !tkgpu.buffer<f32>, %z: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %cap: f32):
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %i = tkgpu.iota : tensor<8xindex, #row>
  %j = tkgpu.iota : tensor<16xindex, #column>
  %v = tkgpu.load %x[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%c16, %c1) masks() over [] {vector = 2 : i64} : (!tkgpu.buffer<f32>, tensor<8xindex, #row>, tensor<16xindex, #column>, index, index) -> tensor<8x16xf32, #rows>
  %scales = tkgpu.load %z[%i] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 1 : i64} : (!tkgpu.buffer<f32>, tensor<8xindex, #row>, index) -> tensor<8xf32, #row>
  %s = tkgpu.broadcast %scales dims [0] : tensor<8xf32, #row> -> tensor<8x16xf32, #rows>
  %c = tkgpu.broadcast %cap dims [] : f32 -> tensor<8x16xf32, #rows>
  %in = arith.mulf %v, %s : tensor<8x16xf32, #rows>
  %t = math.tanh %in {tkgpu.math = #tkgpu.math<approx>} : tensor<8x16xf32, #rows>
  %out = arith.mulf %c, %t : tensor<8x16xf32, #rows>
  tkgpu.store %out, %y[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%c16, %c1) masks() over [] {vector = 2 : i64} : (tensor<8x16xf32, #rows>, !tkgpu.buffer<f32>, tensor<8xindex, #row>, tensor<16xindex, #column>, index, index) -> ()
  tkgpu.return
} {num_warps = 1 : i64, index_bits = 32 : i64}

// In a loop: what the factors determine is computed before the outermost one, once for all tiles
// with the same factors; what is added belongs to the function.
// CHECK-LABEL: biased(
// CHECK: const tk::ScaledTanh [[P:[a-z_0-9]+]](scale, 30.0f);
// CHECK-NOT: const tk::ScaledTanh
// CHECK: for (
// CHECK: for (
// CHECK: tk::scaled_tanh([[T:[a-z_0-9]+]], {{[a-z_0-9]+}}, [[P]], [&](int r) { return [[W:[a-z_0-9]+]][r]; });
// CHECK: tk::scaled_tanh({{[a-z_0-9]+}}, [[T]], [[P]]);
// CHECK-NOT: tanh
tkgpu.func @biased args ["x", "w", "y", "scale", "n"] {
^bb0(%x: !tkgpu.buffer<f32>, %w: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %scale: f32, %n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<128xindex, #tile>
  %s = tkgpu.broadcast %scale dims [] : f32 -> tensor<128xf32, #tile>
  %c = arith.constant dense<30.0> : tensor<128xf32, #tile>
  %bias = tkgpu.load %w[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<128xindex, #tile>, index) -> tensor<128xf32, #tile>
  scf.for %a = %c0 to %n step %c1 {
    scf.for %b = %c0 to %n step %c1 {
      %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<128xindex, #tile>, index) -> tensor<128xf32, #tile>
      %in = arith.mulf %v, %s : tensor<128xf32, #tile>
      %t = math.tanh %in {tkgpu.math = #tkgpu.math<approx>} : tensor<128xf32, #tile>
      %once = math.fma %c, %t, %bias : tensor<128xf32, #tile>
      %again = arith.mulf %once, %s : tensor<128xf32, #tile>
      %u = math.tanh %again {tkgpu.math = #tkgpu.math<approx>} : tensor<128xf32, #tile>
      %out = arith.mulf %u, %c : tensor<128xf32, #tile>
      tkgpu.store %out, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<128xf32, #tile>, !tkgpu.buffer<f32>, tensor<128xindex, #tile>, index) -> ()
    }
  }
  tkgpu.return
} {num_warps = 1 : i64, index_bits = 32 : i64}

// A product between two hyperbolic tangents ends the first one's cap.
// CHECK-LABEL: twice(
// CHECK: tk::scaled_tanh([[T:[a-z_0-9]+]], {{[a-z_0-9]+}}, {{[a-z_0-9]+}});
// CHECK: tk::tanh_approx({{[a-z_0-9]+}}, [[T]]);
tkgpu.func @twice args ["x", "y", "scale", "cap"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %scale: f32, %cap: f32):
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<128xindex, #tile>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<128xindex, #tile>, index) -> tensor<128xf32, #tile>
  %s = tkgpu.broadcast %scale dims [] : f32 -> tensor<128xf32, #tile>
  %c = tkgpu.broadcast %cap dims [] : f32 -> tensor<128xf32, #tile>
  %in = arith.mulf %v, %s : tensor<128xf32, #tile>
  %t = math.tanh %in {tkgpu.math = #tkgpu.math<approx>} : tensor<128xf32, #tile>
  %between = arith.mulf %t, %c : tensor<128xf32, #tile>
  %u = math.tanh %between {tkgpu.math = #tkgpu.math<approx>} : tensor<128xf32, #tile>
  tkgpu.store %u, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<128xf32, #tile>, !tkgpu.buffer<f32>, tensor<128xindex, #tile>, index) -> ()
  tkgpu.return
} {num_warps = 1 : i64, index_bits = 32 : i64}

// Rows share what is left of their references where a thread has each with the one 8 behind it; else every
// element has its row's.
// CHECK-LABEL: shared(
// CHECK: const tk::RowReferences<2> [[UNDER:[a-z_0-9]+]]({{[a-z_0-9]+}}, {{[a-z_0-9]+}}[0]);
// CHECK: tk::exp2_scaled_tanh({{[a-z_0-9]+}}, {{[a-z_0-9]+}}, {{[a-z_0-9]+}}, [[UNDER]], 1.4426950408889634f, 0.0f, [&](int r) { return
// CHECK-LABEL: unshared(
// CHECK: tk::exp2_scaled_tanh({{[a-z_0-9]+}}, {{[a-z_0-9]+}}, {{[a-z_0-9]+}}, [&](int r) { return tk::exp_offset(
#near = #tkgpu.layout<register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>
#near_row = #tkgpu.layout<register = [[8]], lane = [[0], [0], [1], [2], [4]], warp = []>
#near_column = #tkgpu.layout<register = [[1]], lane = [[2], [4], [0], [0], [0]], warp = []>
#far = #tkgpu.layout<register = [[0, 1], [1, 0]], lane = [[0, 2], [0, 4], [2, 0], [4, 0], [8, 0]], warp = []>
#far_row = #tkgpu.layout<register = [[1]], lane = [[0], [0], [2], [4], [8]], warp = []>
#far_column = #tkgpu.layout<register = [[1]], lane = [[2], [4], [0], [0], [0]], warp = []>
tkgpu.func @shared args ["x", "z", "w", "y", "scale", "slope"] {
^bb0(%x: !tkgpu.buffer<f32>, %z: !tkgpu.buffer<f32>, %w: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %scale: f32, %slope: f32):
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %cap = arith.constant dense<30.0> : tensor<16x8xf32, #near>
  %i = tkgpu.iota : tensor<16xindex, #near_row>
  %j = tkgpu.iota : tensor<8xindex, #near_column>
  %n = tkgpu.iota : tensor<8xf32, #near_column>
  %v = tkgpu.load %x[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%c8, %c1) masks() over [] {vector = 2 : i64} : (!tkgpu.buffer<f32>, tensor<16xindex, #near_row>, tensor<8xindex, #near_column>, index, index) -> tensor<16x8xf32, #near>
  %reference = tkgpu.load %z[%i] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 1 : i64} : (!tkgpu.buffer<f32>, tensor<16xindex, #near_row>, index) -> tensor<16xf32, #near_row>
  %s = tkgpu.broadcast %scale dims [] : f32 -> tensor<16x8xf32, #near>
  %slopes = tkgpu.broadcast %slope dims [] : f32 -> tensor<8xf32, #near_column>
  %bias = arith.mulf %slopes, %n : tensor<8xf32, #near_column>
  %biases = tkgpu.broadcast %bias dims [1] : tensor<8xf32, #near_column> -> tensor<16x8xf32, #near>
  %references = tkgpu.broadcast %reference dims [0] : tensor<16xf32, #near_row> -> tensor<16x8xf32, #near>
  %in = arith.mulf %v, %s : tensor<16x8xf32, #near>
  %t = math.tanh %in {tkgpu.math = #tkgpu.math<approx>} : tensor<16x8xf32, #near>
  %scores = math.fma %cap, %t, %biases : tensor<16x8xf32, #near>
  %weights = tk.exp_diff %scores, %references {tkgpu.math = #tkgpu.math<approx, shared_rows>} : tensor<16x8xf32, #near>
  tkgpu.store %bias, %w[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 2 : i64} : (tensor<8xf32, #near_column>, !tkgpu.buffer<f32>, tensor<8xindex, #near_column>, index) -> ()
  tkgpu.store %weights, %y[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%c8, %c1) masks() over [] {vector = 2 : i64} : (tensor<16x8xf32, #near>, !tkgpu.buffer<f32>, tensor<16xindex, #near_row>, tensor<8xindex, #near_column>, index, index) -> ()
  tkgpu.return
} {num_warps = 1 : i64, index_bits = 32 : i64}
tkgpu.func @unshared args ["x", "z", "w", "y", "scale", "slope"] {
^bb0(%x: !tkgpu.buffer<f32>, %z: !tkgpu.buffer<f32>, %w: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %scale: f32, %slope: f32):
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %cap = arith.constant dense<30.0> : tensor<16x8xf32, #far>
  %i = tkgpu.iota : tensor<16xindex, #far_row>
  %j = tkgpu.iota : tensor<8xindex, #far_column>
  %n = tkgpu.iota : tensor<8xf32, #far_column>
  %v = tkgpu.load %x[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%c8, %c1) masks() over [] {vector = 2 : i64} : (!tkgpu.buffer<f32>, tensor<16xindex, #far_row>, tensor<8xindex, #far_column>, index, index) -> tensor<16x8xf32, #far>
  %reference = tkgpu.load %z[%i] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 1 : i64} : (!tkgpu.buffer<f32>, tensor<16xindex, #far_row>, index) -> tensor<16xf32, #far_row>
  %s = tkgpu.broadcast %scale dims [] : f32 -> tensor<16x8xf32, #far>
  %slopes = tkgpu.broadcast %slope dims [] : f32 -> tensor<8xf32, #far_column>
  %bias = arith.mulf %slopes, %n : tensor<8xf32, #far_column>
  %biases = tkgpu.broadcast %bias dims [1] : tensor<8xf32, #far_column> -> tensor<16x8xf32, #far>
  %references = tkgpu.broadcast %reference dims [0] : tensor<16xf32, #far_row> -> tensor<16x8xf32, #far>
  %in = arith.mulf %v, %s : tensor<16x8xf32, #far>
  %t = math.tanh %in {tkgpu.math = #tkgpu.math<approx>} : tensor<16x8xf32, #far>
  %scores = math.fma %cap, %t, %biases : tensor<16x8xf32, #far>
  %weights = tk.exp_diff %scores, %references {tkgpu.math = #tkgpu.math<approx, shared_rows>} : tensor<16x8xf32, #far>
  tkgpu.store %bias, %w[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 2 : i64} : (tensor<8xf32, #far_column>, !tkgpu.buffer<f32>, tensor<8xindex, #far_column>, index) -> ()
  tkgpu.store %weights, %y[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%c8, %c1) masks() over [] {vector = 2 : i64} : (tensor<16x8xf32, #far>, !tkgpu.buffer<f32>, tensor<16xindex, #far_row>, tensor<8xindex, #far_column>, index, index) -> ()
  tkgpu.return
} {num_warps = 1 : i64, index_bits = 32 : i64}

// A scale that a loop loads is known within it, before the next one.
// CHECK-LABEL: by_step(
// CHECK: for (
// CHECK: const float [[S:[a-z_0-9]+]] = tk::get(
// CHECK: const tk::ScaledTanh [[P:[a-z_0-9]+]]([[S]], 1.0f);
// CHECK: for (
// CHECK-NOT: const tk::ScaledTanh
// CHECK: tk::scaled_tanh({{[a-z_0-9]+}}, {{[a-z_0-9]+}}, [[P]]);
tkgpu.func @by_step args ["x", "z", "y", "n"] {
^bb0(%x: !tkgpu.buffer<f32>, %z: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<128xindex, #tile>
  scf.for %a = %c0 to %n step %c1 {
    %scale = tkgpu.load %z[%a] dims [array<i64>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, index, index) -> f32
    %s = tkgpu.broadcast %scale dims [] : f32 -> tensor<128xf32, #tile>
    scf.for %b = %c0 to %n step %c1 {
      %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<128xindex, #tile>, index) -> tensor<128xf32, #tile>
      %in = arith.mulf %v, %s : tensor<128xf32, #tile>
      %t = math.tanh %in {tkgpu.math = #tkgpu.math<approx>} : tensor<128xf32, #tile>
      tkgpu.store %t, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<128xf32, #tile>, !tkgpu.buffer<f32>, tensor<128xindex, #tile>, index) -> ()
    }
  }
  tkgpu.return
} {num_warps = 1 : i64, index_bits = 32 : i64}
