// RUN: tk-opt %s --split-input-file --tk-fetch-ahead | FileCheck %s
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
#row = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512], [1024]]>

// Rows come in four stages; the weights once, beside them, and are read where they are needed. Of
// single numbers the next row's is loaded while this one is reduced, if there is one.
// CHECK-LABEL: tkgpu.func @norm
// CHECK: %[[KEPT:.*]] = tkgpu.alloc_private : <1 x tensor<2048xbf16, {{.*}}>, vector = 8>
// CHECK-NEXT: tkgpu.copy_private %[[KEPT]] at %{{.*}}, %{{.*}}[%{{.*}}] dims [array<i64: 0>]
// CHECK: %[[ROWS:.*]] = tkgpu.alloc_private : <4 x tensor<2048xbf16, {{.*}}>, vector = 8>
// CHECK: tkgpu.copy_private %[[ROWS]] at %{{.*}}, %{{.*}}[%[[ROW0:[^,]*]],
// CHECK: %[[ROW1:.*]] = arith.addi %[[ROW0]], %[[BLOCKS:.*]] : index
// CHECK: tkgpu.copy_private %[[ROWS]] at %{{.*}}, %{{.*}}[%[[ROW1]],
// CHECK: %[[ROW2:.*]] = arith.addi %[[ROW1]], %[[BLOCKS]] : index
// CHECK: tkgpu.copy_private %[[ROWS]] at %{{.*}}, %{{.*}}[%[[ROW2]],
// CHECK: %[[ROW3:.*]] = arith.addi %[[ROW2]], %[[BLOCKS]] : index
// CHECK: tkgpu.copy_private %[[ROWS]] at %{{.*}}, %{{.*}}[%[[ROW3]],
// CHECK: %[[AHEAD:.*]] = arith.muli
// CHECK: %[[SOME:.*]] = arith.cmpi slt, %[[OWN:.*]], %[[END:.*]] : index
// CHECK: %[[FIRST:.*]] = tkgpu.load %{{.*}}[%[[OWN]]] {{.*}} masks(%[[SOME]]) over [array<i64>] other(
// CHECK: scf.for %[[R:.*]] = %[[OWN]] to %[[END]] step %[[STEP:.*]] iter_args(%[[SLOT:.*]] = %{{.*}}, %[[ONE:.*]] = %[[FIRST]]) -> (index, f32) {
// CHECK-NEXT: %[[NEXT_R:.*]] = arith.addi %[[R]], %[[STEP]]
// CHECK-NEXT: %[[MORE:.*]] = arith.cmpi slt, %[[NEXT_R]], %[[END]]
// CHECK: %[[NEXT:.*]] = tkgpu.load %{{.*}}[%[[NEXT_R]]] {{.*}} masks(%[[MORE]])
// CHECK-NEXT: tkgpu.async_wait 3
// CHECK: tkgpu.private_load %[[ROWS]] at %[[SLOT]]
// CHECK: tkgpu.reduce
// CHECK: tkgpu.private_load %[[KEPT]]
// CHECK: tkgpu.store %[[ONE]]
// CHECK: %[[LATER:.*]] = arith.addi %[[R]], %[[AHEAD]]
// CHECK-NEXT: %[[IN:.*]] = arith.cmpi slt, %[[LATER]], %{{.*}}
// CHECK: tkgpu.copy_private %[[ROWS]] at %[[SLOT]], %{{.*}}[%[[LATER]], %{{.*}}] {{.*}} masks(%[[IN]])
// CHECK-NEXT: tkgpu.async_commit
// CHECK: scf.yield %{{.*}}, %[[NEXT]]
// CHECK-NEXT: }
// CHECK-NEXT: tkgpu.async_wait 0
module attributes {tkgpu.target = #target} {
  tkgpu.func @norm args ["x", "g", "s", "rows", "y", "t"] {
  ^bb0(%x: !tkgpu.buffer<bf16>, %g: !tkgpu.buffer<bf16>, %s: !tkgpu.buffer<f32>, %rows: index, %y: !tkgpu.buffer<bf16>, %t: !tkgpu.buffer<f32>):
    %c1 = arith.constant 1 : index
    %C = arith.constant 2048 : index
    %j = tkgpu.iota : tensor<2048xindex, #row>
    %w = tkgpu.load %g[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<2048xindex, #row>, index) -> tensor<2048xbf16, #row>
    %step = tkgpu.num_programs x
    %own = tkgpu.program_id x
    scf.for %r = %own to %rows step %step {
      %v = tkgpu.load %x[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<2048xindex, #row>, index, index) -> tensor<2048xbf16, #row>
      %one = tkgpu.load %s[%r] dims [array<i64>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, index, index) -> f32
      %m = tkgpu.reduce <max> %v axis 0 : tensor<2048xbf16, #row> -> bf16
      %mb = tkgpu.broadcast %m dims [] : bf16 -> tensor<2048xbf16, #row>
      %d = arith.subf %v, %mb : tensor<2048xbf16, #row>
      %o = arith.mulf %d, %w : tensor<2048xbf16, #row>
      tkgpu.store %o, %y[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<2048xbf16, #row>, !tkgpu.buffer<bf16>, index, tensor<2048xindex, #row>, index, index) -> ()
      tkgpu.store %one, %t[%r] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
    }
    tkgpu.return
  } {num_warps = 8 : i64, index_bits = 32 : i64}
}

// -----

#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
#row = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512], [1024]]>

// Copies leave zeros where a mask is false: what a load has there instead is selected after them.
// CHECK-LABEL: tkgpu.func @masked
// CHECK: %[[LOWEST:.*]] = arith.constant 0xFF80 : bf16
// CHECK: %[[IN:.*]] = arith.cmpi slt
// CHECK: tkgpu.copy_private {{.*}} masks(%[[IN]], %{{.*}}) over [array<i64: 0>, array<i64>]
// CHECK: scf.for
// CHECK: %[[READ:.*]] = tkgpu.private_load
// CHECK: %[[SPREAD:.*]] = tkgpu.broadcast %[[LOWEST]]
// CHECK: %[[ROW:.*]] = arith.select %[[IN]], %[[READ]], %[[SPREAD]]
// CHECK: tkgpu.reduce <max> %[[ROW]]
module attributes {tkgpu.target = #target} {
  tkgpu.func @masked args ["x", "columns", "rows", "y"] {
  ^bb0(%x: !tkgpu.buffer<bf16>, %columns: index, %rows: index, %y: !tkgpu.buffer<bf16>):
    %c1 = arith.constant 1 : index
    %C = arith.constant 2048 : index
    %lowest = arith.constant 0xFF80 : bf16
    %j = tkgpu.iota : tensor<2048xindex, #row>
    %end = tkgpu.broadcast %columns dims [] : index -> tensor<2048xindex, #row>
    %in = arith.cmpi slt, %j, %end : tensor<2048xindex, #row>
    %step = tkgpu.num_programs x
    %own = tkgpu.program_id x
    scf.for %r = %own to %rows step %step {
      %v = tkgpu.load %x[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] other(%lowest) {vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<2048xindex, #row>, index, index, tensor<2048xi1, #row>, bf16) -> tensor<2048xbf16, #row>
      %m = tkgpu.reduce <max> %v axis 0 : tensor<2048xbf16, #row> -> bf16
      tkgpu.store %m, %y[%r] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
    }
    tkgpu.return
  } {num_warps = 8 : i64, index_bits = 32 : i64}
}

// -----

#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
#row = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512], [1024]]>

// What one iteration stores in place of its argument another may not have read early; loops that
// reduce nothing, that do not begin with the block's number, or load narrow vectors, stay.
// CHECK-LABEL: tkgpu.func @in_place
// CHECK-NOT: alloc_private
module attributes {tkgpu.target = #target} {
  tkgpu.func @in_place args ["x", "rows"] {
  ^bb0(%x: !tkgpu.buffer<bf16>, %rows: index):
    %c1 = arith.constant 1 : index
    %C = arith.constant 2048 : index
    %j = tkgpu.iota : tensor<2048xindex, #row>
    %step = tkgpu.num_programs x
    %own = tkgpu.program_id x
    scf.for %r = %own to %rows step %step {
      %v = tkgpu.load %x[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<2048xindex, #row>, index, index) -> tensor<2048xbf16, #row>
      %m = tkgpu.reduce <max> %v axis 0 : tensor<2048xbf16, #row> -> bf16
      %mb = tkgpu.broadcast %m dims [] : bf16 -> tensor<2048xbf16, #row>
      tkgpu.store %mb, %x[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<2048xbf16, #row>, !tkgpu.buffer<bf16>, index, tensor<2048xindex, #row>, index, index) -> ()
    }
    tkgpu.return
  } {num_warps = 8 : i64, index_bits = 32 : i64, tkgpu.plan = #tkgpu.plan<in_place = true>}
  tkgpu.func @not_early args ["x", "rows", "s"] {
  ^bb0(%x: !tkgpu.buffer<bf16>, %rows: index, %s: !tkgpu.buffer<bf16>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %C = arith.constant 2048 : index
    %j = tkgpu.iota : tensor<2048xindex, #row>
    %step = tkgpu.num_programs x
    %own = tkgpu.program_id x
    scf.for %r = %own to %rows step %step {
      %v = tkgpu.load %x[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<2048xindex, #row>, index, index) -> tensor<2048xbf16, #row>
      tkgpu.store %v, %s[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<2048xbf16, #row>, !tkgpu.buffer<bf16>, index, tensor<2048xindex, #row>, index, index) -> ()
    }
    scf.for %r = %c0 to %rows step %c1 {
      %v = tkgpu.load %x[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<2048xindex, #row>, index, index) -> tensor<2048xbf16, #row>
      %m = tkgpu.reduce <max> %v axis 0 : tensor<2048xbf16, #row> -> bf16
      tkgpu.store %m, %s[%r] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
    }
    scf.for %r = %own to %rows step %step {
      %v = tkgpu.load %x[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<bf16>, index, tensor<2048xindex, #row>, index, index) -> tensor<2048xbf16, #row>
      %m = tkgpu.reduce <max> %v axis 0 : tensor<2048xbf16, #row> -> bf16
      tkgpu.store %m, %s[%r] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
    }
    tkgpu.return
  } {num_warps = 8 : i64, index_bits = 32 : i64}
}

// -----

#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
#row = #tkgpu.layout<register = [[1], [2], [4], [32768], [65536]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512], [1024], [2048], [4096], [8192], [16384]]>

// Of two tiles that do not change, one has no room beside two stages of a cluster's row: there is
// one stage.
// CHECK-LABEL: tkgpu.func @cluster
// CHECK: %[[KEPT:.*]] = tkgpu.alloc_private : <1 x tensor<131072xbf16
// CHECK: tkgpu.copy_private %[[KEPT]] at %{{.*}}, %arg1
// CHECK: %[[OTHER:.*]] = tkgpu.alloc_private : <1 x tensor<131072xbf16
// CHECK: tkgpu.copy_private %[[OTHER]] at %{{.*}}, %arg2
// CHECK: %[[ROWS:.*]] = tkgpu.alloc_private : <1 x tensor<131072xbf16
// CHECK: scf.for
// CHECK-NOT: tkgpu.load
// CHECK: tkgpu.private_load %[[ROWS]]
// CHECK: %[[G:.*]] = tkgpu.private_load %[[KEPT]]
// CHECK: arith.mulf %{{.*}}, %[[G]]
// CHECK: %[[B:.*]] = tkgpu.private_load %[[OTHER]]
// CHECK: arith.addf %{{.*}}, %[[B]]
module attributes {tkgpu.target = #target} {
  tkgpu.func @cluster args ["x", "g", "b", "rows", "y"] {
  ^bb0(%x: !tkgpu.buffer<bf16>, %g: !tkgpu.buffer<bf16>, %b: !tkgpu.buffer<bf16>, %rows: index, %y: !tkgpu.buffer<bf16>):
    %c1 = arith.constant 1 : index
    %C = arith.constant 131072 : index
    %j = tkgpu.iota : tensor<131072xindex, #row>
    %w = tkgpu.load %g[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<131072xindex, #row>, index) -> tensor<131072xbf16, #row>
    %a = tkgpu.load %b[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<131072xindex, #row>, index) -> tensor<131072xbf16, #row>
    %step = tkgpu.num_programs x
    %own = tkgpu.program_id x
    scf.for %r = %own to %rows step %step {
      %v = tkgpu.load %x[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<131072xindex, #row>, index, index) -> tensor<131072xbf16, #row>
      %m = tkgpu.reduce <max> %v axis 0 : tensor<131072xbf16, #row> -> bf16
      %mb = tkgpu.broadcast %m dims [] : bf16 -> tensor<131072xbf16, #row>
      %d = arith.subf %v, %mb : tensor<131072xbf16, #row>
      %p = arith.mulf %d, %w : tensor<131072xbf16, #row>
      %o = arith.addf %p, %a : tensor<131072xbf16, #row>
      tkgpu.store %o, %y[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<131072xbf16, #row>, !tkgpu.buffer<bf16>, index, tensor<131072xindex, #row>, index, index) -> ()
    }
    tkgpu.return
  } {num_warps = 128 : i64, cluster = 8 : i64, index_bits = 32 : i64}
}

// -----

#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
#row = #tkgpu.layout<register = [[1], [2], [4], [65536], [131072], [262144]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512], [1024], [2048], [4096], [8192], [16384], [32768]]>

// Of a cluster's row that leaves no room for another the next is brought where this one was; weights
// are read beside it.
// CHECK-LABEL: tkgpu.func @one_stage
// CHECK: %[[ROWS:.*]] = tkgpu.alloc_private : <1 x tensor<524288xbf16
// CHECK: tkgpu.copy_private %[[ROWS]]
// CHECK: scf.for
// CHECK: tkgpu.async_wait 0
// CHECK: tkgpu.private_load %[[ROWS]]
// CHECK: tkgpu.reduce
// CHECK: tkgpu.load %arg1
// CHECK: tkgpu.store
// CHECK: tkgpu.copy_private %[[ROWS]]
// CHECK: tkgpu.async_commit
module attributes {tkgpu.target = #target} {
  tkgpu.func @one_stage args ["x", "g", "rows", "y"] {
  ^bb0(%x: !tkgpu.buffer<bf16>, %g: !tkgpu.buffer<bf16>, %rows: index, %y: !tkgpu.buffer<bf16>):
    %c1 = arith.constant 1 : index
    %C = arith.constant 524288 : index
    %j = tkgpu.iota : tensor<524288xindex, #row>
    %step = tkgpu.num_programs x
    %own = tkgpu.program_id x
    scf.for %r = %own to %rows step %step {
      %v = tkgpu.load %x[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<524288xindex, #row>, index, index) -> tensor<524288xbf16, #row>
      %m = tkgpu.reduce <max> %v axis 0 : tensor<524288xbf16, #row> -> bf16
      %mb = tkgpu.broadcast %m dims [] : bf16 -> tensor<524288xbf16, #row>
      %d = arith.subf %v, %mb : tensor<524288xbf16, #row>
      %w = tkgpu.load %g[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<524288xindex, #row>, index) -> tensor<524288xbf16, #row>
      %o = arith.mulf %d, %w : tensor<524288xbf16, #row>
      tkgpu.store %o, %y[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<524288xbf16, #row>, !tkgpu.buffer<bf16>, index, tensor<524288xindex, #row>, index, index) -> ()
    }
    tkgpu.return
  } {num_warps = 256 : i64, cluster = 16 : i64, index_bits = 32 : i64}
}

// -----

#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
#rows = #tkgpu.layout<register = [[1], [2], [4]], lane = [[0], [0], [0], [8], [16]], warp = [[32], [64], [128]]>
#columns = #tkgpu.layout<register = [[1], [2]], lane = [[4], [8], [16], [0], [0]], warp = [[0], [0], [0]]>
#tile = #tkgpu.layout<register = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], lane = [[0, 4], [0, 8], [0, 16], [8, 0], [16, 0]], warp = [[32, 0], [64, 0], [128, 0]]>

// The next rows of a scan down columns come, too: as many as half of a multiprocessor has room for.
// CHECK-LABEL: tkgpu.func @down
// CHECK: %[[ROWS:.*]] = tkgpu.alloc_private : <3 x tensor<256x32xf32, {{.*}}>, vector = 4>
// CHECK-COUNT-3: tkgpu.copy_private %[[ROWS]]
// CHECK: scf.for %[[R:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[SLOT:.*]] = %{{.*}})
// CHECK-NEXT: tkgpu.async_wait 2
// CHECK: %[[X:.*]] = tkgpu.private_load %[[ROWS]] at %[[SLOT]]
// CHECK: tkgpu.scan <sum> %[[X]]
// CHECK: tkgpu.store
// CHECK: tkgpu.copy_private %[[ROWS]] at %[[SLOT]]
// CHECK: scf.yield
// CHECK: tkgpu.async_wait 0
module attributes {tkgpu.target = #target} {
  tkgpu.func @down args ["x", "R", "y"] {
  ^bb0(%x: !tkgpu.buffer<f32>, %R: index, %y: !tkgpu.buffer<f32>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    %C = arith.constant 4096 : index
    %zero = arith.constant dense<0.0> : tensor<32xf32, #columns>
    %j = tkgpu.iota : tensor<32xindex, #columns>
    %end = scf.for %r = %c0 to %R step %c256 iter_args(%sum = %zero) -> (tensor<32xf32, #columns>) {
      %k = tkgpu.iota : tensor<256xindex, #rows>
      %s = tkgpu.broadcast %r dims [] : index -> tensor<256xindex, #rows>
      %i = arith.addi %s, %k : tensor<256xindex, #rows>
      %v = tkgpu.load %x[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%C, %c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<256xindex, #rows>, tensor<32xindex, #columns>, index, index) -> tensor<256x32xf32, #tile>
      %p, %t = tkgpu.scan <sum> %v axis 0 : tensor<256x32xf32, #tile> -> tensor<32xf32, #columns>
      %b = tkgpu.broadcast %sum dims [1] : tensor<32xf32, #columns> -> tensor<256x32xf32, #tile>
      %o = arith.addf %b, %p : tensor<256x32xf32, #tile>
      tkgpu.store %o, %y[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%C, %c1) masks() over [] {vector = 4 : i64} : (tensor<256x32xf32, #tile>, !tkgpu.buffer<f32>, tensor<256xindex, #rows>, tensor<32xindex, #columns>, index, index) -> ()
      %n = arith.addf %sum, %t : tensor<32xf32, #columns>
      scf.yield %n : tensor<32xf32, #columns>
    }
    tkgpu.return
  } {num_warps = 8 : i64, index_bits = 32 : i64}
}

// -----

#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
#row = #tkgpu.layout<register = [[1], [2], [4], [65536], [131072], [262144]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512], [1024], [2048], [4096], [8192], [16384], [32768]]>

// A block that has a multiprocessor to itself has registers for both, packed. Of three stages that
// find room one is enough: it has 64 KB.
// CHECK-LABEL: tkgpu.func @packed
// CHECK: tkgpu.alloc_private : <1 x tensor<524288xbf16
// CHECK: %[[G:.*]] = tkgpu.load %arg1
// CHECK: %[[B:.*]] = tkgpu.load %arg2
// CHECK: scf.for
// CHECK-NOT: tkgpu.load
// CHECK: %[[HELD_G:.*]] = tkgpu.hold %[[G]]
// CHECK: arith.mulf %{{.*}}, %[[HELD_G]]
// CHECK: %[[HELD_B:.*]] = tkgpu.hold %[[B]]
// CHECK: arith.addf %{{.*}}, %[[HELD_B]]
module attributes {tkgpu.target = #target} {
  tkgpu.func @packed args ["x", "g", "b", "rows", "y"] {
  ^bb0(%x: !tkgpu.buffer<bf16>, %g: !tkgpu.buffer<bf16>, %b: !tkgpu.buffer<bf16>, %rows: index, %y: !tkgpu.buffer<bf16>):
    %c1 = arith.constant 1 : index
    %C = arith.constant 524288 : index
    %j = tkgpu.iota : tensor<524288xindex, #row>
    %w = tkgpu.load %g[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<524288xindex, #row>, index) -> tensor<524288xbf16, #row>
    %a = tkgpu.load %b[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<524288xindex, #row>, index) -> tensor<524288xbf16, #row>
    %step = tkgpu.num_programs x
    %own = tkgpu.program_id x
    scf.for %r = %own to %rows step %step {
      %v = tkgpu.load %x[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<524288xindex, #row>, index, index) -> tensor<524288xbf16, #row>
      %m = tkgpu.reduce <max> %v axis 0 : tensor<524288xbf16, #row> -> bf16
      %mb = tkgpu.broadcast %m dims [] : bf16 -> tensor<524288xbf16, #row>
      %d = arith.subf %v, %mb : tensor<524288xbf16, #row>
      %p = arith.mulf %d, %w : tensor<524288xbf16, #row>
      %o = arith.addf %p, %a : tensor<524288xbf16, #row>
      tkgpu.store %o, %y[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<524288xbf16, #row>, !tkgpu.buffer<bf16>, index, tensor<524288xindex, #row>, index, index) -> ()
    }
    tkgpu.return
  } {num_warps = 256 : i64, cluster = 16 : i64, index_bits = 32 : i64,
     tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [1, 524288], reduce = [524288], warps = 256, per_thread = 64, persistent = 1, cluster = 16>>}
}

// -----

#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
#tile = #tkgpu.layout<register = [[1, 0], [2, 0], [4, 0]], lane = [[8, 0], [16, 0], [32, 0], [0, 1], [0, 2]], warp = [[0, 4], [0, 8]]>
#columns = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
#rows = #tkgpu.layout<register = [], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#wide_tile = #tkgpu.layout<register = [[1, 0], [2, 0], [128, 0], [0, 4], [0, 8]], lane = [[4, 0], [8, 0], [16, 0], [32, 0], [64, 0]], warp = [[0, 1], [0, 2]]>
#wide_columns = #tkgpu.layout<register = [[1], [2], [128]], lane = [[4], [8], [16], [32], [64]], warp = [[0], [0]]>
#wide_rows = #tkgpu.layout<register = [[4], [8]], lane = [[0], [0], [0], [0], [0]], warp = [[1], [2]]>

// Two sums of what is read, distances from a sample and their squares: the copies of two iterations
// begin before the threads meet for the sample, and take each other's places.
// CHECK-LABEL: tkgpu.func @squares
// CHECK: tkgpu.alloc_private : <2 x tensor<64x16xbf16
// CHECK: tkgpu.alloc_private : <2 x tensor<64x16xbf16
// CHECK: tkgpu.alloc_private : <2 x tensor<64x16xbf16
// CHECK: tkgpu.alloc_private : <2 x tensor<64x16xbf16
// CHECK-COUNT-4: tkgpu.copy_private
// CHECK: tkgpu.async_commit
// CHECK-COUNT-4: tkgpu.copy_private
// CHECK: tkgpu.async_commit
// CHECK: tkgpu.reduce <sum>
// CHECK: scf.for
// CHECK-NEXT: tkgpu.async_wait 1
// CHECK-NOT: tkgpu.load
// CHECK-COUNT-4: tkgpu.private_load
// CHECK-COUNT-4: tkgpu.copy_private
// CHECK: tkgpu.async_commit
// CHECK: scf.yield
// CHECK: tkgpu.async_wait 0

// One sum alone is as fast without; a sample of fewer iterations than there are stages ends before.
// CHECK-LABEL: tkgpu.func @sums
// CHECK-NOT: tkgpu.copy_private
// CHECK: tkgpu.return
module attributes {tkgpu.target = #target} {
  tkgpu.func @squares args ["x", "R", "y", "z"] {
  ^bb0(%x: !tkgpu.buffer<bf16>, %R: index, %y: !tkgpu.buffer<f32>, %z: !tkgpu.buffer<f32>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c48 = arith.constant 48 : index
    %c64 = arith.constant 64 : index
    %C = arith.constant 4096 : index
    %zero = arith.constant dense<0.0> : tensor<64x16xf32, #tile>
    %j = tkgpu.iota : tensor<64xindex, #columns>
    %i = tkgpu.iota : tensor<16xindex, #rows>
    %first = tkgpu.load %x[%i, %j] dims [array<i64: 1>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<16xindex, #rows>, tensor<64xindex, #columns>, index, index) -> tensor<64x16xbf16, #tile>
    %wide = arith.extf %first : tensor<64x16xbf16, #tile> to tensor<64x16xf32, #tile>
    %sample = tkgpu.reduce <sum> %wide axis 1 : tensor<64x16xf32, #tile> -> tensor<64xf32, #columns>
    %s = tkgpu.broadcast %sample dims [0] : tensor<64xf32, #columns> -> tensor<64x16xf32, #tile>
    %sums:2 = scf.for %r = %c0 to %R step %c64 iter_args(%a = %zero, %b = %zero) -> (tensor<64x16xf32, #tile>, tensor<64x16xf32, #tile>) {
      %r0 = tkgpu.broadcast %r dims [] : index -> tensor<16xindex, #rows>
      %i0 = arith.addi %r0, %i : tensor<16xindex, #rows>
      %v0 = tkgpu.load %x[%i0, %j] dims [array<i64: 1>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<16xindex, #rows>, tensor<64xindex, #columns>, index, index) -> tensor<64x16xbf16, #tile>
      %n1 = arith.addi %r, %c16 : index
      %r1 = tkgpu.broadcast %n1 dims [] : index -> tensor<16xindex, #rows>
      %i1 = arith.addi %r1, %i : tensor<16xindex, #rows>
      %v1 = tkgpu.load %x[%i1, %j] dims [array<i64: 1>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<16xindex, #rows>, tensor<64xindex, #columns>, index, index) -> tensor<64x16xbf16, #tile>
      %n2 = arith.addi %r, %c32 : index
      %r2 = tkgpu.broadcast %n2 dims [] : index -> tensor<16xindex, #rows>
      %i2 = arith.addi %r2, %i : tensor<16xindex, #rows>
      %v2 = tkgpu.load %x[%i2, %j] dims [array<i64: 1>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<16xindex, #rows>, tensor<64xindex, #columns>, index, index) -> tensor<64x16xbf16, #tile>
      %n3 = arith.addi %r, %c48 : index
      %r3 = tkgpu.broadcast %n3 dims [] : index -> tensor<16xindex, #rows>
      %i3 = arith.addi %r3, %i : tensor<16xindex, #rows>
      %v3 = tkgpu.load %x[%i3, %j] dims [array<i64: 1>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<16xindex, #rows>, tensor<64xindex, #columns>, index, index) -> tensor<64x16xbf16, #tile>
      %t01 = arith.addf %v0, %v1 : tensor<64x16xbf16, #tile>
      %t23 = arith.addf %v2, %v3 : tensor<64x16xbf16, #tile>
      %t = arith.addf %t01, %t23 : tensor<64x16xbf16, #tile>
      %w = arith.extf %t : tensor<64x16xbf16, #tile> to tensor<64x16xf32, #tile>
      %d = arith.subf %w, %s : tensor<64x16xf32, #tile>
      %q = arith.mulf %d, %d : tensor<64x16xf32, #tile>
      %na = arith.addf %a, %d : tensor<64x16xf32, #tile>
      %nb = arith.addf %b, %q : tensor<64x16xf32, #tile>
      scf.yield %na, %nb : tensor<64x16xf32, #tile>, tensor<64x16xf32, #tile>
    }
    %ra = tkgpu.reduce <sum> %sums#0 axis 1 : tensor<64x16xf32, #tile> -> tensor<64xf32, #columns>
    %rb = tkgpu.reduce <sum> %sums#1 axis 1 : tensor<64x16xf32, #tile> -> tensor<64xf32, #columns>
    tkgpu.store %ra, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<64xf32, #columns>, !tkgpu.buffer<f32>, tensor<64xindex, #columns>, index) -> ()
    tkgpu.store %rb, %z[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<64xf32, #columns>, !tkgpu.buffer<f32>, tensor<64xindex, #columns>, index) -> ()
    tkgpu.return
  } {num_warps = 4 : i64, index_bits = 32 : i64}

  tkgpu.func @sums args ["x", "R", "y", "z"] {
  ^bb0(%x: !tkgpu.buffer<f32>, %R: index, %y: !tkgpu.buffer<f32>, %z: !tkgpu.buffer<f32>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %C = arith.constant 4096 : index
    %zero = arith.constant dense<0.0> : tensor<256x16xf32, #wide_tile>
    %j = tkgpu.iota : tensor<256xindex, #wide_columns>
    %i = tkgpu.iota : tensor<16xindex, #wide_rows>
    %sum = scf.for %r = %c0 to %R step %c16 iter_args(%a = %zero) -> (tensor<256x16xf32, #wide_tile>) {
      %r0 = tkgpu.broadcast %r dims [] : index -> tensor<16xindex, #wide_rows>
      %i0 = arith.addi %r0, %i : tensor<16xindex, #wide_rows>
      %v = tkgpu.load %x[%i0, %j] dims [array<i64: 1>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<16xindex, #wide_rows>, tensor<256xindex, #wide_columns>, index, index) -> tensor<256x16xf32, #wide_tile>
      %na = arith.addf %a, %v : tensor<256x16xf32, #wide_tile>
      scf.yield %na : tensor<256x16xf32, #wide_tile>
    }
    %end = arith.minsi %c32, %R : index
    %pair:2 = scf.for %r = %c0 to %end step %c16 iter_args(%a = %sum, %b = %zero) -> (tensor<256x16xf32, #wide_tile>, tensor<256x16xf32, #wide_tile>) {
      %r0 = tkgpu.broadcast %r dims [] : index -> tensor<16xindex, #wide_rows>
      %i0 = arith.addi %r0, %i : tensor<16xindex, #wide_rows>
      %v = tkgpu.load %x[%i0, %j] dims [array<i64: 1>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<16xindex, #wide_rows>, tensor<256xindex, #wide_columns>, index, index) -> tensor<256x16xf32, #wide_tile>
      %na = arith.addf %a, %v : tensor<256x16xf32, #wide_tile>
      %nb = arith.addf %b, %na : tensor<256x16xf32, #wide_tile>
      scf.yield %na, %nb : tensor<256x16xf32, #wide_tile>, tensor<256x16xf32, #wide_tile>
    }
    %ra = tkgpu.reduce <sum> %pair#0 axis 1 : tensor<256x16xf32, #wide_tile> -> tensor<256xf32, #wide_columns>
    %rb = tkgpu.reduce <sum> %pair#1 axis 1 : tensor<256x16xf32, #wide_tile> -> tensor<256xf32, #wide_columns>
    tkgpu.store %ra, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<256xf32, #wide_columns>, !tkgpu.buffer<f32>, tensor<256xindex, #wide_columns>, index) -> ()
    tkgpu.store %rb, %z[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<256xf32, #wide_columns>, !tkgpu.buffer<f32>, tensor<256xindex, #wide_columns>, index) -> ()
    tkgpu.return
  } {num_warps = 4 : i64, index_bits = 32 : i64}
}
