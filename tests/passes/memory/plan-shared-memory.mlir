// RUN: tk-opt %s --tk-coalesce-accesses --tk-promote-shared --canonicalize --cse --tk-pipeline-copies=stages=2 --canonicalize --cse --tk-plan-shared-memory | FileCheck %s
// RUN: tk-opt %s --tk-coalesce-accesses --tk-promote-shared --canonicalize --cse --tk-plan-shared-memory | FileCheck %s --check-prefix=SINGLE

// One barrier an iteration: it makes this iteration's tiles visible and frees the last one's.
// CHECK-LABEL: tkgpu.func @gemm
// CHECK: tkgpu.alloc_shared {offset = 8192 : i64}
// CHECK: tkgpu.alloc_shared {offset = 0 : i64}
// CHECK: scf.for
// CHECK: tkgpu.async_wait 0
// CHECK: tkgpu.barrier
// CHECK: tkgpu.copy_async
// CHECK-NOT: tkgpu.barrier
// CHECK: tkgpu.return
// CHECK: shared_bytes = 16384

// Without stages: one barrier before the copies overwrite what was read, one after the wait.
// SINGLE-LABEL: tkgpu.func @gemm
// SINGLE: scf.for
// SINGLE: tkgpu.barrier
// SINGLE-NEXT: tkgpu.copy_async
// SINGLE-NEXT: tkgpu.copy_async
// SINGLE-NEXT: tkgpu.async_commit
// SINGLE-NEXT: tkgpu.async_wait 0
// SINGLE-NEXT: tkgpu.barrier
// SINGLE-NEXT: tkgpu.local_load
// SINGLE-NOT: tkgpu.barrier
// SINGLE: tkgpu.return
tkgpu.func @gemm args ["a", "b", "c", "N", "K"] facts [#tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<divisor = 8>, #tk.fact<divisor = 8>] {
^bb0(%a: !tkgpu.buffer<bf16>, %b: !tkgpu.buffer<bf16>, %c: !tkgpu.buffer<f32>, %N: index, %K: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %step = arith.constant 32 : index
  %acc0 = arith.constant dense<0.0> : tensor<64x64xf32>
  %i = tkgpu.iota : tensor<64xindex>
  %ik = tkgpu.iota : tensor<32xindex>
  %acc = scf.for %k0 = %c0 to %K step %step iter_args(%s = %acc0) -> (tensor<64x64xf32>) {
    %base = tkgpu.broadcast %k0 dims [] : index -> tensor<32xindex>
    %k = arith.addi %ik, %base : tensor<32xindex>
    %x = tkgpu.load %a[%i, %k] dims [array<i64: 0>, array<i64: 1>] strides(%K, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<64xindex>, tensor<32xindex>, index, index) -> tensor<64x32xbf16>
    %y = tkgpu.load %b[%k, %i] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<32xindex>, tensor<64xindex>, index, index) -> tensor<32x64xbf16>
    %d = tkgpu.dot %x, %y, %s : tensor<64x32xbf16>, tensor<32x64xbf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tkgpu.store %acc, %c[%i, %i] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (tensor<64x64xf32>, !tkgpu.buffer<f32>, tensor<64xindex>, tensor<64xindex>, index, index) -> ()
  tkgpu.return
}
