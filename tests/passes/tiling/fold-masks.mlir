// RUN: tk-opt %s --tk-fold-masks | FileCheck %s

// Of a normaliser -inf is the identity of the maximum, and its weights vanish.
// CHECK-LABEL: tkgpu.func @softmax
// CHECK: %[[LOW:.*]] = arith.constant 0xFF80 : bf16
// CHECK: tkgpu.load {{.*}} other(%[[LOW]])
// CHECK-NOT: arith.select
// CHECK: tkgpu.store
tkgpu.func @softmax args ["x", "y", "C"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %C: index):
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<1024xf32>
  %low = arith.constant dense<0xFF800000> : tensor<1024xf32>
  %row = tkgpu.program_id x
  %j = tkgpu.iota : tensor<1024xindex>
  %Cs = tkgpu.broadcast %C dims [] : index -> tensor<1024xindex>
  %in = arith.cmpi slt, %j, %Cs : tensor<1024xindex>
  %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] other(%zero) : (!tkgpu.buffer<bf16>, index, tensor<1024xindex>, index, index, tensor<1024xi1>, bf16) -> tensor<1024xbf16>
  %f = arith.extf %v : tensor<1024xbf16> to tensor<1024xf32>
  %g = arith.select %in, %f, %low : tensor<1024xi1>, tensor<1024xf32>
  %m = tkgpu.reduce <max> %g axis 0 : tensor<1024xf32> -> f32
  %ms = tkgpu.broadcast %m dims [] : f32 -> tensor<1024xf32>
  %e = tk.exp_diff %f, %ms : tensor<1024xf32>
  %t = arith.select %in, %e, %zeros : tensor<1024xi1>, tensor<1024xf32>
  %s = tkgpu.reduce <sum> %t axis 0 : tensor<1024xf32> -> f32
  %ss = tkgpu.broadcast %s dims [] : f32 -> tensor<1024xf32>
  %p = tk.div_or_zero %e, %ss : tensor<1024xf32>
  %r = arith.truncf %p : tensor<1024xf32> to tensor<1024xbf16>
  tkgpu.store %r, %y[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] : (tensor<1024xbf16>, !tkgpu.buffer<bf16>, index, tensor<1024xindex>, index, index, tensor<1024xi1>) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// A sum of the same elements needs their zeros, and squares about a mean have no such number.
// CHECK-LABEL: tkgpu.func @summed
// CHECK: %[[ZERO:.*]] = arith.constant 0.0{{.*}} : bf16
// CHECK: tkgpu.load {{.*}} other(%[[ZERO]])
// CHECK: arith.select
// CHECK: arith.select
tkgpu.func @summed args ["x", "y", "z", "C"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<f32>, %z: !tkgpu.buffer<f32>, %C: index):
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<1024xf32>
  %low = arith.constant dense<0xFF800000> : tensor<1024xf32>
  %row = tkgpu.program_id x
  %j = tkgpu.iota : tensor<1024xindex>
  %Cs = tkgpu.broadcast %C dims [] : index -> tensor<1024xindex>
  %in = arith.cmpi slt, %j, %Cs : tensor<1024xindex>
  %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] other(%zero) : (!tkgpu.buffer<bf16>, index, tensor<1024xindex>, index, index, tensor<1024xi1>, bf16) -> tensor<1024xbf16>
  %f = arith.extf %v : tensor<1024xbf16> to tensor<1024xf32>
  %g = arith.select %in, %f, %low : tensor<1024xi1>, tensor<1024xf32>
  %m = tkgpu.reduce <max> %g axis 0 : tensor<1024xf32> -> f32
  %s = tkgpu.reduce <sum> %f axis 0 : tensor<1024xf32> -> f32
  %ss = tkgpu.broadcast %s dims [] : f32 -> tensor<1024xf32>
  %d = arith.subf %f, %ss : tensor<1024xf32>
  %q = arith.mulf %d, %d : tensor<1024xf32>
  %t = arith.select %in, %q, %zeros : tensor<1024xi1>, tensor<1024xf32>
  %u = tkgpu.reduce <sum> %t axis 0 : tensor<1024xf32> -> f32
  tkgpu.store %m, %y[%row] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
  tkgpu.store %u, %z[%row] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}
