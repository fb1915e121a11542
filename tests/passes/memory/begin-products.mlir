// RUN: tk-opt %s --tk-begin-products --split-input-file | FileCheck %s
// Where warpgroups come apart, a product begins before what it does not need.

#acc = #tkgpu.layout<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#row = #tkgpu.layout<register = [[8]], lane = [[0], [0], [1], [2], [4]], warp = [[16], [32]]>
!ring = !tkgpu.shared<[2, 64, 64], bf16 order = [2, 1, 0] chunk = 8 phases = 8>
!stage = !tkgpu.shared<[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>

// The values' wait goes behind the product of keys, rows' numbers behind the product that comes before
// their first use, in order.
// CHECK-LABEL: tkgpu.func @apart
// CHECK: consumer
// CHECK: %[[LOADED:[0-9]+]] = tkgpu.load
// CHECK-NEXT: scf.if
// CHECK: tkgpu.phase_wait %{{[0-9]+}}[%[[J:[a-z0-9]+]]] parity
// CHECK: tkgpu.stage %{{.*}}[%[[J]]]
// CHECK: tkgpu.warpgroup_dot
// CHECK-NEXT: %[[SUM:[0-9]+]] = arith.addf %[[LOADED]], %[[LOADED]] : tensor<64xf32
// CHECK-NEXT: %[[MORE:[0-9]+]] = arith.mulf %[[SUM]], %[[LOADED]] : tensor<64xf32
// CHECK-NEXT: tkgpu.phase_wait %{{[0-9]+}}[%[[I:[a-z0-9]+]]] parity
// CHECK-NEXT: tkgpu.stage %{{.*}}[%[[I]]]
// CHECK: tkgpu.warpgroup_dot
// CHECK: tkgpu.warpgroup_wait
// CHECK: tkgpu.broadcast %[[MORE]]
tkgpu.func @apart args ["y", "i", "j", "any"] {
^bb0(%y: !tkgpu.buffer<f32>, %i: index, %j: index, %any: i1):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %q = tkgpu.alloc_shared {tkgpu.buffer = #tkgpu.buffer<in_stages>} : !stage
  %k = tkgpu.alloc_shared : !ring
  %v = tkgpu.alloc_shared : !ring
  %keys = tkgpu.alloc_phases arrivals 1 : <2>
  %values = tkgpu.alloc_phases arrivals 1 : <2>
  tkgpu.warp_roles producer {
  } consumer {
    %at = tkgpu.iota : tensor<64xindex, #row>
    %loaded = tkgpu.load %y[%at] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 1 : i64} : (!tkgpu.buffer<f32>, tensor<64xindex, #row>, index) -> tensor<64xf32, #row>
    %sum = arith.addf %loaded, %loaded : tensor<64xf32, #row>
    %more = arith.mulf %sum, %loaded : tensor<64xf32, #row>
    scf.if %any {
      tkgpu.phase_wait %values[%i] parity %c0 : <2>
      tkgpu.phase_wait %keys[%j] parity %c0 : <2>
      %kj = tkgpu.stage %k[%j] : !ring -> !stage
      %s = tkgpu.warpgroup_dot %q, %kj, %zero : !stage, !stage -> tensor<64x64xf32, #acc>
      %vi = tkgpu.stage %v[%i] : !ring -> !stage
      %o = tkgpu.warpgroup_dot %q, %vi, %zero : !stage, !stage -> tensor<64x64xf32, #acc>
      %w:2 = tkgpu.warpgroup_wait %s, %o pending 0 : tensor<64x64xf32, #acc>, tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>, tensor<64x64xf32, #acc>
      %all = tkgpu.broadcast %more dims [0] : tensor<64xf32, #row> -> tensor<64x64xf32, #acc>
      %r = arith.addf %w#0, %all : tensor<64x64xf32, #acc>
      tkgpu.phase_arrive %keys[%j] : <2>
    }
  }
  tkgpu.return
} {tkgpu.plan = #tkgpu.plan<order = unordered>, num_warps = 4 : i64, producer_warps = 4 : i64, index_bits = 32 : i64}

// -----

#acc = #tkgpu.layout<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#row = #tkgpu.layout<register = [[8]], lane = [[0], [0], [1], [2], [4]], warp = [[16], [32]]>
!ring = !tkgpu.shared<[2, 64, 64], bf16 order = [2, 1, 0] chunk = 8 phases = 8>
!stage = !tkgpu.shared<[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>

// Where they take turns, all stays as it is.
// CHECK-LABEL: tkgpu.func @turns
// CHECK: arith.addf {{.*}} : tensor<64xf32
// CHECK: arith.mulf {{.*}} : tensor<64xf32
// CHECK: scf.if
// CHECK: tkgpu.phase_wait
// CHECK-NEXT: tkgpu.phase_wait
// CHECK-NEXT: tkgpu.stage
// CHECK-NEXT: tkgpu.warpgroup_dot
// CHECK-NEXT: tkgpu.stage
tkgpu.func @turns args ["y", "i", "j", "any"] {
^bb0(%y: !tkgpu.buffer<f32>, %i: index, %j: index, %any: i1):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %q = tkgpu.alloc_shared : !stage
  %k = tkgpu.alloc_shared : !ring
  %v = tkgpu.alloc_shared : !ring
  %keys = tkgpu.alloc_phases arrivals 1 : <2>
  %values = tkgpu.alloc_phases arrivals 1 : <2>
  tkgpu.warp_roles producer {
  } consumer {
    %at = tkgpu.iota : tensor<64xindex, #row>
    %loaded = tkgpu.load %y[%at] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 1 : i64} : (!tkgpu.buffer<f32>, tensor<64xindex, #row>, index) -> tensor<64xf32, #row>
    %sum = arith.addf %loaded, %loaded : tensor<64xf32, #row>
    %more = arith.mulf %sum, %loaded : tensor<64xf32, #row>
    scf.if %any {
      tkgpu.phase_wait %values[%i] parity %c0 : <2>
      tkgpu.phase_wait %keys[%j] parity %c0 : <2>
      %kj = tkgpu.stage %k[%j] : !ring -> !stage
      %s = tkgpu.warpgroup_dot %q, %kj, %zero : !stage, !stage -> tensor<64x64xf32, #acc>
      %vi = tkgpu.stage %v[%i] : !ring -> !stage
      %o = tkgpu.warpgroup_dot %q, %vi, %zero : !stage, !stage -> tensor<64x64xf32, #acc>
      %w:2 = tkgpu.warpgroup_wait %s, %o pending 0 : tensor<64x64xf32, #acc>, tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>, tensor<64x64xf32, #acc>
      %all = tkgpu.broadcast %more dims [0] : tensor<64xf32, #row> -> tensor<64x64xf32, #acc>
      %r = arith.addf %w#0, %all : tensor<64x64xf32, #acc>
      tkgpu.phase_arrive %keys[%j] : <2>
    }
  }
  tkgpu.return
} {num_warps = 4 : i64, producer_warps = 4 : i64, index_bits = 32 : i64}

// -----

#acc = #tkgpu.layout<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#row = #tkgpu.layout<register = [[8]], lane = [[0], [0], [1], [2], [4]], warp = [[16], [32]]>
!ring = !tkgpu.shared<[2, 64, 64], bf16 order = [2, 1, 0] chunk = 8 phases = 8>
!stage = !tkgpu.shared<[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>

// Nor do rows' numbers move that are needed in front of the product, in another branch or behind both; nor
// waits behind which there is no other product, or something else that arrives, or whose stage is known before.
// CHECK-LABEL: tkgpu.func @others
// CHECK: tkgpu.load
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.subf
// CHECK-NEXT: scf.if
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: tkgpu.phase_wait
// CHECK: } else {
// CHECK: tkgpu.store
// CHECK-NEXT: tkgpu.phase_wait
// CHECK-NEXT: tkgpu.stage
// CHECK-NEXT: tkgpu.warpgroup_dot
// CHECK-NEXT: tkgpu.phase_wait
// CHECK-NEXT: tkgpu.warpgroup_dot
// CHECK-NEXT: tkgpu.phase_arrive
// CHECK-NEXT: tkgpu.stage
// CHECK-NEXT: tkgpu.warpgroup_dot
// CHECK-NEXT: tkgpu.stage
// CHECK-NEXT: tkgpu.phase_wait
// CHECK-NEXT: tkgpu.warpgroup_dot
tkgpu.func @others args ["y", "i", "j", "any"] {
^bb0(%y: !tkgpu.buffer<f32>, %i: index, %j: index, %any: i1):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %q = tkgpu.alloc_shared {tkgpu.buffer = #tkgpu.buffer<in_stages>} : !stage
  %k = tkgpu.alloc_shared : !ring
  %v = tkgpu.alloc_shared : !ring
  %keys = tkgpu.alloc_phases arrivals 1 : <2>
  %values = tkgpu.alloc_phases arrivals 1 : <2>
  tkgpu.warp_roles producer {
  } consumer {
    %at = tkgpu.iota : tensor<64xindex, #row>
    %loaded = tkgpu.load %y[%at] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 1 : i64} : (!tkgpu.buffer<f32>, tensor<64xindex, #row>, index) -> tensor<64xf32, #row>
    %early = arith.addf %loaded, %loaded : tensor<64xf32, #row>
    %either = arith.mulf %loaded, %loaded : tensor<64xf32, #row>
    %both = arith.subf %loaded, %loaded : tensor<64xf32, #row>
    %r = scf.if %any -> tensor<64xf32, #row> {
      %before = arith.mulf %early, %early : tensor<64xf32, #row>
      tkgpu.phase_wait %keys[%j] parity %c0 : <2>
      %kj = tkgpu.stage %k[%j] : !ring -> !stage
      %s = tkgpu.warpgroup_dot %q, %kj, %zero : !stage, !stage -> tensor<64x64xf32, #acc>
      %w = tkgpu.warpgroup_wait %s pending 0 : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>
      %all = tkgpu.broadcast %either dims [0] : tensor<64xf32, #row> -> tensor<64x64xf32, #acc>
      %sum = arith.addf %w, %all : tensor<64x64xf32, #acc>
      %after = arith.addf %before, %both : tensor<64xf32, #row>
      scf.yield %after : tensor<64xf32, #row>
    } else {
      scf.yield %either : tensor<64xf32, #row>
    }
    %t = arith.addf %r, %both : tensor<64xf32, #row>
    tkgpu.store %t, %y[%at] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 1 : i64} : (tensor<64xf32, #row>, !tkgpu.buffer<f32>, tensor<64xindex, #row>, index) -> ()
    tkgpu.phase_wait %values[%i] parity %c0 : <2>
    %vi = tkgpu.stage %v[%i] : !ring -> !stage
    %o = tkgpu.warpgroup_dot %q, %vi, %zero : !stage, !stage -> tensor<64x64xf32, #acc>
    tkgpu.phase_wait %values[%c1] parity %c0 : <2>
    %o1 = tkgpu.warpgroup_dot %q, %vi, %zero : !stage, !stage -> tensor<64x64xf32, #acc>
    tkgpu.phase_arrive %values[%i] : <2>
    %v1 = tkgpu.stage %v[%c1] : !ring -> !stage
    %o2 = tkgpu.warpgroup_dot %q, %v1, %zero : !stage, !stage -> tensor<64x64xf32, #acc>
    %k0 = tkgpu.stage %k[%c0] : !ring -> !stage
    tkgpu.phase_wait %keys[%c0] parity %c0 : <2>
    %o3 = tkgpu.warpgroup_dot %q, %k0, %zero : !stage, !stage -> tensor<64x64xf32, #acc>
    %again = tkgpu.stage %k[%c0] : !ring -> !stage
    %o4 = tkgpu.warpgroup_dot %q, %again, %zero : !stage, !stage -> tensor<64x64xf32, #acc>
    %w1:4 = tkgpu.warpgroup_wait %o, %o1, %o2, %o4 pending 0 : tensor<64x64xf32, #acc>, tensor<64x64xf32, #acc>, tensor<64x64xf32, #acc>, tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>, tensor<64x64xf32, #acc>, tensor<64x64xf32, #acc>, tensor<64x64xf32, #acc>
  }
  tkgpu.return
} {tkgpu.plan = #tkgpu.plan<order = unordered>, num_warps = 4 : i64, producer_warps = 4 : i64, index_bits = 32 : i64}
