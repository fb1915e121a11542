// RUN: tk-opt %s --tk-keep-rows | FileCheck %s
#target = #tkgpu.target<arch = 90, shared = 262144, processors = 132, hopper = true>
#row = #tkgpu.layout<register = [[1], [2], [4], [1024], [2048], [4096]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512]]>
#half = #tkgpu.layout<register = [[1], [2], [4], [1024], [2048]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512]]>
module attributes {tkgpu.target = #target} {

// Of rows of which a thread has 64 elements each comes to shared memory; what is loaded behind the
// reduction stays a load. The copies are waited for where the first of them is used.
// CHECK-LABEL: tkgpu.func @rows
// CHECK: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[A:.*]] = tkgpu.alloc_private : <1 x tensor<8192xbf16, {{.*}}>, vector = 8>
// CHECK-NEXT: tkgpu.copy_private %[[A]] at %[[ZERO]], %arg0[%[[R:.*]], %[[J:.*]]] dims [array<i64>, array<i64: 0>]
// CHECK-NEXT: %[[B:.*]] = tkgpu.alloc_private
// CHECK-NEXT: tkgpu.copy_private %[[B]] at %[[ZERO]], %arg1[%[[R]], %[[J]]]
// CHECK-NEXT: tkgpu.async_commit
// CHECK-NEXT: tkgpu.load %arg2[%[[R]]]
// CHECK-NEXT: tkgpu.async_wait 0
// CHECK-NEXT: %[[X:.*]] = tkgpu.private_load %[[A]] at %[[ZERO]]
// CHECK-NEXT: %[[Y:.*]] = tkgpu.private_load %[[B]] at %[[ZERO]]
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[X]], %[[Y]]
// CHECK-NEXT: tkgpu.reduce <max> %[[SUM]]
// CHECK: tkgpu.load %arg3
tkgpu.func @rows args ["x", "y", "s", "g", "z"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %s: !tkgpu.buffer<bf16>, %g: !tkgpu.buffer<bf16>, %z: !tkgpu.buffer<bf16>):
  %c1 = arith.constant 1 : index
  %C = arith.constant 8192 : index
  %r = tkgpu.program_id x
  %j = tkgpu.iota : tensor<8192xindex, #row>
  %a = tkgpu.load %x[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<8192xindex, #row>, index, index) -> tensor<8192xbf16, #row>
  %b = tkgpu.load %y[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<8192xindex, #row>, index, index) -> tensor<8192xbf16, #row>
  %one = tkgpu.load %s[%r] dims [array<i64>] strides(%c1) masks() over [] : (!tkgpu.buffer<bf16>, index, index) -> bf16
  %ab = arith.addf %a, %b : tensor<8192xbf16, #row>
  %m = tkgpu.reduce <max> %ab axis 0 : tensor<8192xbf16, #row> -> bf16
  %both = arith.addf %m, %one : bf16
  %mb = tkgpu.broadcast %both dims [] : bf16 -> tensor<8192xbf16, #row>
  %d = arith.subf %ab, %mb : tensor<8192xbf16, #row>
  %w = tkgpu.load %g[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<8192xindex, #row>, index) -> tensor<8192xbf16, #row>
  %o = arith.mulf %d, %w : tensor<8192xbf16, #row>
  tkgpu.store %o, %z[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<8192xbf16, #row>, !tkgpu.buffer<bf16>, index, tensor<8192xindex, #row>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// Fewer elements fit registers; masked ones may have none there; single elements are no vectors.
// CHECK-LABEL: tkgpu.func @short
// CHECK-NOT: tkgpu.alloc_private
tkgpu.func @short args ["x", "z"] {
^bb0(%x: !tkgpu.buffer<bf16>, %z: !tkgpu.buffer<bf16>):
  %c1 = arith.constant 1 : index
  %r = tkgpu.program_id x
  %j = tkgpu.iota : tensor<4096xindex, #half>
  %a = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<4096xindex, #half>, index) -> tensor<4096xbf16, #half>
  %m = tkgpu.reduce <max> %a axis 0 : tensor<4096xbf16, #half> -> bf16
  tkgpu.store %m, %z[%r] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}
// CHECK-LABEL: tkgpu.func @masked
// CHECK-NOT: tkgpu.alloc_private
tkgpu.func @masked args ["x", "n", "z"] {
^bb0(%x: !tkgpu.buffer<bf16>, %n: index, %z: !tkgpu.buffer<bf16>):
  %c1 = arith.constant 1 : index
  %r = tkgpu.program_id x
  %j = tkgpu.iota : tensor<8192xindex, #row>
  %none = arith.constant 0.0 : bf16
  %end = tkgpu.broadcast %n dims [] : index -> tensor<8192xindex, #row>
  %in = arith.cmpi slt, %j, %end : tensor<8192xindex, #row>
  %a = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks(%in) over [array<i64: 0>] other(%none) {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<8192xindex, #row>, index, tensor<8192xi1, #row>, bf16) -> tensor<8192xbf16, #row>
  %m = tkgpu.reduce <max> %a axis 0 : tensor<8192xbf16, #row> -> bf16
  tkgpu.store %m, %z[%r] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}
// CHECK-LABEL: tkgpu.func @narrow
// CHECK-NOT: tkgpu.alloc_private
tkgpu.func @narrow args ["x", "z"] {
^bb0(%x: !tkgpu.buffer<bf16>, %z: !tkgpu.buffer<bf16>):
  %c1 = arith.constant 1 : index
  %r = tkgpu.program_id x
  %j = tkgpu.iota : tensor<8192xindex, #row>
  %a = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<bf16>, tensor<8192xindex, #row>, index) -> tensor<8192xbf16, #row>
  %m = tkgpu.reduce <max> %a axis 0 : tensor<8192xbf16, #row> -> bf16
  tkgpu.store %m, %z[%r] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// What blocks go through is brought early instead (tk-fetch-ahead).
// CHECK-LABEL: tkgpu.func @in_turn
// CHECK-NOT: tkgpu.alloc_private
tkgpu.func @in_turn args ["x", "z", "tiles"] {
^bb0(%x: !tkgpu.buffer<bf16>, %z: !tkgpu.buffer<bf16>, %tiles: index):
  %c1 = arith.constant 1 : index
  %C = arith.constant 8192 : index
  %first = tkgpu.program_id x
  %step = tkgpu.num_programs x
  %j = tkgpu.iota : tensor<8192xindex, #row>
  scf.for %r = %first to %tiles step %step {
    %a = tkgpu.load %x[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<8192xindex, #row>, index, index) -> tensor<8192xbf16, #row>
    %m = tkgpu.reduce <max> %a axis 0 : tensor<8192xbf16, #row> -> bf16
    tkgpu.store %m, %z[%r] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
  }
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}
}
