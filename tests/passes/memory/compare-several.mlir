// RUN: tk-opt %s --tk-compare-as-integers | FileCheck %s
#tile = #tkgpu.layout<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#row = #tkgpu.layout<register = [[8]], lane = [[0], [0], [1], [2], [4]], warp = [[16], [32]]>
!q = !tkgpu.shared<[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
!k = !tkgpu.shared<[64, 64], bf16 order = [0, 1] chunk = 8 phases = 8>

// Of several maxima none may begin below 0.
// CHECK-LABEL: tkgpu.func @two
// CHECK: %[[A:.*]] = tkgpu.none_negative
// CHECK: %[[B:.*]] = tkgpu.none_negative
// CHECK: %[[BOTH:.*]] = arith.andi %[[A]], %[[B]]
// CHECK: arith.select %[[BOTH]]
// CHECK: scf.for
// CHECK-NOT: as_integers
// CHECK: scf.for
// CHECK-COUNT-2: as_integers
// CHECK: tkgpu.return
tkgpu.func @two args ["x", "y"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %end = arith.constant 8192 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #tile>
  %least = arith.constant dense<0xFF800000> : tensor<64xf32, #row>
  %i = tkgpu.iota : tensor<64xindex, #row>
  %q = tkgpu.alloc_shared : !q
  %k = tkgpu.alloc_shared : !k
  tkgpu.warp_roles producer {
  } consumer {
    %m = tkgpu.load %x[%i] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 1 : i64} : (!tkgpu.buffer<f32>, tensor<64xindex, #row>, index) -> tensor<64xf32, #row>
    %n = tkgpu.load %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 1 : i64} : (!tkgpu.buffer<f32>, tensor<64xindex, #row>, index) -> tensor<64xf32, #row>
    %r:2 = scf.for %j = %c0 to %end step %c64 iter_args(%a = %m, %b = %n) -> (tensor<64xf32, #row>, tensor<64xf32, #row>) {
      %d = tkgpu.warpgroup_dot %q, %k, %zero : !q, !k -> tensor<64x64xf32, #tile>
      %s = tkgpu.warpgroup_wait %d pending 0 : tensor<64x64xf32, #tile> -> tensor<64x64xf32, #tile>
      %e = tkgpu.warpgroup_dot %q, %k, %zero : !q, !k -> tensor<64x64xf32, #tile>
      %t = tkgpu.warpgroup_wait %e pending 0 : tensor<64x64xf32, #tile> -> tensor<64x64xf32, #tile>
      %of_s = tkgpu.reduce <max> %s axis 1 : tensor<64x64xf32, #tile> -> tensor<64xf32, #row>
      %of_t = tkgpu.reduce <max> %t axis 1 : tensor<64x64xf32, #tile> -> tensor<64xf32, #row>
      %more = arith.maximumf %a, %of_s : tensor<64xf32, #row>
      %most = arith.maximumf %b, %of_t : tensor<64xf32, #row>
      scf.yield %more, %most : tensor<64xf32, #row>, tensor<64xf32, #row>
    }
    tkgpu.store %r#0, %x[%i] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 1 : i64} : (tensor<64xf32, #row>, !tkgpu.buffer<f32>, tensor<64xindex, #row>, index) -> ()
    tkgpu.store %r#1, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 1 : i64} : (tensor<64xf32, #row>, !tkgpu.buffer<f32>, tensor<64xindex, #row>, index) -> ()
  }
  tkgpu.return
} {num_warps = 4 : i64, producer_warps = 4 : i64}

// One that is known to begin below 0 is not asked.
// CHECK-LABEL: tkgpu.func @least
// CHECK-COUNT-1: tkgpu.none_negative
// CHECK-NOT: tkgpu.none_negative
// CHECK: scf.for
// CHECK: scf.for
// CHECK-COUNT-1: as_integers
// CHECK-NOT: as_integers
// CHECK: tkgpu.return
tkgpu.func @least args ["x", "y"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %end = arith.constant 8192 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #tile>
  %least = arith.constant dense<0xFF800000> : tensor<64xf32, #row>
  %i = tkgpu.iota : tensor<64xindex, #row>
  %q = tkgpu.alloc_shared : !q
  %k = tkgpu.alloc_shared : !k
  tkgpu.warp_roles producer {
  } consumer {
    %m = tkgpu.load %x[%i] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 1 : i64} : (!tkgpu.buffer<f32>, tensor<64xindex, #row>, index) -> tensor<64xf32, #row>
    %n = tkgpu.load %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 1 : i64} : (!tkgpu.buffer<f32>, tensor<64xindex, #row>, index) -> tensor<64xf32, #row>
    %r:2 = scf.for %j = %c0 to %end step %c64 iter_args(%a = %least, %b = %n) -> (tensor<64xf32, #row>, tensor<64xf32, #row>) {
      %d = tkgpu.warpgroup_dot %q, %k, %zero : !q, !k -> tensor<64x64xf32, #tile>
      %s = tkgpu.warpgroup_wait %d pending 0 : tensor<64x64xf32, #tile> -> tensor<64x64xf32, #tile>
      %e = tkgpu.warpgroup_dot %q, %k, %zero : !q, !k -> tensor<64x64xf32, #tile>
      %t = tkgpu.warpgroup_wait %e pending 0 : tensor<64x64xf32, #tile> -> tensor<64x64xf32, #tile>
      %of_s = tkgpu.reduce <max> %s axis 1 : tensor<64x64xf32, #tile> -> tensor<64xf32, #row>
      %of_t = tkgpu.reduce <max> %t axis 1 : tensor<64x64xf32, #tile> -> tensor<64xf32, #row>
      %more = arith.maximumf %a, %of_s : tensor<64xf32, #row>
      %most = arith.maximumf %b, %of_t : tensor<64xf32, #row>
      scf.yield %more, %most : tensor<64xf32, #row>, tensor<64xf32, #row>
    }
    tkgpu.store %r#0, %x[%i] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 1 : i64} : (tensor<64xf32, #row>, !tkgpu.buffer<f32>, tensor<64xindex, #row>, index) -> ()
    tkgpu.store %r#1, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 1 : i64} : (tensor<64xf32, #row>, !tkgpu.buffer<f32>, tensor<64xindex, #row>, index) -> ()
  }
  tkgpu.return
} {num_warps = 4 : i64, producer_warps = 4 : i64}

// CHECK-LABEL: tkgpu.func @none
// CHECK-NOT: none_negative
// CHECK: tkgpu.return
tkgpu.func @none args ["x", "y"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %end = arith.constant 8192 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #tile>
  %least = arith.constant dense<0xFF800000> : tensor<64xf32, #row>
  %i = tkgpu.iota : tensor<64xindex, #row>
  %q = tkgpu.alloc_shared : !q
  %k = tkgpu.alloc_shared : !k
  tkgpu.warp_roles producer {
  } consumer {
    %m = tkgpu.load %x[%i] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 1 : i64} : (!tkgpu.buffer<f32>, tensor<64xindex, #row>, index) -> tensor<64xf32, #row>
    %n = tkgpu.load %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 1 : i64} : (!tkgpu.buffer<f32>, tensor<64xindex, #row>, index) -> tensor<64xf32, #row>
    %r:2 = scf.for %j = %c0 to %end step %c64 iter_args(%a = %least, %b = %least) -> (tensor<64xf32, #row>, tensor<64xf32, #row>) {
      %d = tkgpu.warpgroup_dot %q, %k, %zero : !q, !k -> tensor<64x64xf32, #tile>
      %s = tkgpu.warpgroup_wait %d pending 0 : tensor<64x64xf32, #tile> -> tensor<64x64xf32, #tile>
      %e = tkgpu.warpgroup_dot %q, %k, %zero : !q, !k -> tensor<64x64xf32, #tile>
      %t = tkgpu.warpgroup_wait %e pending 0 : tensor<64x64xf32, #tile> -> tensor<64x64xf32, #tile>
      %of_s = tkgpu.reduce <max> %s axis 1 : tensor<64x64xf32, #tile> -> tensor<64xf32, #row>
      %of_t = tkgpu.reduce <max> %t axis 1 : tensor<64x64xf32, #tile> -> tensor<64xf32, #row>
      %more = arith.maximumf %a, %of_s : tensor<64xf32, #row>
      %most = arith.maximumf %b, %of_t : tensor<64xf32, #row>
      scf.yield %more, %most : tensor<64xf32, #row>, tensor<64xf32, #row>
    }
    tkgpu.store %r#0, %x[%i] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 1 : i64} : (tensor<64xf32, #row>, !tkgpu.buffer<f32>, tensor<64xindex, #row>, index) -> ()
    tkgpu.store %r#1, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 1 : i64} : (tensor<64xf32, #row>, !tkgpu.buffer<f32>, tensor<64xindex, #row>, index) -> ()
  }
  tkgpu.return
} {num_warps = 4 : i64, producer_warps = 4 : i64}
