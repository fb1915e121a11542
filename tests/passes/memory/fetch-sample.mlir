// RUN: tk-opt %s --tk-fetch-ahead | FileCheck %s
//
// What is read of the first iteration ahead of a loop whose tiles come early is read where they come
// to: by loops that have no more than that iteration, if the loop has it too.
#tile = #tkgpu.layout<register = [[1, 0], [2, 0], [128, 0], [0, 4]], lane = [[4, 0], [8, 0], [16, 0], [32, 0], [64, 0]], warp = [[0, 1], [0, 2]]>
#rows = #tkgpu.layout<register = [[4]], lane = [[0], [0], [0], [0], [0]], warp = [[1], [2]]>
#columns = #tkgpu.layout<register = [[1], [2], [128]], lane = [[4], [8], [16], [32], [64]], warp = [[0], [0]]>
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>

// CHECK-LABEL: tkgpu.func @sampled
// CHECK: %[[RING:.*]] = tkgpu.alloc_private : <2 x
// CHECK-COUNT-2: tkgpu.async_commit
// The sample.
// CHECK: scf.for
// CHECK-NEXT: tkgpu.async_wait 1
// CHECK-NOT: tkgpu.load
// CHECK: tkgpu.private_load %[[RING]] at %{{.*}}
// CHECK: scf.yield
// Other columns; more than the loop may have; two iterations.
// CHECK: scf.for
// CHECK-NOT: tkgpu.private_load
// CHECK: tkgpu.load
// CHECK: scf.for
// CHECK-NOT: tkgpu.private_load
// CHECK: tkgpu.load
// CHECK: scf.for
// CHECK-NOT: tkgpu.private_load
// CHECK: tkgpu.load
// The sums.
// CHECK: scf.for
// CHECK-NEXT: tkgpu.async_wait 1
// CHECK: tkgpu.private_load %[[RING]]
// CHECK: tkgpu.copy_private %[[RING]]
module attributes {tkgpu.target = #target} {
  tkgpu.func @sampled args ["x", "R", "y", "z"] {
  ^bb0(%x: !tkgpu.buffer<f32>, %R: index, %y: !tkgpu.buffer<f32>, %z: !tkgpu.buffer<f32>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c256 = arith.constant dense<256> : tensor<256xindex, #columns>
    %C = arith.constant 4096 : index
    %zero = arith.constant dense<0.0> : tensor<256x8xf32, #tile>
    %j = tkgpu.iota : tensor<256xindex, #columns>
    %next = arith.addi %j, %c256 : tensor<256xindex, #columns>
    %i = tkgpu.iota : tensor<8xindex, #rows>
    %short = arith.minsi %c8, %R : index
    %long = arith.minsi %c16, %R : index
    %sample = scf.for %r = %c0 to %short step %c8 iter_args(%a = %zero) -> (tensor<256x8xf32, #tile>) {
      %r0 = tkgpu.broadcast %r dims [] : index -> tensor<8xindex, #rows>
      %i0 = arith.addi %r0, %i : tensor<8xindex, #rows>
      %v = tkgpu.load %x[%i0, %j] dims [array<i64: 1>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<8xindex, #rows>, tensor<256xindex, #columns>, index, index) -> tensor<256x8xf32, #tile>
      %na = arith.addf %a, %v : tensor<256x8xf32, #tile>
      scf.yield %na : tensor<256x8xf32, #tile>
    }
    %other = scf.for %r = %c0 to %short step %c8 iter_args(%a = %zero) -> (tensor<256x8xf32, #tile>) {
      %r0 = tkgpu.broadcast %r dims [] : index -> tensor<8xindex, #rows>
      %i0 = arith.addi %r0, %i : tensor<8xindex, #rows>
      %v = tkgpu.load %x[%i0, %next] dims [array<i64: 1>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<8xindex, #rows>, tensor<256xindex, #columns>, index, index) -> tensor<256x8xf32, #tile>
      %na = arith.addf %a, %v : tensor<256x8xf32, #tile>
      scf.yield %na : tensor<256x8xf32, #tile>
    }
    %beyond = scf.for %r = %c0 to %c8 step %c8 iter_args(%a = %zero) -> (tensor<256x8xf32, #tile>) {
      %r0 = tkgpu.broadcast %r dims [] : index -> tensor<8xindex, #rows>
      %i0 = arith.addi %r0, %i : tensor<8xindex, #rows>
      %v = tkgpu.load %x[%i0, %j] dims [array<i64: 1>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<8xindex, #rows>, tensor<256xindex, #columns>, index, index) -> tensor<256x8xf32, #tile>
      %na = arith.addf %a, %v : tensor<256x8xf32, #tile>
      scf.yield %na : tensor<256x8xf32, #tile>
    }
    %two = scf.for %r = %c0 to %long step %c8 iter_args(%a = %zero) -> (tensor<256x8xf32, #tile>) {
      %r0 = tkgpu.broadcast %r dims [] : index -> tensor<8xindex, #rows>
      %i0 = arith.addi %r0, %i : tensor<8xindex, #rows>
      %v = tkgpu.load %x[%i0, %j] dims [array<i64: 1>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<8xindex, #rows>, tensor<256xindex, #columns>, index, index) -> tensor<256x8xf32, #tile>
      %na = arith.addf %a, %v : tensor<256x8xf32, #tile>
      scf.yield %na : tensor<256x8xf32, #tile>
    }
    %s0 = arith.addf %sample, %other : tensor<256x8xf32, #tile>
    %s1 = arith.addf %beyond, %two : tensor<256x8xf32, #tile>
    %s2 = arith.addf %s0, %s1 : tensor<256x8xf32, #tile>
    %one = tkgpu.reduce <sum> %s2 axis 1 : tensor<256x8xf32, #tile> -> tensor<256xf32, #columns>
    %s = tkgpu.broadcast %one dims [0] : tensor<256xf32, #columns> -> tensor<256x8xf32, #tile>
    %sums:2 = scf.for %r = %c0 to %R step %c8 iter_args(%a = %zero, %b = %zero) -> (tensor<256x8xf32, #tile>, tensor<256x8xf32, #tile>) {
      %r0 = tkgpu.broadcast %r dims [] : index -> tensor<8xindex, #rows>
      %i0 = arith.addi %r0, %i : tensor<8xindex, #rows>
      %v = tkgpu.load %x[%i0, %j] dims [array<i64: 1>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<8xindex, #rows>, tensor<256xindex, #columns>, index, index) -> tensor<256x8xf32, #tile>
      %d = arith.subf %v, %s : tensor<256x8xf32, #tile>
      %q = arith.mulf %d, %d : tensor<256x8xf32, #tile>
      %na = arith.addf %a, %d : tensor<256x8xf32, #tile>
      %nb = arith.addf %b, %q : tensor<256x8xf32, #tile>
      scf.yield %na, %nb : tensor<256x8xf32, #tile>, tensor<256x8xf32, #tile>
    }
    %ra = tkgpu.reduce <sum> %sums#0 axis 1 : tensor<256x8xf32, #tile> -> tensor<256xf32, #columns>
    %rb = tkgpu.reduce <sum> %sums#1 axis 1 : tensor<256x8xf32, #tile> -> tensor<256xf32, #columns>
    tkgpu.store %ra, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<256xf32, #columns>, !tkgpu.buffer<f32>, tensor<256xindex, #columns>, index) -> ()
    tkgpu.store %rb, %z[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<256xf32, #columns>, !tkgpu.buffer<f32>, tensor<256xindex, #columns>, index) -> ()
    tkgpu.return
  } {num_warps = 4 : i64, index_bits = 32 : i64}
}
