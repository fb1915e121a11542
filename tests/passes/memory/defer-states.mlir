// RUN: tk-opt %s --tk-defer-states | FileCheck %s

#terms = #tkgpu.layout<register = [[1, 0], [0, 16]], lane = [[2, 0], [4, 0], [8, 0], [0, 1], [0, 2]], warp = [[0, 4], [0, 8]]>
#columns = #tkgpu.layout<register = [[1]], lane = [[2], [4], [8], [0], [0]], warp = [[0], [0]]>
#row = #tkgpu.layout<register = [[128]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]]>
#of_warp = #tkgpu.layout<register = [[1, 0], [0, 4], [0, 8], [0, 16]], lane = [[2, 0], [4, 0], [8, 0], [0, 1], [0, 2]], warp = [[0, 0], [0, 0]]>

// Sixteen threads share a column: each has a maximum of the two terms that it reads, and sums under
// that. One of the sums is of products with other tiles, and of a part of the terms. A sum that no
// maximum corrects stays.
// CHECK-LABEL: tkgpu.func @columns
// CHECK-DAG: %[[NONE:.*]] = arith.constant dense<0.000000e+00> : tensor<16x16xf32, #[[PARTS:.*]]>
// CHECK-DAG: %[[LEAST:.*]] = arith.constant dense<0xFF800000> : tensor<16x16xf32
// CHECK: %[[LOOP:.*]]:4 = scf.for {{.*}} iter_args(%[[M:.*]] = %[[LEAST]], %[[L:.*]] = %{{.*}}, %[[W:.*]] = %{{.*}}, %[[P:.*]] = %{{.*}})
// CHECK: %[[HERE:.*]] = tkgpu.reduce_in_threads <max> %[[X:.*]] axis 1
// CHECK: %[[MOST:.*]] = arith.maximumf %[[M]], %[[HERE]] : tensor<16x16xf32
// CHECK: %[[FACTOR:.*]] = tk.exp_diff %[[M]], %[[MOST]] {tkgpu.math = #tkgpu.math<approx>} : tensor<16x16xf32
// CHECK: %[[SPREAD:.*]] = tkgpu.spread_in_threads %[[MOST]] axis 1 : tensor<16x16xf32, {{.*}}> -> tensor<16x32xf32
// CHECK: tk.exp_diff %[[X]], %[[SPREAD]]
// CHECK: %[[SUM:.*]] = tkgpu.reduce_in_threads <sum>
// CHECK: tkgpu.reduce_in_threads <sum>
// CHECK: tkgpu.reduce <sum>
// CHECK: arith.mulf %[[L]], %[[FACTOR]]
// CHECK: scf.yield
// CHECK: %[[ALL:.*]] = tkgpu.reduce <max> %[[LOOP]]#0 axis 1
// CHECK: %[[EACH:.*]] = tkgpu.broadcast %[[ALL]] dims [0]
// CHECK: %[[TO:.*]] = tk.exp_diff %[[LOOP]]#0, %[[EACH]] {tkgpu.math = #tkgpu.math<approx>}
// CHECK: %[[SCALED:.*]] = arith.mulf %[[LOOP]]#1, %[[TO]]
// CHECK: tkgpu.reduce <sum> %[[SCALED]] axis 1
// CHECK: %[[OTHER:.*]] = arith.mulf %[[LOOP]]#2
// CHECK: tkgpu.reduce <sum> %[[OTHER]] axis 1
// CHECK-NOT: tkgpu.reduce
tkgpu.func @columns args ["x", "y", "n"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %least = arith.constant dense<0xFF800000> : tensor<16xf32, #columns>
  %none = arith.constant dense<0.0> : tensor<16xf32, #columns>
  %zero = arith.constant dense<0.0> : tensor<16x32xf32, #terms>
  %terms = arith.constant dense<1.0> : tensor<16x32xf32, #terms>
  %r:4 = scf.for %j = %c0 to %n step %c32 iter_args(%m = %least, %l = %none, %w = %none, %p = %none) -> (tensor<16xf32, #columns>, tensor<16xf32, #columns>, tensor<16xf32, #columns>, tensor<16xf32, #columns>) {
    %i = arith.index_cast %j : index to i32
    %f = arith.sitofp %i : i32 to f32
    %v = tkgpu.broadcast %f dims [] : f32 -> tensor<16x32xf32, #terms>
    %is = arith.cmpf olt, %v, %terms : tensor<16x32xf32, #terms>
    %here = tkgpu.reduce <max> %v axis 1 : tensor<16x32xf32, #terms> -> tensor<16xf32, #columns>
    %most = arith.maximumf %m, %here : tensor<16xf32, #columns>
    %factor = tk.exp_diff %m, %most {tkgpu.math = #tkgpu.math<approx>} : tensor<16xf32, #columns>
    %spread = tkgpu.broadcast %most dims [0] : tensor<16xf32, #columns> -> tensor<16x32xf32, #terms>
    %e = tk.exp_diff %v, %spread {tkgpu.math = #tkgpu.math<approx>} : tensor<16x32xf32, #terms>
    %t = tkgpu.reduce <sum> %e axis 1 : tensor<16x32xf32, #terms> -> tensor<16xf32, #columns>
    %scaled = arith.mulf %terms, %e : tensor<16x32xf32, #terms>
    %some = arith.select %is, %scaled, %zero : tensor<16x32xi1, #terms>, tensor<16x32xf32, #terms>
    %u = tkgpu.reduce <sum> %some axis 1 : tensor<16x32xf32, #terms> -> tensor<16xf32, #columns>
    %q = tkgpu.reduce <sum> %v axis 1 : tensor<16x32xf32, #terms> -> tensor<16xf32, #columns>
    %l1 = arith.mulf %l, %factor : tensor<16xf32, #columns>
    %l2 = arith.addf %l1, %t : tensor<16xf32, #columns>
    %w1 = arith.mulf %w, %factor : tensor<16xf32, #columns>
    %w2 = arith.addf %w1, %u : tensor<16xf32, #columns>
    %p2 = arith.addf %p, %q : tensor<16xf32, #columns>
    scf.yield %most, %l2, %w2, %p2 : tensor<16xf32, #columns>, tensor<16xf32, #columns>, tensor<16xf32, #columns>, tensor<16xf32, #columns>
  }
  %i = tkgpu.iota : tensor<16xindex, #columns>
  tkgpu.store %r#1, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<16xf32, #columns>, !tkgpu.buffer<f32>, tensor<16xindex, #columns>, index) -> ()
  tkgpu.store %r#2, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<16xf32, #columns>, !tkgpu.buffer<f32>, tensor<16xindex, #columns>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64}

// Of one row the state is a number; each thread has its own.
// CHECK-LABEL: tkgpu.func @row
// CHECK: scf.for {{.*}} -> (tensor<128xf32, {{.*}}>, tensor<128xf32
// CHECK: tkgpu.spread_in_threads %{{.*}} axis 0
// CHECK: scf.yield
// CHECK: %[[ALL:.*]] = tkgpu.reduce <max> %{{.*}} axis 0 : tensor<128xf32, {{.*}}> -> f32
// CHECK: tkgpu.broadcast %[[ALL]] dims [] : f32 -> tensor<128xf32
tkgpu.func @row args ["y", "n"] {
^bb0(%y: !tkgpu.buffer<f32>, %n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %least = arith.constant 0xFF800000 : f32
  %none = arith.constant 0.0 : f32
  %v = arith.constant dense<1.0> : tensor<256xf32, #row>
  %r:2 = scf.for %j = %c0 to %n step %c256 iter_args(%m = %least, %l = %none) -> (f32, f32) {
    %here = tkgpu.reduce <max> %v axis 0 : tensor<256xf32, #row> -> f32
    %most = arith.maximumf %m, %here : f32
    %factor = tk.exp_diff %m, %most : f32
    %spread = tkgpu.broadcast %most dims [] : f32 -> tensor<256xf32, #row>
    %e = tk.exp_diff %v, %spread : tensor<256xf32, #row>
    %t = tkgpu.reduce <sum> %e axis 0 : tensor<256xf32, #row> -> f32
    %l1 = arith.mulf %l, %factor : f32
    %l2 = arith.addf %l1, %t : f32
    scf.yield %most, %l2 : f32, f32
  }
  tkgpu.store %r#1, %y[%c0] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64}

// Exponentials that are stored are those under the maximum of all so far; a state that begins with
// terms has them once.
// CHECK-LABEL: tkgpu.func @stored
// CHECK-NOT: in_threads
// CHECK: tkgpu.return
tkgpu.func @stored args ["y", "n"] {
^bb0(%y: !tkgpu.buffer<f32>, %n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %least = arith.constant 0xFF800000 : f32
  %first = arith.constant 2.0 : f32
  %none = arith.constant 0.0 : f32
  %v = arith.constant dense<1.0> : tensor<256xf32, #row>
  %i = tkgpu.iota : tensor<256xindex, #row>
  %r:2 = scf.for %j = %c0 to %n step %c256 iter_args(%m = %least, %l = %none) -> (f32, f32) {
    %here = tkgpu.reduce <max> %v axis 0 : tensor<256xf32, #row> -> f32
    %most = arith.maximumf %m, %here : f32
    %factor = tk.exp_diff %m, %most : f32
    %spread = tkgpu.broadcast %most dims [] : f32 -> tensor<256xf32, #row>
    %e = tk.exp_diff %v, %spread : tensor<256xf32, #row>
    tkgpu.store %e, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<256xf32, #row>, !tkgpu.buffer<f32>, tensor<256xindex, #row>, index) -> ()
    %t = tkgpu.reduce <sum> %e axis 0 : tensor<256xf32, #row> -> f32
    %l1 = arith.mulf %l, %factor : f32
    %l2 = arith.addf %l1, %t : f32
    scf.yield %most, %l2 : f32, f32
  }
  %s:2 = scf.for %j = %c0 to %n step %c256 iter_args(%m = %first, %l = %r#1) -> (f32, f32) {
    %here = tkgpu.reduce <max> %v axis 0 : tensor<256xf32, #row> -> f32
    %most = arith.maximumf %m, %here : f32
    %factor = tk.exp_diff %m, %most : f32
    %spread = tkgpu.broadcast %most dims [] : f32 -> tensor<256xf32, #row>
    %e = tk.exp_diff %v, %spread : tensor<256xf32, #row>
    %t = tkgpu.reduce <sum> %e axis 0 : tensor<256xf32, #row> -> f32
    %l1 = arith.mulf %l, %factor : f32
    %l2 = arith.addf %l1, %t : f32
    scf.yield %most, %l2 : f32, f32
  }
  tkgpu.store %s#1, %y[%c0] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64}

// Threads of one warp meet by shuffles, which is as fast.
// CHECK-LABEL: tkgpu.func @of_warp
// CHECK-NOT: in_threads
// CHECK: tkgpu.return
tkgpu.func @of_warp args ["y", "n"] {
^bb0(%y: !tkgpu.buffer<f32>, %n: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %least = arith.constant dense<0xFF800000> : tensor<16xf32, #columns>
  %none = arith.constant dense<0.0> : tensor<16xf32, #columns>
  %v = arith.constant dense<1.0> : tensor<16x32xf32, #of_warp>
  %r:2 = scf.for %j = %c0 to %n step %c32 iter_args(%m = %least, %l = %none) -> (tensor<16xf32, #columns>, tensor<16xf32, #columns>) {
    %here = tkgpu.reduce <max> %v axis 1 : tensor<16x32xf32, #of_warp> -> tensor<16xf32, #columns>
    %most = arith.maximumf %m, %here : tensor<16xf32, #columns>
    %factor = tk.exp_diff %m, %most : tensor<16xf32, #columns>
    %spread = tkgpu.broadcast %most dims [0] : tensor<16xf32, #columns> -> tensor<16x32xf32, #of_warp>
    %e = tk.exp_diff %v, %spread : tensor<16x32xf32, #of_warp>
    %t = tkgpu.reduce <sum> %e axis 1 : tensor<16x32xf32, #of_warp> -> tensor<16xf32, #columns>
    %l1 = arith.mulf %l, %factor : tensor<16xf32, #columns>
    %l2 = arith.addf %l1, %t : tensor<16xf32, #columns>
    scf.yield %most, %l2 : tensor<16xf32, #columns>, tensor<16xf32, #columns>
  }
  %i = tkgpu.iota : tensor<16xindex, #columns>
  tkgpu.store %r#1, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<16xf32, #columns>, !tkgpu.buffer<f32>, tensor<16xindex, #columns>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64}
