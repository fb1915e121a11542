// RUN: tk-opt %s --tk-place-results | FileCheck %s

// Every element needs the old one before it: the new ones wait in scratch memory.
// CHECK-LABEL: tk.kernel @shift
// CHECK: %[[NEW:.*]] = tk.compute ["i"]
// CHECK-NOT: in_place = true
// CHECK: %[[COPY:.*]] = tk.compute ["i0"]
// CHECK: tk.load %[[NEW]][
// CHECK: tk.return %[[COPY]] :
tk.kernel @shift dims ["N"] params [#tk.param<"x", inout = true>] results [] facts [#tk.fact<>] {
^bb0(%N: index, %x: tensor<?xf32>):
  %cst = arith.constant 0.000000e+00 : f32
  %c1 = arith.constant 1 : index
  tk.bind %x[%N] : tensor<?xf32>
  %0 = tk.compute ["i"] in(%N) {
  ^bb0(%i: index):
    %1 = arith.subi %i, %c1 : index
    %2 = tk.load %x[%1] pad %cst : f32 : tensor<?xf32>
    tk.yield %2 : f32
  } names ["x"] : tensor<?xf32>
  tk.return %0 : tensor<?xf32>
}

// An element's own old value may be overwritten, and the function says that two buffers are one.
// CHECK-LABEL: tk.kernel @scale
// CHECK: %[[SCALED:.*]] = tk.compute ["i"]
// CHECK: in_place = true
// CHECK: tk.return %[[SCALED]] :
tk.kernel @scale dims ["N"] params [#tk.param<"x", inout = true>] results [] facts [#tk.fact<>] {
^bb0(%N: index, %x: tensor<?xf32>):
  tk.bind %x[%N] : tensor<?xf32>
  %0 = tk.compute ["i"] in(%N) {
  ^bb0(%i: index):
    %1 = tk.load %x[%i] : tensor<?xf32>
    %2 = arith.addf %1, %1 : f32
    tk.yield %2 : f32
  } names ["x"] : tensor<?xf32>
  tk.return %0 : tensor<?xf32>
}

// A later statement reads the old elements; one value goes to two places.
// CHECK-LABEL: tk.kernel @later
// CHECK: %[[X:.*]] = tk.compute {{.*}} {
// CHECK: %[[Y:.*]] = tk.compute {{.*}} {
// CHECK: %[[COPY:.*]] = tk.compute {{.*}} {
// CHECK: tk.load %[[X]][
// CHECK: %[[AGAIN:.*]] = tk.compute {{.*}} {
// CHECK: tk.load %[[Y]][
// CHECK: tk.return %[[Y]], %[[COPY]], %[[AGAIN]] :
tk.kernel @later dims ["N"] params [#tk.param<"x", inout = true>, #tk.param<"z", inout = true>] results ["y"] facts [#tk.fact<>] {
^bb0(%N: index, %x: tensor<?xf32>, %z: tensor<?xf32>):
  tk.bind %x[%N] : tensor<?xf32>
  tk.bind %z[%N] : tensor<?xf32>
  %0 = tk.compute ["i"] in(%N) {
  ^bb0(%i: index):
    %2 = tk.load %z[%i] : tensor<?xf32>
    tk.yield %2 : f32
  } names ["x"] : tensor<?xf32>
  %1 = tk.compute ["i"] in(%N) {
  ^bb0(%i: index):
    %2 = tk.load %x[%i] : tensor<?xf32>
    tk.yield %2 : f32
  } names ["y"] : tensor<?xf32>
  tk.return %1, %0, %1 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
