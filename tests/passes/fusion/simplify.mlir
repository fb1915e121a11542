// RUN: tk-opt --tk-simplify %s | FileCheck %s

// Equal reductions are one, whatever their indices are called; the factor leaves the sum, which stays
// 0 over an empty range.
// CHECK-LABEL: @factors
// CHECK: %[[S:.*]] = tk.reduce
// CHECK-NOT: mulf
// CHECK: } : f32
// CHECK: mulf %[[S]]
// CHECK: select
// CHECK-NOT: tk.reduce
// CHECK: tk.return
tk.kernel @factors dims ["R", "C"]
    params [#tk.param<"x">, #tk.param<"g">]
    results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>, %g: tensor<?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  tk.bind %g[%R] : tensor<?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %b = tk.load %g[%r] : tensor<?xf32>
    %p = arith.mulf %a, %b : f32
    tk.yield %p : f32
    } : f32
    %t = tk.reduce [#tk.kind<sum>] ["d"] from (%zero) to (%C) {
    ^bb0(%d: index):
    %a = tk.load %x[%r, %d] : tensor<?x?xf32>
    %b = tk.load %g[%r] : tensor<?xf32>
    %p = arith.mulf %b, %a : f32
    tk.yield %p : f32
    } : f32
    %o = arith.addf %s, %t : f32
    tk.yield %o : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// An index and a narrower integer are compared as indices; unsigned ones stay as they are.
// CHECK-LABEL: @labels
// CHECK: %[[LABEL:.*]] = tk.load %{{.*}} : tensor<?xi32>
// CHECK: %[[AT:.*]] = arith.index_cast %[[LABEL]] : i32 to index
// CHECK: arith.cmpi eq, %{{.*}}, %[[AT]] : index
// CHECK: arith.cmpi ult, %{{.*}} : i64
tk.kernel @labels dims ["C"]
    params [#tk.param<"label">]
    results ["y"] {
^bb0(%C: index, %label: tensor<?xi32>):
  tk.bind %label[%C] : tensor<?xi32>
  %y = tk.compute ["c"] in (%C) {
  ^bb0(%c: index):
    %l = tk.load %label[%c] : tensor<?xi32>
    %wide = arith.extsi %l : i32 to i64
    %i = arith.index_cast %c : index to i64
    %same = arith.cmpi eq, %i, %wide : i64
    %below = arith.cmpi ult, %i, %wide : i64
    %both = arith.andi %same, %below : i1
    tk.yield %both : i1
  } names ["y"] : tensor<?xi1>
  tk.return %y : tensor<?xi1>
}
