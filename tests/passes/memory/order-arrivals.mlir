// RUN: tk-opt %s --tk-order-arrivals --split-input-file | FileCheck %s
// Of a ring that a block leaves at several places, stages are left before the sums are scaled.

#acc = #tkgpu.layout<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#row = #tkgpu.layout<register = [[8]], lane = [[0], [0], [1], [2], [4]], warp = [[16], [32]]>

// CHECK-LABEL: tkgpu.func @shared
// CHECK: %[[EMPTY:.*]] = tkgpu.alloc_phases arrivals 4
// CHECK: %[[F:.*]] = tkgpu.scaled_exp_diff
// CHECK: tkgpu.phase_arrive %[[EMPTY]][%c0]
// CHECK: %[[DONE:.*]] = tkgpu.warpgroup_wait %{{.*}} pending 0
// CHECK-NOT: tkgpu.phase_arrive
// CHECK: %[[G:.*]] = tkgpu.arrive_before %[[EMPTY]][%c1], %[[F]] : <2>, tensor<64xf32
// CHECK: %[[H:.*]] = tkgpu.arrive_before %[[EMPTY]][%c0], %[[G]] : <2>, tensor<64xf32
// CHECK: %[[FACTORS:.*]] = tkgpu.broadcast %[[H]] dims [0]
// CHECK: arith.mulf %[[DONE]], %[[FACTORS]]
// CHECK: arith.mulf %[[F]], %[[F]]
tkgpu.func @shared args ["f", "y"] {
^bb0(%f: f32, %y: !tkgpu.buffer<f32>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %a = tkgpu.alloc_shared : <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
  %empty = tkgpu.alloc_phases arrivals 4 : <2>
  %m = tkgpu.broadcast %f dims [] : f32 -> tensor<64xf32, #row>
  %factor = tkgpu.scaled_exp_diff %m, %m by %m {tkgpu.math = #tkgpu.math<rescale>} : tensor<64xf32, #row>
  %factors = tkgpu.broadcast %factor dims [0] : tensor<64xf32, #row> -> tensor<64x64xf32, #acc>
  tkgpu.phase_arrive %empty[%c0] : <2>
  %d = tkgpu.warpgroup_dot %a, %a, %zero : !tkgpu.shared<[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>, <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8> -> tensor<64x64xf32, #acc>
  %w = tkgpu.warpgroup_wait %d pending 0 : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>
  tkgpu.phase_arrive %empty[%c1] : <2>
  tkgpu.phase_arrive %empty[%c0] : <2>
  %s = arith.mulf %w, %factors : tensor<64x64xf32, #acc>
  %other = arith.mulf %factor, %factor : tensor<64xf32, #row>
  %twice = arith.addf %s, %s : tensor<64x64xf32, #acc>
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// -----

#acc = #tkgpu.layout<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#row = #tkgpu.layout<register = [[8]], lane = [[0], [0], [1], [2], [4]], warp = [[16], [32]]>

// Not of a ring that is left once, nor while products are under way, nor for another product, nor where
// the factor is computed later.
// CHECK-LABEL: tkgpu.func @others
// CHECK-NOT: arrive_before
// CHECK: tkgpu.return
tkgpu.func @others args ["f"] {
^bb0(%f: f32):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %a = tkgpu.alloc_shared : <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
  %empty = tkgpu.alloc_phases arrivals 4 : <2>
  %once = tkgpu.alloc_phases arrivals 4 : <2>
  %m = tkgpu.broadcast %f dims [] : f32 -> tensor<64xf32, #row>
  %factor = tkgpu.scaled_exp_diff %m, %m by %m {tkgpu.math = #tkgpu.math<rescale>} : tensor<64xf32, #row>
  %plain = tkgpu.scaled_exp_diff %m, %m by %m : tensor<64xf32, #row>
  %factors = tkgpu.broadcast %factor dims [0] : tensor<64xf32, #row> -> tensor<64x64xf32, #acc>
  %plains = tkgpu.broadcast %plain dims [0] : tensor<64xf32, #row> -> tensor<64x64xf32, #acc>
  %d = tkgpu.warpgroup_dot %a, %a, %zero : !tkgpu.shared<[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>, <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8> -> tensor<64x64xf32, #acc>
  %w = tkgpu.warpgroup_wait %d pending 1 : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>
  tkgpu.phase_arrive %empty[%c0] : <2>
  tkgpu.phase_arrive %empty[%c1] : <2>
  %s = arith.mulf %w, %factors : tensor<64x64xf32, #acc>
  %d1 = tkgpu.warpgroup_dot %a, %a, %zero : !tkgpu.shared<[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>, <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8> -> tensor<64x64xf32, #acc>
  %w1 = tkgpu.warpgroup_wait %d1 pending 0 : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>
  tkgpu.phase_arrive %once[%c0] : <2>
  %s1 = arith.mulf %w1, %factors : tensor<64x64xf32, #acc>
  %d2 = tkgpu.warpgroup_dot %a, %a, %zero : !tkgpu.shared<[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>, <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8> -> tensor<64x64xf32, #acc>
  %w2 = tkgpu.warpgroup_wait %d2 pending 0 : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>
  tkgpu.phase_arrive %empty[%c0] : <2>
  %s2 = arith.mulf %w2, %plains : tensor<64x64xf32, #acc>
  %d3 = tkgpu.warpgroup_dot %a, %a, %zero : !tkgpu.shared<[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>, <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8> -> tensor<64x64xf32, #acc>
  %w3 = tkgpu.warpgroup_wait %d3 pending 0 : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>
  tkgpu.phase_arrive %empty[%c1] : <2>
  %late = tkgpu.scaled_exp_diff %m, %m by %m {tkgpu.math = #tkgpu.math<rescale>} : tensor<64xf32, #row>
  %lates = tkgpu.broadcast %late dims [0] : tensor<64xf32, #row> -> tensor<64x64xf32, #acc>
  %s3 = arith.mulf %w3, %lates : tensor<64x64xf32, #acc>
  %t = arith.addf %s, %s1 : tensor<64x64xf32, #acc>
  %u = arith.addf %t, %s2 : tensor<64x64xf32, #acc>
  %x = arith.addf %u, %s3 : tensor<64x64xf32, #acc>
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}
