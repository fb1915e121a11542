// RUN: tk-opt %s --tk-limit-registers | FileCheck %s

#row = #tkgpu.layout<register = [[1], [2], [4], [2048], [4096], [8192]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512], [1024]]>

// A loop that carries 64 elements and loads as many has registers for both: 64 + 32, and 32 to compute with.
// CHECK-LABEL: tkgpu.func @summed
// CHECK: min_blocks = 2 : i64
tkgpu.func @summed args ["x", "y", "n"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<f32>, %n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<16384xindex, #row>
  %zero = arith.constant dense<0.0> : tensor<16384xf32, #row>
  %sums = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<16384xf32, #row>) {
    %v = tkgpu.load %x[%i, %j] dims [array<i64>, array<i64: 0>] strides(%n, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<16384xindex, #row>, index, index) -> tensor<16384xbf16, #row>
    %f = arith.extf %v : tensor<16384xbf16, #row> to tensor<16384xf32, #row>
    %next = arith.addf %sum, %f : tensor<16384xf32, #row>
    scf.yield %next : tensor<16384xf32, #row>
  }
  %s = tkgpu.reduce <sum> %sums axis 0 : tensor<16384xf32, #row> -> f32
  tkgpu.store %s, %y[%c0] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
  tkgpu.return
} {num_warps = 8 : i64, index_bits = 32 : i64}

// Elements among which a place is looked for are still needed when the extremum is known.
// CHECK-LABEL: tkgpu.func @place
// CHECK: min_blocks = 3 : i64
tkgpu.func @place args ["x", "y"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<i32>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<16384xindex, #row>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<16384xindex, #row>, index) -> tensor<16384xbf16, #row>
  %f = arith.extf %v : tensor<16384xbf16, #row> to tensor<16384xf32, #row>
  %number = arith.index_cast %j : tensor<16384xindex, #row> to tensor<16384xi32, #row>
  %best, %where = tkgpu.arg_reduce <argmax> %f, %number axis 0 : tensor<16384xf32, #row>, tensor<16384xi32, #row> -> f32, i32
  tkgpu.store %where, %y[%c0] dims [array<i64>] strides(%c1) masks() over [] : (i32, !tkgpu.buffer<i32>, index, index) -> ()
  tkgpu.return
} {num_warps = 8 : i64, index_bits = 32 : i64}

// What is loaded before a loop and used in it has registers while the loop reduces.
// CHECK-LABEL: tkgpu.func @weights
// CHECK: min_blocks = 2 : i64
tkgpu.func @weights args ["x", "w", "b", "y", "n"] {
^bb0(%x: !tkgpu.buffer<bf16>, %w: !tkgpu.buffer<bf16>, %b: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<16384xindex, #row>
  %g = tkgpu.load %w[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<16384xindex, #row>, index) -> tensor<16384xbf16, #row>
  %h = tkgpu.load %b[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<16384xindex, #row>, index) -> tensor<16384xbf16, #row>
  scf.for %i = %c0 to %n step %c1 {
    %v = tkgpu.load %x[%i, %j] dims [array<i64>, array<i64: 0>] strides(%n, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<16384xindex, #row>, index, index) -> tensor<16384xbf16, #row>
    %m = tkgpu.reduce <max> %v axis 0 : tensor<16384xbf16, #row> -> bf16
    %ms = tkgpu.broadcast %m dims [] : bf16 -> tensor<16384xbf16, #row>
    %p = arith.mulf %ms, %g : tensor<16384xbf16, #row>
    %o = arith.addf %p, %h : tensor<16384xbf16, #row>
    tkgpu.store %o, %y[%i, %j] dims [array<i64>, array<i64: 0>] strides(%n, %c1) masks() over [] {vector = 8 : i64} : (tensor<16384xbf16, #row>, !tkgpu.buffer<bf16>, index, tensor<16384xindex, #row>, index, index) -> ()
  }
  tkgpu.return
} {num_warps = 8 : i64, index_bits = 32 : i64}
