// RUN: tk-opt %s --tk-split-masked-steps --canonicalize | FileCheck %s
// RUN: sed s/num_warps.=.8/num_warps=16/ %s | tk-opt --tk-split-masked-steps --canonicalize | FileCheck %s

!q = !tkgpu.shared<[128, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
!k = !tkgpu.shared<[64, 32], bf16 order = [0, 1] chunk = 8 phases = 8>
!v = !tkgpu.shared<[32, 64], bf16 order = [1, 0] chunk = 8 phases = 8>

// Steps at the lower bound, those without masks, and those at the upper bound. A step of 32 places ends by
// the upper bound if it begins before 31 less. Each loop goes on where the one before it ended.
// CHECK-LABEL: tkgpu.func @window args
// CHECK: %[[LAST:.*]] = arith.subi %[[Y:.*]], %c31
// CHECK: %[[END:.*]] = arith.minsi %[[N:.*]], %[[LAST]]
// CHECK: %[[LOW:.*]] = arith.minsi %[[N]], %[[X:.*]] : index
// CHECK: %[[A:.*]]:2 = scf.for %[[I:.*]] = %c0 to %[[LOW]] step %c32
// CHECK: scf.if
// CHECK: %[[FROM:.*]] = arith.muli %{{.*}}, %c32
// CHECK: %[[B:.*]]:2 = scf.for %{{.*}} = %[[FROM]] to %[[END]] step %c32 iter_args(%{{.*}} = %[[A]]#0, %{{.*}} = %[[A]]#1)
// CHECK-NOT: scf.if
// CHECK: arith.truncf
// CHECK: scf.yield
// CHECK: arith.ceildivsi
// CHECK: %[[C:.*]]:2 = scf.for %[[J:.*]] = %{{.*}} to %[[N]] step %c32 iter_args(%{{.*}} = %[[B]]#0, %{{.*}} = %[[B]]#1)
// CHECK: %[[LOWER:.*]] = arith.cmpi slt, %[[J]], %[[X]]
// CHECK: %[[UPPER:.*]] = arith.cmpi sgt, %{{.*}}, %[[Y]]
// CHECK: %[[EITHER:.*]] = arith.ori %[[LOWER]], %[[UPPER]]
// CHECK: scf.if %[[EITHER]]
tkgpu.func @window args ["n", "x", "y"] {
^bb0(%n: index, %x: index, %y: index):
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : tensor<128x32xf32>
  %none = arith.constant dense<0.0> : tensor<128x64xf32>
  %weights = arith.constant dense<0.0> : tensor<128x32xbf16>
  %q = tkgpu.alloc_shared : !q
  %k = tkgpu.alloc_shared : !k
  %v = tkgpu.alloc_shared : !v
  %r:2 = scf.for %j = %c0 to %n step %c32 iter_args(%o = %none, %w = %weights) -> (tensor<128x64xf32>, tensor<128x32xbf16>) {
    %s = tkgpu.warpgroup_dot %q, %k, %zero : !q, !k -> tensor<128x32xf32>
    %p = tkgpu.warpgroup_dot %w, %v, %o : tensor<128x32xbf16>, !v -> tensor<128x64xf32>
    %scores = tkgpu.warpgroup_wait %s pending 1 : tensor<128x32xf32> -> tensor<128x32xf32>
    %is_low = arith.cmpi slt, %j, %x : index
    %end = arith.addi %j, %c32 : index
    %is_high = arith.cmpi sgt, %end, %y : index
    %is_masked = arith.ori %is_low, %is_high : i1
    %masked = scf.if %is_masked -> (tensor<128x32xf32>) {
      %m = arith.mulf %scores, %scores : tensor<128x32xf32>
      scf.yield %m : tensor<128x32xf32>
    } else {
      scf.yield %scores : tensor<128x32xf32>
    }
    %next = arith.truncf %masked : tensor<128x32xf32> to tensor<128x32xbf16>
    %sum = tkgpu.warpgroup_wait %p pending 0 : tensor<128x64xf32> -> tensor<128x64xf32>
    scf.yield %sum, %next : tensor<128x64xf32>, tensor<128x32xbf16>
  }
  tkgpu.return
} {num_warps = 8 : i64, producer_warps = 4 : i64}

// A step without masks is one of a range that is known before it, and has one mask.
// CHECK-LABEL: tkgpu.func @moving args
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: tkgpu.return
// CHECK-LABEL: tkgpu.func @two args
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: tkgpu.return
tkgpu.func @moving args ["n", "x", "y"] {
^bb0(%n: index, %x: index, %y: index):
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : tensor<128x32xf32>
  %none = arith.constant dense<0.0> : tensor<128x64xf32>
  %weights = arith.constant dense<0.0> : tensor<128x32xbf16>
  %q = tkgpu.alloc_shared : !q
  %k = tkgpu.alloc_shared : !k
  %v = tkgpu.alloc_shared : !v
  %r:2 = scf.for %j = %c0 to %n step %c32 iter_args(%o = %none, %w = %weights) -> (tensor<128x64xf32>, tensor<128x32xbf16>) {
    %s = tkgpu.warpgroup_dot %q, %k, %zero : !q, !k -> tensor<128x32xf32>
    %p = tkgpu.warpgroup_dot %w, %v, %o : tensor<128x32xbf16>, !v -> tensor<128x64xf32>
    %scores = tkgpu.warpgroup_wait %s pending 1 : tensor<128x32xf32> -> tensor<128x32xf32>
    %bound = arith.divsi %j, %x : index
    %is_low = arith.cmpi slt, %j, %bound : index
    %end = arith.addi %j, %c32 : index
    %is_high = arith.cmpi sgt, %end, %y : index
    %is_masked = arith.ori %is_low, %is_high : i1
    %masked = scf.if %is_masked -> (tensor<128x32xf32>) {
      %m = arith.mulf %scores, %scores : tensor<128x32xf32>
      scf.yield %m : tensor<128x32xf32>
    } else {
      scf.yield %scores : tensor<128x32xf32>
    }
    %next = arith.truncf %masked : tensor<128x32xf32> to tensor<128x32xbf16>
    %sum = tkgpu.warpgroup_wait %p pending 0 : tensor<128x64xf32> -> tensor<128x64xf32>
    scf.yield %sum, %next : tensor<128x64xf32>, tensor<128x32xbf16>
  }
  tkgpu.return
} {num_warps = 8 : i64, producer_warps = 4 : i64}
tkgpu.func @two args ["n", "x", "y"] {
^bb0(%n: index, %x: index, %y: index):
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : tensor<128x32xf32>
  %none = arith.constant dense<0.0> : tensor<128x64xf32>
  %weights = arith.constant dense<0.0> : tensor<128x32xbf16>
  %q = tkgpu.alloc_shared : !q
  %k = tkgpu.alloc_shared : !k
  %v = tkgpu.alloc_shared : !v
  %r:2 = scf.for %j = %c0 to %n step %c32 iter_args(%o = %none, %w = %weights) -> (tensor<128x64xf32>, tensor<128x32xbf16>) {
    %s = tkgpu.warpgroup_dot %q, %k, %zero : !q, !k -> tensor<128x32xf32>
    %p = tkgpu.warpgroup_dot %w, %v, %o : tensor<128x32xbf16>, !v -> tensor<128x64xf32>
    %scores = tkgpu.warpgroup_wait %s pending 1 : tensor<128x32xf32> -> tensor<128x32xf32>
    %is_low = arith.cmpi slt, %j, %x : index
    %end = arith.addi %j, %c32 : index
    %is_high = arith.cmpi sgt, %end, %y : index
    %is_masked = arith.ori %is_low, %is_high : i1
    %masked = scf.if %is_masked -> (tensor<128x32xf32>) {
      %m = arith.mulf %scores, %scores : tensor<128x32xf32>
      scf.yield %m : tensor<128x32xf32>
    } else {
      scf.yield %scores : tensor<128x32xf32>
    }
    %other = scf.if %is_low -> (tensor<128x32xf32>) {
      %m = arith.addf %masked, %masked : tensor<128x32xf32>
      scf.yield %m : tensor<128x32xf32>
    } else {
      scf.yield %masked : tensor<128x32xf32>
    }
    %next = arith.truncf %other : tensor<128x32xf32> to tensor<128x32xbf16>
    %sum = tkgpu.warpgroup_wait %p pending 0 : tensor<128x64xf32> -> tensor<128x64xf32>
    scf.yield %sum, %next : tensor<128x64xf32>, tensor<128x32xbf16>
  }
  tkgpu.return
} {num_warps = 8 : i64, producer_warps = 4 : i64}

// Nor is a range divided that has four steps at most,
// CHECK-LABEL: tkgpu.func @few args
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: tkgpu.return
tkgpu.func @few args ["i", "x", "y"] {
^bb0(%i: index, %x: index, %y: index):
  %c128 = arith.constant 128 : index
  %n = arith.minsi %i, %c128 : index
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : tensor<128x32xf32>
  %none = arith.constant dense<0.0> : tensor<128x64xf32>
  %weights = arith.constant dense<0.0> : tensor<128x32xbf16>
  %q = tkgpu.alloc_shared : !q
  %k = tkgpu.alloc_shared : !k
  %v = tkgpu.alloc_shared : !v
  %r:2 = scf.for %j = %c0 to %n step %c32 iter_args(%o = %none, %w = %weights) -> (tensor<128x64xf32>, tensor<128x32xbf16>) {
    %s = tkgpu.warpgroup_dot %q, %k, %zero : !q, !k -> tensor<128x32xf32>
    %p = tkgpu.warpgroup_dot %w, %v, %o : tensor<128x32xbf16>, !v -> tensor<128x64xf32>
    %scores = tkgpu.warpgroup_wait %s pending 1 : tensor<128x32xf32> -> tensor<128x32xf32>
    %is_low = arith.cmpi slt, %j, %x : index
    %end = arith.addi %j, %c32 : index
    %is_high = arith.cmpi sgt, %end, %y : index
    %is_masked = arith.ori %is_low, %is_high : i1
    %masked = scf.if %is_masked -> (tensor<128x32xf32>) {
      %m = arith.mulf %scores, %scores : tensor<128x32xf32>
      scf.yield %m : tensor<128x32xf32>
    } else {
      scf.yield %scores : tensor<128x32xf32>
    }
    %next = arith.truncf %masked : tensor<128x32xf32> to tensor<128x32xbf16>
    %sum = tkgpu.warpgroup_wait %p pending 0 : tensor<128x64xf32> -> tensor<128x64xf32>
    scf.yield %sum, %next : tensor<128x64xf32>, tensor<128x32xbf16>
  }
  tkgpu.return
} {num_warps = 8 : i64, producer_warps = 4 : i64}

// or one whose steps compute functions of many instructions.
// CHECK-LABEL: tkgpu.func @long args
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: tkgpu.return
tkgpu.func @long args ["n", "x", "y"] {
^bb0(%n: index, %x: index, %y: index):
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : tensor<128x32xf32>
  %none = arith.constant dense<0.0> : tensor<128x64xf32>
  %weights = arith.constant dense<0.0> : tensor<128x32xbf16>
  %q = tkgpu.alloc_shared : !q
  %k = tkgpu.alloc_shared : !k
  %v = tkgpu.alloc_shared : !v
  %r:2 = scf.for %j = %c0 to %n step %c32 iter_args(%o = %none, %w = %weights) -> (tensor<128x64xf32>, tensor<128x32xbf16>) {
    %s = tkgpu.warpgroup_dot %q, %k, %zero : !q, !k -> tensor<128x32xf32>
    %p = tkgpu.warpgroup_dot %w, %v, %o : tensor<128x32xbf16>, !v -> tensor<128x64xf32>
    %scores = tkgpu.warpgroup_wait %s pending 1 : tensor<128x32xf32> -> tensor<128x32xf32>
    %cap = math.tanh %scores : tensor<128x32xf32>
    %is_low = arith.cmpi slt, %j, %x : index
    %end = arith.addi %j, %c32 : index
    %is_high = arith.cmpi sgt, %end, %y : index
    %is_masked = arith.ori %is_low, %is_high : i1
    %masked = scf.if %is_masked -> (tensor<128x32xf32>) {
      %m = arith.mulf %cap, %cap : tensor<128x32xf32>
      scf.yield %m : tensor<128x32xf32>
    } else {
      scf.yield %cap : tensor<128x32xf32>
    }
    %next = arith.truncf %masked : tensor<128x32xf32> to tensor<128x32xbf16>
    %sum = tkgpu.warpgroup_wait %p pending 0 : tensor<128x64xf32> -> tensor<128x64xf32>
    scf.yield %sum, %next : tensor<128x64xf32>, tensor<128x32xbf16>
  }
  tkgpu.return
} {num_warps = 8 : i64, producer_warps = 4 : i64}
