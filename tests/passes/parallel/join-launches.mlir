// RUN: tk-opt %s --tk-join-launches | FileCheck %s
// RUN: sed s/least_sizes.=.array.i64:.1,/least_sizes=array\<i64:0,/ %s | tk-opt --tk-join-launches | FileCheck %s --check-prefix=EMPTY
// RUN: sed s/upper.=.100/upper=300/g %s | tk-opt --tk-join-launches | FileCheck %s --check-prefix=MANY

// The last block of each group reads what all of its group wrote, of whatever part.
// CHECK-LABEL: tkgpu.func @own_parts args ["G", "x", "counters", "p", "y"]
// CHECK: %[[GROUP:.*]] = arith.remsi %{{.*}}, %[[G:.*]] : index
// CHECK: tkgpu.store %{{.*}}, %[[P:.*]][%{{.*}}, %[[GROUP]]]
// CHECK: %[[BLOCKS:.*]] = tkgpu.num_programs x
// CHECK: %[[COUNT:.*]] = arith.divsi %[[BLOCKS]], %[[G]]
// CHECK: %[[LAST:.*]] = tkgpu.last_block %{{.*}}[%[[GROUP]]] of %[[COUNT]] sees(%[[P]])
// CHECK-NEXT: scf.if %[[LAST]]
// CHECK: tkgpu.load %[[P]][%{{.*}}, %[[GROUP]]]
// CHECK: tkgpu.load %[[P]][%{{.*}}, %[[GROUP]]]
// CHECK: tkgpu.store %{{.*}}, %{{.*}}[%[[GROUP]]]
// CHECK-NOT: tkgpu.func @own_join
// CHECK-LABEL: tk.kernel @own dims
// CHECK: %[[COUNTERS:.*]] = tkgpu.counters %{{.*}} : tensor<?xi32>
// CHECK: %[[R:.*]]:2 = tkgpu.launch @own_parts {{.*}}%[[COUNTERS]]
// CHECK: tk.return %[[R]]#1

// What a neighbour's group wrote may not be there yet.
// CHECK-LABEL: tkgpu.func @others_parts
// CHECK-NOT: tkgpu.last_block
// CHECK-LABEL: tk.kernel @others dims
// CHECK-COUNT-2: tkgpu.launch

// Without rows there is no block that could go on; more groups than multiprocessors join theirs in the way of others.
// EMPTY-NOT: tkgpu.last_block
// MANY-NOT: tkgpu.last_block

module attributes {tkgpu.target = #tkgpu.target<arch = 80, shared = 166912, processors = 108>} {
  tkgpu.func @own_parts args ["G", "x", "p"] {
  ^bb0(%G: index, %x: !tkgpu.buffer<f32>, %p: !tkgpu.buffer<f32>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %id = tkgpu.program_id x
    %group = arith.remsi %id, %G : index
    %part = arith.divsi %id, %G : index
    %sum = scf.for %i = %c0 to %part step %c1 iter_args(%s = %zero) -> (f32) {
      %v = tkgpu.load %x[%i] dims [array<i64>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, index, index) -> f32
      %t = arith.addf %s, %v : f32
      scf.yield %t : f32
    }
    tkgpu.store %sum, %p[%part, %group] dims [array<i64>, array<i64>] strides(%G, %c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index, index, index) -> ()
    tkgpu.return
  }
  tkgpu.func @own_join args ["p", "G", "y"] {
  ^bb0(%p: !tkgpu.buffer<f32>, %G: index, %y: !tkgpu.buffer<f32>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %id = tkgpu.program_id x
    %next = arith.addi %id, %c1 : index
    %a = tkgpu.load %p[%c0, %id] dims [array<i64>, array<i64>] strides(%G, %c1) masks() over [] : (!tkgpu.buffer<f32>, index, index, index, index) -> f32
    %b = tkgpu.load %p[%c1, %id] dims [array<i64>, array<i64>] strides(%G, %c1) masks() over [] : (!tkgpu.buffer<f32>, index, index, index, index) -> f32
    %s = arith.addf %a, %b : f32
    tkgpu.store %s, %y[%id] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
    tkgpu.return
  }
  tk.kernel @own dims ["N", "G"] params [#tk.param<"x">] results ["y"] facts [#tk.fact<upper = 100>, #tk.fact<upper = 100>] {
  ^bb0(%N: index, %G: index, %x: tensor<?xf32>):
    %c1 = arith.constant 1 : index
    tk.bind %x[%N] : tensor<?xf32>
    %blocks = arith.muli %N, %G : index
    %p = tkgpu.launch @own_parts grid(%blocks, %c1, %c1) args(%G, %x : index, tensor<?xf32>) shapes(%N, %G) {names = ["p"]} : tensor<?x?xf32>
    %y = tkgpu.launch @own_join grid(%G, %c1, %c1) args(%p, %G : tensor<?x?xf32>, index) shapes(%G) {names = ["y"]} : tensor<?xf32>
    tk.return %y : tensor<?xf32>
  } {tkgpu.least_sizes = array<i64: 1, 0>}
  tkgpu.func @others_parts args ["G", "x", "p"] {
  ^bb0(%G: index, %x: !tkgpu.buffer<f32>, %p: !tkgpu.buffer<f32>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %id = tkgpu.program_id x
    %group = arith.remsi %id, %G : index
    %part = arith.divsi %id, %G : index
    %sum = scf.for %i = %c0 to %part step %c1 iter_args(%s = %zero) -> (f32) {
      %v = tkgpu.load %x[%i] dims [array<i64>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, index, index) -> f32
      %t = arith.addf %s, %v : f32
      scf.yield %t : f32
    }
    tkgpu.store %sum, %p[%part, %group] dims [array<i64>, array<i64>] strides(%G, %c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index, index, index) -> ()
    tkgpu.return
  }
  tkgpu.func @others_join args ["p", "G", "y"] {
  ^bb0(%p: !tkgpu.buffer<f32>, %G: index, %y: !tkgpu.buffer<f32>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %id = tkgpu.program_id x
    %next = arith.addi %id, %c1 : index
    %a = tkgpu.load %p[%c0, %id] dims [array<i64>, array<i64>] strides(%G, %c1) masks() over [] : (!tkgpu.buffer<f32>, index, index, index, index) -> f32
    %b = tkgpu.load %p[%c1, %next] dims [array<i64>, array<i64>] strides(%G, %c1) masks() over [] : (!tkgpu.buffer<f32>, index, index, index, index) -> f32
    %s = arith.addf %a, %b : f32
    tkgpu.store %s, %y[%id] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
    tkgpu.return
  }
  tk.kernel @others dims ["N", "G"] params [#tk.param<"x">] results ["y"] facts [#tk.fact<upper = 100>, #tk.fact<upper = 100>] {
  ^bb0(%N: index, %G: index, %x: tensor<?xf32>):
    %c1 = arith.constant 1 : index
    tk.bind %x[%N] : tensor<?xf32>
    %blocks = arith.muli %N, %G : index
    %p = tkgpu.launch @others_parts grid(%blocks, %c1, %c1) args(%G, %x : index, tensor<?xf32>) shapes(%N, %G) {names = ["p"]} : tensor<?x?xf32>
    %y = tkgpu.launch @others_join grid(%G, %c1, %c1) args(%p, %G : tensor<?x?xf32>, index) shapes(%G) {names = ["y"]} : tensor<?xf32>
    tk.return %y : tensor<?xf32>
  } {tkgpu.least_sizes = array<i64: 1, 0>}
}
