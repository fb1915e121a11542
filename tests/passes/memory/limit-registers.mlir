// RUN: tk-opt %s --tk-limit-registers | FileCheck %s

// A thread has 32 elements of 16 bits across the reduction: six blocks of four warps load while
// others reduce. Where two loads and a funnel give a tile, eight have enough to do.
#row = #tkgpu.layout<register = [[1], [2], [4], [1024], [2048]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512]]>

// CHECK-LABEL: tkgpu.func @plain
// CHECK: min_blocks = 6
tkgpu.func @plain args ["x", "g", "y", "s"] {
^bb0(%x: !tkgpu.buffer<bf16>, %g: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %s: index):
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<4096xindex, #row>
  %a = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<4096xindex, #row>, index) -> tensor<4096xbf16, #row>
  %m = tkgpu.reduce <max> %a axis 0 : tensor<4096xbf16, #row> -> bf16
  %ms = tkgpu.broadcast %m dims [] : bf16 -> tensor<4096xbf16, #row>
  %h = tkgpu.load %g[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<4096xindex, #row>, index) -> tensor<4096xbf16, #row>
  %b = tkgpu.load %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<4096xindex, #row>, index) -> tensor<4096xbf16, #row>
  %w = arith.mulf %b, %h : tensor<4096xbf16, #row>
  %d = arith.subf %a, %ms : tensor<4096xbf16, #row>
  %o = arith.mulf %d, %w : tensor<4096xbf16, #row>
  tkgpu.store %o, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (tensor<4096xbf16, #row>, !tkgpu.buffer<bf16>, tensor<4096xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// CHECK-LABEL: tkgpu.func @funnelled
// CHECK: min_blocks = 8
tkgpu.func @funnelled args ["x", "g", "y", "s"] {
^bb0(%x: !tkgpu.buffer<bf16>, %g: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %s: index):
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<4096xindex, #row>
  %a = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<4096xindex, #row>, index) -> tensor<4096xbf16, #row>
  %m = tkgpu.reduce <max> %a axis 0 : tensor<4096xbf16, #row> -> bf16
  %ms = tkgpu.broadcast %m dims [] : bf16 -> tensor<4096xbf16, #row>
  %h = tkgpu.load %g[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<4096xindex, #row>, index) -> tensor<4096xbf16, #row>
  %b = tkgpu.load %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<4096xindex, #row>, index) -> tensor<4096xbf16, #row>
  %w = tkgpu.funnel %b, %h by %s in 8 : tensor<4096xbf16, #row>
  %d = arith.subf %a, %ms : tensor<4096xbf16, #row>
  %o = arith.mulf %d, %w : tensor<4096xbf16, #row>
  tkgpu.store %o, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (tensor<4096xbf16, #row>, !tkgpu.buffer<bf16>, tensor<4096xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}
