// RUN: tk-opt %s --tk-drop-registers | FileCheck %s

#row = #tkgpu.layout<register = [[1], [2], [512], [1024]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]]>

// Rows of at most 1400 elements in tiles of 2048: of four vectors a thread has three. The last of
// them is behind the end for some threads, so that it stays masked.
// CHECK-LABEL: tkgpu.func @squares
// CHECK: arith.constant dense<1.000000e+00> : tensor<2048xf32, #tkgpu.layout<{{.*}} held = 12>>
// CHECK: tkgpu.iota to 1400 : tensor<2048xindex, #tkgpu.layout<register = {{\[}}[1], [2], [512], [1024]], lane = {{\[}}[4], [8], [16], [32], [64]], warp = {{\[}}[128], [256]], held = 12>>
// CHECK: tkgpu.load {{.*}} -> tensor<2048xf32, #tkgpu.layout<{{.*}} held = 12>>
// CHECK: tkgpu.reduce <sum> {{.*}} : tensor<2048xf32, #tkgpu.layout<{{.*}} held = 12>> -> f32
tkgpu.func @squares args ["x", "y", "n"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %ones = arith.constant dense<1.0> : tensor<2048xf32, #row>
  %j = tkgpu.iota to 1400 : tensor<2048xindex, #row>
  %end = tkgpu.broadcast %n dims [] : index -> tensor<2048xindex, #row>
  %in = arith.cmpi slt, %j, %end : tensor<2048xindex, #row>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks(%in) over [array<i64: 0>] other(%zero) {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<2048xindex, #row>, index, tensor<2048xi1, #row>, f32) -> tensor<2048xf32, #row>
  %w = arith.addf %v, %ones : tensor<2048xf32, #row>
  %p = arith.mulf %w, %v : tensor<2048xf32, #row>
  %s = tkgpu.reduce <sum> %p axis 0 : tensor<2048xf32, #row> -> f32
  tkgpu.store %s, %y[%c0] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// Four rows of at most 20 elements in tiles of 4 x 64 whose registers lie along the rows: the tiles
// of rows, of their columns and of both. What there is once a row has one register.
#rows = #tkgpu.layout<register = [[0, 8], [0, 16], [0, 32]], lane = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0]], warp = []>
#of_rows = #tkgpu.layout<register = [], lane = [[0], [0], [0], [1], [2]], warp = []>
#columns = #tkgpu.layout<register = [[8], [16], [32]], lane = [[1], [2], [4], [0], [0]], warp = []>
// CHECK-LABEL: tkgpu.func @several_rows
// CHECK: tkgpu.iota : tensor<4xindex, #tkgpu.layout<register = [], lane = {{\[}}[0], [0], [0], [1], [2]], warp = []>>
// CHECK: tkgpu.iota to 20 : tensor<64xindex, #tkgpu.layout<register = {{\[}}[8], [16], [32]], {{.*}} held = 3>>
// CHECK: tkgpu.load {{.*}} -> tensor<4x64xf32, #tkgpu.layout<register = {{\[}}[0, 8], [0, 16], [0, 32]], {{.*}} held = 3>>
// CHECK: tkgpu.reduce <sum> {{.*}} held = 3>> -> tensor<4xf32, #tkgpu.layout<register = [], lane = {{\[}}[0], [0], [0], [1], [2]], warp = []>>
tkgpu.func @several_rows args ["x", "y", "n"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %n: index):
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %i = tkgpu.iota : tensor<4xindex, #of_rows>
  %j = tkgpu.iota to 20 : tensor<64xindex, #columns>
  %end = tkgpu.broadcast %n dims [] : index -> tensor<64xindex, #columns>
  %in = arith.cmpi slt, %j, %end : tensor<64xindex, #columns>
  %v = tkgpu.load %x[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%n, %c1) masks(%in) over [array<i64: 1>] other(%zero) : (!tkgpu.buffer<f32>, tensor<4xindex, #of_rows>, tensor<64xindex, #columns>, index, index, tensor<64xi1, #columns>, f32) -> tensor<4x64xf32, #rows>
  %s = tkgpu.reduce <sum> %v axis 1 : tensor<4x64xf32, #rows> -> tensor<4xf32, #of_rows>
  tkgpu.store %s, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<4xf32, #of_rows>, !tkgpu.buffer<f32>, tensor<4xindex, #of_rows>, index) -> ()
  tkgpu.return
} {num_warps = 1 : i64, index_bits = 32 : i64}

// A thread that has elements of several rows and columns keeps all of them.
#both = #tkgpu.layout<register = [[0, 8], [0, 16], [1, 0]], lane = [[0, 1], [0, 2], [0, 4], [2, 0], [4, 0]], warp = []>
#of_both = #tkgpu.layout<register = [[1]], lane = [[0], [0], [0], [2], [4]], warp = []>
#short = #tkgpu.layout<register = [[8], [16]], lane = [[1], [2], [4], [0], [0]], warp = []>
// CHECK-LABEL: tkgpu.func @rows_in_registers
// CHECK-NOT: held
// CHECK: tkgpu.return
tkgpu.func @rows_in_registers args ["x", "y", "n"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %n: index):
  %c1 = arith.constant 1 : index
  %i = tkgpu.iota : tensor<8xindex, #of_both>
  %j = tkgpu.iota to 7 : tensor<32xindex, #short>
  %v = tkgpu.load %x[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%n, %c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<8xindex, #of_both>, tensor<32xindex, #short>, index, index) -> tensor<8x32xf32, #both>
  %s = tkgpu.reduce <sum> %v axis 1 : tensor<8x32xf32, #both> -> tensor<8xf32, #of_both>
  tkgpu.store %s, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<8xf32, #of_both>, !tkgpu.buffer<f32>, tensor<8xindex, #of_both>, index) -> ()
  tkgpu.return
} {num_warps = 1 : i64, index_bits = 32 : i64}

// An element of which nobody knows that it is of no use, or one that goes on to another thread.
// CHECK-LABEL: tkgpu.func @whole
// CHECK-NOT: held
// CHECK: tkgpu.return
tkgpu.func @whole args ["x", "y"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota to 1400 : tensor<2048xindex, #row>
  %k = tkgpu.iota : tensor<2048xindex, #row>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<2048xindex, #row>, index) -> tensor<2048xf32, #row>
  tkgpu.store %v, %y[%k] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<2048xf32, #row>, !tkgpu.buffer<f32>, tensor<2048xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}
// CHECK-LABEL: tkgpu.func @scanned
// CHECK-NOT: held
// CHECK: tkgpu.return
tkgpu.func @scanned args ["x", "y"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota to 1400 : tensor<2048xindex, #row>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<2048xindex, #row>, index) -> tensor<2048xf32, #row>
  %s, %all = tkgpu.scan <sum> %v axis 0 : tensor<2048xf32, #row> -> f32
  tkgpu.store %s, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<2048xf32, #row>, !tkgpu.buffer<f32>, tensor<2048xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// All elements of what is the same everywhere are summed, though others have a number.
// CHECK-LABEL: tkgpu.func @alike
// CHECK-NOT: held
// CHECK: tkgpu.return
tkgpu.func @alike args ["x", "y"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %ones = arith.constant dense<1.0> : tensor<2048xf32, #row>
  %j = tkgpu.iota to 1400 : tensor<2048xindex, #row>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<2048xindex, #row>, index) -> tensor<2048xf32, #row>
  tkgpu.store %v, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<2048xf32, #row>, !tkgpu.buffer<f32>, tensor<2048xindex, #row>, index) -> ()
  %s = tkgpu.reduce <sum> %ones axis 0 : tensor<2048xf32, #row> -> f32
  tkgpu.store %s, %y[%c0] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// Rows that begin anywhere: what lies behind the end that they go around is dropped, of what they
// share and of where that is kept as well. Masks hold in the same registers as before.
// CHECK-LABEL: tkgpu.func @rotated
// CHECK: tkgpu.rotated_iota %{{.*}} around 1536 : tensor<2048xindex, #tkgpu.layout<{{.*}} held = 12>>
// CHECK: arith.cmpi slt, %{{.*}} {tkgpu.settled = 248 : i64} : tensor<2048xindex, #tkgpu.layout<{{.*}} held = 12>>
// CHECK: tkgpu.funnel {{.*}} : tensor<2048xf32, #tkgpu.layout<{{.*}} held = 12>>
// CHECK: tkgpu.alloc_private : <1 x tensor<2048xf32, #tkgpu.layout<{{.*}} held = 12>>, vector = 4>
// CHECK: tkgpu.private_load {{.*}} -> tensor<2048xf32, #tkgpu.layout<{{.*}} held = 12>>
// CHECK: tkgpu.reduce <sum> {{.*}} : tensor<2048xf32, #tkgpu.layout<{{.*}} held = 12>> -> f32
tkgpu.func @rotated args ["x", "g", "y", "n"] facts [#tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<upper = 1400>] {
^bb0(%x: !tkgpu.buffer<f32>, %g: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %row = tkgpu.program_id x
  %s = tkgpu.misalignment[%row] strides(%n) of 4
  %j = tkgpu.rotated_iota %s around 1536 : tensor<2048xindex, #row>
  %i = tkgpu.iota to 1536 : tensor<2048xindex, #row>
  %before = tkgpu.rotated_iota %c4 around 1536 : tensor<2048xindex, #row>
  %end = tkgpu.broadcast %n dims [] : index -> tensor<2048xindex, #row>
  %in = arith.cmpi slt, %j, %end : tensor<2048xindex, #row>
  %in0 = arith.cmpi slt, %before, %end : tensor<2048xindex, #row>
  %in1 = arith.cmpi slt, %i, %end : tensor<2048xindex, #row>
  %g0 = tkgpu.load %g[%before] dims [array<i64: 0>] strides(%c1) masks(%in0) over [array<i64: 0>] other(%zero) {run = 4 : i64, vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<2048xindex, #row>, index, tensor<2048xi1, #row>, f32) -> tensor<2048xf32, #row>
  %g1 = tkgpu.load %g[%i] dims [array<i64: 0>] strides(%c1) masks(%in1) over [array<i64: 0>] other(%zero) {run = 4 : i64, vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<2048xindex, #row>, index, tensor<2048xi1, #row>, f32) -> tensor<2048xf32, #row>
  %w = tkgpu.funnel %g0, %g1 by %s in 4 : tensor<2048xf32, #row>
  %kept = tkgpu.alloc_private : <1 x tensor<2048xf32, #row>, vector = 4>
  tkgpu.private_store %w, %kept at %c0 : tensor<2048xf32, #row> -> <1 x tensor<2048xf32, #row>, vector = 4>
  %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%n, %c1) masks(%in) over [array<i64: 0>] other(%zero) {run = 4 : i64, vector = 4 : i64} : (!tkgpu.buffer<f32>, index, tensor<2048xindex, #row>, index, index, tensor<2048xi1, #row>, f32) -> tensor<2048xf32, #row>
  %k = tkgpu.private_load %kept at %c0 : <1 x tensor<2048xf32, #row>, vector = 4> -> tensor<2048xf32, #row>
  %p = arith.mulf %v, %k : tensor<2048xf32, #row>
  %sum = tkgpu.reduce <sum> %p axis 0 : tensor<2048xf32, #row> -> f32
  tkgpu.store %sum, %y[%c0] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64, tkgpu.least_sizes = array<i64: 0, 0, 0, 1281>}
