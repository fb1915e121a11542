// RUN: tk-opt %s --tk-coalesce-accesses | FileCheck %s
// RUN: tk-opt %s --tk-coalesce-accesses=naive | FileCheck %s --check-prefix=NAIVE

// Sizes that are multiples of 8: vectors of 16 bytes, masked or not.
// The mask is the same for the elements of a vector: the first is compared.
// CHECK-LABEL: tkgpu.func @aligned
// CHECK: %[[GROUPS:.*]] = arith.constant dense<-8> : tensor<1024xindex,
// CHECK: %[[FIRST:.*]] = arith.andi %{{.*}}, %[[GROUPS]]
// CHECK: arith.cmpi slt, %[[FIRST]],
// CHECK: tkgpu.load {{.*}} {vector = 8 : i64} {{.*}} -> tensor<1024xbf16, #tkgpu.layout<register = {{\[}}[1], [2], [4]], lane = {{\[}}[8], [16], [32], [64], [128]], warp = {{\[}}[256], [512]]>>
// CHECK: tkgpu.store {{.*}} {vector = 8 : i64}
// NAIVE-LABEL: tkgpu.func @aligned
// NAIVE-NOT: vector =
// NAIVE: tkgpu.load {{.*}} lane = {{\[}}[1], [2], [4], [8], [16]]
tkgpu.func @aligned args ["x", "y", "N"] facts [#tk.fact<>, #tk.fact<>, #tk.fact<divisor = 8>] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %N: index):
  %c1 = arith.constant 1 : index
  %c1024 = arith.constant 1024 : index
  %zero = arith.constant 0.0 : bf16
  %p = tkgpu.program_id x
  %begin = arith.muli %p, %c1024 : index
  %iota = tkgpu.iota : tensor<1024xindex>
  %base = tkgpu.broadcast %begin dims [] : index -> tensor<1024xindex>
  %i = arith.addi %iota, %base : tensor<1024xindex>
  %end = tkgpu.broadcast %N dims [] : index -> tensor<1024xindex>
  %m = arith.cmpi slt, %i, %end : tensor<1024xindex>
  %v = tkgpu.load %x[%i] dims [array<i64: 0>] strides(%c1) masks(%m) over [array<i64: 0>] other(%zero) : (!tkgpu.buffer<bf16>, tensor<1024xindex>, index, tensor<1024xi1>, bf16) -> tensor<1024xbf16>
  %n = arith.negf %v : tensor<1024xbf16>
  tkgpu.store %n, %y[%i] dims [array<i64: 0>] strides(%c1) masks(%m) over [array<i64: 0>] : (tensor<1024xbf16>, !tkgpu.buffer<bf16>, tensor<1024xindex>, index, tensor<1024xi1>) -> ()
  tkgpu.return
}

// Nothing is known of N: the mask may end anywhere. Threads still have neighbours, in runs that are
// taken whole where all of their masks hold.
// CHECK-LABEL: tkgpu.func @unknown
// CHECK-NOT: arith.andi
// CHECK: tkgpu.load {{.*}} {run = 8 : i64, vector = 8 : i64} {{.*}} -> tensor<1024xbf16, #tkgpu.layout<register = {{\[}}[1], [2], [4]], lane = {{\[}}[8],
// CHECK: tkgpu.store {{.*}} {run = 8 : i64, vector = 8 : i64}
// CHECK: tkgpu.return
tkgpu.func @unknown args ["x", "y", "N"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %N: index):
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : bf16
  %i = tkgpu.iota : tensor<1024xindex>
  %end = tkgpu.broadcast %N dims [] : index -> tensor<1024xindex>
  %m = arith.cmpi slt, %i, %end : tensor<1024xindex>
  %v = tkgpu.load %x[%i] dims [array<i64: 0>] strides(%c1) masks(%m) over [array<i64: 0>] other(%zero) : (!tkgpu.buffer<bf16>, tensor<1024xindex>, index, tensor<1024xi1>, bf16) -> tensor<1024xbf16>
  tkgpu.store %v, %y[%i] dims [array<i64: 0>] strides(%c1) masks(%m) over [array<i64: 0>] : (tensor<1024xbf16>, !tkgpu.buffer<bf16>, tensor<1024xindex>, index, tensor<1024xi1>) -> ()
  tkgpu.return
}

// y[j, i] = x[i, j]: both accesses are coalesced, the tile changes layout in between.
// CHECK-LABEL: tkgpu.func @transpose
// CHECK: %[[X:.*]] = tkgpu.load {{.*}} -> tensor<32x64xf32, #tkgpu.layout<register = {{\[}}[0, 1], [0, 2], {{.*}}lane = {{\[}}[0, 4],
// CHECK: %[[Y:.*]] = tkgpu.convert_layout %[[X]]
// CHECK-SAME: -> tensor<32x64xf32, #tkgpu.layout<register = {{\[}}[1, 0], [2, 0], {{.*}}lane = {{\[}}[4, 0],
// CHECK: tkgpu.store %[[Y]], {{.*}} {vector = 4 : i64}
// NAIVE-LABEL: tkgpu.func @transpose
// NAIVE-NOT: tkgpu.convert_layout
// NAIVE: tkgpu.return
tkgpu.func @transpose args ["x", "y", "M", "N"] facts [#tk.fact<>, #tk.fact<>, #tk.fact<divisor = 16>, #tk.fact<divisor = 16>] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %M: index, %N: index):
  %c1 = arith.constant 1 : index
  %i = tkgpu.iota : tensor<32xindex>
  %j = tkgpu.iota : tensor<64xindex>
  %v = tkgpu.load %x[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<32xindex>, tensor<64xindex>, index, index) -> tensor<32x64xf32>
  tkgpu.store %v, %y[%j, %i] dims [array<i64: 1>, array<i64: 0>] strides(%M, %c1) masks() over [] : (tensor<32x64xf32>, !tkgpu.buffer<f32>, tensor<64xindex>, tensor<32xindex>, index, index) -> ()
  tkgpu.return
}

// A row reduction keeps each row within a warp, and its result is a slice: no conversion.
// CHECK-LABEL: tkgpu.func @rows
// CHECK-NOT: convert_layout
// CHECK: %[[V:.*]] = tkgpu.load {{.*}} -> tensor<8x512xf32, #tkgpu.layout<{{.*}}lane = {{\[}}[0, 4], [0, 8], [0, 16], [0, 32], [0, 64]], warp = {{\[}}[1, 0], [2, 0]]>>
// CHECK: tkgpu.reduce  <max> %[[V]] axis 1 {{.*}} -> tensor<8xf32, #tkgpu.layout<register = {{\[}}[4]], lane = {{\[}}[0], [0], [0], [0], [0]], warp = {{\[}}[1], [2]]>>
// CHECK: tkgpu.broadcast {{.*}} tensor<8xf32, #tkgpu.layout<register = {{\[}}[4]]
// CHECK-NOT: convert_layout
// CHECK: tkgpu.return
tkgpu.func @rows args ["x", "y"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %c512 = arith.constant 512 : index
  %i = tkgpu.iota : tensor<8xindex>
  %j = tkgpu.iota : tensor<512xindex>
  %v = tkgpu.load %x[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%c512, %c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<8xindex>, tensor<512xindex>, index, index) -> tensor<8x512xf32>
  %max = tkgpu.reduce #tk.kind<max> %v axis 1 : tensor<8x512xf32> -> tensor<8xf32>
  %all = tkgpu.broadcast %max dims [0] : tensor<8xf32> -> tensor<8x512xf32>
  %d = arith.subf %v, %all : tensor<8x512xf32>
  tkgpu.store %d, %y[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%c512, %c1) masks() over [] : (tensor<8x512xf32>, !tkgpu.buffer<f32>, tensor<8xindex>, tensor<512xindex>, index, index) -> ()
  tkgpu.return
}

// Of three accesses two begin anywhere: neighbouring threads have neighbouring elements, as is best
// for those, though vectors fit the third.
// CHECK-LABEL: tkgpu.func @anywhere
// CHECK: tkgpu.load {{.*}} -> tensor<1x4096xbf16, #tkgpu.layout<register = {{.*}}, lane = {{\[}}[0, 2], [0, 4], [0, 8], [0, 16], [0, 32]]
tkgpu.func @anywhere args ["x", "g", "y", "C"] {
^bb0(%x: !tkgpu.buffer<bf16>, %g: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %C: index):
  %c1 = arith.constant 1 : index
  %row = tkgpu.program_id x
  %i = tkgpu.iota : tensor<1xindex>
  %rows = tkgpu.broadcast %row dims [] : index -> tensor<1xindex>
  %r = arith.addi %i, %rows : tensor<1xindex>
  %j = tkgpu.iota : tensor<4096xindex>
  %v = tkgpu.load %x[%r, %j] dims [array<i64: 0>, array<i64: 1>] strides(%C, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<1xindex>, tensor<4096xindex>, index, index) -> tensor<1x4096xbf16>
  %w = tkgpu.load %g[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%c1, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<1xindex>, tensor<4096xindex>, index, index) -> tensor<1x4096xbf16>
  %s = arith.addf %v, %w : tensor<1x4096xbf16>
  tkgpu.store %s, %y[%r, %j] dims [array<i64: 0>, array<i64: 1>] strides(%C, %c1) masks() over [] : (tensor<1x4096xbf16>, !tkgpu.buffer<bf16>, tensor<1xindex>, tensor<4096xindex>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// What is stored by single elements goes on by sectors, of which pairs would touch each twice: with
// two rows read and two stored that is more than one row of pairs saves.
// CHECK-LABEL: tkgpu.func @stored_anywhere
// CHECK: tkgpu.load {{.*}} -> tensor<4096xbf16, #tkgpu.layout<register = {{.*}}, lane = {{\[}}[1], [2], [4], [8], [16]]
tkgpu.func @stored_anywhere args ["x", "r", "g", "s", "y", "C"] {
^bb0(%x: !tkgpu.buffer<bf16>, %r: !tkgpu.buffer<bf16>, %g: !tkgpu.buffer<bf16>, %s: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %C: index):
  %c1 = arith.constant 1 : index
  %row = tkgpu.program_id x
  %j = tkgpu.iota : tensor<4096xindex>
  %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] : (!tkgpu.buffer<bf16>, index, tensor<4096xindex>, index, index) -> tensor<4096xbf16>
  %u = tkgpu.load %r[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] : (!tkgpu.buffer<bf16>, index, tensor<4096xindex>, index, index) -> tensor<4096xbf16>
  %w = tkgpu.load %g[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<4096xindex>, index) -> tensor<4096xbf16>
  %sum = arith.addf %v, %u : tensor<4096xbf16>
  %o = arith.mulf %sum, %w : tensor<4096xbf16>
  tkgpu.store %sum, %s[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] : (tensor<4096xbf16>, !tkgpu.buffer<bf16>, index, tensor<4096xindex>, index, index) -> ()
  tkgpu.store %o, %y[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] : (tensor<4096xbf16>, !tkgpu.buffer<bf16>, index, tensor<4096xindex>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// One row is stored by single elements, two are read by pairs: single elements would take a third
// more instructions.
// CHECK-LABEL: tkgpu.func @read_by_pairs
// CHECK: tkgpu.load {{.*}} -> tensor<4096xbf16, #tkgpu.layout<register = {{.*}}, lane = {{\[}}[2], [4], [8], [16], [32]]
tkgpu.func @read_by_pairs args ["x", "m", "v", "y", "C", "n"] {
^bb0(%x: !tkgpu.buffer<bf16>, %m: !tkgpu.buffer<f32>, %v: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<bf16>, %C: index, %n: index):
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %row = tkgpu.program_id x
  %first = arith.muli %n, %c2 : index
  %j = tkgpu.iota : tensor<4096xindex>
  %from = tkgpu.broadcast %first dims [] : index -> tensor<4096xindex>
  %k = arith.addi %from, %j : tensor<4096xindex>
  %a = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] : (!tkgpu.buffer<bf16>, index, tensor<4096xindex>, index, index) -> tensor<4096xbf16>
  %w = arith.extf %a : tensor<4096xbf16> to tensor<4096xf32>
  %b = tkgpu.load %m[%k] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<4096xindex>, index) -> tensor<4096xf32>
  %c = tkgpu.load %v[%k] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<4096xindex>, index) -> tensor<4096xf32>
  %d = arith.subf %w, %b : tensor<4096xf32>
  %e = arith.mulf %d, %c : tensor<4096xf32>
  %o = arith.truncf %e : tensor<4096xf32> to tensor<4096xbf16>
  tkgpu.store %o, %y[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] : (tensor<4096xbf16>, !tkgpu.buffer<bf16>, index, tensor<4096xindex>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// What is loaded once before a loop over rows does not count beside the rows.
// CHECK-LABEL: tkgpu.func @weights_before_loop
// CHECK: tkgpu.load {{.*}} -> tensor<4096xbf16, #tkgpu.layout<register = {{.*}}, lane = {{\[}}[1], [2], [4], [8], [16]]
tkgpu.func @weights_before_loop args ["x", "g", "y", "rows", "C"] {
^bb0(%x: !tkgpu.buffer<bf16>, %g: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %rows: index, %C: index):
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<4096xindex>
  %w = tkgpu.load %g[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<4096xindex>, index) -> tensor<4096xbf16>
  %own = tkgpu.program_id x
  %step = tkgpu.num_programs x
  scf.for %row = %own to %rows step %step {
    %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] : (!tkgpu.buffer<bf16>, index, tensor<4096xindex>, index, index) -> tensor<4096xbf16>
    %o = arith.mulf %v, %w : tensor<4096xbf16>
    tkgpu.store %o, %y[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] : (tensor<4096xbf16>, !tkgpu.buffer<bf16>, index, tensor<4096xindex>, index, index) -> ()
  }
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// Scanned down the columns: lanes side by side along the rows, and what else a thread has are rows
// that follow each other.
// CHECK-LABEL: tkgpu.func @scanned
// CHECK: tkgpu.load {{.*}} {vector = 4 : i64} {{.*}} -> tensor<64x32xf32, #[[DOWN:.*]]>
// CHECK: %{{.*}}, %[[TOTAL:.*]] = tkgpu.scan <sum> %{{.*}} axis 0 : tensor<64x32xf32, #[[DOWN]]> -> tensor<32xf32,
tkgpu.func @scanned args ["x", "y"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %i = tkgpu.iota : tensor<64xindex>
  %j = tkgpu.iota : tensor<32xindex>
  %v = tkgpu.load %x[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%c32, %c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<64xindex>, tensor<32xindex>, index, index) -> tensor<64x32xf32>
  %s, %total = tkgpu.scan <sum> %v axis 0 : tensor<64x32xf32> -> tensor<32xf32>
  %totals = tkgpu.broadcast %total dims [1] : tensor<32xf32> -> tensor<64x32xf32>
  %left = arith.subf %totals, %s : tensor<64x32xf32>
  tkgpu.store %left, %y[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%c32, %c1) masks() over [] : (tensor<64x32xf32>, !tkgpu.buffer<f32>, tensor<64xindex>, tensor<32xindex>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64}

// Rows whose class follows a reduction of columns: another reduction's result is converted to that
// layout before it is stored, and stored in it.
// CHECK-LABEL: tkgpu.func @stored_after_conversion
// CHECK: %[[SUM:.*]] = tkgpu.reduce <sum>
// CHECK: %[[ROWS:.*]] = tkgpu.convert_layout %[[SUM]] : {{.*}} -> tensor<4xf32, #tkgpu.layout<register = [], lane = {{\[}}[1], [2], [0], [0], [0]], warp
// CHECK: arith.mulf %{{.*}}, %[[ROWS]]
// CHECK: tkgpu.store %[[ROWS]], {{.*}} : (tensor<4xf32, #tkgpu.layout<register = [], lane = {{\[}}[1], [2], [0], [0], [0]], warp
tkgpu.func @stored_after_conversion args ["x", "w", "y", "z", "n"] {
^bb0(%x: !tkgpu.buffer<f32>, %w: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %z: !tkgpu.buffer<f32>, %n: index):
  %c1 = arith.constant 1 : index
  %i = tkgpu.iota : tensor<4xindex>
  %a = tkgpu.load %x[%i, %i] dims [array<i64: 1>, array<i64: 0>] strides(%n, %c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<4xindex>, tensor<4xindex>, index, index) -> tensor<4x4xf32>
  %b = tkgpu.load %w[%i] dims [array<i64: 0>] strides(%n) masks() over [] : (!tkgpu.buffer<f32>, tensor<4xindex>, index) -> tensor<4xf32>
  %rows = tkgpu.broadcast %b dims [0] : tensor<4xf32> -> tensor<4x4xf32>
  %least = tkgpu.reduce <min> %a axis 1 : tensor<4x4xf32> -> tensor<4xf32>
  %sum = tkgpu.reduce <sum> %rows axis 1 : tensor<4x4xf32> -> tensor<4xf32>
  %product = arith.mulf %least, %sum : tensor<4xf32>
  tkgpu.store %sum, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<4xf32>, !tkgpu.buffer<f32>, tensor<4xindex>, index) -> ()
  tkgpu.store %product, %z[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<4xf32>, !tkgpu.buffer<f32>, tensor<4xindex>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// A row that begins at a multiple of three begins at any address: elements are read one by one, where
// a multiple of twelve lets four be read together.
// CHECK-LABEL: tkgpu.func @multiples
// CHECK: tkgpu.load %arg0[%arg2,
// CHECK-NOT: vector =
// CHECK-SAME: -> tensor<1024xi8,
// CHECK: tkgpu.load %arg0[%arg3,
// CHECK-SAME: vector = 4 : i64
// CHECK-SAME: -> tensor<1024xi8,
tkgpu.func @multiples args ["x", "y", "three", "twelve"] facts [#tk.fact<>, #tk.fact<>, #tk.fact<divisor = 3>, #tk.fact<divisor = 12>] {
^bb0(%x: !tkgpu.buffer<i8>, %y: !tkgpu.buffer<i8>, %three: index, %twelve: index):
  %c1 = arith.constant 1 : index
  %i = tkgpu.iota : tensor<1024xindex>
  %v = tkgpu.load %x[%three, %i] dims [array<i64>, array<i64: 0>] strides(%c1, %c1) masks() over [] : (!tkgpu.buffer<i8>, index, tensor<1024xindex>, index, index) -> tensor<1024xi8>
  %w = tkgpu.load %x[%twelve, %i] dims [array<i64>, array<i64: 0>] strides(%c1, %c1) masks() over [] : (!tkgpu.buffer<i8>, index, tensor<1024xindex>, index, index) -> tensor<1024xi8>
  %sum = arith.addi %v, %w : tensor<1024xi8>
  tkgpu.store %sum, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<1024xi8>, !tkgpu.buffer<i8>, tensor<1024xindex>, index) -> ()
  tkgpu.return
}
