// RUN: tk-opt %s --tk-align-rows --tk-coalesce-accesses --canonicalize --cse | FileCheck %s
// RUN: tk-opt %s --tk-align-rows | FileCheck %s --check-prefix=KEPT
// RUN: tk-opt %s --tk-align-rows --tk-coalesce-accesses=naive | FileCheck %s --check-prefix=NAIVE

// Rows of any length: their tile is rotated by what they are behind a multiple of 8 elements. What
// all rows share is aligned as it is, and meets them through a funnel.
// CHECK-LABEL: tkgpu.func @rows
// CHECK: %[[ROW:.*]] = tkgpu.program_id
// CHECK: %[[SHIFT:.*]] = tkgpu.misalignment[%[[ROW]]] strides(%[[C:.*]]) of 8
// CHECK: %[[J:.*]] = tkgpu.rotated_iota %[[SHIFT]]
// CHECK: %[[IN:.*]] = arith.cmpi slt, %[[J]]
// CHECK: tkgpu.load %{{.*}}[%[[ROW]], %[[J]]] {{.*}} masks(%[[IN]]) {{.*}} {run = 8 : i64, vector = 8 : i64}
// CHECK: %[[BEFORE:.*]] = tkgpu.load %[[G:.*]][%{{.*}}] {{.*}} {run = 8 : i64, vector = 8 : i64}
// CHECK: %[[HERE:.*]] = tkgpu.load %[[G]][%{{.*}}] {{.*}} {run = 8 : i64, vector = 8 : i64}
// CHECK: tkgpu.funnel %[[BEFORE]], %[[HERE]] by %[[SHIFT]] in 8
// CHECK: tkgpu.store %{{.*}}[%[[ROW]], %[[J]]] {{.*}} {run = 8 : i64, vector = 8 : i64}
// A thread has whole groups of what is joined whatever else it has.
// NAIVE-LABEL: tkgpu.func @rows
// NAIVE: tkgpu.funnel {{.*}} in 8 : tensor<4096xbf16, #tkgpu.layout<register = {{\[\[}}1], [2], [4]
// KEPT-LABEL: tkgpu.func @rows
// KEPT: tkgpu.rotated_iota
tkgpu.func @rows args ["x", "g", "y", "C"] {
^bb0(%x: !tkgpu.buffer<bf16>, %g: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %C: index):
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : bf16
  %row = tkgpu.program_id x
  %j = tkgpu.iota : tensor<4096xindex>
  %Cs = tkgpu.broadcast %C dims [] : index -> tensor<4096xindex>
  %in = arith.cmpi slt, %j, %Cs : tensor<4096xindex>
  %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] other(%zero) : (!tkgpu.buffer<bf16>, index, tensor<4096xindex>, index, index, tensor<4096xi1>, bf16) -> tensor<4096xbf16>
  %w = tkgpu.load %g[%j] dims [array<i64: 0>] strides(%c1) masks(%in) over [array<i64: 0>] other(%zero) : (!tkgpu.buffer<bf16>, tensor<4096xindex>, index, tensor<4096xi1>, bf16) -> tensor<4096xbf16>
  %a = arith.extf %v : tensor<4096xbf16> to tensor<4096xf32>
  %s = tkgpu.reduce <sum> %a axis 0 : tensor<4096xf32> -> f32
  %ss = tkgpu.broadcast %s dims [] : f32 -> tensor<4096xf32>
  %b = arith.extf %w : tensor<4096xbf16> to tensor<4096xf32>
  %p = arith.mulf %ss, %b : tensor<4096xf32>
  %q = arith.mulf %p, %a : tensor<4096xf32>
  %r = arith.truncf %q : tensor<4096xf32> to tensor<4096xbf16>
  tkgpu.store %r, %y[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] : (tensor<4096xbf16>, !tkgpu.buffer<bf16>, index, tensor<4096xindex>, index, index, tensor<4096xi1>) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// A load that is masked by more than the index stays an access of single elements.
// CHECK-LABEL: tkgpu.func @gathered
// CHECK: tkgpu.rotated_iota
// CHECK-NOT: tkgpu.funnel
// KEPT-LABEL: tkgpu.func @gathered
tkgpu.func @gathered args ["x", "g", "y", "C"] {
^bb0(%x: !tkgpu.buffer<bf16>, %g: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %C: index):
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<4096xbf16>
  %row = tkgpu.program_id x
  %j = tkgpu.iota : tensor<4096xindex>
  %Cs = tkgpu.broadcast %C dims [] : index -> tensor<4096xindex>
  %in = arith.cmpi slt, %j, %Cs : tensor<4096xindex>
  %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] other(%zero) : (!tkgpu.buffer<bf16>, index, tensor<4096xindex>, index, index, tensor<4096xi1>, bf16) -> tensor<4096xbf16>
  %positive = arith.cmpf ogt, %v, %zeros : tensor<4096xbf16>
  %both = arith.andi %in, %positive : tensor<4096xi1>
  %w = tkgpu.load %g[%j] dims [array<i64: 0>] strides(%c1) masks(%both) over [array<i64: 0>] other(%zero) : (!tkgpu.buffer<bf16>, tensor<4096xindex>, index, tensor<4096xi1>, bf16) -> tensor<4096xbf16>
  tkgpu.store %w, %y[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] : (tensor<4096xbf16>, !tkgpu.buffer<bf16>, index, tensor<4096xindex>, index, index, tensor<4096xi1>) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// Rows of whole vectors, or halves of them, stay as they are, and so does a scan, which sees the order of its elements.
// KEPT-LABEL: tkgpu.func @aligned
// KEPT-NOT: tkgpu.rotated_iota
tkgpu.func @aligned args ["x", "y", "C"] facts [#tk.fact<>, #tk.fact<>, #tk.fact<divisor = 4>] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %C: index):
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : bf16
  %row = tkgpu.program_id x
  %j = tkgpu.iota : tensor<4096xindex>
  %Cs = tkgpu.broadcast %C dims [] : index -> tensor<4096xindex>
  %in = arith.cmpi slt, %j, %Cs : tensor<4096xindex>
  %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] other(%zero) : (!tkgpu.buffer<bf16>, index, tensor<4096xindex>, index, index, tensor<4096xi1>, bf16) -> tensor<4096xbf16>
  tkgpu.store %v, %y[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] : (tensor<4096xbf16>, !tkgpu.buffer<bf16>, index, tensor<4096xindex>, index, index, tensor<4096xi1>) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// KEPT-LABEL: tkgpu.func @scanned
// KEPT-NOT: tkgpu.rotated_iota
tkgpu.func @scanned args ["x", "y", "C"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %C: index):
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %row = tkgpu.program_id x
  %j = tkgpu.iota : tensor<4096xindex>
  %Cs = tkgpu.broadcast %C dims [] : index -> tensor<4096xindex>
  %in = arith.cmpi slt, %j, %Cs : tensor<4096xindex>
  %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] other(%zero) : (!tkgpu.buffer<f32>, index, tensor<4096xindex>, index, index, tensor<4096xi1>, f32) -> tensor<4096xf32>
  %s, %all = tkgpu.scan #tk.kind<sum> %v axis 0 : tensor<4096xf32> -> f32
  tkgpu.store %s, %y[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] : (tensor<4096xf32>, !tkgpu.buffer<f32>, index, tensor<4096xindex>, index, index, tensor<4096xi1>) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// Rows that end before their tile go around the end of the last elements that all threads have
// before it, and what they share with them.
// CHECK-LABEL: tkgpu.func @part
// KEPT-LABEL: tkgpu.func @part
// CHECK: %[[EIGHT:.*]] = arith.constant 8 : index
// CHECK: %[[SHIFT:.*]] = tkgpu.misalignment
// CHECK: %[[J:.*]] = tkgpu.rotated_iota %[[SHIFT]] around 3072 : tensor<4096xindex
// CHECK: tkgpu.load %{{.*}}[%{{.*}}, %[[J]]] {{.*}} {run = 8 : i64, vector = 8 : i64}
// CHECK: %[[HERE:.*]] = tkgpu.iota to 3072
// CHECK: %[[BEFORE:.*]] = tkgpu.rotated_iota %[[EIGHT]] around 3072
// CHECK: %[[W0:.*]] = tkgpu.load %[[G:.*]][%[[BEFORE]]] {{.*}} {run = 8 : i64, vector = 8 : i64}
// CHECK: %[[W1:.*]] = tkgpu.load %[[G]][%[[HERE]]] {{.*}} {run = 8 : i64, vector = 8 : i64}
// CHECK: tkgpu.funnel %[[W0]], %[[W1]] by %[[SHIFT]] in 8
tkgpu.func @part args ["x", "g", "y", "C"] {
^bb0(%x: !tkgpu.buffer<bf16>, %g: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %C: index):
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : bf16
  %row = tkgpu.program_id x
  %j = tkgpu.iota to 3001 : tensor<4096xindex>
  %Cs = tkgpu.broadcast %C dims [] : index -> tensor<4096xindex>
  %in = arith.cmpi slt, %j, %Cs : tensor<4096xindex>
  %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] other(%zero) : (!tkgpu.buffer<bf16>, index, tensor<4096xindex>, index, index, tensor<4096xi1>, bf16) -> tensor<4096xbf16>
  %w = tkgpu.load %g[%j] dims [array<i64: 0>] strides(%c1) masks(%in) over [array<i64: 0>] other(%zero) : (!tkgpu.buffer<bf16>, tensor<4096xindex>, index, tensor<4096xi1>, bf16) -> tensor<4096xbf16>
  %p = arith.mulf %v, %w : tensor<4096xbf16>
  tkgpu.store %p, %y[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] : (tensor<4096xbf16>, !tkgpu.buffer<bf16>, index, tensor<4096xindex>, index, index, tensor<4096xi1>) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// Pairs of elements are as fast as they are in small blocks, single ones of short rows in a warp.
// KEPT-LABEL: tkgpu.func @pairs
// KEPT-NOT: tkgpu.rotated_iota
tkgpu.func @pairs args ["x", "y", "C"] facts [#tk.fact<>, #tk.fact<>, #tk.fact<divisor = 2>] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %C: index):
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : bf16
  %row = tkgpu.program_id x
  %j = tkgpu.iota : tensor<2048xindex>
  %Cs = tkgpu.broadcast %C dims [] : index -> tensor<2048xindex>
  %in = arith.cmpi slt, %j, %Cs : tensor<2048xindex>
  %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] other(%zero) : (!tkgpu.buffer<bf16>, index, tensor<2048xindex>, index, index, tensor<2048xi1>, bf16) -> tensor<2048xbf16>
  tkgpu.store %v, %y[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] : (tensor<2048xbf16>, !tkgpu.buffer<bf16>, index, tensor<2048xindex>, index, index, tensor<2048xi1>) -> ()
  tkgpu.return
} {num_warps = 2 : i64, index_bits = 32 : i64}

// KEPT-LABEL: tkgpu.func @large_pairs
// KEPT: tkgpu.rotated_iota
tkgpu.func @large_pairs args ["x", "y", "C"] facts [#tk.fact<>, #tk.fact<>, #tk.fact<divisor = 2>] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %C: index):
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : bf16
  %row = tkgpu.program_id x
  %j = tkgpu.iota : tensor<4096xindex>
  %Cs = tkgpu.broadcast %C dims [] : index -> tensor<4096xindex>
  %in = arith.cmpi slt, %j, %Cs : tensor<4096xindex>
  %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] other(%zero) : (!tkgpu.buffer<bf16>, index, tensor<4096xindex>, index, index, tensor<4096xi1>, bf16) -> tensor<4096xbf16>
  tkgpu.store %v, %y[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] : (tensor<4096xbf16>, !tkgpu.buffer<bf16>, index, tensor<4096xindex>, index, index, tensor<4096xi1>) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// KEPT-LABEL: tkgpu.func @short
// KEPT-NOT: tkgpu.rotated_iota
tkgpu.func @short args ["x", "y", "C"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %C: index):
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : bf16
  %row = tkgpu.program_id x
  %j = tkgpu.iota to 640 : tensor<1024xindex>
  %Cs = tkgpu.broadcast %C dims [] : index -> tensor<1024xindex>
  %in = arith.cmpi slt, %j, %Cs : tensor<1024xindex>
  %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] other(%zero) : (!tkgpu.buffer<bf16>, index, tensor<1024xindex>, index, index, tensor<1024xi1>, bf16) -> tensor<1024xbf16>
  tkgpu.store %v, %y[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] : (tensor<1024xbf16>, !tkgpu.buffer<bf16>, index, tensor<1024xindex>, index, index, tensor<1024xi1>) -> ()
  tkgpu.return
} {num_warps = 1 : i64, index_bits = 32 : i64}

// Two warps have more to do for each element than for vectors.
// KEPT-LABEL: tkgpu.func @short_of_two
// KEPT: tkgpu.rotated_iota
tkgpu.func @short_of_two args ["x", "y", "C"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %C: index):
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : bf16
  %row = tkgpu.program_id x
  %j = tkgpu.iota to 640 : tensor<1024xindex>
  %Cs = tkgpu.broadcast %C dims [] : index -> tensor<1024xindex>
  %in = arith.cmpi slt, %j, %Cs : tensor<1024xindex>
  %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] other(%zero) : (!tkgpu.buffer<bf16>, index, tensor<1024xindex>, index, index, tensor<1024xi1>, bf16) -> tensor<1024xbf16>
  tkgpu.store %v, %y[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] : (tensor<1024xbf16>, !tkgpu.buffer<bf16>, index, tensor<1024xindex>, index, index, tensor<1024xi1>) -> ()
  tkgpu.return
} {num_warps = 2 : i64, index_bits = 32 : i64}
