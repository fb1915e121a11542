// RUN: tk-opt %s --tk-coalesce-accesses --tk-promote-shared --canonicalize --tk-pipeline-copies=stages=3 | FileCheck %s
// RUN: tk-opt %s --tk-coalesce-accesses --tk-promote-shared --canonicalize --tk-pipeline-copies=stages=1 | FileCheck %s --check-prefix=SINGLE

// CHECK-LABEL: tkgpu.func @gemm
// CHECK: tkgpu.alloc_shared : <[3, 32, 64], bf16 order = [2, 1, 0] chunk = 8 phases = 8>
// CHECK: tkgpu.alloc_shared : <[3, 64, 32], bf16 order = [2, 1, 0] chunk = 8 per_phase = 2 phases = 4>
// The first two iterations' copies, masked off as a whole beyond the end:
// CHECK: %[[FIRST:.*]] = arith.cmpi slt, %{{.*}}, %[[K:.*]] : index
// CHECK: tkgpu.copy_async {{.*}} masks(%[[FIRST]]) over [array<i64>]
// CHECK: tkgpu.copy_async
// CHECK: tkgpu.async_commit
// CHECK: tkgpu.copy_async
// CHECK: tkgpu.copy_async
// CHECK: tkgpu.async_commit
// CHECK: scf.for {{.*}} to %[[K]] {{.*}} iter_args(%{{[^ ]*}} = %{{[^ ]*}}, %[[READ:[^ ]*]] = %{{[^ ]*}}, %[[WRITE:[^ ]*]] = %{{[^ ]*}}) ->
// CHECK: tkgpu.async_wait 1
// CHECK: %[[NEXT:.*]] = tkgpu.stage %{{.*}}[%[[WRITE]]]
// CHECK: tkgpu.copy_async %[[NEXT]]
// CHECK: tkgpu.async_commit
// CHECK: tkgpu.stage %{{.*}}[%[[READ]]]
// CHECK: tkgpu.local_load
// CHECK: scf.yield
// CHECK: }
// CHECK: tkgpu.async_wait 0

// SINGLE-NOT: tkgpu.stage
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

// The address of a copy follows from what the iteration before has computed: nothing runs ahead.
// CHECK-LABEL: tkgpu.func @chased
// CHECK: tkgpu.alloc_shared : <[32, 64], bf16
// CHECK-NOT: tkgpu.stage
// CHECK-NOT: tkgpu.async_wait
// CHECK: tkgpu.return
tkgpu.func @chased args ["a", "b", "c", "N", "K"] facts [#tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<divisor = 8>, #tk.fact<divisor = 8>] {
^bb0(%a: !tkgpu.buffer<bf16>, %b: !tkgpu.buffer<bf16>, %c: !tkgpu.buffer<f32>, %N: index, %K: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %step = arith.constant 32 : index
  %acc0 = arith.constant dense<0.0> : tensor<64x64xf32>
  %i = tkgpu.iota : tensor<64xindex>
  %ik = tkgpu.iota : tensor<32xindex>
  %acc, %last = scf.for %k0 = %c0 to %K step %step iter_args(%s = %acc0, %at = %c0) -> (tensor<64x64xf32>, index) {
    %base = tkgpu.broadcast %at dims [] : index -> tensor<32xindex>
    %k = arith.addi %ik, %base : tensor<32xindex>
    %x = tkgpu.load %a[%i, %k] dims [array<i64: 0>, array<i64: 1>] strides(%K, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<64xindex>, tensor<32xindex>, index, index) -> tensor<64x32xbf16>
    %y = tkgpu.load %b[%k, %i] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<32xindex>, tensor<64xindex>, index, index) -> tensor<32x64xbf16>
    %d = tkgpu.dot %x, %y, %s : tensor<64x32xbf16>, tensor<32x64xbf16> -> tensor<64x64xf32>
    %next = arith.addi %at, %step : index
    scf.yield %d, %next : tensor<64x64xf32>, index
  }
  tkgpu.store %acc, %c[%i, %i] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (tensor<64x64xf32>, !tkgpu.buffer<f32>, tensor<64xindex>, tensor<64xindex>, index, index) -> ()
  tkgpu.return
}
