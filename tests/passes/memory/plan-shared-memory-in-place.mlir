// RUN: tk-opt %s --tk-plan-shared-memory | FileCheck %s

// x and y are one tensor: each element is held by four threads and written by one, after all four
// have read it.
// CHECK-LABEL: tkgpu.func @replaced
// CHECK: tkgpu.load
// CHECK: tkgpu.barrier
// CHECK-NEXT: tkgpu.store
// CHECK: tkgpu.return
#four = #tkgpu.layout<register = [], lane = [[1], [2], [4], [0], [0]], warp = []>
#own = #tkgpu.layout<register = [], lane = [[1], [2], [4], [8], [16]], warp = []>
tkgpu.func @replaced args ["x", "y"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %i = tkgpu.iota : tensor<8xindex, #four>
  %v = tkgpu.load %x[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<8xindex, #four>, index) -> tensor<8xf32, #four>
  tkgpu.store %v, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<8xf32, #four>, !tkgpu.buffer<f32>, tensor<8xindex, #four>, index) -> ()
  tkgpu.return
} {num_warps = 1 : i64, tkgpu.plan = #tkgpu.plan<in_place = true>}

// Each element is read and written by one thread.
// CHECK-LABEL: tkgpu.func @own
// CHECK-NOT: tkgpu.barrier
// CHECK: tkgpu.return
tkgpu.func @own args ["x", "y"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %i = tkgpu.iota : tensor<32xindex, #own>
  %v = tkgpu.load %x[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<32xindex, #own>, index) -> tensor<32xf32, #own>
  tkgpu.store %v, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<32xf32, #own>, !tkgpu.buffer<f32>, tensor<32xindex, #own>, index) -> ()
  tkgpu.return
} {num_warps = 1 : i64, tkgpu.plan = #tkgpu.plan<in_place = true>}
