// RUN: tk-opt %s --tk-defer-exchanges | FileCheck %s

#scores = #tkgpu.layout<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#sums = #tkgpu.layout<register = [[0, 1], [8, 0], [0, 8], [0, 16]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#rows = #tkgpu.layout<register = [[8]], lane = [[0], [0], [1], [2], [4]], warp = [[16], [32]]>
!q = !tkgpu.shared<[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
!k = !tkgpu.shared<[64, 64], bf16 order = [0, 1] chunk = 8 phases = 8>
!wq = !tkgpu.shared<[64, 128], bf16 order = [1, 0] chunk = 8 phases = 8 panel = 64>
!wk = !tkgpu.shared<[128, 64], bf16 order = [0, 1] chunk = 8 phases = 8 panel = 64>
!v = !tkgpu.shared<[64, 32], bf16 order = [1, 0] chunk = 8 per_phase = 2 phases = 4>

// 96 multiply-adds a score: each of the four lanes that share a row sums what it has, scaled like the
// whole; they add up behind the loop. A maximum goes from step to step and stays.
// CHECK-LABEL: tkgpu.func @short
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<64x4xf32, #tkgpu.layout<register = {{\[\[}}8, 0]], lane = {{\[\[}}0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], warp = {{\[\[}}16, 0], [32, 0]]>>
// CHECK: %[[LOOP:.*]]:3 = scf.for {{.*}} %[[L:[a-z0-9]+]] = %[[ZERO]]
// CHECK: tkgpu.reduce <max>
// CHECK: %[[OWN:.*]] = tkgpu.reduce_in_threads <sum> %{{.*}} axis 1
// CHECK: %[[FACTOR:.*]] = tkgpu.broadcast %{{.*}} dims [0] : {{.*}} -> tensor<64x4xf32
// CHECK: %[[SCALED:.*]] = arith.mulf %[[L]], %[[FACTOR]]
// CHECK: arith.addf %[[SCALED]], %[[OWN]]
// CHECK-NOT: tkgpu.reduce <sum>
// CHECK: scf.yield
// CHECK: tkgpu.reduce <sum> %[[LOOP]]#1 axis 1
tkgpu.func @short args ["n", "o"] {
^bb0(%n: index, %o: !tkgpu.buffer<f32>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %least = arith.constant dense<0xFF800000> : tensor<64xf32, #rows>
  %none = arith.constant dense<0.0> : tensor<64xf32, #rows>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #scores>
  %nothing = arith.constant dense<0.0> : tensor<64x32xf32, #sums>
  %q = tkgpu.alloc_shared : !q
  %k = tkgpu.alloc_shared : !k
  %v = tkgpu.alloc_shared : !v
  %r:3 = scf.for %j = %c0 to %n step %c64 iter_args(%m = %least, %l = %none, %sum = %nothing) -> (tensor<64xf32, #rows>, tensor<64xf32, #rows>, tensor<64x32xf32, #sums>) {
    %s = tkgpu.warpgroup_dot %q, %k, %zero : !q, !k -> tensor<64x64xf32, #scores>
    %scores = tkgpu.warpgroup_wait %s pending 0 : tensor<64x64xf32, #scores> -> tensor<64x64xf32, #scores>
    %here = tkgpu.reduce <max> %scores axis 1 : tensor<64x64xf32, #scores> -> tensor<64xf32, #rows>
    %most = arith.maximumf %m, %here : tensor<64xf32, #rows>
    %factor = tk.exp_diff %m, %most : tensor<64xf32, #rows>
    %p = tkgpu.reduce <sum> %scores axis 1 : tensor<64x64xf32, #scores> -> tensor<64xf32, #rows>
    %scaled = arith.mulf %l, %factor : tensor<64xf32, #rows>
    %next = arith.addf %scaled, %p : tensor<64xf32, #rows>
    %d = tkgpu.warpgroup_dot %q, %v, %sum : !q, !v -> tensor<64x32xf32, #sums>
    %after = tkgpu.warpgroup_wait %d pending 0 : tensor<64x32xf32, #sums> -> tensor<64x32xf32, #sums>
    scf.yield %most, %next, %after : tensor<64xf32, #rows>, tensor<64xf32, #rows>, tensor<64x32xf32, #sums>
  }
  %i = tkgpu.iota : tensor<64xindex, #rows>
  tkgpu.store %r#1, %o[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<64xf32, #rows>, !tkgpu.buffer<f32>, tensor<64xindex, #rows>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64}

// 160 a score: the exchange runs under products that take longer.
// CHECK-LABEL: tkgpu.func @long
// CHECK-NOT: reduce_in_threads
// CHECK: tkgpu.return
tkgpu.func @long args ["n", "o"] {
^bb0(%n: index, %o: !tkgpu.buffer<f32>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %none = arith.constant dense<0.0> : tensor<64xf32, #rows>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #scores>
  %nothing = arith.constant dense<0.0> : tensor<64x32xf32, #sums>
  %q = tkgpu.alloc_shared : !wq
  %k = tkgpu.alloc_shared : !wk
  %w = tkgpu.alloc_shared : !q
  %v = tkgpu.alloc_shared : !v
  %r:2 = scf.for %j = %c0 to %n step %c64 iter_args(%l = %none, %sum = %nothing) -> (tensor<64xf32, #rows>, tensor<64x32xf32, #sums>) {
    %s = tkgpu.warpgroup_dot %q, %k, %zero : !wq, !wk -> tensor<64x64xf32, #scores>
    %scores = tkgpu.warpgroup_wait %s pending 0 : tensor<64x64xf32, #scores> -> tensor<64x64xf32, #scores>
    %p = tkgpu.reduce <sum> %scores axis 1 : tensor<64x64xf32, #scores> -> tensor<64xf32, #rows>
    %next = arith.addf %l, %p : tensor<64xf32, #rows>
    %d = tkgpu.warpgroup_dot %w, %v, %sum : !q, !v -> tensor<64x32xf32, #sums>
    %after = tkgpu.warpgroup_wait %d pending 0 : tensor<64x32xf32, #sums> -> tensor<64x32xf32, #sums>
    scf.yield %next, %after : tensor<64xf32, #rows>, tensor<64x32xf32, #sums>
  }
  %i = tkgpu.iota : tensor<64xindex, #rows>
  tkgpu.store %r#0, %o[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<64xf32, #rows>, !tkgpu.buffer<f32>, tensor<64xindex, #rows>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64}
