// RUN: tk-opt %s --tk-coalesce-accesses | FileCheck %s

// What is known of indices decides how wide the accesses are: here it is less than it could seem.

// The sum of a tile that runs on and a number that 2 divides begins groups at multiples of 2.
// CHECK-LABEL: tkgpu.func @sum
// CHECK: tkgpu.load {{.*}} {vector = 2 : i64}
tkgpu.func @sum args ["x", "y", "n"] facts [#tk.fact<>, #tk.fact<>, #tk.fact<divisor = 2>] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %n: index):
  %c1 = arith.constant 1 : index
  %iota = tkgpu.iota : tensor<1024xindex>
  %offset = tkgpu.broadcast %n dims [] : index -> tensor<1024xindex>
  %i = arith.addi %iota, %offset : tensor<1024xindex>
  %v = tkgpu.load %x[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<1024xindex>, index) -> tensor<1024xf32>
  tkgpu.store %v, %y[%iota] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<1024xf32>, !tkgpu.buffer<f32>, tensor<1024xindex>, index) -> ()
  tkgpu.return
}

// A loop in steps of 1024 that begins anywhere.
// CHECK-LABEL: tkgpu.func @loop
// CHECK: scf.for
// CHECK: tkgpu.load
// CHECK-NOT: vector
// CHECK-SAME: -> tensor<1024xf32
tkgpu.func @loop args ["x", "y", "begin", "end"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %begin: index, %end: index):
  %c1 = arith.constant 1 : index
  %step = arith.constant 1024 : index
  %iota = tkgpu.iota : tensor<1024xindex>
  scf.for %at = %begin to %end step %step {
    %offset = tkgpu.broadcast %at dims [] : index -> tensor<1024xindex>
    %i = arith.addi %iota, %offset : tensor<1024xindex>
    %v = tkgpu.load %x[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<1024xindex>, index) -> tensor<1024xf32>
    tkgpu.store %v, %y[%iota] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<1024xf32>, !tkgpu.buffer<f32>, tensor<1024xindex>, index) -> ()
  }
  tkgpu.return
}

// p mod 16 may be odd though 2 divides 16: rows of a length that nothing divides begin anywhere.
// CHECK-LABEL: tkgpu.func @remainder
// CHECK: tkgpu.load
// CHECK-NOT: vector
// CHECK-SAME: -> tensor<1024xf32
tkgpu.func @remainder args ["x", "y", "n"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %n: index):
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %iota = tkgpu.iota : tensor<1024xindex>
  %p = tkgpu.program_id x
  %row = tk.floor_mod %p, %c16 : index
  %v = tkgpu.load %x[%row, %iota] dims [array<i64>, array<i64: 0>] strides(%n, %c1) masks() over [] : (!tkgpu.buffer<f32>, index, tensor<1024xindex>, index, index) -> tensor<1024xf32>
  tkgpu.store %v, %y[%iota] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<1024xf32>, !tkgpu.buffer<f32>, tensor<1024xindex>, index) -> ()
  tkgpu.return
}

// n - i runs downwards.
// CHECK-LABEL: tkgpu.func @difference
// CHECK: tkgpu.load
// CHECK-NOT: vector
// CHECK-SAME: -> tensor<1024xf32
tkgpu.func @difference args ["x", "y", "n"] facts [#tk.fact<>, #tk.fact<>, #tk.fact<divisor = 16>] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %n: index):
  %c1 = arith.constant 1 : index
  %iota = tkgpu.iota : tensor<1024xindex>
  %offset = tkgpu.broadcast %n dims [] : index -> tensor<1024xindex>
  %i = arith.subi %offset, %iota : tensor<1024xindex>
  %v = tkgpu.load %x[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<1024xindex>, index) -> tensor<1024xf32>
  tkgpu.store %v, %y[%iota] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<1024xf32>, !tkgpu.buffer<f32>, tensor<1024xindex>, index) -> ()
  tkgpu.return
}
