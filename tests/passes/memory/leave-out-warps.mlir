// RUN: tk-opt %s --tk-leave-out-warps | FileCheck %s

#rows = #tkgpu.layout<register = [[8]], lane = [[0], [0], [1], [2], [4]], warp = [[16], [32], [64], [128]]>
#others = #tkgpu.layout<register = [], lane = [[1], [2], [4], [8], [16]], warp = [[128], [64], [32], [0]]>
#schedule = #tkgpu.schedule<tile = [256], reduce = [], step = [192], warps = 16>

// Rows from 192 on are those of the last four warps, which store nothing: they are left out.
// CHECK-LABEL: tkgpu.func @rows
// CHECK: tkgpu.store %{{.*}} masks(%[[LIMIT:[^ ,]*]]) over
// CHECK: spare_warps = 4
tkgpu.func @rows args ["n", "o"] {
^bb0(%n: index, %o: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %c192 = arith.constant 192 : index
  %id = tkgpu.program_id x
  %start = arith.muli %id, %c192 : index
  %place = tkgpu.iota : tensor<256xindex, #rows>
  %end = tkgpu.broadcast %c192 dims [] : index -> tensor<256xindex, #rows>
  %own = arith.cmpi slt, %place, %end : tensor<256xindex, #rows>
  %from = tkgpu.broadcast %start dims [] : index -> tensor<256xindex, #rows>
  %row = arith.addi %from, %place : tensor<256xindex, #rows>
  %extent = tkgpu.broadcast %n dims [] : index -> tensor<256xindex, #rows>
  %inside = arith.cmpi slt, %row, %extent : tensor<256xindex, #rows>
  %v = arith.constant dense<1.0> : tensor<256xf32, #rows>
  tkgpu.store %v, %o[%row] dims [array<i64: 0>] strides(%c1) masks(%inside, %own) over [array<i64: 0>, array<i64: 0>] : (tensor<256xf32, #rows>, !tkgpu.buffer<f32>, tensor<256xindex, #rows>, index, tensor<256xi1, #rows>, tensor<256xi1, #rows>) -> ()
  tkgpu.return
} {num_warps = 16 : i64, tkgpu.plan = #tkgpu.plan<tiles = #schedule>}

// Warps that have other rows all run.
// CHECK-LABEL: tkgpu.func @others
// CHECK: tkgpu.store %{{.*}} masks(%{{.*}}) over
// CHECK-NOT: spare_warps
tkgpu.func @others args ["o"] {
^bb0(%o: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %c192 = arith.constant 192 : index
  %place = tkgpu.iota : tensor<256xindex, #others>
  %end = tkgpu.broadcast %c192 dims [] : index -> tensor<256xindex, #others>
  %own = arith.cmpi slt, %place, %end : tensor<256xindex, #others>
  %v = arith.constant dense<1.0> : tensor<256xf32, #others>
  tkgpu.store %v, %o[%place] dims [array<i64: 0>] strides(%c1) masks(%own) over [array<i64: 0>] : (tensor<256xf32, #others>, !tkgpu.buffer<f32>, tensor<256xindex, #others>, index, tensor<256xi1, #others>) -> ()
  tkgpu.return
} {num_warps = 16 : i64, tkgpu.plan = #tkgpu.plan<tiles = #schedule>}

// As they do where values pass from warp to warp.
// CHECK-LABEL: tkgpu.func @meets
// CHECK: tkgpu.store %{{.*}} masks(%{{.*}}) over
// CHECK-NOT: spare_warps
tkgpu.func @meets args ["o"] {
^bb0(%o: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %c192 = arith.constant 192 : index
  %place = tkgpu.iota : tensor<256xindex, #rows>
  %end = tkgpu.broadcast %c192 dims [] : index -> tensor<256xindex, #rows>
  %own = arith.cmpi slt, %place, %end : tensor<256xindex, #rows>
  %other = arith.constant dense<1.0> : tensor<256xf32, #others>
  %v = tkgpu.convert_layout %other : tensor<256xf32, #others> -> tensor<256xf32, #rows>
  tkgpu.store %v, %o[%place] dims [array<i64: 0>] strides(%c1) masks(%own) over [array<i64: 0>] : (tensor<256xf32, #rows>, !tkgpu.buffer<f32>, tensor<256xindex, #rows>, index, tensor<256xi1, #rows>) -> ()
  tkgpu.return
} {num_warps = 16 : i64, tkgpu.plan = #tkgpu.plan<tiles = #schedule>}

// A bound of other rows is none of theirs, be it below or above.
// CHECK-LABEL: tkgpu.func @fewer
// CHECK: tkgpu.store %{{.*}} masks(%{{.*}}) over
// CHECK-NOT: spare_warps
tkgpu.func @fewer args ["o"] {
^bb0(%o: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %place = tkgpu.iota : tensor<256xindex, #rows>
  %end = tkgpu.broadcast %c100 dims [] : index -> tensor<256xindex, #rows>
  %own = arith.cmpi slt, %place, %end : tensor<256xindex, #rows>
  %v = arith.constant dense<1.0> : tensor<256xf32, #rows>
  tkgpu.store %v, %o[%place] dims [array<i64: 0>] strides(%c1) masks(%own) over [array<i64: 0>] : (tensor<256xf32, #rows>, !tkgpu.buffer<f32>, tensor<256xindex, #rows>, index, tensor<256xi1, #rows>) -> ()
  tkgpu.return
} {num_warps = 16 : i64, tkgpu.plan = #tkgpu.plan<tiles = #schedule>}
// CHECK-LABEL: tkgpu.func @more
// CHECK: tkgpu.store %{{.*}} masks(%{{.*}}) over
// CHECK-NOT: spare_warps
tkgpu.func @more args ["o"] {
^bb0(%o: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %c200 = arith.constant 200 : index
  %place = tkgpu.iota : tensor<256xindex, #rows>
  %end = tkgpu.broadcast %c200 dims [] : index -> tensor<256xindex, #rows>
  %own = arith.cmpi slt, %place, %end : tensor<256xindex, #rows>
  %v = arith.constant dense<1.0> : tensor<256xf32, #rows>
  tkgpu.store %v, %o[%place] dims [array<i64: 0>] strides(%c1) masks(%own) over [array<i64: 0>] : (tensor<256xf32, #rows>, !tkgpu.buffer<f32>, tensor<256xindex, #rows>, index, tensor<256xi1, #rows>) -> ()
  tkgpu.return
} {num_warps = 16 : i64, tkgpu.plan = #tkgpu.plan<tiles = #schedule>}

// Where one of several stores has rows of theirs they run, and all masks stay.
// CHECK-LABEL: tkgpu.func @all_rows
// CHECK: tkgpu.store %{{.*}} masks(%{{.*}}) over
// CHECK: tkgpu.store %{{.*}} masks() over
// CHECK-NOT: spare_warps
tkgpu.func @all_rows args ["o", "p"] {
^bb0(%o: !tkgpu.buffer<f32>, %p: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %c192 = arith.constant 192 : index
  %place = tkgpu.iota : tensor<256xindex, #rows>
  %end = tkgpu.broadcast %c192 dims [] : index -> tensor<256xindex, #rows>
  %own = arith.cmpi slt, %place, %end : tensor<256xindex, #rows>
  %v = arith.constant dense<1.0> : tensor<256xf32, #rows>
  tkgpu.store %v, %o[%place] dims [array<i64: 0>] strides(%c1) masks(%own) over [array<i64: 0>] : (tensor<256xf32, #rows>, !tkgpu.buffer<f32>, tensor<256xindex, #rows>, index, tensor<256xi1, #rows>) -> ()
  tkgpu.store %v, %p[%place] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<256xf32, #rows>, !tkgpu.buffer<f32>, tensor<256xindex, #rows>, index) -> ()
  tkgpu.return
} {num_warps = 16 : i64, tkgpu.plan = #tkgpu.plan<tiles = #schedule>}
