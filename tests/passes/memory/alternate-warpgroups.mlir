// RUN: tk-opt %s --tk-alternate-warpgroups | FileCheck %s
// RUN: sed s/num_warps.=.8/num_warps=4/ %s | tk-opt --tk-alternate-warpgroups | FileCheck %s --check-prefix=ONE

!q = !tkgpu.shared<[128, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
!k = !tkgpu.shared<[64, 32], bf16 order = [0, 1] chunk = 8 phases = 8>
!v = !tkgpu.shared<[32, 64], bf16 order = [1, 0] chunk = 8 phases = 8>

// Both products of an iteration begin in one turn; the loop whose product is waited for at once has none. A
// warpgroup alone has nobody to take turns with.
// CHECK-LABEL: tkgpu.func @chain
// CHECK: } consumer {
// CHECK-NEXT: tkgpu.turn begin
// CHECK: scf.for
// CHECK-NOT: tkgpu.turn
// CHECK: scf.for
// CHECK: tkgpu.phase_wait
// CHECK: tkgpu.turn take
// CHECK-NEXT: tkgpu.warpgroup_dot
// CHECK: tkgpu.warpgroup_dot
// CHECK-NEXT: tkgpu.turn pass
// CHECK-NEXT: tkgpu.warpgroup_wait %{{.*}} pending 1
// CHECK-NOT: tkgpu.turn
// ONE-NOT: tkgpu.turn
tkgpu.func @chain args ["n"] {
^bb0(%n: index):
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : tensor<128x32xf32>
  %none = arith.constant dense<0.0> : tensor<128x64xf32>
  %weights = arith.constant dense<0.0> : tensor<128x32xbf16>
  %q = tkgpu.alloc_shared : !q
  %k = tkgpu.alloc_shared : !k
  %v = tkgpu.alloc_shared : !v
  %full = tkgpu.alloc_phases arrivals 1 : <2>
  tkgpu.warp_roles producer {
  } consumer {
    %a = scf.for %j = %c0 to %n step %c32 iter_args(%s = %zero) -> (tensor<128x32xf32>) {
      %p = tkgpu.warpgroup_dot %q, %k, %s : !q, !k -> tensor<128x32xf32>
      %d = tkgpu.warpgroup_wait %p pending 0 : tensor<128x32xf32> -> tensor<128x32xf32>
      scf.yield %d : tensor<128x32xf32>
    }
    %r:2 = scf.for %j = %c0 to %n step %c32 iter_args(%o = %none, %w = %weights) -> (tensor<128x64xf32>, tensor<128x32xbf16>) {
      tkgpu.phase_wait %full[%c0] parity %c0 : <2>
      %s = tkgpu.warpgroup_dot %q, %k, %zero : !q, !k -> tensor<128x32xf32>
      %p = tkgpu.warpgroup_dot %w, %v, %o : tensor<128x32xbf16>, !v -> tensor<128x64xf32>
      %scores = tkgpu.warpgroup_wait %s pending 1 : tensor<128x32xf32> -> tensor<128x32xf32>
      %next = arith.truncf %scores : tensor<128x32xf32> to tensor<128x32xbf16>
      %sum = tkgpu.warpgroup_wait %p pending 0 : tensor<128x64xf32> -> tensor<128x64xf32>
      scf.yield %sum, %next : tensor<128x64xf32>, tensor<128x32xbf16>
    }
  }
  tkgpu.return
} {num_warps = 8 : i64, producer_warps = 4 : i64}
