// RUN: tk-opt %s --tk-stagger-warpgroups | FileCheck %s
// RUN: tk-opt %s --tk-stagger-warpgroups --tk-alternate-warpgroups | FileCheck %s --check-prefix=ALONE
// RUN: sed s/num_warps.=.8/num_warps=4/ %s | tk-opt --tk-stagger-warpgroups | FileCheck %s --check-prefix=ONE

!a = !tkgpu.shared<[128, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
!b = !tkgpu.shared<[64, 32], bf16 order = [0, 1] chunk = 8 phases = 8>

// The second warpgroup waits before the stage of its last steps, one fewer than stages, or of the first one; the
// first one leads when the products of its last step have begun. Such a loop takes no turns, and a warpgroup alone
// has nobody to lead. A loop of no more steps than half the stages has neither: the first warpgroup could lead twice
// before the second one waits.
// CHECK-LABEL: tkgpu.func @sums
// CHECK: scf.for
// CHECK: %[[HALF:.*]] = arith.constant 2
// CHECK-NEXT: %[[LENGTH:.*]] = arith.subi
// CHECK-NEXT: %[[MOST:.*]] = arith.muli %{{.*}}, %[[HALF]]
// CHECK-NEXT: %[[LONG:.*]] = arith.cmpi sgt, %[[LENGTH]], %[[MOST]]
// CHECK: scf.for %[[K:.*]] = %[[LOW:.*]] to %[[END:.*]] step %[[STEP:.*]] iter_args
// CHECK-DAG: %[[LEFT:.*]] = arith.subi %[[END]], %[[K]]
// CHECK-DAG: %[[STEPS:.*]] = arith.constant 3
// CHECK-DAG: %[[SPAN:.*]] = arith.muli %[[STEP]], %[[STEPS]]
// CHECK-DAG: %[[BEFORE:.*]] = arith.addi %[[LEFT]], %[[STEP]]
// CHECK-DAG: %[[LATE:.*]] = arith.cmpi sle, %[[LEFT]], %[[SPAN]]
// CHECK-DAG: %[[EARLY:.*]] = arith.cmpi sgt, %[[BEFORE]], %[[SPAN]]
// CHECK-DAG: %[[FIRST:.*]] = arith.cmpi eq, %[[K]], %[[LOW]]
// CHECK-DAG: %[[BEGINS:.*]] = arith.ori %[[EARLY]], %[[FIRST]]
// CHECK: %[[NOW:.*]] = arith.andi %[[LATE]], %[[BEGINS]]
// CHECK-NEXT: %[[FOLLOWS:.*]] = arith.andi %[[LONG]], %[[NOW]]
// CHECK-NEXT: scf.if %[[FOLLOWS]] {
// CHECK-NEXT: tkgpu.turn follow
// CHECK-NEXT: }
// CHECK-NEXT: tkgpu.phase_wait
// CHECK: tkgpu.warpgroup_dot
// CHECK: tkgpu.warpgroup_dot
// CHECK-NEXT: %[[LAST:.*]] = arith.cmpi sle, %[[LEFT]], %[[STEP]]
// CHECK-NEXT: %[[LEADS:.*]] = arith.andi %[[LONG]], %[[LAST]]
// CHECK-NEXT: scf.if %[[LEADS]] {
// CHECK-NEXT: tkgpu.turn lead
// CHECK: tkgpu.warpgroup_wait
// ALONE-LABEL: tkgpu.func @sums
// ALONE-NOT: tkgpu.turn {{begin|take|pass}}
// ALONE: tkgpu.func @once
// ONE-NOT: tkgpu.turn
tkgpu.func @sums args ["n", "tiles"] {
^bb0(%n: index, %tiles: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<128x32xf32>
  %a = tkgpu.alloc_shared : !a
  %b = tkgpu.alloc_shared : !b
  %full = tkgpu.alloc_phases arrivals 1 : <4>
  %empty = tkgpu.alloc_phases arrivals 8 : <4>
  tkgpu.warp_roles producer {
  } consumer {
    scf.for %t = %c0 to %tiles step %c1 {
      %r:4 = scf.for %k = %c0 to %n step %c64 iter_args(%s = %zero, %u = %zero, %slot = %c0, %before = %c0) -> (tensor<128x32xf32>, tensor<128x32xf32>, index, index) {
        %later = arith.cmpi ne, %k, %c0 : index
        tkgpu.phase_wait %full[%slot] parity %c0 : <4>
        %p = tkgpu.warpgroup_dot %a, %b, %s : !a, !b -> tensor<128x32xf32>
        %q = tkgpu.warpgroup_dot %a, %b, %u : !a, !b -> tensor<128x32xf32>
        %d:2 = tkgpu.warpgroup_wait %p, %q pending 2 : tensor<128x32xf32>, tensor<128x32xf32> -> tensor<128x32xf32>, tensor<128x32xf32>
        %next = arith.addi %slot, %c1 : index
        scf.if %later {
          tkgpu.phase_arrive %empty[%before] : <4>
        }
        scf.yield %d#0, %d#1, %next, %slot : tensor<128x32xf32>, tensor<128x32xf32>, index, index
      }
      %f:2 = tkgpu.warpgroup_wait %r#0, %r#1 pending 0 : tensor<128x32xf32>, tensor<128x32xf32> -> tensor<128x32xf32>, tensor<128x32xf32>
    }
  }
  tkgpu.return
} {num_warps = 8 : i64, producer_warps = 4 : i64}

// A block with one tile has no other products to work under; sums that a step adds up or waits for are worked on in
// between already; of a step that lets go of its stages later too many may be held.
// CHECK-NOT: tkgpu.turn
tkgpu.func @once args ["n"] {
^bb0(%n: index):
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<128x32xf32>
  %a = tkgpu.alloc_shared : !a
  %b = tkgpu.alloc_shared : !b
  %full = tkgpu.alloc_phases arrivals 1 : <4>
  tkgpu.warp_roles producer {
  } consumer {
    %r = scf.for %k = %c0 to %n step %c64 iter_args(%s = %zero) -> (tensor<128x32xf32>) {
      tkgpu.phase_wait %full[%c0] parity %c0 : <4>
      %p = tkgpu.warpgroup_dot %a, %b, %s : !a, !b -> tensor<128x32xf32>
      %d = tkgpu.warpgroup_wait %p pending 1 : tensor<128x32xf32> -> tensor<128x32xf32>
      scf.yield %d : tensor<128x32xf32>
    }
  }
  tkgpu.return
} {num_warps = 8 : i64, producer_warps = 4 : i64}

tkgpu.func @added_up args ["n", "tiles"] {
^bb0(%n: index, %tiles: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<128x32xf32>
  %a = tkgpu.alloc_shared : !a
  %b = tkgpu.alloc_shared : !b
  %full = tkgpu.alloc_phases arrivals 1 : <4>
  tkgpu.warp_roles producer {
  } consumer {
    scf.for %t = %c0 to %tiles step %c1 {
      %r = scf.for %k = %c0 to %n step %c64 iter_args(%s = %zero) -> (tensor<128x32xf32>) {
        tkgpu.phase_wait %full[%c0] parity %c0 : <4>
        %p = tkgpu.warpgroup_dot %a, %b, %zero : !a, !b -> tensor<128x32xf32>
        %d = tkgpu.warpgroup_wait %p pending 1 : tensor<128x32xf32> -> tensor<128x32xf32>
        %sum = arith.addf %s, %d : tensor<128x32xf32>
        scf.yield %sum : tensor<128x32xf32>
      }
    }
  }
  tkgpu.return
} {num_warps = 8 : i64, producer_warps = 4 : i64}

tkgpu.func @at_once args ["n", "tiles"] {
^bb0(%n: index, %tiles: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<128x32xf32>
  %a = tkgpu.alloc_shared : !a
  %b = tkgpu.alloc_shared : !b
  %full = tkgpu.alloc_phases arrivals 1 : <4>
  tkgpu.warp_roles producer {
  } consumer {
    scf.for %t = %c0 to %tiles step %c1 {
      %r = scf.for %k = %c0 to %n step %c64 iter_args(%s = %zero) -> (tensor<128x32xf32>) {
        tkgpu.phase_wait %full[%c0] parity %c0 : <4>
        %p = tkgpu.warpgroup_dot %a, %b, %s : !a, !b -> tensor<128x32xf32>
        %d = tkgpu.warpgroup_wait %p pending 0 : tensor<128x32xf32> -> tensor<128x32xf32>
        scf.yield %d : tensor<128x32xf32>
      }
    }
  }
  tkgpu.return
} {num_warps = 8 : i64, producer_warps = 4 : i64}

tkgpu.func @held args ["n", "tiles"] {
^bb0(%n: index, %tiles: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<128x32xf32>
  %a = tkgpu.alloc_shared : !a
  %b = tkgpu.alloc_shared : !b
  %full = tkgpu.alloc_phases arrivals 1 : <4>
  %empty = tkgpu.alloc_phases arrivals 8 : <4>
  tkgpu.warp_roles producer {
  } consumer {
    scf.for %t = %c0 to %tiles step %c1 {
      %r:4 = scf.for %k = %c0 to %n step %c64 iter_args(%s = %zero, %slot = %c0, %before = %c0, %first = %c0) -> (tensor<128x32xf32>, index, index, index) {
        tkgpu.phase_wait %full[%slot] parity %c0 : <4>
        %p = tkgpu.warpgroup_dot %a, %b, %s : !a, !b -> tensor<128x32xf32>
        %d = tkgpu.warpgroup_wait %p pending 1 : tensor<128x32xf32> -> tensor<128x32xf32>
        %next = arith.addi %slot, %c1 : index
        tkgpu.phase_arrive %empty[%first] : <4>
        scf.yield %d, %next, %slot, %before : tensor<128x32xf32>, index, index, index
      }
    }
  }
  tkgpu.return
} {num_warps = 8 : i64, producer_warps = 4 : i64}

// Two steps of 64 of four stages are known to be too few.
// CHECK-LABEL: tkgpu.func @short
// CHECK-NOT: tkgpu.turn
tkgpu.func @short args ["tiles"] {
^bb0(%tiles: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %end = arith.constant 128 : index
  %zero = arith.constant dense<0.0> : tensor<128x32xf32>
  %a = tkgpu.alloc_shared : !a
  %b = tkgpu.alloc_shared : !b
  %full = tkgpu.alloc_phases arrivals 1 : <4>
  tkgpu.warp_roles producer {
  } consumer {
    scf.for %t = %c0 to %tiles step %c1 {
      %r = scf.for %k = %c0 to %end step %c64 iter_args(%s = %zero) -> (tensor<128x32xf32>) {
        tkgpu.phase_wait %full[%c0] parity %c0 : <4>
        %p = tkgpu.warpgroup_dot %a, %b, %s : !a, !b -> tensor<128x32xf32>
        %d = tkgpu.warpgroup_wait %p pending 1 : tensor<128x32xf32> -> tensor<128x32xf32>
        scf.yield %d : tensor<128x32xf32>
      }
    }
  }
  tkgpu.return
} {num_warps = 8 : i64, producer_warps = 4 : i64}

// Three steps are enough.
// CHECK-LABEL: tkgpu.func @long
// CHECK: tkgpu.turn follow
// CHECK: tkgpu.turn lead
tkgpu.func @long args ["tiles"] {
^bb0(%tiles: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %end = arith.constant 192 : index
  %zero = arith.constant dense<0.0> : tensor<128x32xf32>
  %a = tkgpu.alloc_shared : !a
  %b = tkgpu.alloc_shared : !b
  %full = tkgpu.alloc_phases arrivals 1 : <4>
  tkgpu.warp_roles producer {
  } consumer {
    scf.for %t = %c0 to %tiles step %c1 {
      %r = scf.for %k = %c0 to %end step %c64 iter_args(%s = %zero) -> (tensor<128x32xf32>) {
        tkgpu.phase_wait %full[%c0] parity %c0 : <4>
        %p = tkgpu.warpgroup_dot %a, %b, %s : !a, !b -> tensor<128x32xf32>
        %d = tkgpu.warpgroup_wait %p pending 1 : tensor<128x32xf32> -> tensor<128x32xf32>
        scf.yield %d : tensor<128x32xf32>
      }
    }
  }
  tkgpu.return
} {num_warps = 8 : i64, producer_warps = 4 : i64}
