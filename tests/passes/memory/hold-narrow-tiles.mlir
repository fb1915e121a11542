// RUN: tk-opt %s --tk-hold-narrow-tiles=min-registers=8 --tk-limit-registers | FileCheck %s
// RUN: tk-opt %s --tk-hold-narrow-tiles | FileCheck %s --check-prefix=FEW

#row = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512]]>

// What passes from one reduction to the next are the elements as loaded; exponentials are kept.
// CHECK-LABEL: tkgpu.func @variance
// CHECK: %[[X:.*]] = tkgpu.load
// CHECK: %[[F:.*]] = arith.extf %[[X]]
// CHECK: %[[SUM:.*]] = tkgpu.reduce <sum> %[[F]]
// CHECK: %[[HELD:.*]] = tkgpu.hold %[[X]]
// CHECK: %[[G:.*]] = arith.extf %[[HELD]]
// CHECK: %[[MEAN:.*]] = tkgpu.broadcast
// CHECK: %[[D:.*]] = arith.subf %[[G]], %[[MEAN]]
// CHECK: %[[E:.*]] = math.exp %[[D]]
// CHECK: tkgpu.reduce <sum> %[[E]]
// CHECK: %[[AGAIN:.*]] = tkgpu.hold %[[HELD]]
// CHECK: %[[H:.*]] = arith.extf %[[AGAIN]]
// CHECK: %[[D2:.*]] = arith.subf %[[H]], %{{.*}}
// CHECK: arith.mulf %[[D2]], %[[E]]
// CHECK: min_blocks = 8 : i64
// FEW-LABEL: tkgpu.func @variance
// FEW-NOT: tkgpu.hold
tkgpu.func @variance args ["x", "y", "n"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<f32>, %n: index):
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<1024xindex, #row>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<1024xindex, #row>, index) -> tensor<1024xbf16, #row>
  %f = arith.extf %v : tensor<1024xbf16, #row> to tensor<1024xf32, #row>
  %s = tkgpu.reduce <sum> %f axis 0 : tensor<1024xf32, #row> -> f32
  %m = tkgpu.broadcast %s dims [] : f32 -> tensor<1024xf32, #row>
  %d = arith.subf %f, %m : tensor<1024xf32, #row>
  %e = math.exp %d : tensor<1024xf32, #row>
  %t = tkgpu.reduce <sum> %e axis 0 : tensor<1024xf32, #row> -> f32
  %ts = tkgpu.broadcast %t dims [] : f32 -> tensor<1024xf32, #row>
  %p = arith.mulf %d, %e : tensor<1024xf32, #row>
  %q = arith.mulf %p, %ts : tensor<1024xf32, #row>
  tkgpu.store %q, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<1024xf32, #row>, !tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// f32 elements take as much as what follows from them, and a function without reductions across
// threads has nothing to wait for.
// CHECK-LABEL: tkgpu.func @wide
// CHECK-NOT: tkgpu.hold
// CHECK-LABEL: tkgpu.func @pointwise
// CHECK-NOT: min_blocks
tkgpu.func @wide args ["x", "y"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<1024xindex, #row>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> tensor<1024xf32, #row>
  %f = arith.addf %v, %v : tensor<1024xf32, #row>
  %s = tkgpu.reduce <sum> %f axis 0 : tensor<1024xf32, #row> -> f32
  %m = tkgpu.broadcast %s dims [] : f32 -> tensor<1024xf32, #row>
  %d = arith.subf %f, %m : tensor<1024xf32, #row>
  tkgpu.store %d, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<1024xf32, #row>, !tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

tkgpu.func @pointwise args ["x", "y"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<1024xindex, #row>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> tensor<1024xf32, #row>
  tkgpu.store %v, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<1024xf32, #row>, !tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// What a thread has in shared memory is read again for a store, too.
// CHECK-LABEL: tkgpu.func @stored_as_kept
// CHECK: tkgpu.reduce
// CHECK: %[[AGAIN:.*]] = tkgpu.private_load
// CHECK: tkgpu.store %[[AGAIN]]
tkgpu.func @stored_as_kept args ["y"] {
^bb0(%y: !tkgpu.buffer<bf16>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<1024xindex, #row>
  %kept = tkgpu.alloc_private : <1 x tensor<1024xbf16, #row>, vector = 4>
  %v = tkgpu.private_load %kept at %c0 : <1 x tensor<1024xbf16, #row>, vector = 4> -> tensor<1024xbf16, #row>
  %s = tkgpu.reduce <max> %v axis 0 : tensor<1024xbf16, #row> -> bf16
  tkgpu.store %s, %y[%c0] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
  tkgpu.store %v, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<1024xbf16, #row>, !tkgpu.buffer<bf16>, tensor<1024xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}
