// RUN: tk-opt %s --tk-overlap-chains --canonicalize | FileCheck %s

!q = !tkgpu.shared<[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
!k = !tkgpu.shared<[64, 32], bf16 order = [0, 1] chunk = 8 phases = 8>
!v = !tkgpu.shared<[32, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
!ring = !tkgpu.shared<[2, 32, 64], bf16 order = [2, 1, 0] chunk = 8 phases = 8>

// Scores, weights that follow from them, and their weighted sum. The first iteration's weights are
// computed before the loop. In the loop the sum's product is that of the weights before; it begins
// right after the scores' product, which alone is waited for. The ring of the values is entered
// and left with the product, so that its position lags by one; the last product comes after the loop.
// CHECK-LABEL: tkgpu.func @chain
// CHECK: scf.if
// CHECK:   %[[S0:.*]] = tkgpu.warpgroup_dot %[[Q:.*]], %[[K:.*]], %[[ZERO:.*]] :
// CHECK:   %[[S1:.*]] = tkgpu.warpgroup_wait %[[S0]] pending 0
// CHECK:   %[[W0:.*]] = arith.truncf %[[S1]]
// CHECK:   %[[LOOP:.*]]:3 = scf.for {{.*}} iter_args(%[[O:.*]] = %{{.*}}, %[[SLOT:.*]] = %{{.*}}, %[[W:.*]] = %[[W0]])
// CHECK:     %[[S:.*]] = tkgpu.warpgroup_dot %[[Q]], %[[K]], %[[ZERO]] :
// CHECK:     tkgpu.phase_wait %[[FULL:.*]][%[[SLOT]]]
// CHECK:     %[[V:.*]] = tkgpu.stage %{{.*}}[%[[SLOT]]]
// CHECK:     %[[P:.*]] = tkgpu.warpgroup_dot %[[W]], %[[V]], %[[O]] :
// CHECK:     %[[DONE:.*]] = tkgpu.warpgroup_wait %[[S]] pending 1
// CHECK:     %[[NEXT:.*]] = arith.truncf %[[DONE]]
// CHECK:     %[[SUM:.*]] = tkgpu.warpgroup_wait %[[P]] pending 0
// CHECK:     tkgpu.phase_arrive %[[EMPTY:.*]][%[[SLOT]]]
// CHECK:     %[[OTHER:.*]] = arith.subi %{{.*}}, %[[SLOT]]
// CHECK:     %[[SCALED:.*]] = arith.mulf %[[SUM]],
// CHECK:     scf.yield %[[SCALED]], %[[OTHER]], %[[NEXT]]
// CHECK:   tkgpu.phase_wait %[[FULL]][%[[LOOP]]#1]
// CHECK:   %[[LAST:.*]] = tkgpu.warpgroup_dot %[[LOOP]]#2, %{{.*}}, %[[LOOP]]#0 :
// CHECK:   tkgpu.warpgroup_wait %[[LAST]] pending 0
// CHECK:   tkgpu.phase_arrive %[[EMPTY]][%[[LOOP]]#1]
tkgpu.func @chain args ["n"] {
^bb0(%n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %q = tkgpu.alloc_shared : !q
  %k = tkgpu.alloc_shared : !k
  %ring = tkgpu.alloc_shared : !ring
  %full = tkgpu.alloc_phases arrivals 1 : <2>
  %empty = tkgpu.alloc_phases arrivals 4 : <2>
  %r:2 = scf.for %j = %c0 to %n step %c32 iter_args(%o = %none, %slot = %c0) -> (tensor<64x64xf32>, index) {
    %s = tkgpu.warpgroup_dot %q, %k, %zero : !q, !k -> tensor<64x32xf32>
    %scores = tkgpu.warpgroup_wait %s pending 0 : tensor<64x32xf32> -> tensor<64x32xf32>
    %w = arith.truncf %scores : tensor<64x32xf32> to tensor<64x32xbf16>
    %row = tkgpu.reduce <max> %scores axis 1 : tensor<64x32xf32> -> tensor<64xf32>
    %factor = tkgpu.broadcast %row dims [0] : tensor<64xf32> -> tensor<64x64xf32>
    %scaled = arith.mulf %o, %factor : tensor<64x64xf32>
    tkgpu.phase_wait %full[%slot] parity %c0 : <2>
    %v = tkgpu.stage %ring[%slot] : !ring -> !v
    %p = tkgpu.warpgroup_dot %w, %v, %scaled : tensor<64x32xbf16>, !v -> tensor<64x64xf32>
    %sum = tkgpu.warpgroup_wait %p pending 0 : tensor<64x64xf32> -> tensor<64x64xf32>
    tkgpu.phase_arrive %empty[%slot] : <2>
    %other = arith.subi %c1, %slot : index
    scf.yield %sum, %other : tensor<64x64xf32>, index
  }
  tkgpu.return
} {num_warps = 4 : i64, producer_warps = 4 : i64}

// Where nothing happens to the sum, weights are converted once those before have been read.
// CHECK-LABEL: tkgpu.func @unscaled
// CHECK: scf.for
// CHECK:     %[[S:.*]] = tkgpu.warpgroup_dot
// CHECK:     %[[P:.*]] = tkgpu.warpgroup_dot
// CHECK:     %[[DONE:.*]] = tkgpu.warpgroup_wait %[[S]] pending 1
// CHECK-NOT: truncf
// CHECK:     %[[SUM:.*]] = tkgpu.warpgroup_wait %[[P]] pending 0
// CHECK:     %[[NEXT:.*]] = arith.truncf %[[DONE]]
// CHECK:     scf.yield %[[SUM]], %{{.*}}, %[[NEXT]]
tkgpu.func @unscaled args ["n"] {
^bb0(%n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %q = tkgpu.alloc_shared : !q
  %k = tkgpu.alloc_shared : !k
  %ring = tkgpu.alloc_shared : !ring
  %full = tkgpu.alloc_phases arrivals 1 : <2>
  %empty = tkgpu.alloc_phases arrivals 4 : <2>
  %r:2 = scf.for %j = %c0 to %n step %c32 iter_args(%o = %none, %slot = %c0) -> (tensor<64x64xf32>, index) {
    %s = tkgpu.warpgroup_dot %q, %k, %zero : !q, !k -> tensor<64x32xf32>
    %scores = tkgpu.warpgroup_wait %s pending 0 : tensor<64x32xf32> -> tensor<64x32xf32>
    %w = arith.truncf %scores : tensor<64x32xf32> to tensor<64x32xbf16>
    tkgpu.phase_wait %full[%slot] parity %c0 : <2>
    %v = tkgpu.stage %ring[%slot] : !ring -> !v
    %p = tkgpu.warpgroup_dot %w, %v, %o : tensor<64x32xbf16>, !v -> tensor<64x64xf32>
    %sum = tkgpu.warpgroup_wait %p pending 0 : tensor<64x64xf32> -> tensor<64x64xf32>
    tkgpu.phase_arrive %empty[%slot] : <2>
    %other = arith.subi %c1, %slot : index
    scf.yield %sum, %other : tensor<64x64xf32>, index
  }
  tkgpu.return
} {num_warps = 4 : i64, producer_warps = 4 : i64}

// So are weights that a mask then makes 0.
// CHECK-LABEL: tkgpu.func @masked
// CHECK: scf.for
// CHECK:     %[[S:.*]] = tkgpu.warpgroup_dot
// CHECK:     %[[P:.*]] = tkgpu.warpgroup_dot
// CHECK:     %[[DONE:.*]] = tkgpu.warpgroup_wait %[[S]] pending 1
// CHECK-NOT: truncf
// CHECK:     %[[SUM:.*]] = tkgpu.warpgroup_wait %[[P]] pending 0
// CHECK:     %[[NEXT:.*]] = arith.truncf %[[DONE]]
// CHECK:     %[[KEPT:.*]] = arith.select %{{.*}}, %[[NEXT]], %{{.*}}
// CHECK:     scf.yield %[[SUM]], %{{.*}}, %[[KEPT]]
tkgpu.func @masked args ["n"] {
^bb0(%n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %noWeight = arith.constant dense<0.0> : tensor<64x32xbf16>
  %isSeen = arith.cmpi sgt, %n, %c1 : index
  %q = tkgpu.alloc_shared : !q
  %k = tkgpu.alloc_shared : !k
  %ring = tkgpu.alloc_shared : !ring
  %full = tkgpu.alloc_phases arrivals 1 : <2>
  %empty = tkgpu.alloc_phases arrivals 4 : <2>
  %r:2 = scf.for %j = %c0 to %n step %c32 iter_args(%o = %none, %slot = %c0) -> (tensor<64x64xf32>, index) {
    %s = tkgpu.warpgroup_dot %q, %k, %zero : !q, !k -> tensor<64x32xf32>
    %scores = tkgpu.warpgroup_wait %s pending 0 : tensor<64x32xf32> -> tensor<64x32xf32>
    %rounded = arith.truncf %scores : tensor<64x32xf32> to tensor<64x32xbf16>
    %mask = tkgpu.broadcast %isSeen dims [] : i1 -> tensor<64x32xi1>
    %w = arith.select %mask, %rounded, %noWeight : tensor<64x32xi1>, tensor<64x32xbf16>
    tkgpu.phase_wait %full[%slot] parity %c0 : <2>
    %v = tkgpu.stage %ring[%slot] : !ring -> !v
    %p = tkgpu.warpgroup_dot %w, %v, %o : tensor<64x32xbf16>, !v -> tensor<64x64xf32>
    %sum = tkgpu.warpgroup_wait %p pending 0 : tensor<64x64xf32> -> tensor<64x64xf32>
    tkgpu.phase_arrive %empty[%slot] : <2>
    %other = arith.subi %c1, %slot : index
    scf.yield %sum, %other : tensor<64x64xf32>, index
  }
  tkgpu.return
} {num_warps = 4 : i64, producer_warps = 4 : i64}

// A second product whose operand does not follow from the first one's result stays.
// CHECK-LABEL: tkgpu.func @apart
// CHECK-NOT: scf.if
// CHECK: pending 0
// CHECK: pending 0
// CHECK: tkgpu.return
tkgpu.func @apart args ["n"] {
^bb0(%n: index):
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %none = arith.constant dense<0.0> : tensor<64x32xf32>
  %q = tkgpu.alloc_shared : !q
  %k = tkgpu.alloc_shared : !k
  %r:2 = scf.for %j = %c0 to %n step %c32 iter_args(%a = %none, %b = %none) -> (tensor<64x32xf32>, tensor<64x32xf32>) {
    %s = tkgpu.warpgroup_dot %q, %k, %a : !q, !k -> tensor<64x32xf32>
    %x = tkgpu.warpgroup_wait %s pending 0 : tensor<64x32xf32> -> tensor<64x32xf32>
    %t = tkgpu.warpgroup_dot %q, %k, %b : !q, !k -> tensor<64x32xf32>
    %y = tkgpu.warpgroup_wait %t pending 0 : tensor<64x32xf32> -> tensor<64x32xf32>
    scf.yield %x, %y : tensor<64x32xf32>, tensor<64x32xf32>
  }
  tkgpu.return
} {num_warps = 4 : i64, producer_warps = 4 : i64}

// The left operand's stage goes around with the tiles: it is left once the last scores have been computed, before
// the last weighted sum, and where there were no iterations.
// CHECK-LABEL: tkgpu.func @tiles
// CHECK: scf.for {{.*}} iter_args(%[[TILE:[a-z0-9]+]] = %{{.*}})
// CHECK: scf.if
// CHECK: scf.for
// CHECK: scf.yield
// CHECK: tkgpu.phase_arrive %[[LEFT:.*]][%[[TILE]]]
// CHECK: tkgpu.warpgroup_dot
// CHECK: } else {
// CHECK-NEXT: tkgpu.phase_arrive %[[LEFT]][%[[TILE]]]
// CHECK: }
// CHECK-NOT: tkgpu.phase_arrive
// CHECK: tkgpu.return
!queries = !tkgpu.shared<[2, 64, 64], bf16 order = [2, 1, 0] chunk = 8 phases = 8>
tkgpu.func @tiles args ["n"] {
^bb0(%n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %tiles = tkgpu.alloc_shared : !queries
  %k = tkgpu.alloc_shared : !k
  %ring = tkgpu.alloc_shared : !ring
  %left = tkgpu.alloc_phases arrivals 4 : <2>
  %full = tkgpu.alloc_phases arrivals 1 : <2>
  %empty = tkgpu.alloc_phases arrivals 4 : <2>
  %last:2 = scf.for %i = %c0 to %n step %c1 iter_args(%tile = %c0, %at = %c0) -> (index, index) {
    %q = tkgpu.stage %tiles[%tile] : !queries -> !q
    %r:2 = scf.for %j = %c0 to %i step %c32 iter_args(%o = %none, %slot = %at) -> (tensor<64x64xf32>, index) {
      %s = tkgpu.warpgroup_dot %q, %k, %zero : !q, !k -> tensor<64x32xf32>
      %scores = tkgpu.warpgroup_wait %s pending 0 : tensor<64x32xf32> -> tensor<64x32xf32>
      %w = arith.truncf %scores : tensor<64x32xf32> to tensor<64x32xbf16>
      tkgpu.phase_wait %full[%slot] parity %c0 : <2>
      %v = tkgpu.stage %ring[%slot] : !ring -> !v
      %p = tkgpu.warpgroup_dot %w, %v, %o : tensor<64x32xbf16>, !v -> tensor<64x64xf32>
      %sum = tkgpu.warpgroup_wait %p pending 0 : tensor<64x64xf32> -> tensor<64x64xf32>
      tkgpu.phase_arrive %empty[%slot] : <2>
      %other = arith.subi %c1, %slot : index
      scf.yield %sum, %other : tensor<64x64xf32>, index
    }
    tkgpu.phase_arrive %left[%tile] : <2>
    %next = arith.subi %c1, %tile : index
    scf.yield %next, %r#1 : index, index
  }
  tkgpu.return
} {num_warps = 4 : i64, producer_warps = 4 : i64}
