// RUN: not tk-emit-cuda %s 2>&1 | FileCheck %s

#t = #tkgpu.layout<register = [], lane = [[1], [2], [4], [8], [16]], warp = []>
#u = #tkgpu.layout<register = [], lane = [[2], [1], [4], [8], [16]], warp = []>

// CHECK: error: 'tkgpu.store' op cannot be emitted as CUDA: expected an index or mask in the threads that use it
tkgpu.func @crossed args ["y"] {
^bb0(%y: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %i = tkgpu.iota : tensor<32xindex, #u>
  %v = arith.constant dense<1.0> : tensor<32xf32, #t>
  tkgpu.store %v, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<32xf32, #t>, !tkgpu.buffer<f32>, tensor<32xindex, #u>, index) -> ()
  tkgpu.return
} {num_warps = 1 : i64}
