// RUN: tk-opt %s --tk-plan-shared-memory | FileCheck %s

// A copy that is still under way, though nothing reads it any more, keeps its bytes until it is
// waited for; then others may have them.
#row = #tkgpu.layout<register = [[0, 1], [0, 2], [16, 0], [32, 0]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#rows = #tkgpu.layout<register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#columns = #tkgpu.layout<register = [[1], [2]], lane = [[4], [8], [16], [0], [0]], warp = [[0], [0]]>
// CHECK-LABEL: tkgpu.func @copied
// CHECK: tkgpu.alloc_shared {offset = 0 : i64}
// CHECK: tkgpu.alloc_shared {offset = 8192 : i64}
// CHECK: tkgpu.alloc_shared {offset = 0 : i64}
// CHECK: shared_bytes = 16384
tkgpu.func @copied args ["x", "y"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %v = arith.constant dense<1.0> : tensor<64x32xf32, #row>
  %r = tkgpu.iota : tensor<64xindex, #rows>
  %c = tkgpu.iota : tensor<32xindex, #columns>
  %stage = tkgpu.alloc_shared : <[64, 32], f32>
  %during = tkgpu.alloc_shared : <[64, 32], f32>
  %after = tkgpu.alloc_shared : <[64, 32], f32>
  tkgpu.copy_async %stage, %x[%r, %c] dims [array<i64: 0>, array<i64: 1>] strides(%c32, %c1) masks() over [] layout #row {vector = 4 : i64} : (!tkgpu.shared<[64, 32], f32>, !tkgpu.buffer<f32>, tensor<64xindex, #rows>, tensor<32xindex, #columns>, index, index) -> ()
  tkgpu.async_commit
  tkgpu.local_store %v, %during : tensor<64x32xf32, #row>, <[64, 32], f32>
  %a = tkgpu.local_load %during : <[64, 32], f32> -> tensor<64x32xf32, #row>
  tkgpu.async_wait 0
  tkgpu.local_store %a, %after : tensor<64x32xf32, #row>, <[64, 32], f32>
  %b = tkgpu.local_load %after : <[64, 32], f32> -> tensor<64x32xf32, #row>
  tkgpu.store %b, %y[%c0] dims [array<i64>] strides(%c0) masks() over [] : (tensor<64x32xf32, #row>, !tkgpu.buffer<f32>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64}
