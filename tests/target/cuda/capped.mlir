// RUN: tk-emit-cuda %s | FileCheck %s
// factor * tanh(x * scale) of a whole tile is one function, if the hyperbolic tangent is one of few bits
// that nothing else reads, and scale and factor are numbers for all of the tile.

#tile = #tkgpu.layout<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = []>

// CHECK-LABEL: capped(
// CHECK-NOT: tanh_approx
// CHECK: tk::scaled_tanh({{[a-z_0-9]+}}, {{[a-z_0-9]+}}, scale, cap);
// CHECK-NOT: tanh_approx
tkgpu.func @capped args ["x", "y", "scale", "cap"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %scale: f32, %cap: f32):
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<128xindex, #tile>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<128xindex, #tile>, index) -> tensor<128xf32, #tile>
  %s = tkgpu.broadcast %scale dims [] : f32 -> tensor<128xf32, #tile>
  %c = tkgpu.broadcast %cap dims [] : f32 -> tensor<128xf32, #tile>
  %in = arith.mulf %v, %s : tensor<128xf32, #tile>
  %t = math.tanh %in {approx} : tensor<128xf32, #tile>
  %out = arith.mulf %c, %t : tensor<128xf32, #tile>
  tkgpu.store %out, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<128xf32, #tile>, !tkgpu.buffer<f32>, tensor<128xindex, #tile>, index) -> ()
  tkgpu.return
} {num_warps = 1 : i64, index_bits = 32 : i64}

// CHECK-LABEL: read_twice(
// CHECK-NOT: scaled_tanh
// CHECK: tk::tanh_approx(
// CHECK-NOT: scaled_tanh
tkgpu.func @read_twice args ["x", "y", "scale", "cap"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %scale: f32, %cap: f32):
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<128xindex, #tile>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<128xindex, #tile>, index) -> tensor<128xf32, #tile>
  %s = tkgpu.broadcast %scale dims [] : f32 -> tensor<128xf32, #tile>
  %c = tkgpu.broadcast %cap dims [] : f32 -> tensor<128xf32, #tile>
  %in = arith.mulf %v, %s : tensor<128xf32, #tile>
  %t = math.tanh %in {approx} : tensor<128xf32, #tile>
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

// CHECK-LABEL: by_row(
// CHECK-NOT: scaled_tanh
// CHECK: tk::tanh_approx(
// CHECK-NOT: scaled_tanh
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
  %t = math.tanh %in {approx} : tensor<8x16xf32, #rows>
  %out = arith.mulf %c, %t : tensor<8x16xf32, #rows>
  tkgpu.store %out, %y[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%c16, %c1) masks() over [] {vector = 2 : i64} : (tensor<8x16xf32, #rows>, !tkgpu.buffer<f32>, tensor<8xindex, #row>, tensor<16xindex, #column>, index, index) -> ()
  tkgpu.return
} {num_warps = 1 : i64, index_bits = 32 : i64}
