// RUN: tk-opt %s --tk-select-schedule --tk-coarsen-threads --tk-convert-indices --tk-approximate-functions --tk-tile --tk-refine-tiles --canonicalize --cse | FileCheck %s

// A row that is known to fit is loaded once, for the maximum, the sum and the output.
// CHECK-LABEL: tkgpu.func @short_y
// CHECK-NOT: scf.for
// CHECK: %[[X:.*]] = tkgpu.load {{.*}} -> tensor<4096xf32>
// CHECK-NOT: tkgpu.load
// CHECK: tkgpu.reduce <max>
// CHECK: tkgpu.reduce <sum>
// CHECK: tkgpu.store
tk.kernel @short dims ["R", "C"] params [#tk.param<"x">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 4, upper = 4096>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %m, %z = tk.reduce [#tk.kind<max>, #tk.kind<sum>] ["k"] from (%zero) to (%C) {
    ^bb0(%k: index, %m_run: f32):
      %v = tk.load %x[%r, %k] : tensor<?x?xf32>
      %e = tk.exp_diff %v, %m_run : f32
      tk.yield %v, %e : f32, f32
    } rescale {
    ^bb0(%m_old: f32, %m_new: f32):
      %f = tk.exp_diff %m_old, %m_new : f32
      tk.yield %f : f32
    } : f32, f32
    %v = tk.load %x[%r, %c] : tensor<?x?xf32>
    %e = tk.exp_diff %v, %m : f32
    %q = tk.div_or_zero %e, %z : f32
    tk.yield %q : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}

// A row of unknown length: the sum is computed once, then the block steps through the outputs.
// CHECK-LABEL: tkgpu.func @long_y
// CHECK: %[[PART:.*]] = scf.for {{.*}} -> (tensor<1024xf32>)
// CHECK: %[[SUM:.*]] = tkgpu.reduce <sum> %[[PART]] axis 0
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: tkgpu.store
// CHECK: tk.kernel @long
// CHECK: tkgpu.launch @long_y grid(%R,
tk.kernel @long dims ["R", "C"] params [#tk.param<"x">] results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%C) {
    ^bb0(%k: index):
      %v = tk.load %x[%r, %k] : tensor<?x?xf32>
      tk.yield %v : f32
    } : f32
    %v = tk.load %x[%r, %c] : tensor<?x?xf32>
    %q = arith.divf %v, %s : f32
    tk.yield %q : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}

// A scan carries its total from tile to tile.
// CHECK-LABEL: tkgpu.func @prefix_y
// CHECK: scf.for {{.*}} iter_args(%[[CARRY:.*]] = %{{.*}}) -> (f32)
// CHECK: %[[SCAN:.*]], %[[TOTAL:.*]] = tkgpu.scan <sum>
// CHECK: %[[OLD:.*]] = tkgpu.broadcast %[[CARRY]]
// CHECK: arith.addf %[[OLD]], %[[SCAN]]
// CHECK: %[[NEXT:.*]] = arith.addf %[[CARRY]], %[[TOTAL]]
// CHECK: scf.yield %[[NEXT]]
tk.kernel @prefix dims ["R", "C"] params [#tk.param<"x">] results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %s = tk.scan <sum> "k" from %zero to %C at %c {
    ^bb0(%k: index):
      %v = tk.load %x[%r, %k] : tensor<?x?xf32>
      tk.yield %v : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}
