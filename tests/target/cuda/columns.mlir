// RUN: tk-emit-cuda %s | FileCheck %s
// Several columns of a thread, which lanes and warps share, are exchanged at once; of a single one, and
// where lanes have columns of their own, there is nothing to divide.

#wide = #tkgpu.layout<register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#wide_row = #tkgpu.layout<register = [], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#wide_column = #tkgpu.layout<register = [[1], [2]], lane = [[4], [8], [16], [0], [0]], warp = [[0], [0]]>
#one = #tkgpu.layout<register = [], lane = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#one_row = #tkgpu.layout<register = [], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#one_column = #tkgpu.layout<register = [], lane = [[1], [2], [4], [0], [0]], warp = [[0], [0]]>
#own = #tkgpu.layout<register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], warp = [[1, 0], [2, 0]]>
#own_row = #tkgpu.layout<register = [], lane = [[0], [0], [0], [0], [0]], warp = [[1], [2]]>
#own_column = #tkgpu.layout<register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [[0], [0]]>

// CHECK-LABEL: columns(
// CHECK: tk::reduce_threads<tk::Sum, 24, 3, 4>(
// CHECK: tk::reduce_lanes<tk::Maximum, 24>(
// CHECK: tk::reduce_warps<tk::Maximum, 3, 4>(
// CHECK-NOT: reduce_lanes
// CHECK: tk::reduce_warps<tk::Minimum, 3, 4>(
tkgpu.func @columns args ["x", "y", "n"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %n: index):
  %c1 = arith.constant 1 : index
  %wider = tkgpu.iota : tensor<16xindex, #wide_row>
  %widec = tkgpu.iota : tensor<32xindex, #wide_column>
  %widev = tkgpu.load %x[%wider, %widec] dims [array<i64: 0>, array<i64: 1>] strides(%n, %c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<16xindex, #wide_row>, tensor<32xindex, #wide_column>, index, index) -> tensor<16x32xf32, #wide>
  %wides = tkgpu.reduce <sum> %widev axis 0 : tensor<16x32xf32, #wide> -> tensor<32xf32, #wide_column>
  tkgpu.store %wides, %y[%widec] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<32xf32, #wide_column>, !tkgpu.buffer<f32>, tensor<32xindex, #wide_column>, index) -> ()
  %oner = tkgpu.iota : tensor<16xindex, #one_row>
  %onec = tkgpu.iota : tensor<8xindex, #one_column>
  %onev = tkgpu.load %x[%oner, %onec] dims [array<i64: 0>, array<i64: 1>] strides(%n, %c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<16xindex, #one_row>, tensor<8xindex, #one_column>, index, index) -> tensor<16x8xf32, #one>
  %ones = tkgpu.reduce <max> %onev axis 0 : tensor<16x8xf32, #one> -> tensor<8xf32, #one_column>
  tkgpu.store %ones, %y[%onec] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<8xf32, #one_column>, !tkgpu.buffer<f32>, tensor<8xindex, #one_column>, index) -> ()
  %ownr = tkgpu.iota : tensor<4xindex, #own_row>
  %ownc = tkgpu.iota : tensor<64xindex, #own_column>
  %ownv = tkgpu.load %x[%ownr, %ownc] dims [array<i64: 0>, array<i64: 1>] strides(%n, %c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<4xindex, #own_row>, tensor<64xindex, #own_column>, index, index) -> tensor<4x64xf32, #own>
  %owns = tkgpu.reduce <min> %ownv axis 0 : tensor<4x64xf32, #own> -> tensor<64xf32, #own_column>
  tkgpu.store %owns, %y[%ownc] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<64xf32, #own_column>, !tkgpu.buffer<f32>, tensor<64xindex, #own_column>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64}
