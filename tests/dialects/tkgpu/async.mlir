// RUN: tk-opt %s | tk-opt | FileCheck %s

// CHECK: #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>} {

// CHECK-LABEL: tkgpu.func @roles
// CHECK: %[[A:.*]] = tkgpu.alloc_shared : <[4, 128, 64], bf16 order = [2, 1, 0] chunk = 8 phases = 8>
// CHECK: %[[B:.*]] = tkgpu.alloc_shared : <[4, 64, 256], bf16 order = [2, 1, 0] chunk = 8 phases = 8 panel = 64>
// CHECK: %[[FULL:.*]] = tkgpu.alloc_phases arrivals 1 : <4>
// CHECK: tkgpu.warp_roles producer {
// CHECK: tkgpu.phase_wait %{{.*}}[%{{.*}}] parity %{{.*}} : <4>
// CHECK: tkgpu.phase_expect %[[FULL]][%{{.*}}] bytes 49152 : <4>
// CHECK: tkgpu.bulk_copy %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] signals %[[FULL]][%{{.*}}] : <[128, 64], bf16
// CHECK: } consumer {
// CHECK: tkgpu.warpgroup_dot %{{.*}}, %{{.*}}, %{{.*}} : !tkgpu.shared<[128, 64], bf16 {{.*}}, <[64, 256], bf16 {{.*}} -> tensor<128x256xf32>
// CHECK: tkgpu.warpgroup_wait %{{.*}} pending 0 : tensor<128x256xf32> -> tensor<128x256xf32>
// CHECK: tkgpu.phase_arrive
// CHECK: tkgpu.arrive_before %{{.*}}[%{{.*}}], %{{.*}} : <4>, tensor<128xf32>
// CHECK: } {consumer_registers = 240 : i64, producer_registers = 24 : i64}
// CHECK: #tkgpu.schedule<tile = [128, 256], reduce = [64], warps = 8, per_thread = 128, vector = 16, stages = 4, group = 8, persistent = 1, cluster = 2>
tkgpu.func @roles args ["a", "b"] {
^bb0(%a: !tkgpu.tensor_map, %b: !tkgpu.tensor_map):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tkgpu.num_programs x
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %sa = tkgpu.alloc_shared : <[4, 128, 64], bf16 order = [2, 1, 0] chunk = 8 phases = 8>
  %sb = tkgpu.alloc_shared : <[4, 64, 256], bf16 order = [2, 1, 0] chunk = 8 phases = 8 panel = 64>
  %full = tkgpu.alloc_phases arrivals 1 : <4>
  %empty = tkgpu.alloc_phases arrivals 8 : <4>
  %va = tkgpu.stage %sa[%c0] : !tkgpu.shared<[4, 128, 64], bf16 order = [2, 1, 0] chunk = 8 phases = 8> -> !tkgpu.shared<[128, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
  %vb = tkgpu.stage %sb[%c0] : !tkgpu.shared<[4, 64, 256], bf16 order = [2, 1, 0] chunk = 8 phases = 8 panel = 64> -> !tkgpu.shared<[64, 256], bf16 order = [1, 0] chunk = 8 phases = 8 panel = 64>
  %half = tkgpu.stage %sb[%c0] from %c0 : !tkgpu.shared<[4, 64, 256], bf16 order = [2, 1, 0] chunk = 8 phases = 8 panel = 64> -> !tkgpu.shared<[32, 256], bf16 order = [1, 0] chunk = 8 phases = 8 panel = 64 pitch = 64>
  tkgpu.warp_roles producer {
    tkgpu.phase_wait %empty[%c0] parity %c1 : <4>
    tkgpu.phase_expect %full[%c0] bytes 49152 : <4>
    tkgpu.bulk_copy %va, %a[%c0, %c0] signals %full[%c0] : <[128, 64], bf16 order = [1, 0] chunk = 8 phases = 8>, !tkgpu.phases<4>
    tkgpu.bulk_copy %vb, %b[%c0, %c0] signals %full[%c0] : <[64, 256], bf16 order = [1, 0] chunk = 8 phases = 8 panel = 64>, !tkgpu.phases<4>
  } consumer {
    tkgpu.phase_wait %full[%c0] parity %c0 : <4>
    %d = tkgpu.warpgroup_dot %va, %vb, %zero : !tkgpu.shared<[128, 64], bf16 order = [1, 0] chunk = 8 phases = 8>, <[64, 256], bf16 order = [1, 0] chunk = 8 phases = 8 panel = 64> -> tensor<128x256xf32>
    %w = tkgpu.warpgroup_wait %d pending 0 : tensor<128x256xf32> -> tensor<128x256xf32>
    tkgpu.phase_arrive %empty[%c0] : <4>
    %f = arith.constant dense<1.0> : tensor<128xf32>
    %g = tkgpu.arrive_before %empty[%c0], %f : <4>, tensor<128xf32>
  } {producer_registers = 24, consumer_registers = 240}
  tkgpu.return
} {num_warps = 8 : i64, producer_warps = 4 : i64, tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [128, 256], reduce = [64], warps = 8, per_thread = 128, vector = 16, stages = 4, group = 8, persistent = 1, cluster = 2>>}

// Windows: places of a map, and how far from them a copy reads.
// CHECK-LABEL: tkgpu.func @windows
// CHECK: tkgpu.bulk_copy %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] at distances(%{{.*}}, %{{.*}}) : <[64, 64], bf16
tkgpu.func @windows args ["x"] {
^bb0(%x: !tkgpu.tensor_map):
  %c0 = arith.constant 0 : index
  %s = tkgpu.alloc_shared : <[64, 64], bf16 chunk = 8 phases = 8>
  tkgpu.bulk_copy %s, %x[%c0, %c0, %c0, %c0] at distances(%c0, %c0) : <[64, 64], bf16 chunk = 8 phases = 8>
  tkgpu.return
}

// CHECK-LABEL: tk.kernel @places
// CHECK: tkgpu.tensor_map %{{.*}} box [1, 1, 64, 64] swizzle 128 places(%H, %H) from [-1, -1] by [1, 2]
tk.kernel @places dims ["N", "H"] params [#tk.param<"x">] results [] {
^bb0(%N: index, %H: index, %x: tensor<?x?x?x?xbf16>):
  tk.bind %x[%N, %H, %H, %H] : tensor<?x?x?x?xbf16>
  %m = tkgpu.tensor_map %x : tensor<?x?x?x?xbf16> extents(%N, %H, %H, %H) strides(%H, %H, %H, %H) box [1, 1, 64, 64] swizzle 128 places(%H, %H) from [-1, -1] by [1, 2]
  tk.return
}

// CHECK-LABEL: tkgpu.func @numbers
// CHECK: %[[DRAWN:.*]] = tkgpu.draw %{{.*}} to %{{.*}} : <i32>
// CHECK-NEXT: tkgpu.tell %[[DRAWN]]
// CHECK-NEXT: tkgpu.told
// CHECK: %[[COUNTER:.*]] = tkgpu.counter : tensor<i32>
// CHECK: tkgpu.launch @numbers grid{{.*}} args(%{{.*}}, %[[COUNTER]] : index, tensor<i32>)
tkgpu.func @numbers args ["n", "counter", "y"] {
^bb0(%n: index, %counter: !tkgpu.buffer<i32>, %y: !tkgpu.buffer<f32>):
  %drawn = tkgpu.draw %counter to %n : <i32>
  tkgpu.tell %drawn
  %told = tkgpu.told
  tkgpu.return
} {num_warps = 64 : i64, cluster = 4 : i64}
tk.kernel @counts dims ["N"] params [] results ["y"] {
^bb0(%N: index):
  %c1 = arith.constant 1 : index
  %counter = tkgpu.counter : tensor<i32>
  %y = tkgpu.launch @numbers grid(%N, %c1, %c1) args(%N, %counter : index, tensor<i32>) shapes(%N) : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}
}
