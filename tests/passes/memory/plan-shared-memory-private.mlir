// RUN: tk-opt %s --tk-plan-shared-memory | FileCheck %s
// What threads keep for themselves follows the buffers, each at a multiple of its vectors; phases last.

#row = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = []>
#odd = #tkgpu.layout<register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = []>

// CHECK-LABEL: tkgpu.func @f
// CHECK: tkgpu.alloc_private{{.*}}offset = 0 : i64
// CHECK: tkgpu.alloc_private{{.*}}offset = 1536 : i64
// CHECK: tkgpu.alloc_private{{.*}}offset = 1600 : i64
// CHECK: tkgpu.alloc_phases{{.*}}offset = 2112 : i64
// CHECK: shared_bytes = 2120 : i64
tkgpu.func @f args [] {
  %a = tkgpu.alloc_private : <3 x tensor<256xbf16, #row>, vector = 8>
  %b = tkgpu.alloc_private : <1 x tensor<64xf8E4M3FN, #odd>>
  %c = tkgpu.alloc_private : <1 x tensor<256xbf16, #row>, vector = 8>
  %p = tkgpu.alloc_phases arrivals 1 : <1>
  tkgpu.return
} {num_warps = 1 : i64}
