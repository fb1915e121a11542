// RUN: not tk-emit-cuda %s 2>&1 | FileCheck %s

// The blocks of a cluster exchange what reductions join, and nothing else.
#spread = #tkgpu.layout<register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64], [128], [256], [512], [1024]]>
// CHECK: error: 'tkgpu.func' op cannot be emitted as CUDA: expected threads of a cluster to exchange no more than what reductions join
tkgpu.func @scanned args ["x", "y"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %i = tkgpu.iota : tensor<2048xindex, #spread>
  %v = tkgpu.load %x[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<2048xindex, #spread>, index) -> tensor<2048xf32, #spread>
  %s, %all = tkgpu.scan <sum> %v axis 0 : tensor<2048xf32, #spread> -> f32
  tkgpu.store %s, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<2048xf32, #spread>, !tkgpu.buffer<f32>, tensor<2048xindex, #spread>, index) -> ()
  tkgpu.return
} {num_warps = 64 : i64, cluster = 2 : i64}
