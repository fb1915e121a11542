// RUN: tk-opt %s --tk-select-elements | FileCheck %s

#row = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512]]>

// CHECK-LABEL: tkgpu.func @gradient
// CHECK: %[[X:.*]] = tkgpu.load
// CHECK: %[[AT:.*]] = arith.subf %[[X]], %{{.*}} : tensor<1024xf32
// CHECK: %[[Y:.*]] = tkgpu.select_at %[[AT]] at %[[N:.*]] else %[[X]] : tensor<1024xf32
// CHECK-NOT: arith.select
// CHECK: tkgpu.store %[[Y]]
tkgpu.func @gradient args ["x", "y", "n"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %n: index):
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<1024xf32, #row>
  %zero = arith.constant dense<0.0> : tensor<1024xf32, #row>
  %j = tkgpu.iota : tensor<1024xindex, #row>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> tensor<1024xf32, #row>
  %ns = tkgpu.broadcast %n dims [] : index -> tensor<1024xindex, #row>
  %is = arith.cmpi eq, %j, %ns : tensor<1024xindex, #row>
  %t = arith.select %is, %one, %zero : tensor<1024xi1, #row>, tensor<1024xf32, #row>
  %d = arith.subf %v, %t : tensor<1024xf32, #row>
  tkgpu.store %d, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<1024xf32, #row>, !tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// A sum with 0 is not its operand where that is -0; a choice between tiles; numbers that are compared
// with each their own.
// CHECK-LABEL: tkgpu.func @others
// CHECK: arith.select
// CHECK: arith.addf
// CHECK: %[[R:.*]] = tkgpu.select_at %[[C:.*]] at %{{.*}} else %[[A:.*]] : tensor<1024xf32
// CHECK: arith.select %{{.*}}, %[[C]], %[[R]]
tkgpu.func @others args ["x", "y", "n", "k"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %n: index, %k: !tkgpu.buffer<i32>):
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<1024xf32, #row>
  %zero = arith.constant dense<0.0> : tensor<1024xf32, #row>
  %j = tkgpu.iota : tensor<1024xindex, #row>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> tensor<1024xf32, #row>
  %i = tkgpu.load %k[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<i32>, tensor<1024xindex, #row>, index) -> tensor<1024xi32, #row>
  %ns = tkgpu.broadcast %n dims [] : index -> tensor<1024xindex, #row>
  %is = arith.cmpi eq, %j, %ns : tensor<1024xindex, #row>
  %t = arith.select %is, %one, %zero : tensor<1024xi1, #row>, tensor<1024xf32, #row>
  %a = arith.addf %v, %t : tensor<1024xf32, #row>
  %r = arith.select %is, %one, %a : tensor<1024xi1, #row>, tensor<1024xf32, #row>
  %ix = arith.index_cast %i : tensor<1024xi32, #row> to tensor<1024xindex, #row>
  %own = arith.cmpi eq, %j, %ix : tensor<1024xindex, #row>
  %q = arith.select %own, %one, %r : tensor<1024xi1, #row>, tensor<1024xf32, #row>
  tkgpu.store %q, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<1024xf32, #row>, !tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// What is subtracted is not 0 elsewhere.
// CHECK-LABEL: tkgpu.func @both
// CHECK: %[[C:.*]] = arith.select
// CHECK: arith.subf %{{.*}}, %[[C]]
// CHECK: tkgpu.return
tkgpu.func @both args ["x", "y", "n"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %n: index):
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<1024xf32, #row>
  %two = arith.constant dense<2.0> : tensor<1024xf32, #row>
  %j = tkgpu.iota : tensor<1024xindex, #row>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> tensor<1024xf32, #row>
  %ns = tkgpu.broadcast %n dims [] : index -> tensor<1024xindex, #row>
  %is = arith.cmpi eq, %j, %ns : tensor<1024xindex, #row>
  %t = arith.select %is, %one, %two : tensor<1024xi1, #row>, tensor<1024xf32, #row>
  %d = arith.subf %v, %t : tensor<1024xf32, #row>
  tkgpu.store %d, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<1024xf32, #row>, !tkgpu.buffer<f32>, tensor<1024xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}
