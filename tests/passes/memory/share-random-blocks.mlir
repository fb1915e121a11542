// RUN: tk-opt %s --tk-share-random-blocks | FileCheck %s

#four = #tkgpu.layout<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = []>
#two = #tkgpu.layout<register = [[1], [64]], lane = [[2], [4], [8], [16], [32]], warp = []>
#apart = #tkgpu.layout<register = [[32], [64]], lane = [[1], [2], [4], [8], [16]], warp = []>

// A multiple of 8 plus the places of a thread's four neighbours: one block.
// CHECK-LABEL: tkgpu.func @aligned
// CHECK: tk.rand {{.*}} {tkgpu.random = #tkgpu.random<neighbours = 4>}
tkgpu.func @aligned args ["y", "seed", "n"] {
^bb0(%y: !tkgpu.buffer<f32>, %seed: i64, %n: index):
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %row = arith.muli %n, %c8 : index
  %i = tkgpu.iota : tensor<128xindex, #four>
  %begin = tkgpu.broadcast %row dims [] : index -> tensor<128xindex, #four>
  %at = arith.addi %begin, %i : tensor<128xindex, #four>
  %wide = arith.index_cast %at : tensor<128xindex, #four> to tensor<128xi64, #four>
  %seeds = tkgpu.broadcast %seed dims [] : i64 -> tensor<128xi64, #four>
  %r = tk.rand %seeds, %wide : tensor<128xi64, #four>, tensor<128xi64, #four> -> tensor<128xf32, #four>
  tkgpu.store %r, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<128xf32, #four>, !tkgpu.buffer<f32>, tensor<128xindex, #four>, index) -> ()
  tkgpu.return
} {num_warps = 1 : i64, index_bits = 32 : i64}

// Only 2 divides the first number.
// CHECK-LABEL: tkgpu.func @half_aligned
// CHECK: tk.rand {{.*}} {tkgpu.random = #tkgpu.random<neighbours = 2>}
tkgpu.func @half_aligned args ["y", "seed", "n"] {
^bb0(%y: !tkgpu.buffer<f32>, %seed: i64, %n: index):
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %row = arith.muli %n, %c2 : index
  %i = tkgpu.iota : tensor<128xindex, #four>
  %begin = tkgpu.broadcast %row dims [] : index -> tensor<128xindex, #four>
  %at = arith.addi %begin, %i : tensor<128xindex, #four>
  %wide = arith.index_cast %at : tensor<128xindex, #four> to tensor<128xi64, #four>
  %seeds = tkgpu.broadcast %seed dims [] : i64 -> tensor<128xi64, #four>
  %r = tk.rand %seeds, %wide : tensor<128xi64, #four>, tensor<128xi64, #four> -> tensor<128xf32, #four>
  tkgpu.store %r, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<128xf32, #four>, !tkgpu.buffer<f32>, tensor<128xindex, #four>, index) -> ()
  tkgpu.return
} {num_warps = 1 : i64, index_bits = 32 : i64}

// A thread has pairs of neighbours.
// CHECK-LABEL: tkgpu.func @pairs
// CHECK: tk.rand {{.*}} {tkgpu.random = #tkgpu.random<neighbours = 2>}
tkgpu.func @pairs args ["y", "seed"] {
^bb0(%y: !tkgpu.buffer<f32>, %seed: i64):
  %c1 = arith.constant 1 : index
  %i = tkgpu.iota : tensor<128xindex, #two>
  %wide = arith.index_cast %i : tensor<128xindex, #two> to tensor<128xi64, #two>
  %seeds = tkgpu.broadcast %seed dims [] : i64 -> tensor<128xi64, #two>
  %r = tk.rand %seeds, %wide : tensor<128xi64, #two>, tensor<128xi64, #two> -> tensor<128xf32, #two>
  tkgpu.store %r, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<128xf32, #two>, !tkgpu.buffer<f32>, tensor<128xindex, #two>, index) -> ()
  tkgpu.return
} {num_warps = 1 : i64, index_bits = 32 : i64}

// Neighbours are in different threads; the first number is not known; the numbers do not run in
// steps of one; each number has a seed of its own.
// CHECK-LABEL: tkgpu.func @alone
// CHECK-NOT: tkgpu.random
tkgpu.func @alone args ["y", "seed", "n"] {
^bb0(%y: !tkgpu.buffer<f32>, %seed: i64, %n: index):
  %c1 = arith.constant 1 : index
  %a = tkgpu.iota : tensor<128xindex, #apart>
  %wa = arith.index_cast %a : tensor<128xindex, #apart> to tensor<128xi64, #apart>
  %sa = tkgpu.broadcast %seed dims [] : i64 -> tensor<128xi64, #apart>
  %ra = tk.rand %sa, %wa : tensor<128xi64, #apart>, tensor<128xi64, #apart> -> tensor<128xf32, #apart>
  tkgpu.store %ra, %y[%a] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<128xf32, #apart>, !tkgpu.buffer<f32>, tensor<128xindex, #apart>, index) -> ()
  %i = tkgpu.iota : tensor<128xindex, #four>
  %begin = tkgpu.broadcast %n dims [] : index -> tensor<128xindex, #four>
  %at = arith.addi %begin, %i : tensor<128xindex, #four>
  %wide = arith.index_cast %at : tensor<128xindex, #four> to tensor<128xi64, #four>
  %seeds = tkgpu.broadcast %seed dims [] : i64 -> tensor<128xi64, #four>
  %r = tk.rand %seeds, %wide : tensor<128xi64, #four>, tensor<128xi64, #four> -> tensor<128xf32, #four>
  tkgpu.store %r, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<128xf32, #four>, !tkgpu.buffer<f32>, tensor<128xindex, #four>, index) -> ()
  %two = arith.constant dense<2> : tensor<128xindex, #four>
  %even = arith.muli %i, %two : tensor<128xindex, #four>
  %we = arith.index_cast %even : tensor<128xindex, #four> to tensor<128xi64, #four>
  %re = tk.rand %seeds, %we : tensor<128xi64, #four>, tensor<128xi64, #four> -> tensor<128xf32, #four>
  tkgpu.store %re, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<128xf32, #four>, !tkgpu.buffer<f32>, tensor<128xindex, #four>, index) -> ()
  %own = arith.index_cast %i : tensor<128xindex, #four> to tensor<128xi64, #four>
  %ro = tk.rand %own, %own : tensor<128xi64, #four>, tensor<128xi64, #four> -> tensor<128xf32, #four>
  tkgpu.store %ro, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<128xf32, #four>, !tkgpu.buffer<f32>, tensor<128xindex, #four>, index) -> ()
  tkgpu.return
} {num_warps = 1 : i64, index_bits = 32 : i64}
