// RUN: tk-opt %s --tk-keep-rows | FileCheck %s
// A row takes half of the shared memory that there is.
#target = #tkgpu.target<arch = 90, shared = 32768, processors = 132, hopper = true>
#row = #tkgpu.layout<register = [[1], [2], [4], [1024], [2048], [4096]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512]]>
module attributes {tkgpu.target = #target} {

// CHECK-LABEL: tkgpu.func @two
// CHECK-COUNT-2: tkgpu.alloc_private
tkgpu.func @two args ["x", "y", "z"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %z: !tkgpu.buffer<bf16>):
  %c1 = arith.constant 1 : index
  %r = tkgpu.program_id x
  %j = tkgpu.iota : tensor<8192xindex, #row>
  %a = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<8192xindex, #row>, index) -> tensor<8192xbf16, #row>
  %b = tkgpu.load %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<8192xindex, #row>, index) -> tensor<8192xbf16, #row>
  %ab = arith.addf %a, %b : tensor<8192xbf16, #row>
  %m = tkgpu.reduce <max> %ab axis 0 : tensor<8192xbf16, #row> -> bf16
  tkgpu.store %m, %z[%r] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// Three do not fit: none is kept.
// CHECK-LABEL: tkgpu.func @three
// CHECK-NOT: tkgpu.alloc_private
tkgpu.func @three args ["x", "y", "w", "z"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %w: !tkgpu.buffer<bf16>, %z: !tkgpu.buffer<bf16>):
  %c1 = arith.constant 1 : index
  %r = tkgpu.program_id x
  %j = tkgpu.iota : tensor<8192xindex, #row>
  %a = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<8192xindex, #row>, index) -> tensor<8192xbf16, #row>
  %b = tkgpu.load %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<8192xindex, #row>, index) -> tensor<8192xbf16, #row>
  %c = tkgpu.load %w[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<8192xindex, #row>, index) -> tensor<8192xbf16, #row>
  %ab = arith.addf %a, %b : tensor<8192xbf16, #row>
  %abc = arith.addf %ab, %c : tensor<8192xbf16, #row>
  %m = tkgpu.reduce <max> %abc axis 0 : tensor<8192xbf16, #row> -> bf16
  tkgpu.store %m, %z[%r] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}
}
