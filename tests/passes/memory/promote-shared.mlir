// RUN: tk-opt %s --tk-coalesce-accesses --tk-promote-shared --canonicalize | FileCheck %s

// Operands of mma.sync: 16-byte copies into swizzled tiles, read by ldmatrix a slice of k at a
// time, each before the product of the slice that precedes it; the row-major B is transposed on the way.
// CHECK-LABEL: tkgpu.func @matrix
// CHECK-DAG: %[[A:.*]] = tkgpu.alloc_shared : <[64, 32], bf16 order = [1, 0] chunk = 8 per_phase = 2 phases = 4>
// CHECK-DAG: %[[B:.*]] = tkgpu.alloc_shared : <[32, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
// CHECK: scf.for
// CHECK-NOT: tkgpu.load
// CHECK: tkgpu.copy_async %[[A]], {{.*}} {vector = 8 : i64}
// CHECK: tkgpu.copy_async %[[B]], {{.*}} {vector = 8 : i64}
// CHECK: %[[A0:.*]] = tkgpu.local_load %[[A]] {matrix, offsets = array<i64: 0, 0>} {{.*}} -> tensor<64x16xbf16
// CHECK: %[[B0:.*]] = tkgpu.local_load %[[B]] {matrix, offsets = array<i64: 0, 0>, transposed} {{.*}} -> tensor<16x64xbf16
// CHECK: %[[A1:.*]] = tkgpu.local_load %[[A]] {matrix, offsets = array<i64: 0, 16>}
// CHECK: %[[B1:.*]] = tkgpu.local_load %[[B]] {matrix, offsets = array<i64: 16, 0>, transposed}
// CHECK: %[[D:.*]] = tkgpu.dot %[[A0]], %[[B0]]
// CHECK: tkgpu.dot %[[A1]], %[[B1]], %[[D]]
// CHECK-NOT: tkgpu.dot
// CHECK: scf.yield
tkgpu.func @matrix args ["a", "b", "c", "N", "K"] facts [#tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<divisor = 8>, #tk.fact<divisor = 8>] {
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

// FMA units: four k at a time, vectors along k of A and along the columns of B.
// CHECK-LABEL: tkgpu.func @fma
// CHECK: tkgpu.copy_async {{.*}} {vector = 4 : i64}
// CHECK: tkgpu.local_load {{.*}} {offsets = array<i64: 0, 0>, vector = 4 : i64} {{.*}} -> tensor<64x4xf32
// CHECK: tkgpu.local_load {{.*}} {offsets = array<i64: 0, 0>, vector = 4 : i64} {{.*}} -> tensor<4x64xf32
// CHECK: tkgpu.local_load {{.*}} {offsets = array<i64: 0, 4>, vector = 4 : i64}
// CHECK: tkgpu.dot
tkgpu.func @fma args ["a", "b", "c", "N", "K"] facts [#tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<divisor = 4>, #tk.fact<divisor = 4>] {
^bb0(%a: !tkgpu.buffer<f32>, %b: !tkgpu.buffer<f32>, %c: !tkgpu.buffer<f32>, %N: index, %K: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %step = arith.constant 8 : index
  %acc0 = arith.constant dense<0.0> : tensor<64x64xf32>
  %i = tkgpu.iota : tensor<64xindex>
  %ik = tkgpu.iota : tensor<8xindex>
  %acc = scf.for %k0 = %c0 to %K step %step iter_args(%s = %acc0) -> (tensor<64x64xf32>) {
    %base = tkgpu.broadcast %k0 dims [] : index -> tensor<8xindex>
    %k = arith.addi %ik, %base : tensor<8xindex>
    %x = tkgpu.load %a[%i, %k] dims [array<i64: 0>, array<i64: 1>] strides(%K, %c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<64xindex>, tensor<8xindex>, index, index) -> tensor<64x8xf32>
    %y = tkgpu.load %b[%k, %i] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<8xindex>, tensor<64xindex>, index, index) -> tensor<8x64xf32>
    %d = tkgpu.dot %x, %y, %s : tensor<64x8xf32>, tensor<8x64xf32> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tkgpu.store %acc, %c[%i, %i] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (tensor<64x64xf32>, !tkgpu.buffer<f32>, tensor<64xindex>, tensor<64xindex>, index, index) -> ()
  tkgpu.return
}

// Of 128 outputs a thread: two slices of four k would not fit beside them.
// CHECK-LABEL: tkgpu.func @wide_fma
// CHECK: tkgpu.local_load {{.*}} {offsets = array<i64: 0, 0>} {{.*}} -> tensor<128x1xf32
// CHECK: tkgpu.local_load {{.*}} {offsets = array<i64: 0, 0>, vector = 4 : i64} {{.*}} -> tensor<1x128xf32
// CHECK: tkgpu.local_load {{.*}} {offsets = array<i64: 0, 1>}
// CHECK: tkgpu.dot
tkgpu.func @wide_fma args ["a", "b", "c", "N", "K"] facts [#tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<divisor = 4>, #tk.fact<divisor = 4>] {
^bb0(%a: !tkgpu.buffer<f32>, %b: !tkgpu.buffer<f32>, %c: !tkgpu.buffer<f32>, %N: index, %K: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %step = arith.constant 8 : index
  %acc0 = arith.constant dense<0.0> : tensor<128x128xf32>
  %i = tkgpu.iota : tensor<128xindex>
  %ik = tkgpu.iota : tensor<8xindex>
  %acc = scf.for %k0 = %c0 to %K step %step iter_args(%s = %acc0) -> (tensor<128x128xf32>) {
    %base = tkgpu.broadcast %k0 dims [] : index -> tensor<8xindex>
    %k = arith.addi %ik, %base : tensor<8xindex>
    %x = tkgpu.load %a[%i, %k] dims [array<i64: 0>, array<i64: 1>] strides(%K, %c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<128xindex>, tensor<8xindex>, index, index) -> tensor<128x8xf32>
    %y = tkgpu.load %b[%k, %i] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<8xindex>, tensor<128xindex>, index, index) -> tensor<8x128xf32>
    %d = tkgpu.dot %x, %y, %s : tensor<128x8xf32>, tensor<8x128xf32> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  tkgpu.store %acc, %c[%i, %i] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (tensor<128x128xf32>, !tkgpu.buffer<f32>, tensor<128xindex>, tensor<128xindex>, index, index) -> ()
  tkgpu.return
}

// 128 multiply-adds for each of 64 k: those of 16 are written out, and a loop goes on from there.
// CHECK-LABEL: tkgpu.func @long_fma
// CHECK: scf.for
// CHECK: %[[SUM:.*]] = scf.for %[[FROM:.*]] = %{{.*}} to %c64 step %c16 iter_args(
// CHECK: tkgpu.local_load %{{.*}} from %[[FROM]] axis 1 span 16 {offsets = array<i64: 0, 0>}
// CHECK: tkgpu.local_load %{{.*}} from %[[FROM]] axis 0 span 16 {offsets = array<i64: 0, 0>, vector = 4 : i64}
// CHECK: tkgpu.local_load %{{.*}} from %[[FROM]] axis 1 span 16 {offsets = array<i64: 0, 15>}
// CHECK-COUNT-2: tkgpu.dot
// CHECK: scf.yield
// CHECK: scf.yield %[[SUM]]
tkgpu.func @long_fma args ["a", "b", "c", "N", "K"] facts [#tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<divisor = 4>, #tk.fact<divisor = 4>] {
^bb0(%a: !tkgpu.buffer<f32>, %b: !tkgpu.buffer<f32>, %c: !tkgpu.buffer<f32>, %N: index, %K: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %step = arith.constant 64 : index
  %acc0 = arith.constant dense<0.0> : tensor<128x128xf32>
  %i = tkgpu.iota : tensor<128xindex>
  %ik = tkgpu.iota : tensor<64xindex>
  %acc = scf.for %k0 = %c0 to %K step %step iter_args(%s = %acc0) -> (tensor<128x128xf32>) {
    %base = tkgpu.broadcast %k0 dims [] : index -> tensor<64xindex>
    %k = arith.addi %ik, %base : tensor<64xindex>
    %x = tkgpu.load %a[%i, %k] dims [array<i64: 0>, array<i64: 1>] strides(%K, %c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<128xindex>, tensor<64xindex>, index, index) -> tensor<128x64xf32>
    %y = tkgpu.load %b[%k, %i] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<64xindex>, tensor<128xindex>, index, index) -> tensor<64x128xf32>
    %d = tkgpu.dot %x, %y, %s : tensor<128x64xf32>, tensor<64x128xf32> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  tkgpu.store %acc, %c[%i, %i] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (tensor<128x128xf32>, !tkgpu.buffer<f32>, tensor<128xindex>, tensor<128xindex>, index, index) -> ()
  tkgpu.return
}

// Rows that may begin anywhere: an asynchronous copy of 2 bytes does not exist.
// CHECK-LABEL: tkgpu.func @unaligned
// CHECK-NOT: tkgpu.copy_async
// CHECK: %[[X:.*]] = tkgpu.load {{.*}} -> tensor<64x32xbf16
// CHECK: tkgpu.local_store %[[X]]
// CHECK-NOT: tkgpu.copy_async
// CHECK: tkgpu.return
tkgpu.func @unaligned args ["a", "b", "c", "N", "K"] facts [#tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<divisor = 1>, #tk.fact<divisor = 1>] {
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

// The weights between two products stay in registers: an accumulator is the next A operand.
// CHECK-LABEL: tkgpu.func @chained
// CHECK: %[[S:.*]] = tkgpu.dot
// CHECK: %[[P:.*]] = arith.truncf
// CHECK-NOT: tkgpu.local_store
// CHECK: tkgpu.extract %{{.*}} at [0, 0] {{.*}} -> tensor<64x16xbf16
// CHECK: tkgpu.extract %{{.*}} at [0, 16]
// CHECK: tkgpu.dot
// CHECK: tkgpu.return
tkgpu.func @chained args ["q", "k", "v", "o"] {
^bb0(%q: !tkgpu.buffer<bf16>, %k: !tkgpu.buffer<bf16>, %v: !tkgpu.buffer<bf16>, %o: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %i = tkgpu.iota : tensor<64xindex>
  %x = tkgpu.load %q[%i, %i] dims [array<i64: 0>, array<i64: 1>] strides(%c64, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<64xindex>, tensor<64xindex>, index, index) -> tensor<64x64xbf16>
  %y = tkgpu.load %k[%i, %i] dims [array<i64: 1>, array<i64: 0>] strides(%c64, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<64xindex>, tensor<64xindex>, index, index) -> tensor<64x64xbf16>
  %z = tkgpu.load %v[%i, %i] dims [array<i64: 0>, array<i64: 1>] strides(%c64, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<64xindex>, tensor<64xindex>, index, index) -> tensor<64x64xbf16>
  %s = tkgpu.dot %x, %y, %zero : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
  %r = tkgpu.dot %p, %z, %zero : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tkgpu.store %r, %o[%i, %i] dims [array<i64: 0>, array<i64: 1>] strides(%c64, %c1) masks() over [] : (tensor<64x64xf32>, !tkgpu.buffer<f32>, tensor<64xindex>, tensor<64xindex>, index, index) -> ()
  tkgpu.return
}

// f64 on the matrix unit: four of k at a time, read element by element from tiles whose chunks of
// 32 bytes are swizzled over four rows.
// CHECK-LABEL: tkgpu.func @wide
// CHECK-DAG: %[[A:.*]] = tkgpu.alloc_shared : <[64, 8], f64 order = [1, 0] chunk = 4 per_phase = 2 phases = 2>
// CHECK-DAG: %[[B:.*]] = tkgpu.alloc_shared : <[8, 64], f64 order = [1, 0] chunk = 4 phases = 4>
// CHECK: tkgpu.local_load %[[A]] {offsets = array<i64: 0, 0>} {{.*}} -> tensor<64x4xf64
// CHECK: tkgpu.local_load %[[B]] {offsets = array<i64: 0, 0>} {{.*}} -> tensor<4x64xf64
// CHECK: tkgpu.local_load %[[A]] {offsets = array<i64: 0, 4>
// CHECK: tkgpu.local_load %[[B]] {offsets = array<i64: 4, 0>
// CHECK: tkgpu.dot
// CHECK: tkgpu.dot
tkgpu.func @wide args ["a", "b", "c", "N", "K"] facts [#tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<divisor = 4>, #tk.fact<divisor = 4>] {
^bb0(%a: !tkgpu.buffer<f64>, %b: !tkgpu.buffer<f64>, %c: !tkgpu.buffer<f64>, %N: index, %K: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %step = arith.constant 8 : index
  %acc0 = arith.constant dense<0.0> : tensor<64x64xf64>
  %i = tkgpu.iota : tensor<64xindex>
  %ik = tkgpu.iota : tensor<8xindex>
  %acc = scf.for %k0 = %c0 to %K step %step iter_args(%s = %acc0) -> (tensor<64x64xf64>) {
    %base = tkgpu.broadcast %k0 dims [] : index -> tensor<8xindex>
    %k = arith.addi %ik, %base : tensor<8xindex>
    %x = tkgpu.load %a[%i, %k] dims [array<i64: 0>, array<i64: 1>] strides(%K, %c1) masks() over [] : (!tkgpu.buffer<f64>, tensor<64xindex>, tensor<8xindex>, index, index) -> tensor<64x8xf64>
    %y = tkgpu.load %b[%k, %i] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (!tkgpu.buffer<f64>, tensor<8xindex>, tensor<64xindex>, index, index) -> tensor<8x64xf64>
    %d = tkgpu.dot %x, %y, %s : tensor<64x8xf64>, tensor<8x64xf64> -> tensor<64x64xf64>
    scf.yield %d : tensor<64x64xf64>
  }
  tkgpu.store %acc, %c[%i, %i] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (tensor<64x64xf64>, !tkgpu.buffer<f64>, tensor<64xindex>, tensor<64xindex>, index, index) -> ()
  tkgpu.return
}
