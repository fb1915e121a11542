// RUN: tk-opt %s --tk-hoist-loads | FileCheck %s
// RUN: tk-opt %s --tk-hoist-loads=max-elements=8 | FileCheck %s --check-prefix=MORE

#row = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512]]>

// A label, and the element that it names, are loaded before the threads wait for the maximum; a tile
// of weights would take registers meanwhile, and what depends on the maximum comes behind it.
// CHECK-LABEL: tkgpu.func @loss
// CHECK: tkgpu.load %arg0[%{{.*}}] dims
// CHECK: %[[LABEL:.*]] = tkgpu.load %arg1
// CHECK: %[[AT:.*]] = arith.index_cast %[[LABEL]]
// CHECK: tkgpu.load %arg0[%[[AT]]]
// CHECK: %[[MAX:.*]] = tkgpu.reduce <max>
// CHECK: tkgpu.load %arg2
// CHECK: arith.fptosi %[[MAX]]
// CHECK: tkgpu.load %arg1
// MORE-LABEL: tkgpu.func @loss
// MORE: tkgpu.load %arg2
// MORE: tkgpu.reduce <max>
// MORE-NOT: tkgpu.load %arg2
// MORE: tkgpu.load %arg1
tkgpu.func @loss args ["x", "labels", "weights", "y", "z", "n"] {
^bb0(%x: !tkgpu.buffer<f32>, %labels: !tkgpu.buffer<i32>, %weights: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %z: !tkgpu.buffer<i32>, %n: index):
  %c1 = arith.constant 1 : index
  %r = tkgpu.program_id x
  %j = tkgpu.iota : tensor<1024xindex, #row>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> tensor<1024xf32, #row>
  %m = tkgpu.reduce <max> %v axis 0 : tensor<1024xf32, #row> -> f32
  %label = tkgpu.load %labels[%r] dims [array<i64>] strides(%c1) masks() over [] : (!tkgpu.buffer<i32>, index, index) -> i32
  %at = arith.index_cast %label : i32 to index
  %named = tkgpu.load %x[%at] dims [array<i64>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, index, index) -> f32
  %w = tkgpu.load %weights[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> tensor<1024xf32, #row>
  %d = arith.subf %m, %named : f32
  %ds = tkgpu.broadcast %d dims [] : f32 -> tensor<1024xf32, #row>
  %p = arith.mulf %w, %ds : tensor<1024xf32, #row>
  tkgpu.store %p, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<1024xf32, #row>, !tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> ()
  %i = arith.fptosi %m : f32 to i32
  %k = arith.index_cast %i : i32 to index
  %late = tkgpu.load %labels[%k] dims [array<i64>] strides(%c1) masks() over [] : (!tkgpu.buffer<i32>, index, index) -> i32
  tkgpu.store %late, %z[%r] dims [array<i64>] strides(%c1) masks() over [] : (i32, !tkgpu.buffer<i32>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// Where threads load little, what a second reduction is computed from comes with the rest, too; what
// is only stored stays.
// CHECK-LABEL: tkgpu.func @parts
// CHECK: tkgpu.load %arg0
// CHECK: tkgpu.load %arg1
// CHECK-NOT: tkgpu.load
// CHECK: tkgpu.reduce <sum>
// CHECK: tkgpu.reduce <sum>
// CHECK: tkgpu.load %arg2
tkgpu.func @parts args ["sums", "squares", "weights", "y"] {
^bb0(%sums: !tkgpu.buffer<f32>, %squares: !tkgpu.buffer<f32>, %weights: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<1024xindex, #row>
  %v = tkgpu.load %sums[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> tensor<1024xf32, #row>
  %m = tkgpu.reduce <sum> %v axis 0 : tensor<1024xf32, #row> -> f32
  %ms = tkgpu.broadcast %m dims [] : f32 -> tensor<1024xf32, #row>
  %q = tkgpu.load %squares[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> tensor<1024xf32, #row>
  %d = arith.subf %q, %ms : tensor<1024xf32, #row>
  %t = tkgpu.reduce <sum> %d axis 0 : tensor<1024xf32, #row> -> f32
  %ts = tkgpu.broadcast %t dims [] : f32 -> tensor<1024xf32, #row>
  %w = tkgpu.load %weights[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> tensor<1024xf32, #row>
  %p = arith.mulf %w, %ts : tensor<1024xf32, #row>
  tkgpu.store %p, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<1024xf32, #row>, !tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}
