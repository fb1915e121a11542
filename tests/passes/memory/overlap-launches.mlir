// RUN: tk-opt %s --tk-overlap-launches | FileCheck %s
// RUN: sed s/arch.=.90/arch=80/ %s | tk-opt --tk-overlap-launches | FileCheck %s --check-prefix=OLD

// The first launch lets the next one begin and waits for none; the one in between does both, in a
// way in which its own beginning does not wait; the last one waits. What earlier launches write is
// named, and no other argument.
// CHECK-LABEL: tkgpu.func @first
// CHECK-NEXT: ^bb0
// CHECK-NEXT: tkgpu.launch_release
// CHECK-NOT: tkgpu.launch_wait
// CHECK-LABEL: tkgpu.func @second
// CHECK-NEXT: ^bb0(%{{.*}}: !tkgpu.buffer<f32>, %[[P:.*]]: !tkgpu.buffer<f32>, %{{.*}}: !tkgpu.buffer<f32>):
// CHECK-NEXT: tkgpu.launch_release
// CHECK-NEXT: tkgpu.launch_wait %[[P]] : !tkgpu.buffer<f32>
// CHECK-NEXT: arith.constant
// CHECK-LABEL: tkgpu.func @third
// CHECK-NEXT: ^bb0(%[[Q:.*]]: !tkgpu.buffer<f32>, %[[R:.*]]: !tkgpu.buffer<f32>, %{{.*}}: !tkgpu.buffer<f32>):
// CHECK-NEXT: tkgpu.launch_wait %[[Q]], %[[R]] : !tkgpu.buffer<f32>, !tkgpu.buffer<f32>
// CHECK-NOT: tkgpu.launch_release
// A launch alone stays as it is.
// CHECK-LABEL: tkgpu.func @alone
// CHECK-NOT: tkgpu.launch_{{wait|release}}
// CHECK: tk.kernel
// OLD-NOT: tkgpu.launch_{{wait|release}}

// Of a kernel whose calls overlap all launches do both, and any buffer may change.
// RUN: sed '/tk.return/{n;s/}/} {tk.overlaps_calls}/}' %s | tk-opt --tk-overlap-launches | FileCheck %s --check-prefix=CALLS
// CALLS-LABEL: tkgpu.func @first
// CALLS-NEXT: ^bb0(%[[X:.*]]: !tkgpu.buffer<f32>, %[[Y:.*]]: !tkgpu.buffer<f32>):
// CALLS-NEXT: tkgpu.launch_release
// CALLS-NEXT: tkgpu.launch_wait %[[X]], %[[Y]] :
// CALLS-LABEL: tkgpu.func @third
// CALLS-NEXT: ^bb0(%[[P:.*]]: !tkgpu.buffer<f32>, %[[Q:.*]]: !tkgpu.buffer<f32>, %[[Z:.*]]: !tkgpu.buffer<f32>):
// CALLS-NEXT: tkgpu.launch_release
// CALLS-NEXT: tkgpu.launch_wait %[[P]], %[[Q]], %[[Z]] :
// CALLS-LABEL: tkgpu.func @alone
// CALLS-NEXT: ^bb0
// CALLS-NEXT: tkgpu.launch_release
// CALLS-NEXT: tkgpu.launch_wait

module attributes {tkgpu.target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>} {
  tkgpu.func @first args ["x", "y"] {
  ^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %v = tkgpu.load %x[%c0] dims [array<i64>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, index, index) -> f32
    tkgpu.store %v, %y[%c0] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
    tkgpu.return
  }
  // Of blocks with more threads than those around it: nobody can go on with it.
  tkgpu.func @second args ["x", "p", "y"] {
  ^bb0(%x: !tkgpu.buffer<f32>, %p: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %v = tkgpu.load %x[%c0] dims [array<i64>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, index, index) -> f32
    %w = tkgpu.load %p[%c0] dims [array<i64>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, index, index) -> f32
    %s = arith.addf %v, %w : f32
    tkgpu.store %s, %y[%c0] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
    tkgpu.return
  } {num_warps = 8 : i64}
  tkgpu.func @third args ["p", "q", "y"] {
  ^bb0(%p: !tkgpu.buffer<f32>, %q: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %v = tkgpu.load %p[%c0] dims [array<i64>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, index, index) -> f32
    %w = tkgpu.load %q[%c0] dims [array<i64>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, index, index) -> f32
    %s = arith.addf %v, %w : f32
    tkgpu.store %s, %y[%c0] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
    tkgpu.return
  }
  tkgpu.func @alone args ["x", "y"] {
  ^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>):
    tkgpu.return
  }
  tk.kernel @chain dims ["N"] params [#tk.param<"x">] results ["y"] {
  ^bb0(%N: index, %x: tensor<?xf32>):
    tk.bind %x[%N] : tensor<?xf32>
    %c1 = arith.constant 1 : index
    %p = tkgpu.launch @first grid(%c1, %c1, %c1) args(%x : tensor<?xf32>) shapes(%N) : tensor<?xf32>
    %q = tkgpu.launch @second grid(%c1, %c1, %c1) args(%x, %p : tensor<?xf32>, tensor<?xf32>) shapes(%N) : tensor<?xf32>
    %y = tkgpu.launch @third grid(%c1, %c1, %c1) args(%p, %q : tensor<?xf32>, tensor<?xf32>) shapes(%N) : tensor<?xf32>
    tk.return %y : tensor<?xf32>
  }
  tk.kernel @one dims ["N"] params [#tk.param<"x">] results ["y"] {
  ^bb0(%N: index, %x: tensor<?xf32>):
    tk.bind %x[%N] : tensor<?xf32>
    %c1 = arith.constant 1 : index
    %y = tkgpu.launch @alone grid(%c1, %c1, %c1) args(%x : tensor<?xf32>) shapes(%N) : tensor<?xf32>
    tk.return %y : tensor<?xf32>
  }
}
