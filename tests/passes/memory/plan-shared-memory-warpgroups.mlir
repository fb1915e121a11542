// RUN: tk-opt %s --tk-plan-shared-memory | FileCheck %s

// A barrier of each warpgroup is enough for a buffer of which each has its own rows ...
// CHECK-LABEL: tkgpu.func @apart
// CHECK: scf.for
// CHECK-NEXT: tkgpu.bulk_store_wait 0 {warpgroup}
// CHECK-NEXT: tkgpu.barrier {warpgroup}
// CHECK-NEXT: tkgpu.local_store
// CHECK-NEXT: tkgpu.async_fence
// CHECK-NEXT: tkgpu.barrier {warpgroup}
// CHECK-NEXT: tkgpu.bulk_store {{.*}} phases = 8>
// CHECK-NEXT: }
// ... but not for one that all of them store together.
// CHECK-LABEL: tkgpu.func @together
// CHECK: tkgpu.barrier {warpgroup}
// CHECK-NEXT: tkgpu.barrier
// CHECK-NEXT: tkgpu.local_store
#rows = #tkgpu.layout<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
tkgpu.func @apart args ["n", "m"] {
^bb0(%n: index, %m: !tkgpu.tensor_map):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = arith.constant dense<1.0> : tensor<128x64xbf16, #rows>
  %s = tkgpu.alloc_shared : <[128, 64], bf16 chunk = 8 phases = 8>
  scf.for %i = %c0 to %n step %c1 {
    tkgpu.bulk_store_wait 0 {warpgroup}
    tkgpu.barrier {warpgroup}
    tkgpu.local_store %v, %s {matrix} : tensor<128x64xbf16, #rows>, !tkgpu.shared<[128, 64], bf16 chunk = 8 phases = 8>
    tkgpu.async_fence
    tkgpu.barrier {warpgroup}
    tkgpu.bulk_store %s, %m[%i, %c0] {warpgroup_axis = 0 : i64} : <[128, 64], bf16 chunk = 8 phases = 8>
  }
  tkgpu.return
} {num_warps = 8 : i64}

tkgpu.func @together args ["n", "m"] {
^bb0(%n: index, %m: !tkgpu.tensor_map):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = arith.constant dense<1.0> : tensor<128x64xbf16, #rows>
  %s = tkgpu.alloc_shared : <[128, 64], bf16 chunk = 8 phases = 8>
  scf.for %i = %c0 to %n step %c1 {
    tkgpu.barrier {warpgroup}
    tkgpu.local_store %v, %s {matrix} : tensor<128x64xbf16, #rows>, !tkgpu.shared<[128, 64], bf16 chunk = 8 phases = 8>
    tkgpu.bulk_store %s, %m[%i, %c0] : <[128, 64], bf16 chunk = 8 phases = 8>
  }
  tkgpu.return
} {num_warps = 8 : i64}

// Stages that are two constants are apart, and the same one is not.
// CHECK-LABEL: tkgpu.func @stages
// CHECK: tkgpu.local_store
// CHECK-NEXT: tkgpu.local_store
// CHECK-NEXT: tkgpu.barrier
// CHECK-NEXT: tkgpu.local_store
// A stage that is not known may be either.
// CHECK-NEXT: tkgpu.barrier
// CHECK-NEXT: tkgpu.local_store
tkgpu.func @stages args ["n"] {
^bb0(%n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = arith.constant dense<1.0> : tensor<128x64xbf16, #rows>
  %pair = tkgpu.alloc_shared : <[2, 128, 64], bf16 order = [2, 1, 0] chunk = 8 phases = 8>
  %first = tkgpu.stage %pair[%c0] : <[2, 128, 64], bf16 order = [2, 1, 0] chunk = 8 phases = 8> -> <[128, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
  %second = tkgpu.stage %pair[%c1] : <[2, 128, 64], bf16 order = [2, 1, 0] chunk = 8 phases = 8> -> <[128, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
  %some = tkgpu.stage %pair[%n] : <[2, 128, 64], bf16 order = [2, 1, 0] chunk = 8 phases = 8> -> <[128, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
  tkgpu.local_store %v, %first {matrix} : tensor<128x64xbf16, #rows>, !tkgpu.shared<[128, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
  tkgpu.local_store %v, %second {matrix} : tensor<128x64xbf16, #rows>, !tkgpu.shared<[128, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
  tkgpu.local_store %v, %second {matrix} : tensor<128x64xbf16, #rows>, !tkgpu.shared<[128, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
  tkgpu.local_store %v, %some {matrix} : tensor<128x64xbf16, #rows>, !tkgpu.shared<[128, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
  tkgpu.return
} {num_warps = 8 : i64}
