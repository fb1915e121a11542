// RUN: tk-opt %s --tk-join-products | FileCheck %s --enable-var-scope
// RUN: tk-opt %s --tk-join-products --tk-specialize-warps | FileCheck %s --check-prefix=ROLES

// Both right operands become halves of one tile, and one product reads the left operand once.
// CHECK-LABEL: tkgpu.func @shared_left
// CHECK: %[[B:.*]] = tkgpu.alloc_shared : <[64, 256], bf16 chunk = 8 phases = 8 panel = 64>
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (tensor<128x256xf32
// CHECK: tkgpu.bulk_copy %[[B]], {{.*}} {part = array<i64: 1, 0, 128>}
// CHECK: tkgpu.bulk_copy %[[B]], {{.*}} {part = array<i64: 1, 128, 128>}
// CHECK: %[[P:.*]] = tkgpu.warpgroup_dot %{{.*}}, %[[B]], %[[ACC]]
// CHECK-NOT: tkgpu.warpgroup_dot
// CHECK: scf.yield
// CHECK: tkgpu.extract %[[SUM]] at [0, 0]
// CHECK: tkgpu.extract %[[SUM]] at [0, 128]
// CHECK-LABEL: tkgpu.func @two_lefts
// CHECK-NOT: part
// CHECK: tkgpu.return

// One buffer with stages for both copies, which fill a stage together.
// ROLES-LABEL: tkgpu.func @shared_left
// ROLES: tkgpu.phase_expect {{.*}} bytes 49152
// ROLES: tkgpu.bulk_copy {{.*}} {part = array<i64: 1, 0, 128>}
// ROLES: tkgpu.bulk_copy {{.*}} {part = array<i64: 1, 128, 128>}
// ROLES-LABEL: tkgpu.func @two_lefts
#acc = #tkgpu.layout<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
tkgpu.func @shared_left args ["K", "x", "a", "b", "y"] {
^bb0(%K: index, %x_map: !tkgpu.tensor_map, %a_map: !tkgpu.tensor_map, %b_map: !tkgpu.tensor_map, %y: !tkgpu.buffer<f32>):
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32, #acc>
  %x = tkgpu.alloc_shared : <[128, 64], bf16 chunk = 8 phases = 8>
  %a = tkgpu.alloc_shared : <[64, 128], bf16 chunk = 8 phases = 8 panel = 64>
  %b = tkgpu.alloc_shared : <[64, 128], bf16 chunk = 8 phases = 8 panel = 64>
  %r:2 = scf.for %k = %c0 to %K step %c64 iter_args(%s = %zero, %t = %zero) -> (tensor<128x128xf32, #acc>, tensor<128x128xf32, #acc>) {
    tkgpu.bulk_copy %x, %x_map[%c0, %k] : <[128, 64], bf16 chunk = 8 phases = 8>
    tkgpu.bulk_copy %a, %a_map[%k, %c0] : <[64, 128], bf16 chunk = 8 phases = 8 panel = 64>
    %p = tkgpu.warpgroup_dot %x, %a, %s : !tkgpu.shared<[128, 64], bf16 chunk = 8 phases = 8>, <[64, 128], bf16 chunk = 8 phases = 8 panel = 64> -> tensor<128x128xf32, #acc>
    %pd = tkgpu.warpgroup_wait %p pending 0 : tensor<128x128xf32, #acc> -> tensor<128x128xf32, #acc>
    tkgpu.bulk_copy %b, %b_map[%k, %c0] : <[64, 128], bf16 chunk = 8 phases = 8 panel = 64>
    %q = tkgpu.warpgroup_dot %x, %b, %t : !tkgpu.shared<[128, 64], bf16 chunk = 8 phases = 8>, <[64, 128], bf16 chunk = 8 phases = 8 panel = 64> -> tensor<128x128xf32, #acc>
    %qd = tkgpu.warpgroup_wait %q pending 0 : tensor<128x128xf32, #acc> -> tensor<128x128xf32, #acc>
    scf.yield %pd, %qd : tensor<128x128xf32, #acc>, tensor<128x128xf32, #acc>
  }
  %v = arith.mulf %r#0, %r#1 : tensor<128x128xf32, #acc>
  tkgpu.store %v, %y[%c0] dims [array<i64>] strides(%c0) masks() over [] : (tensor<128x128xf32, #acc>, !tkgpu.buffer<f32>, index, index) -> ()
  tkgpu.return
} {num_warps = 8 : i64}

tkgpu.func @two_lefts args ["K", "x", "a", "b", "y"] {
^bb0(%K: index, %x_map: !tkgpu.tensor_map, %a_map: !tkgpu.tensor_map, %b_map: !tkgpu.tensor_map, %y: !tkgpu.buffer<f32>):
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32, #acc>
  %x = tkgpu.alloc_shared : <[128, 64], bf16 chunk = 8 phases = 8>
  %w = tkgpu.alloc_shared : <[128, 64], bf16 chunk = 8 phases = 8>
  %a = tkgpu.alloc_shared : <[64, 128], bf16 chunk = 8 phases = 8 panel = 64>
  %b = tkgpu.alloc_shared : <[64, 128], bf16 chunk = 8 phases = 8 panel = 64>
  %r:2 = scf.for %k = %c0 to %K step %c64 iter_args(%s = %zero, %t = %zero) -> (tensor<128x128xf32, #acc>, tensor<128x128xf32, #acc>) {
    tkgpu.bulk_copy %x, %x_map[%c0, %k] : <[128, 64], bf16 chunk = 8 phases = 8>
    tkgpu.bulk_copy %w, %x_map[%c64, %k] : <[128, 64], bf16 chunk = 8 phases = 8>
    tkgpu.bulk_copy %a, %a_map[%k, %c0] : <[64, 128], bf16 chunk = 8 phases = 8 panel = 64>
    tkgpu.bulk_copy %b, %b_map[%k, %c0] : <[64, 128], bf16 chunk = 8 phases = 8 panel = 64>
    %p = tkgpu.warpgroup_dot %x, %a, %s : !tkgpu.shared<[128, 64], bf16 chunk = 8 phases = 8>, <[64, 128], bf16 chunk = 8 phases = 8 panel = 64> -> tensor<128x128xf32, #acc>
    %pd = tkgpu.warpgroup_wait %p pending 0 : tensor<128x128xf32, #acc> -> tensor<128x128xf32, #acc>
    %q = tkgpu.warpgroup_dot %w, %b, %t : !tkgpu.shared<[128, 64], bf16 chunk = 8 phases = 8>, <[64, 128], bf16 chunk = 8 phases = 8 panel = 64> -> tensor<128x128xf32, #acc>
    %qd = tkgpu.warpgroup_wait %q pending 0 : tensor<128x128xf32, #acc> -> tensor<128x128xf32, #acc>
    scf.yield %pd, %qd : tensor<128x128xf32, #acc>, tensor<128x128xf32, #acc>
  }
  %v = arith.mulf %r#0, %r#1 : tensor<128x128xf32, #acc>
  tkgpu.store %v, %y[%c0] dims [array<i64>] strides(%c0) masks() over [] : (tensor<128x128xf32, #acc>, !tkgpu.buffer<f32>, index, index) -> ()
  tkgpu.return
} {num_warps = 8 : i64}
