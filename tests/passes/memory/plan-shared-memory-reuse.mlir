// RUN: tk-opt %s --tk-promote-shared --tk-plan-shared-memory | FileCheck %s

// Tiles that are not live together share their bytes; a barrier separates their uses.
// CHECK-LABEL: tkgpu.func @reuse
// CHECK: tkgpu.alloc_shared {offset = 0 : i64}
// CHECK: tkgpu.alloc_shared {offset = 0 : i64}
// CHECK: tkgpu.local_store
// CHECK-NEXT: tkgpu.barrier
// CHECK-NEXT: tkgpu.local_load
// CHECK: tkgpu.barrier
// CHECK-NEXT: tkgpu.local_store
// CHECK-NEXT: tkgpu.barrier
// CHECK-NEXT: tkgpu.local_load
// CHECK: shared_bytes = 8448
#row = #tkgpu.layout<register = [[0, 1], [0, 2], [16, 0], [32, 0]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#small = #tkgpu.layout<register = [[0, 1], [0, 2], [16, 0]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#column = #tkgpu.layout<register = [[1, 0], [2, 0], [0, 8], [0, 16]], lane = [[4, 0], [8, 0], [16, 0], [32, 0], [0, 1]], warp = [[0, 2], [0, 4]]>
tkgpu.func @reuse args ["x"] {
^bb0(%x: !tkgpu.buffer<f32>):
  %v = arith.constant dense<1.0> : tensor<64x32xf32, #row>
  %a = tkgpu.convert_layout %v : tensor<64x32xf32, #row> -> tensor<64x32xf32, #column>
  %b = tkgpu.convert_layout %a : tensor<64x32xf32, #column> -> tensor<64x32xf32, #row>
  %c0 = arith.constant 0 : index
  tkgpu.store %b, %x[%c0] dims [array<i64>] strides(%c0) masks() over [] : (tensor<64x32xf32, #row>, !tkgpu.buffer<f32>, index, index) -> ()
  tkgpu.return
}

// What is written before a loop and read in it is live all through the loop: what the loop itself
// writes and reads later gets other bytes.
// CHECK-LABEL: tkgpu.func @through_loop
// CHECK: tkgpu.alloc_shared {offset = 0 : i64}
// CHECK: tkgpu.alloc_shared {offset = 8192 : i64}
// CHECK: shared_bytes = 16384
tkgpu.func @through_loop args ["x", "n"] {
^bb0(%x: !tkgpu.buffer<f32>, %n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = arith.constant dense<1.0> : tensor<64x32xf32, #row>
  %kept = tkgpu.alloc_shared : <[64, 32], f32>
  %own = tkgpu.alloc_shared : <[64, 32], f32>
  tkgpu.local_store %v, %kept : tensor<64x32xf32, #row>, <[64, 32], f32>
  scf.for %i = %c0 to %n step %c1 {
    %a = tkgpu.local_load %kept : <[64, 32], f32> -> tensor<64x32xf32, #row>
    tkgpu.local_store %a, %own : tensor<64x32xf32, #row>, <[64, 32], f32>
    %b = tkgpu.local_load %own : <[64, 32], f32> -> tensor<64x32xf32, #row>
    tkgpu.store %b, %x[%c0] dims [array<i64>] strides(%c0) masks() over [] : (tensor<64x32xf32, #row>, !tkgpu.buffer<f32>, index, index) -> ()
  }
  tkgpu.return
}

// The copy engine's writes are not ordered behind what threads wrote before.
// CHECK-LABEL: tkgpu.func @copied_after
// CHECK: tkgpu.alloc_shared {offset = 8192 : i64}
// CHECK: tkgpu.alloc_shared {offset = 0 : i64}
// CHECK: shared_bytes = 12288
tkgpu.func @copied_after args ["map", "x"] {
^bb0(%map: !tkgpu.tensor_map, %x: !tkgpu.buffer<f32>):
  %c0 = arith.constant 0 : index
  %v = arith.constant dense<1.0> : tensor<32x32xf32, #small>
  %scratch = tkgpu.alloc_shared : <[32, 32], f32>
  %copied = tkgpu.alloc_shared : <[64, 32], f32>
  tkgpu.local_store %v, %scratch : tensor<32x32xf32, #small>, <[32, 32], f32>
  %a = tkgpu.local_load %scratch : <[32, 32], f32> -> tensor<32x32xf32, #small>
  tkgpu.bulk_copy %copied, %map[%c0, %c0] : <[64, 32], f32>
  %b = tkgpu.local_load %copied : <[64, 32], f32> -> tensor<64x32xf32, #row>
  tkgpu.store %a, %x[%c0] dims [array<i64>] strides(%c0) masks() over [] : (tensor<32x32xf32, #small>, !tkgpu.buffer<f32>, index, index) -> ()
  tkgpu.store %b, %x[%c0] dims [array<i64>] strides(%c0) masks() over [] : (tensor<64x32xf32, #row>, !tkgpu.buffer<f32>, index, index) -> ()
  tkgpu.return
}
