// RUN: tk-opt --tk-merge-computes --tk-simplify %s | FileCheck %s
// RUN: tk-opt --tk-fuse-producers --tk-merge-computes --tk-online-reductions %s | FileCheck %s --check-prefix=ALL

// Two products of one operand; index names do not matter.
// CHECK-LABEL: @swiglu
// CHECK: tk.compute ["a", "b"]
// CHECK: names ["g", "h"]
// ALL-LABEL: @swiglu
// ALL: tk.compute
// ALL: tk.reduce [#tk.kind<sum>, #tk.kind<sum>]
// ALL-NOT: tk.compute
// ALL: tk.return
tk.kernel @swiglu dims ["M", "K", "N"]
    params [#tk.param<"x">, #tk.param<"w">, #tk.param<"u">]
    results ["g", "h"] {
^bb0(%M: index, %K: index, %N: index, %x: tensor<?x?xf32>, %w: tensor<?x?xf32>, %u: tensor<?x?xf32>):
  tk.bind %x[%M, %K] : tensor<?x?xf32>
  tk.bind %w[%K, %N] : tensor<?x?xf32>
  tk.bind %u[%K, %N] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %g = tk.compute ["i", "j"] in (%M, %N) {
  ^bb0(%i: index, %j: index):
    %dot = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%K) {
    ^bb0(%k: index):
    %fa = tk.load %x[%i, %k] : tensor<?x?xf32>
    %fb = tk.load %w[%k, %j] : tensor<?x?xf32>
    %fp = arith.mulf %fa, %fb : f32
    tk.yield %fp : f32
    } : f32
    tk.yield %dot : f32
  } names ["g"] : tensor<?x?xf32>
  %h = tk.compute ["a", "b"] in (%M, %N) {
  ^bb0(%a: index, %b: index):
    %dot = tk.reduce [#tk.kind<sum>] ["l"] from (%zero) to (%K) {
    ^bb0(%l: index):
    %fa = tk.load %x[%a, %l] : tensor<?x?xf32>
    %fb = tk.load %u[%l, %b] : tensor<?x?xf32>
    %fp = arith.mulf %fa, %fb : f32
    tk.yield %fp : f32
    } : f32
    tk.yield %dot : f32
  } names ["h"] : tensor<?x?xf32>
  tk.return %g, %h : tensor<?x?xf32>, tensor<?x?xf32>
}

// A row's statistic is stored by the statement that needs it anyway.
// ALL-LABEL: @saved_mean
// ALL: tk.compute ["r", "c"]
// ALL: tk.reduce
// ALL-NOT: tk.reduce
// ALL: names ["mu", "y"] over [array<i64: 0>, array<i64: 0, 1>]
tk.kernel @saved_mean dims ["R", "C"]
    params [#tk.param<"x">]
    results ["mu", "y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %ci = arith.index_cast %C : index to i64
  %cf = arith.sitofp %ci : i64 to f32
  %mu = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    tk.yield %a : f32
    } : f32
    %m = arith.divf %s, %cf : f32
    tk.yield %m : f32
  } names ["mu"] : tensor<?xf32>
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %b = tk.load %mu[%r] : tensor<?xf32>
    %d = arith.subf %a, %b : f32
    tk.yield %d : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %mu, %y : tensor<?xf32>, tensor<?x?xf32>
}

// Nothing is shared: two statements.
// CHECK-LABEL: @apart
// CHECK: names ["a"]
// CHECK: names ["b"]
// CHECK: 'a' and 'b' stay apart: they share neither a reduction nor a load
tk.kernel @apart dims ["N"]
    params [#tk.param<"x">, #tk.param<"y">]
    results ["a", "b"] {
^bb0(%N: index, %x: tensor<?xf32>, %y: tensor<?xf32>):
  tk.bind %x[%N] : tensor<?xf32>
  tk.bind %y[%N] : tensor<?xf32>
  %zero = arith.constant 0 : index
  %a = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %v = tk.load %x[%i] : tensor<?xf32>
    tk.yield %v : f32
  } names ["a"] : tensor<?xf32>
  %b = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %v = tk.load %y[%i] : tensor<?xf32>
    tk.yield %v : f32
  } names ["b"] : tensor<?xf32>
  tk.return %a, %b : tensor<?xf32>, tensor<?xf32>
}
