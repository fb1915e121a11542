// RUN: tk-opt %s --tk-persist-blocks | FileCheck %s
// Two blocks of a cluster of 8 to a multiprocessor: as many whole clusters as that gives, and at run
// time no more than run at once.

// CHECK-LABEL: tkgpu.func @rows
// CHECK: scf.for
// CHECK: %[[PLACES:.*]] = arith.constant 264 : index
// CHECK: %[[BLOCKS:.*]] = arith.minsi %{{.*}}, %[[PLACES]]
// CHECK: tkgpu.launch @rows grid(%[[BLOCKS]], {{.*}} resident}
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tkgpu.func @rows args ["C", "x", "s"] facts [#tk.fact<divisor = 8>, #tk.fact<>, #tk.fact<>] {
  ^bb0(%C: index, %x: !tkgpu.buffer<f32>, %s: !tkgpu.buffer<f32>):
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %p = tkgpu.program_id x
    %r = arith.divsi %p, %c8 : index
    %v = tkgpu.load %x[%r] dims [array<i64>] strides(%C) masks() over [] : (!tkgpu.buffer<f32>, index, index) -> f32
    tkgpu.store %v, %s[%r] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
    tkgpu.return
  } {num_warps = 128 : i64, cluster = 8 : i64, tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [1], reduce = [131072], warps = 128, per_thread = 32, persistent = 2, cluster = 8>>}
  tk.kernel @f dims ["R", "C"] params [#tk.param<"x">] results ["s"] {
  ^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    tk.bind %x[%R, %C] : tensor<?x?xf32>
    %blocks = arith.muli %R, %c8 : index
    %s = tkgpu.launch @rows grid(%blocks, %c1, %c1) args(%C, %x : index, tensor<?x?xf32>) shapes(%R) {names = ["s"]} : tensor<?xf32>
    tk.return %s : tensor<?xf32>
  }
}
