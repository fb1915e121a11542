// RUN: tk-opt %s --tk-advance-stores | FileCheck %s

#row = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512]]>
#short = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = []>

// A sum of rows is stored before the threads meet, its address included; what the reduction scales
// behind it.
// CHECK-LABEL: tkgpu.func @sum
// CHECK: %[[SUM:.*]] = arith.addf
// CHECK: %[[ROW:.*]] = arith.addi
// CHECK: tkgpu.store %[[SUM]], %arg2[%[[ROW]]]
// CHECK: %[[MAX:.*]] = tkgpu.reduce <max>
// CHECK: tkgpu.broadcast %[[MAX]]
// CHECK: tkgpu.store %{{.*}}, %arg3
tkgpu.func @sum args ["x", "y", "sum", "scaled"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %sum: !tkgpu.buffer<f32>, %scaled: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<1024xindex, #row>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> tensor<1024xf32, #row>
  %w = tkgpu.load %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> tensor<1024xf32, #row>
  %s = arith.addf %v, %w : tensor<1024xf32, #row>
  %m = tkgpu.reduce <max> %s axis 0 : tensor<1024xf32, #row> -> f32
  %ms = tkgpu.broadcast %m dims [] : f32 -> tensor<1024xf32, #row>
  %p = arith.mulf %s, %ms : tensor<1024xf32, #row>
  tkgpu.store %p, %scaled[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<1024xf32, #row>, !tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> ()
  %at = arith.addi %j, %j : tensor<1024xindex, #row>
  tkgpu.store %s, %sum[%at] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<1024xf32, #row>, !tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// Of two reductions it passes the one that its value does not need. A second store to the same
// buffer stays behind the first.
// CHECK-LABEL: tkgpu.func @between
// CHECK: %[[MAX:.*]] = tkgpu.reduce <max>
// CHECK: %[[P:.*]] = arith.mulf
// CHECK: tkgpu.store %[[P]], %arg1
// CHECK: %[[SUM:.*]] = tkgpu.reduce <sum>
// CHECK: %[[Q:.*]] = arith.mulf
// CHECK: tkgpu.store %[[Q]], %arg2
// CHECK: tkgpu.store %[[P]], %arg2
tkgpu.func @between args ["x", "a", "b"] {
^bb0(%x: !tkgpu.buffer<f32>, %a: !tkgpu.buffer<f32>, %b: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<1024xindex, #row>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> tensor<1024xf32, #row>
  %m = tkgpu.reduce <max> %v axis 0 : tensor<1024xf32, #row> -> f32
  %ms = tkgpu.broadcast %m dims [] : f32 -> tensor<1024xf32, #row>
  %p = arith.mulf %v, %ms : tensor<1024xf32, #row>
  %s = tkgpu.reduce <sum> %p axis 0 : tensor<1024xf32, #row> -> f32
  %ss = tkgpu.broadcast %s dims [] : f32 -> tensor<1024xf32, #row>
  %q = arith.mulf %p, %ss : tensor<1024xf32, #row>
  tkgpu.store %p, %a[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<1024xf32, #row>, !tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> ()
  tkgpu.store %q, %b[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<1024xf32, #row>, !tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> ()
  tkgpu.store %p, %b[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<1024xf32, #row>, !tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// A warp has its rows alone, and results in the place of a parameter wait until it has been read.
// CHECK-LABEL: tkgpu.func @alone
// CHECK: tkgpu.reduce <max>
// CHECK: tkgpu.store
tkgpu.func @alone args ["x", "a", "b"] {
^bb0(%x: !tkgpu.buffer<f32>, %a: !tkgpu.buffer<f32>, %b: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<256xindex, #short>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<256xindex, #short>, index) -> tensor<256xf32, #short>
  %m = tkgpu.reduce <max> %v axis 0 : tensor<256xf32, #short> -> f32
  tkgpu.store %v, %a[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<256xf32, #short>, !tkgpu.buffer<f32>, tensor<256xindex, #short>, index) -> ()
  tkgpu.store %m, %b[] dims [] strides() masks() over [] : (f32, !tkgpu.buffer<f32>) -> ()
  tkgpu.return
} {num_warps = 1 : i64, index_bits = 32 : i64}
// CHECK-LABEL: tkgpu.func @replaced
// CHECK: tkgpu.reduce <max>
// CHECK: tkgpu.store
tkgpu.func @replaced args ["x", "a", "b"] {
^bb0(%x: !tkgpu.buffer<f32>, %a: !tkgpu.buffer<f32>, %b: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<1024xindex, #row>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> tensor<1024xf32, #row>
  %m = tkgpu.reduce <max> %v axis 0 : tensor<1024xf32, #row> -> f32
  tkgpu.store %v, %a[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<1024xf32, #row>, !tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> ()
  tkgpu.store %m, %b[] dims [] strides() masks() over [] : (f32, !tkgpu.buffer<f32>) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64, tkgpu.plan = #tkgpu.plan<in_place = true>}
