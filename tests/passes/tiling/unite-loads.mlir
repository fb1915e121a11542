// RUN: tk-opt %s --tk-fold-masks | FileCheck %s
// Rows that end at %n, in a tensor of rows of %c: what is computed from behind their end is computed from the
// elements that the reduction reads.

// CHECK-LABEL: tkgpu.func @ends
// CHECK-COUNT-1: tkgpu.load %{{.*}} masks(%[[IN:.*]]) over [array<i64: 0>] other(%{{.*}}) :
// CHECK-NOT: tkgpu.load
// CHECK: tkgpu.return
tkgpu.func @ends args ["x", "y", "n", "c"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<f32>, %n: index, %c: index):
  %c1 = arith.constant 1 : index
  %none = arith.constant 0.0 : bf16
  %least = arith.constant dense<0xFF800000> : tensor<1024xf32>
  %i = tkgpu.iota : tensor<1024xindex>
  %ns = tkgpu.broadcast %n dims [] : index -> tensor<1024xindex>
  %isn = arith.cmpi slt, %i, %ns : tensor<1024xindex>
  %cs = tkgpu.broadcast %c dims [] : index -> tensor<1024xindex>
  %isc = arith.cmpi slt, %i, %cs : tensor<1024xindex>
  %a = tkgpu.load %x[%i] dims [array<i64: 0>] strides(%c1) masks(%isc) over [array<i64: 0>] other(%none) : (!tkgpu.buffer<bf16>, tensor<1024xindex>, index, tensor<1024xi1>, bf16) -> tensor<1024xbf16>
  %af = arith.extf %a : tensor<1024xbf16> to tensor<1024xf32>
  %chosen = arith.select %isn, %af, %least : tensor<1024xi1>, tensor<1024xf32>
  %both = arith.minsi %c, %n : index
  %bs = tkgpu.broadcast %both dims [] : index -> tensor<1024xindex>
  %isb = arith.cmpi slt, %i, %bs : tensor<1024xindex>
  %b = tkgpu.load %x[%i] dims [array<i64: 0>] strides(%c1) masks(%isb) over [array<i64: 0>] other(%none) : (!tkgpu.buffer<bf16>, tensor<1024xindex>, index, tensor<1024xi1>, bf16) -> tensor<1024xbf16>
  %bf = arith.extf %b : tensor<1024xbf16> to tensor<1024xf32>
  %terms = arith.select %isb, %bf, %least : tensor<1024xi1>, tensor<1024xf32>
  %m = tkgpu.reduce <max> %terms axis 0 : tensor<1024xf32> -> f32
  %ms = tkgpu.broadcast %m dims [] : f32 -> tensor<1024xf32>
  %e = tk.exp_diff %chosen, %ms : tensor<1024xf32>
  tkgpu.store %e, %y[%i] dims [array<i64: 0>] strides(%c1) masks(%isc) over [array<i64: 0>] : (tensor<1024xf32>, !tkgpu.buffer<f32>, tensor<1024xindex>, index, tensor<1024xi1>) -> ()
  tkgpu.return
}

// A tile that is all inside the tensor has no mask of its own.
// CHECK-LABEL: tkgpu.func @whole
// CHECK-COUNT-1: tkgpu.load %{{.*}} masks(%{{.*}}) over
// CHECK-NOT: tkgpu.load
// CHECK: tkgpu.return
tkgpu.func @whole args ["x", "y", "n"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %n: index):
  %c1 = arith.constant 1 : index
  %c1024 = arith.constant 1024 : index
  %none = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %i = tkgpu.iota : tensor<1024xindex>
  %ns = tkgpu.broadcast %n dims [] : index -> tensor<1024xindex>
  %isn = arith.cmpi slt, %i, %ns : tensor<1024xindex>
  %a = tkgpu.load %x[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<1024xindex>, index) -> tensor<1024xf32>
  %chosen = arith.select %isn, %a, %zero : tensor<1024xi1>, tensor<1024xf32>
  %both = arith.minsi %n, %c1024 : index
  %bs = tkgpu.broadcast %both dims [] : index -> tensor<1024xindex>
  %isb = arith.cmpi slt, %i, %bs : tensor<1024xindex>
  %b = tkgpu.load %x[%i] dims [array<i64: 0>] strides(%c1) masks(%isb) over [array<i64: 0>] other(%none) : (!tkgpu.buffer<f32>, tensor<1024xindex>, index, tensor<1024xi1>, f32) -> tensor<1024xf32>
  %s = tkgpu.reduce <sum> %b axis 0 : tensor<1024xf32> -> f32
  %ss = tkgpu.broadcast %s dims [] : f32 -> tensor<1024xf32>
  %e = arith.addf %chosen, %ss : tensor<1024xf32>
  tkgpu.store %e, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<1024xf32>, !tkgpu.buffer<f32>, tensor<1024xindex>, index) -> ()
  tkgpu.return
}

// Beyond the tensor the whole load brings 0, which a sum sees; 1000 places are not all of a tile; and
// a maximum of two bounds is another mask.
// CHECK-LABEL: tkgpu.func @apart
// CHECK-COUNT-4: tkgpu.load
// CHECK: tkgpu.return
tkgpu.func @apart args ["x", "y", "n", "c"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %n: index, %c: index):
  %c1 = arith.constant 1 : index
  %c1000 = arith.constant 1000 : index
  %none = arith.constant 0.0 : f32
  %ones = arith.constant dense<1.0> : tensor<1024xf32>
  %i = tkgpu.iota : tensor<1024xindex>
  %ns = tkgpu.broadcast %n dims [] : index -> tensor<1024xindex>
  %isn = arith.cmpi slt, %i, %ns : tensor<1024xindex>
  %cs = tkgpu.broadcast %c dims [] : index -> tensor<1024xindex>
  %isc = arith.cmpi slt, %i, %cs : tensor<1024xindex>
  %both = arith.minsi %n, %c : index
  %bs = tkgpu.broadcast %both dims [] : index -> tensor<1024xindex>
  %isb = arith.cmpi slt, %i, %bs : tensor<1024xindex>
  %some = arith.minsi %n, %c1000 : index
  %os = tkgpu.broadcast %some dims [] : index -> tensor<1024xindex>
  %iso = arith.cmpi slt, %i, %os : tensor<1024xindex>
  %a = tkgpu.load %x[%i] dims [array<i64: 0>] strides(%c1) masks(%isc) over [array<i64: 0>] other(%none) : (!tkgpu.buffer<f32>, tensor<1024xindex>, index, tensor<1024xi1>, f32) -> tensor<1024xf32>
  %b = tkgpu.load %x[%i] dims [array<i64: 0>] strides(%c1) masks(%isb) over [array<i64: 0>] other(%none) : (!tkgpu.buffer<f32>, tensor<1024xindex>, index, tensor<1024xi1>, f32) -> tensor<1024xf32>
  %chosen = arith.select %isn, %a, %ones : tensor<1024xi1>, tensor<1024xf32>
  %s = tkgpu.reduce <sum> %chosen axis 0 : tensor<1024xf32> -> f32
  %p = tkgpu.load %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<1024xindex>, index) -> tensor<1024xf32>
  %q = tkgpu.load %y[%i] dims [array<i64: 0>] strides(%c1) masks(%iso) over [array<i64: 0>] other(%none) : (!tkgpu.buffer<f32>, tensor<1024xindex>, index, tensor<1024xi1>, f32) -> tensor<1024xf32>
  %other = arith.select %isn, %p, %ones : tensor<1024xi1>, tensor<1024xf32>
  %ss = tkgpu.broadcast %s dims [] : f32 -> tensor<1024xf32>
  %t = arith.addf %other, %ss : tensor<1024xf32>
  %u = arith.addf %t, %q : tensor<1024xf32>
  %v = arith.addf %u, %b : tensor<1024xf32>
  tkgpu.store %v, %x[%i] dims [array<i64: 0>] strides(%c1) masks(%isc) over [array<i64: 0>] : (tensor<1024xf32>, !tkgpu.buffer<f32>, tensor<1024xindex>, index, tensor<1024xi1>) -> ()
  tkgpu.return
}

// What is stored in between is what the later load brings.
// CHECK-LABEL: tkgpu.func @stored
// CHECK: tkgpu.load %[[X:.*]][%{{.*}}] {{.*}} masks() over []
// CHECK: tkgpu.store %{{.*}}, %[[X]]
// CHECK: tkgpu.load %[[X]][
// CHECK: tkgpu.return
tkgpu.func @stored args ["x", "y", "n"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %n: index):
  %c1 = arith.constant 1 : index
  %c1024 = arith.constant 1024 : index
  %none = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %i = tkgpu.iota : tensor<1024xindex>
  %ns = tkgpu.broadcast %n dims [] : index -> tensor<1024xindex>
  %isn = arith.cmpi slt, %i, %ns : tensor<1024xindex>
  %a = tkgpu.load %x[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<1024xindex>, index) -> tensor<1024xf32>
  %chosen = arith.select %isn, %a, %zero : tensor<1024xi1>, tensor<1024xf32>
  %both = arith.minsi %n, %c1024 : index
  %bs = tkgpu.broadcast %both dims [] : index -> tensor<1024xindex>
  %isb = arith.cmpi slt, %i, %bs : tensor<1024xindex>
  tkgpu.store %zero, %x[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<1024xf32>, !tkgpu.buffer<f32>, tensor<1024xindex>, index) -> ()
  %b = tkgpu.load %x[%i] dims [array<i64: 0>] strides(%c1) masks(%isb) over [array<i64: 0>] other(%none) : (!tkgpu.buffer<f32>, tensor<1024xindex>, index, tensor<1024xi1>, f32) -> tensor<1024xf32>
  %e = arith.addf %chosen, %b : tensor<1024xf32>
  tkgpu.store %e, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<1024xf32>, !tkgpu.buffer<f32>, tensor<1024xindex>, index) -> ()
  tkgpu.return
}
