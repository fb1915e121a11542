// RUN: tk-opt %s --tk-unroll-loops | FileCheck %s

#one = #tkgpu.layout<register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]]>
#four = #tkgpu.layout<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]]>
#two = #tkgpu.layout<register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [[64], [128]]>

// A thread reads 8 bytes an iteration: four of them are on their way at once, and what is left of
// the range is a loop of its own.
// CHECK-LABEL: tkgpu.func @sums
// CHECK: scf.for {{.*}} iter_args(%[[CARRIED:.*]] = %{{.*}}) -> (tensor<256xf32,
// CHECK-COUNT-4: tkgpu.load
// CHECK-NOT: tkgpu.load
// CHECK: arith.addf %[[CARRIED]]
// CHECK-COUNT-3: arith.addf {{.*}} : tensor<256xf32
// CHECK: scf.yield
// CHECK: scf.for
// CHECK: tkgpu.load
// CHECK-NOT: tkgpu.load
// CHECK: scf.yield
tkgpu.func @sums args ["x", "y", "n"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant dense<0.0> : tensor<256xf32, #two>
  %j = tkgpu.iota : tensor<256xindex, #two>
  %sum = scf.for %at = %c0 to %n step %c256 iter_args(%carried = %zero) -> (tensor<256xf32, #two>) {
    %start = tkgpu.broadcast %at dims [] : index -> tensor<256xindex, #two>
    %k = arith.addi %start, %j : tensor<256xindex, #two>
    %v = tkgpu.load %x[%k] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 2 : i64} : (!tkgpu.buffer<f32>, tensor<256xindex, #two>, index) -> tensor<256xf32, #two>
    %next = arith.addf %carried, %v : tensor<256xf32, #two>
    scf.yield %next : tensor<256xf32, #two>
  }
  tkgpu.store %sum, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 2 : i64} : (tensor<256xf32, #two>, !tkgpu.buffer<f32>, tensor<256xindex, #two>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// 20 bytes an iteration: three of them would be 60, but what most loops go through is a power of two.
// CHECK-LABEL: tkgpu.func @two_operands
// CHECK: scf.for
// CHECK-COUNT-8: tkgpu.load
// CHECK-NOT: tkgpu.load
// CHECK: scf.yield
tkgpu.func @two_operands args ["x", "s", "y", "n"] {
^bb0(%x: !tkgpu.buffer<f32>, %s: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c512 = arith.constant 512 : index
  %zero = arith.constant dense<0.0> : tensor<512xf32, #four>
  %j = tkgpu.iota : tensor<512xindex, #four>
  %t = tkgpu.iota : tensor<128xindex, #one>
  %start = arith.constant dense<0.0> : tensor<128xf32, #one>
  %sums:2 = scf.for %at = %c0 to %n step %c512 iter_args(%carried = %zero, %other = %start) -> (tensor<512xf32, #four>, tensor<128xf32, #one>) {
    %first = tkgpu.broadcast %at dims [] : index -> tensor<512xindex, #four>
    %k = arith.addi %first, %j : tensor<512xindex, #four>
    %v = tkgpu.load %x[%k] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<512xindex, #four>, index) -> tensor<512xf32, #four>
    %from = tkgpu.broadcast %at dims [] : index -> tensor<128xindex, #one>
    %l = arith.addi %from, %t : tensor<128xindex, #one>
    %w = tkgpu.load %s[%l] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<128xindex, #one>, index) -> tensor<128xf32, #one>
    %next = arith.addf %carried, %v : tensor<512xf32, #four>
    %after = arith.addf %other, %w : tensor<128xf32, #one>
    scf.yield %next, %after : tensor<512xf32, #four>, tensor<128xf32, #one>
  }
  tkgpu.store %sums#0, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (tensor<512xf32, #four>, !tkgpu.buffer<f32>, tensor<512xindex, #four>, index) -> ()
  tkgpu.store %sums#1, %y[%t] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<128xf32, #one>, !tkgpu.buffer<f32>, tensor<128xindex, #one>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// A thread that waits for the others in each iteration begins one at a time.
// CHECK-LABEL: tkgpu.func @waits
// CHECK: tkgpu.load
// CHECK-NOT: tkgpu.load
// CHECK: tkgpu.return
tkgpu.func @waits args ["x", "y", "n"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant 0.0 : f32
  %j = tkgpu.iota : tensor<256xindex, #two>
  %sum = scf.for %at = %c0 to %n step %c256 iter_args(%carried = %zero) -> (f32) {
    %start = tkgpu.broadcast %at dims [] : index -> tensor<256xindex, #two>
    %k = arith.addi %start, %j : tensor<256xindex, #two>
    %v = tkgpu.load %x[%k] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 2 : i64} : (!tkgpu.buffer<f32>, tensor<256xindex, #two>, index) -> tensor<256xf32, #two>
    %s = tkgpu.reduce <sum> %v axis 0 : tensor<256xf32, #two> -> f32
    %next = arith.addf %carried, %s : f32
    scf.yield %next : f32
  }
  tkgpu.store %sum, %y[%c0] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// A range that may end before it begins has no iterations, however it is unrolled.
// CHECK-LABEL: tkgpu.func @ends_before
// CHECK-SAME: args ["x", "y", "n"]
// CHECK-DAG: %[[BEGIN:.*]] = arith.constant 512 : index
// CHECK: %[[END:.*]] = arith.maxsi %{{.*}}, %[[BEGIN]] : index
// CHECK: arith.subi %[[END]], %[[BEGIN]]
// CHECK-COUNT-2: scf.for
tkgpu.func @ends_before args ["x", "y", "n"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %n: index):
  %c512 = arith.constant 512 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant dense<0.0> : tensor<256xf32, #two>
  %j = tkgpu.iota : tensor<256xindex, #two>
  %sum = scf.for %at = %c512 to %n step %c256 iter_args(%carried = %zero) -> (tensor<256xf32, #two>) {
    %start = tkgpu.broadcast %at dims [] : index -> tensor<256xindex, #two>
    %k = arith.addi %start, %j : tensor<256xindex, #two>
    %v = tkgpu.load %x[%k] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 2 : i64} : (!tkgpu.buffer<f32>, tensor<256xindex, #two>, index) -> tensor<256xf32, #two>
    %next = arith.addf %carried, %v : tensor<256xf32, #two>
    scf.yield %next : tensor<256xf32, #two>
  }
  tkgpu.store %sum, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 2 : i64} : (tensor<256xf32, #two>, !tkgpu.buffer<f32>, tensor<256xindex, #two>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}
