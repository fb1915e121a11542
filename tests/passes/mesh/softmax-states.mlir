// RUN: tk-opt %s --tk-place-collectives --split-input-file | FileCheck %s
// RUN: tk-opt %s --tk-place-collectives --tk-split-at-collectives --split-input-file | FileCheck %s --check-prefix=SPLIT

// The ranks share the keys, and all have all queries: each rank computes the state of its own keys, with its own
// maximum and denominator. The states are gathered and combined; logsumexp is what the weights of the states need.
// CHECK-LABEL: tk.kernel @whole
// CHECK: tk.bind %k[%[[T:.*]], %D]
// CHECK: tk.compute ["i", "j"] in(%S, %[[T]])
// CHECK: %[[M:.*]] = tk.compute ["i"] in(%S)
// CHECK: tk.reduce [#tk.kind<max>] ["j"] from(%{{.*}}) to(%[[T]])
// CHECK: names ["p.max"]
// CHECK-NOT: tk.all_reduce
// CHECK: %[[L:.*]] = tk.compute ["i"] in(%S)
// CHECK: tk.load %[[M]][%i]
// CHECK: names ["p.sum"]
// CHECK: %[[O:.*]] = tk.compute ["i", "e"] in(%S, %E)
// CHECK: names ["o.sum"] : tensor<?x?xf32>
// CHECK: %[[ALL:.*]] = tk.all_gather %[[O]] over "cp" dim 0
// CHECK: %[[LOG:.*]] = tk.compute ["i0"] in(%S)
// CHECK: tk.load %[[M]][%i0]
// CHECK: math.log
// CHECK: %[[LOGS:.*]] = tk.all_gather %[[LOG]] over "cp" dim 0
// CHECK: %[[LSE:.*]] = tk.compute ["i0"] in(%S)
// CHECK: tk.load %[[LOGS]][%i0]
// CHECK: arith.maximumf
// CHECK-COUNT-2: tk.exp_diff
// CHECK: names ["p.lse"]
// CHECK: %[[SUM:.*]] = tk.compute ["i0", "i1"] in(%S, %E)
// CHECK-DAG: tk.load %[[ALL]][%i0, %i1]
// CHECK-DAG: tk.load %[[LSE]][%i0]
// CHECK: names ["o.sum"]
// CHECK: %[[R:.*]] = tk.compute ["i", "e"] in(%S, %E)
// CHECK: tk.load %[[SUM]][%i, %e]
// CHECK: tk.return %[[R]], %[[LSE]]
// SPLIT-LABEL: tk.kernel @whole
// SPLIT-COUNT-2: tk.launch
// SPLIT-NOT: tk.launch
// SPLIT-LABEL: tk.kernel @whole_1
tk.kernel @whole dims ["S", "D", "T", "E"] params [#tk.param<"q">, #tk.param<"k">, #tk.param<"v">] results ["o", "lse"] {
^bb0(%S: index, %D: index, %T: index, %E: index, %q: tensor<?x?xbf16>, %k: tensor<?x?xbf16>, %v: tensor<?x?xbf16>):
  tk.bind %q[%S, %D] : tensor<?x?xbf16>
  tk.bind %k[%T, %D] : tensor<?x?xbf16>
  tk.bind %v[%T, %E] : tensor<?x?xbf16>
  %c0 = arith.constant 0 : index
  %0 = tk.compute ["i", "j"] in(%S, %T) {
  ^bb0(%i: index, %j: index):
    %6 = tk.reduce [#tk.kind<sum>] ["d"] from(%c0) to(%D) {
    ^bb0(%d: index):
      %7 = tk.load %q[%i, %d] : tensor<?x?xbf16>
      %8 = arith.extf %7 : bf16 to f32
      %9 = tk.load %k[%j, %d] : tensor<?x?xbf16>
      %10 = arith.extf %9 : bf16 to f32
      %11 = arith.mulf %8, %10 : f32
      tk.yield %11 : f32
    } : f32
    tk.yield %6 : f32
  } names ["s"] : tensor<?x?xf32>
  %1 = tk.compute ["i"] in(%S) {
  ^bb0(%i: index):
    %6 = tk.reduce [#tk.kind<max>] ["j"] from(%c0) to(%T) {
    ^bb0(%j: index):
      %7 = tk.load %0[%i, %j] : tensor<?x?xf32>
      tk.yield %7 : f32
    } : f32
    tk.yield %6 : f32
  } names ["p.max"] : tensor<?xf32>
  %2 = tk.compute ["i"] in(%S) {
  ^bb0(%i: index):
    %6 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%T) {
    ^bb0(%j: index):
      %7 = tk.load %0[%i, %j] : tensor<?x?xf32>
      %8 = tk.load %1[%i] : tensor<?xf32>
      %9 = tk.exp_diff %7, %8 : f32
      tk.yield %9 : f32
    } : f32
    tk.yield %6 : f32
  } names ["p.sum"] : tensor<?xf32>
  %3 = tk.compute ["i", "j"] in(%S, %T) {
  ^bb0(%i: index, %j: index):
    %6 = tk.load %0[%i, %j] : tensor<?x?xf32>
    %7 = tk.load %1[%i] : tensor<?xf32>
    %8 = tk.exp_diff %6, %7 : f32
    %9 = tk.load %2[%i] : tensor<?xf32>
    %10 = tk.div_or_zero %8, %9 : f32
    tk.yield %10 : f32
  } names ["p"] : tensor<?x?xf32>
  %4 = tk.compute ["i", "e"] in(%S, %E) {
  ^bb0(%i: index, %e: index):
    %6 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%T) {
    ^bb0(%j: index):
      %8 = tk.load %3[%i, %j] : tensor<?x?xf32>
      %9 = arith.truncf %8 {tk.rounded_factor} : f32 to bf16
      %10 = arith.extf %9 : bf16 to f32
      %11 = tk.load %v[%j, %e] : tensor<?x?xbf16>
      %12 = arith.extf %11 : bf16 to f32
      %13 = arith.mulf %10, %12 : f32
      tk.yield %13 : f32
    } : f32
    %7 = arith.truncf %6 : f32 to bf16
    tk.yield %7 : bf16
  } names ["o"] : tensor<?x?xbf16>
  %cst = arith.constant 0x7F800000 : f32
  %5 = tk.compute ["i"] in(%S) {
  ^bb0(%i: index):
    %6 = tk.reduce [#tk.kind<max>] ["j"] from(%c0) to(%T) {
    ^bb0(%j: index):
      %12 = tk.load %0[%i, %j] : tensor<?x?xf32>
      tk.yield %12 : f32
    } : f32
    %7 = arith.cmpf oeq, %6, %cst : f32
    %8 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%T) {
    ^bb0(%j: index):
      %12 = tk.load %0[%i, %j] : tensor<?x?xf32>
      %13 = tk.exp_diff %12, %6 : f32
      tk.yield %13 : f32
    } : f32
    %9 = math.log %8 : f32
    %10 = arith.addf %6, %9 : f32
    %11 = arith.select %7, %cst, %10 : f32
    tk.yield %11 : f32
  } names ["lse"] : tensor<?xf32>
  tk.return %4, %5 : tensor<?x?xbf16>, tensor<?xf32>
} {tk.mesh = ["cp"], tk.mesh_dims = array<i64: 64, 128, 32768, 128>, tk.mesh_sizes = array<i64: 2>,
   tk.shardings = [["", ""], ["cp", ""], ["cp", ""], ["", ""], [""]]}

// -----

// Few queries, which the ranks share as well: the queries are gathered, and each rank receives the states of its own
// ones. Attention stays one launch.
// CHECK-LABEL: tk.kernel @few
// CHECK: tk.all_gather %q over "cp" dim 0
// CHECK: names ["o.sum"]
// CHECK: tk.exchange %{{.*}} over "cp"
// CHECK: tk.exchange %{{.*}} over "cp"
// CHECK: names ["p.lse"]
// CHECK: tk.compute ["i0", "i1"] in(%[[S:.*]], %E)
// CHECK: tk.return
// SPLIT-LABEL: tk.kernel @few
// SPLIT-COUNT-2: tk.launch
// SPLIT-NOT: tk.launch
// SPLIT-LABEL: tk.kernel @few_1
tk.kernel @few dims ["S", "D", "T", "E"] params [#tk.param<"q">, #tk.param<"k">, #tk.param<"v">] results ["o"] {
^bb0(%S: index, %D: index, %T: index, %E: index, %q: tensor<?x?xbf16>, %k: tensor<?x?xbf16>, %v: tensor<?x?xbf16>):
  tk.bind %q[%S, %D] : tensor<?x?xbf16>
  tk.bind %k[%T, %D] : tensor<?x?xbf16>
  tk.bind %v[%T, %E] : tensor<?x?xbf16>
  %c0 = arith.constant 0 : index
  %0 = tk.compute ["i", "j"] in(%S, %T) {
  ^bb0(%i: index, %j: index):
    %5 = tk.reduce [#tk.kind<sum>] ["d"] from(%c0) to(%D) {
    ^bb0(%d: index):
      %6 = tk.load %q[%i, %d] : tensor<?x?xbf16>
      %7 = arith.extf %6 : bf16 to f32
      %8 = tk.load %k[%j, %d] : tensor<?x?xbf16>
      %9 = arith.extf %8 : bf16 to f32
      %10 = arith.mulf %7, %9 : f32
      tk.yield %10 : f32
    } : f32
    tk.yield %5 : f32
  } names ["s"] : tensor<?x?xf32>
  %1 = tk.compute ["i"] in(%S) {
  ^bb0(%i: index):
    %5 = tk.reduce [#tk.kind<max>] ["j"] from(%c0) to(%T) {
    ^bb0(%j: index):
      %6 = tk.load %0[%i, %j] : tensor<?x?xf32>
      tk.yield %6 : f32
    } : f32
    tk.yield %5 : f32
  } names ["p.max"] : tensor<?xf32>
  %2 = tk.compute ["i"] in(%S) {
  ^bb0(%i: index):
    %5 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%T) {
    ^bb0(%j: index):
      %6 = tk.load %0[%i, %j] : tensor<?x?xf32>
      %7 = tk.load %1[%i] : tensor<?xf32>
      %8 = tk.exp_diff %6, %7 : f32
      tk.yield %8 : f32
    } : f32
    tk.yield %5 : f32
  } names ["p.sum"] : tensor<?xf32>
  %3 = tk.compute ["i", "j"] in(%S, %T) {
  ^bb0(%i: index, %j: index):
    %5 = tk.load %0[%i, %j] : tensor<?x?xf32>
    %6 = tk.load %1[%i] : tensor<?xf32>
    %7 = tk.exp_diff %5, %6 : f32
    %8 = tk.load %2[%i] : tensor<?xf32>
    %9 = tk.div_or_zero %7, %8 : f32
    tk.yield %9 : f32
  } names ["p"] : tensor<?x?xf32>
  %4 = tk.compute ["i", "e"] in(%S, %E) {
  ^bb0(%i: index, %e: index):
    %5 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%T) {
    ^bb0(%j: index):
      %7 = tk.load %3[%i, %j] : tensor<?x?xf32>
      %8 = arith.truncf %7 {tk.rounded_factor} : f32 to bf16
      %9 = arith.extf %8 : bf16 to f32
      %10 = tk.load %v[%j, %e] : tensor<?x?xbf16>
      %11 = arith.extf %10 : bf16 to f32
      %12 = arith.mulf %9, %11 : f32
      tk.yield %12 : f32
    } : f32
    %6 = arith.truncf %5 : f32 to bf16
    tk.yield %6 : bf16
  } names ["o"] : tensor<?x?xbf16>
  tk.return %4 : tensor<?x?xbf16>
} {tk.mesh = ["cp"], tk.mesh_dims = array<i64: 64, 128, 32768, 128>, tk.mesh_sizes = array<i64: 2>,
   tk.shardings = [["cp", ""], ["cp", ""], ["cp", ""], ["cp", ""]]}

// -----

// As many queries as keys: the states would be larger than the keys and values, which are gathered.
// CHECK-LABEL: tk.kernel @many
// CHECK: tk.bind %q[%[[S:.*]], %D]
// CHECK: tk.all_gather %k over "cp" dim 0
// CHECK: tk.compute ["i", "j"] in(%[[S]], %T)
// CHECK: tk.all_gather %v over "cp" dim 0
// CHECK-NOT: tk.exchange
// CHECK: tk.return
tk.kernel @many dims ["S", "D", "T", "E"] params [#tk.param<"q">, #tk.param<"k">, #tk.param<"v">] results ["o"] {
^bb0(%S: index, %D: index, %T: index, %E: index, %q: tensor<?x?xbf16>, %k: tensor<?x?xbf16>, %v: tensor<?x?xbf16>):
  tk.bind %q[%S, %D] : tensor<?x?xbf16>
  tk.bind %k[%T, %D] : tensor<?x?xbf16>
  tk.bind %v[%T, %E] : tensor<?x?xbf16>
  %c0 = arith.constant 0 : index
  %0 = tk.compute ["i", "j"] in(%S, %T) {
  ^bb0(%i: index, %j: index):
    %5 = tk.reduce [#tk.kind<sum>] ["d"] from(%c0) to(%D) {
    ^bb0(%d: index):
      %6 = tk.load %q[%i, %d] : tensor<?x?xbf16>
      %7 = arith.extf %6 : bf16 to f32
      %8 = tk.load %k[%j, %d] : tensor<?x?xbf16>
      %9 = arith.extf %8 : bf16 to f32
      %10 = arith.mulf %7, %9 : f32
      tk.yield %10 : f32
    } : f32
    tk.yield %5 : f32
  } names ["s"] : tensor<?x?xf32>
  %1 = tk.compute ["i"] in(%S) {
  ^bb0(%i: index):
    %5 = tk.reduce [#tk.kind<max>] ["j"] from(%c0) to(%T) {
    ^bb0(%j: index):
      %6 = tk.load %0[%i, %j] : tensor<?x?xf32>
      tk.yield %6 : f32
    } : f32
    tk.yield %5 : f32
  } names ["p.max"] : tensor<?xf32>
  %2 = tk.compute ["i"] in(%S) {
  ^bb0(%i: index):
    %5 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%T) {
    ^bb0(%j: index):
      %6 = tk.load %0[%i, %j] : tensor<?x?xf32>
      %7 = tk.load %1[%i] : tensor<?xf32>
      %8 = tk.exp_diff %6, %7 : f32
      tk.yield %8 : f32
    } : f32
    tk.yield %5 : f32
  } names ["p.sum"] : tensor<?xf32>
  %3 = tk.compute ["i", "j"] in(%S, %T) {
  ^bb0(%i: index, %j: index):
    %5 = tk.load %0[%i, %j] : tensor<?x?xf32>
    %6 = tk.load %1[%i] : tensor<?xf32>
    %7 = tk.exp_diff %5, %6 : f32
    %8 = tk.load %2[%i] : tensor<?xf32>
    %9 = tk.div_or_zero %7, %8 : f32
    tk.yield %9 : f32
  } names ["p"] : tensor<?x?xf32>
  %4 = tk.compute ["i", "e"] in(%S, %E) {
  ^bb0(%i: index, %e: index):
    %5 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%T) {
    ^bb0(%j: index):
      %7 = tk.load %3[%i, %j] : tensor<?x?xf32>
      %8 = arith.truncf %7 {tk.rounded_factor} : f32 to bf16
      %9 = arith.extf %8 : bf16 to f32
      %10 = tk.load %v[%j, %e] : tensor<?x?xbf16>
      %11 = arith.extf %10 : bf16 to f32
      %12 = arith.mulf %9, %11 : f32
      tk.yield %12 : f32
    } : f32
    %6 = arith.truncf %5 : f32 to bf16
    tk.yield %6 : bf16
  } names ["o"] : tensor<?x?xbf16>
  tk.return %4 : tensor<?x?xbf16>
} {tk.mesh = ["cp"], tk.mesh_dims = array<i64: 32768, 128, 32768, 128>, tk.mesh_sizes = array<i64: 2>,
   tk.shardings = [["cp", ""], ["cp", ""], ["cp", ""], ["cp", ""]]}

// -----

// The weights themselves are a result, so they are computed with the maxima and sums of all ranks.
// CHECK-LABEL: tk.kernel @kept
// CHECK: tk.all_reduce <max>
// CHECK: tk.all_reduce <sum>
// CHECK: tk.all_reduce <sum>
// CHECK: tk.return
tk.kernel @kept dims ["S", "D", "T", "E"] params [#tk.param<"q">, #tk.param<"k">, #tk.param<"v">] results ["o", "p"] {
^bb0(%S: index, %D: index, %T: index, %E: index, %q: tensor<?x?xbf16>, %k: tensor<?x?xbf16>, %v: tensor<?x?xbf16>):
  tk.bind %q[%S, %D] : tensor<?x?xbf16>
  tk.bind %k[%T, %D] : tensor<?x?xbf16>
  tk.bind %v[%T, %E] : tensor<?x?xbf16>
  %c0 = arith.constant 0 : index
  %0 = tk.compute ["i", "j"] in(%S, %T) {
  ^bb0(%i: index, %j: index):
    %5 = tk.reduce [#tk.kind<sum>] ["d"] from(%c0) to(%D) {
    ^bb0(%d: index):
      %6 = tk.load %q[%i, %d] : tensor<?x?xbf16>
      %7 = arith.extf %6 : bf16 to f32
      %8 = tk.load %k[%j, %d] : tensor<?x?xbf16>
      %9 = arith.extf %8 : bf16 to f32
      %10 = arith.mulf %7, %9 : f32
      tk.yield %10 : f32
    } : f32
    tk.yield %5 : f32
  } names ["s"] : tensor<?x?xf32>
  %1 = tk.compute ["i"] in(%S) {
  ^bb0(%i: index):
    %5 = tk.reduce [#tk.kind<max>] ["j"] from(%c0) to(%T) {
    ^bb0(%j: index):
      %6 = tk.load %0[%i, %j] : tensor<?x?xf32>
      tk.yield %6 : f32
    } : f32
    tk.yield %5 : f32
  } names ["p.max"] : tensor<?xf32>
  %2 = tk.compute ["i"] in(%S) {
  ^bb0(%i: index):
    %5 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%T) {
    ^bb0(%j: index):
      %6 = tk.load %0[%i, %j] : tensor<?x?xf32>
      %7 = tk.load %1[%i] : tensor<?xf32>
      %8 = tk.exp_diff %6, %7 : f32
      tk.yield %8 : f32
    } : f32
    tk.yield %5 : f32
  } names ["p.sum"] : tensor<?xf32>
  %3 = tk.compute ["i", "j"] in(%S, %T) {
  ^bb0(%i: index, %j: index):
    %5 = tk.load %0[%i, %j] : tensor<?x?xf32>
    %6 = tk.load %1[%i] : tensor<?xf32>
    %7 = tk.exp_diff %5, %6 : f32
    %8 = tk.load %2[%i] : tensor<?xf32>
    %9 = tk.div_or_zero %7, %8 : f32
    tk.yield %9 : f32
  } names ["p"] : tensor<?x?xf32>
  %4 = tk.compute ["i", "e"] in(%S, %E) {
  ^bb0(%i: index, %e: index):
    %5 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%T) {
    ^bb0(%j: index):
      %7 = tk.load %3[%i, %j] : tensor<?x?xf32>
      %8 = tk.load %v[%j, %e] : tensor<?x?xbf16>
      %9 = arith.extf %8 : bf16 to f32
      %10 = arith.mulf %7, %9 : f32
      tk.yield %10 : f32
    } : f32
    %6 = arith.truncf %5 : f32 to bf16
    tk.yield %6 : bf16
  } names ["o"] : tensor<?x?xbf16>
  tk.return %4, %3 : tensor<?x?xbf16>, tensor<?x?xf32>
} {tk.mesh = ["cp"], tk.mesh_dims = array<i64: 64, 128, 32768, 128>, tk.mesh_sizes = array<i64: 2>,
   tk.shardings = [["", ""], ["cp", ""], ["cp", ""], ["", ""], ["", "cp"]]}
