// RUN: tk-opt --tk-fuse-producers --tk-split-reductions --tk-merge-computes --tk-simplify --tk-online-reductions %s | FileCheck %s

// Forms of attention, and what is none: each softmax over a chained index is carried in one loop.
// CHECK-LABEL: @naive_softmax_attention
// CHECK: tk.compute ["i", "e"]
// CHECK: tk.reduce [#tk.kind<max>, #tk.kind<sum>, #tk.kind<sum>]
// CHECK-NOT: tk.compute
// CHECK-LABEL: @two_values
// CHECK: tk.compute
// CHECK: tk.reduce [#tk.kind<max>, #tk.kind<sum>, #tk.kind<sum>, #tk.kind<sum>]
// CHECK: names ["o", "u", "lse"]
// A stored softmax keeps its scores.
// CHECK-LABEL: @stored_p
// CHECK: names ["s"]
// CHECK: names ["p"]
// CHECK: names ["o"]
// Statistics over rows, used in every row, are no part of what reads them.
// CHECK-LABEL: @batchnorm
// CHECK: names ["mu", "var"]
// CHECK: names ["y"]
// CHECK-LABEL: @ln_gemm
// CHECK: names ["h"]
// CHECK: names ["y"]
// CHECK-LABEL: @totals
// CHECK: tk.reduce [#tk.kind<max>, #tk.kind<sum>, #tk.kind<sum>] ["i"]
// CHECK: names ["s", "t", "m"]
// A norm may be 0, and then quotients of what is not are infinite: each term is divided.
// CHECK-LABEL: @cosine
// CHECK: tk.reduce [#tk.kind<sum>, #tk.kind<sum>] ["c"]
// CHECK: tk.reduce [#tk.kind<sum>] ["c"]
// CHECK: divf
// CHECK: divf
// CHECK-LABEL: @conv2
// CHECK: names ["a"]
// CHECK: names ["y"]
// CHECK-LABEL: @sink
// CHECK: tk.compute
// CHECK: tk.reduce [#tk.kind<max>, #tk.kind<sum>, #tk.kind<sum>]
// CHECK-NOT: tk.compute
// CHECK-LABEL: @alibi
// CHECK: tk.compute
// CHECK: tk.reduce [#tk.kind<max>, #tk.kind<sum>, #tk.kind<sum>]
// CHECK-NOT: tk.compute
// CHECK-LABEL: @doc_mask
// CHECK: tk.compute
// CHECK: tk.reduce [#tk.kind<max>, #tk.kind<sum>, #tk.kind<sum>]
// CHECK-NOT: tk.compute
// CHECK-LABEL: @moe
// CHECK: tk.compute
// CHECK: tk.reduce [#tk.kind<max>, #tk.kind<sum>, #tk.kind<sum>] ["a"]
// CHECK-NOT: tk.compute
// CHECK-LABEL: @xent
// CHECK: names ["s"]
// CHECK: names ["loss.partial"]
// CHECK-LABEL: @quant
// CHECK: names ["scale", "y"]

module {
  tk.kernel @naive_softmax_attention dims ["S", "D", "T", "E"] params [#tk.param<"q">, #tk.param<"k">, #tk.param<"v">] results ["o"] {
  ^bb0(%S: index, %D: index, %T: index, %E: index, %q: tensor<?x?xf32>, %k: tensor<?x?xf32>, %v: tensor<?x?xf32>):
    tk.bind %q[%S, %D] : tensor<?x?xf32>
    tk.bind %k[%T, %D] : tensor<?x?xf32>
    tk.bind %v[%T, %E] : tensor<?x?xf32>
    %c0 = arith.constant 0 : index
    %0 = tk.compute ["i", "j"] in(%S, %T) {
    ^bb0(%i: index, %j: index):
      %4 = tk.reduce [#tk.kind<sum>] ["d"] from(%c0) to(%D) {
      ^bb0(%d: index):
        %5 = tk.load %q[%i, %d] : tensor<?x?xf32>
        %6 = tk.load %k[%j, %d] : tensor<?x?xf32>
        %7 = arith.mulf %5, %6 : f32
        tk.yield %7 : f32
      } : f32
      tk.yield %4 : f32
    } names ["s"] : tensor<?x?xf32>
    %1 = tk.compute ["i"] in(%S) {
    ^bb0(%i: index):
      %4 = tk.reduce [#tk.kind<max>] ["j"] from(%c0) to(%T) {
      ^bb0(%j: index):
        %5 = tk.load %0[%i, %j] : tensor<?x?xf32>
        tk.yield %5 : f32
      } : f32
      tk.yield %4 : f32
    } names ["m"] : tensor<?xf32>
    %2 = tk.compute ["i"] in(%S) {
    ^bb0(%i: index):
      %4 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%T) {
      ^bb0(%j: index):
        %5 = tk.load %0[%i, %j] : tensor<?x?xf32>
        %6 = tk.load %1[%i] : tensor<?xf32>
        %7 = arith.subf %5, %6 : f32
        %8 = math.exp %7 : f32
        tk.yield %8 : f32
      } : f32
      tk.yield %4 : f32
    } names ["z"] : tensor<?xf32>
    %3 = tk.compute ["i", "e"] in(%S, %E) {
    ^bb0(%i: index, %e: index):
      %4 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%T) {
      ^bb0(%j: index):
        %5 = tk.load %0[%i, %j] : tensor<?x?xf32>
        %6 = tk.load %1[%i] : tensor<?xf32>
        %7 = arith.subf %5, %6 : f32
        %8 = math.exp %7 : f32
        %9 = tk.load %2[%i] : tensor<?xf32>
        %10 = arith.divf %8, %9 : f32
        %11 = tk.load %v[%j, %e] : tensor<?x?xf32>
        %12 = arith.mulf %10, %11 : f32
        tk.yield %12 : f32
      } : f32
      tk.yield %4 : f32
    } names ["o"] : tensor<?x?xf32>
    tk.return %3 : tensor<?x?xf32>
  }
  tk.kernel @two_values dims ["B", "S", "D", "T", "E"] params [#tk.param<"q">, #tk.param<"k">, #tk.param<"v">, #tk.param<"w">] results ["o", "u", "lse"] {
  ^bb0(%B: index, %S: index, %D: index, %T: index, %E: index, %q: tensor<?x?x?xf32>, %k: tensor<?x?x?xf32>, %v: tensor<?x?x?xbf16>, %w: tensor<?x?x?xbf16>):
    tk.bind %q[%B, %S, %D] : tensor<?x?x?xf32>
    tk.bind %k[%B, %T, %D] : tensor<?x?x?xf32>
    tk.bind %v[%B, %T, %E] : tensor<?x?x?xbf16>
    tk.bind %w[%B, %T, %E] : tensor<?x?x?xbf16>
    %c0 = arith.constant 0 : index
    %0 = tk.compute ["b", "i", "j"] in(%B, %S, %T) {
    ^bb0(%b: index, %i: index, %j: index):
      %7 = tk.reduce [#tk.kind<sum>] ["d"] from(%c0) to(%D) {
      ^bb0(%d: index):
        %8 = tk.load %q[%b, %i, %d] : tensor<?x?x?xf32>
        %9 = tk.load %k[%b, %j, %d] : tensor<?x?x?xf32>
        %10 = arith.mulf %8, %9 : f32
        tk.yield %10 : f32
      } : f32
      tk.yield %7 : f32
    } names ["s"] : tensor<?x?x?xf32>
    %1 = tk.compute ["b", "i"] in(%B, %S) {
    ^bb0(%b: index, %i: index):
      %7 = tk.reduce [#tk.kind<max>] ["j"] from(%c0) to(%T) {
      ^bb0(%j: index):
        %8 = tk.load %0[%b, %i, %j] : tensor<?x?x?xf32>
        tk.yield %8 : f32
      } : f32
      tk.yield %7 : f32
    } names ["p.max"] : tensor<?x?xf32>
    %2 = tk.compute ["b", "i"] in(%B, %S) {
    ^bb0(%b: index, %i: index):
      %7 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%T) {
      ^bb0(%j: index):
        %8 = tk.load %0[%b, %i, %j] : tensor<?x?x?xf32>
        %9 = tk.load %1[%b, %i] : tensor<?x?xf32>
        %10 = tk.exp_diff %8, %9 : f32
        tk.yield %10 : f32
      } : f32
      tk.yield %7 : f32
    } names ["p.sum"] : tensor<?x?xf32>
    %3 = tk.compute ["b", "i", "j"] in(%B, %S, %T) {
    ^bb0(%b: index, %i: index, %j: index):
      %7 = tk.load %0[%b, %i, %j] : tensor<?x?x?xf32>
      %8 = tk.load %1[%b, %i] : tensor<?x?xf32>
      %9 = tk.exp_diff %7, %8 : f32
      %10 = tk.load %2[%b, %i] : tensor<?x?xf32>
      %11 = tk.div_or_zero %9, %10 : f32
      tk.yield %11 : f32
    } names ["p"] : tensor<?x?x?xf32>
    %4 = tk.compute ["b", "i", "e"] in(%B, %S, %E) {
    ^bb0(%b: index, %i: index, %e: index):
      %7 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%T) {
      ^bb0(%j: index):
        %8 = tk.load %3[%b, %i, %j] : tensor<?x?x?xf32>
        %9 = arith.truncf %8 : f32 to bf16
        %10 = arith.extf %9 : bf16 to f32
        %11 = tk.load %v[%b, %j, %e] : tensor<?x?x?xbf16>
        %12 = arith.extf %11 : bf16 to f32
        %13 = arith.mulf %10, %12 : f32
        tk.yield %13 : f32
      } : f32
      tk.yield %7 : f32
    } names ["o"] : tensor<?x?x?xf32>
    %5 = tk.compute ["b", "i", "e"] in(%B, %S, %E) {
    ^bb0(%b: index, %i: index, %e: index):
      %7 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%T) {
      ^bb0(%j: index):
        %8 = tk.load %3[%b, %i, %j] : tensor<?x?x?xf32>
        %9 = arith.truncf %8 : f32 to bf16
        %10 = arith.extf %9 : bf16 to f32
        %11 = tk.load %w[%b, %j, %e] : tensor<?x?x?xbf16>
        %12 = arith.extf %11 : bf16 to f32
        %13 = arith.mulf %10, %12 : f32
        tk.yield %13 : f32
      } : f32
      tk.yield %7 : f32
    } names ["u"] : tensor<?x?x?xf32>
    %cst = arith.constant 0x7F800000 : f32
    %6 = tk.compute ["b", "i"] in(%B, %S) {
    ^bb0(%b: index, %i: index):
      %7 = tk.reduce [#tk.kind<max>] ["j"] from(%c0) to(%T) {
      ^bb0(%j: index):
        %13 = tk.load %0[%b, %i, %j] : tensor<?x?x?xf32>
        tk.yield %13 : f32
      } : f32
      %8 = arith.cmpf oeq, %7, %cst : f32
      %9 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%T) {
      ^bb0(%j: index):
        %13 = tk.load %0[%b, %i, %j] : tensor<?x?x?xf32>
        %14 = tk.exp_diff %13, %7 : f32
        tk.yield %14 : f32
      } : f32
      %10 = math.log %9 : f32
      %11 = arith.addf %7, %10 : f32
      %12 = arith.select %8, %cst, %11 : f32
      tk.yield %12 : f32
    } names ["lse"] : tensor<?x?xf32>
    tk.return %4, %5, %6 : tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?xf32>
  }
  tk.kernel @stored_p dims ["B", "S", "D", "T", "E"] params [#tk.param<"q">, #tk.param<"k">, #tk.param<"v">] results ["p", "o"] {
  ^bb0(%B: index, %S: index, %D: index, %T: index, %E: index, %q: tensor<?x?x?xf32>, %k: tensor<?x?x?xf32>, %v: tensor<?x?x?xf32>):
    tk.bind %q[%B, %S, %D] : tensor<?x?x?xf32>
    tk.bind %k[%B, %T, %D] : tensor<?x?x?xf32>
    tk.bind %v[%B, %T, %E] : tensor<?x?x?xf32>
    %c0 = arith.constant 0 : index
    %0 = tk.compute ["b", "i", "j"] in(%B, %S, %T) {
    ^bb0(%b: index, %i: index, %j: index):
      %5 = tk.reduce [#tk.kind<sum>] ["d"] from(%c0) to(%D) {
      ^bb0(%d: index):
        %6 = tk.load %q[%b, %i, %d] : tensor<?x?x?xf32>
        %7 = tk.load %k[%b, %j, %d] : tensor<?x?x?xf32>
        %8 = arith.mulf %6, %7 : f32
        tk.yield %8 : f32
      } : f32
      tk.yield %5 : f32
    } names ["s"] : tensor<?x?x?xf32>
    %1 = tk.compute ["b", "i"] in(%B, %S) {
    ^bb0(%b: index, %i: index):
      %5 = tk.reduce [#tk.kind<max>] ["j"] from(%c0) to(%T) {
      ^bb0(%j: index):
        %6 = tk.load %0[%b, %i, %j] : tensor<?x?x?xf32>
        tk.yield %6 : f32
      } : f32
      tk.yield %5 : f32
    } names ["p.max"] : tensor<?x?xf32>
    %2 = tk.compute ["b", "i"] in(%B, %S) {
    ^bb0(%b: index, %i: index):
      %5 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%T) {
      ^bb0(%j: index):
        %6 = tk.load %0[%b, %i, %j] : tensor<?x?x?xf32>
        %7 = tk.load %1[%b, %i] : tensor<?x?xf32>
        %8 = tk.exp_diff %6, %7 : f32
        tk.yield %8 : f32
      } : f32
      tk.yield %5 : f32
    } names ["p.sum"] : tensor<?x?xf32>
    %3 = tk.compute ["b", "i", "j"] in(%B, %S, %T) {
    ^bb0(%b: index, %i: index, %j: index):
      %5 = tk.load %0[%b, %i, %j] : tensor<?x?x?xf32>
      %6 = tk.load %1[%b, %i] : tensor<?x?xf32>
      %7 = tk.exp_diff %5, %6 : f32
      %8 = tk.load %2[%b, %i] : tensor<?x?xf32>
      %9 = tk.div_or_zero %7, %8 : f32
      tk.yield %9 : f32
    } names ["p"] : tensor<?x?x?xf32>
    %4 = tk.compute ["b", "i", "e"] in(%B, %S, %E) {
    ^bb0(%b: index, %i: index, %e: index):
      %5 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%T) {
      ^bb0(%j: index):
        %6 = tk.load %3[%b, %i, %j] : tensor<?x?x?xf32>
        %7 = tk.load %v[%b, %j, %e] : tensor<?x?x?xf32>
        %8 = arith.mulf %6, %7 : f32
        tk.yield %8 : f32
      } : f32
      tk.yield %5 : f32
    } names ["o"] : tensor<?x?x?xf32>
    tk.return %3, %4 : tensor<?x?x?xf32>, tensor<?x?x?xf32>
  }
  tk.kernel @batchnorm dims ["R", "C"] params [#tk.param<"x">, #tk.param<"g">] results ["y", "mu", "var"] {
  ^bb0(%R: index, %C: index, %x: tensor<?x?xf32>, %g: tensor<?xf32>):
    tk.bind %x[%R, %C] : tensor<?x?xf32>
    tk.bind %g[%C] : tensor<?xf32>
    %c0 = arith.constant 0 : index
    %0 = arith.index_cast %R : index to i64
    %1 = arith.sitofp %0 : i64 to f32
    %2 = tk.compute ["c"] in(%C) {
    ^bb0(%c: index):
      %5 = tk.reduce [#tk.kind<sum>] ["r"] from(%c0) to(%R) {
      ^bb0(%r: index):
        %7 = tk.load %x[%r, %c] : tensor<?x?xf32>
        tk.yield %7 : f32
      } : f32
      %6 = arith.divf %5, %1 : f32
      tk.yield %6 : f32
    } names ["mu"] : tensor<?xf32>
    %3 = tk.compute ["c"] in(%C) {
    ^bb0(%c: index):
      %5 = tk.reduce [#tk.kind<sum>] ["r"] from(%c0) to(%R) {
      ^bb0(%r: index):
        %7 = tk.load %x[%r, %c] : tensor<?x?xf32>
        %8 = tk.load %2[%c] : tensor<?xf32>
        %9 = arith.subf %7, %8 : f32
        %10 = arith.mulf %9, %9 : f32
        tk.yield %10 : f32
      } : f32
      %6 = arith.divf %5, %1 : f32
      tk.yield %6 : f32
    } names ["var"] : tensor<?xf32>
    %cst = arith.constant 9.99999974E-6 : f32
    %4 = tk.compute ["r", "c"] in(%R, %C) {
    ^bb0(%r: index, %c: index):
      %5 = tk.load %x[%r, %c] : tensor<?x?xf32>
      %6 = tk.load %2[%c] : tensor<?xf32>
      %7 = arith.subf %5, %6 : f32
      %8 = tk.load %3[%c] : tensor<?xf32>
      %9 = arith.addf %8, %cst : f32
      %10 = math.rsqrt %9 : f32
      %11 = arith.mulf %7, %10 : f32
      %12 = tk.load %g[%c] : tensor<?xf32>
      %13 = arith.mulf %11, %12 : f32
      tk.yield %13 : f32
    } names ["y"] : tensor<?x?xf32>
    tk.return %4, %2, %3 : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
  }
  tk.kernel @ln_gemm dims ["M", "K", "N"] params [#tk.param<"x">, #tk.param<"w">] results ["y"] {
  ^bb0(%M: index, %K: index, %N: index, %x: tensor<?x?xbf16>, %w: tensor<?x?xbf16>):
    tk.bind %x[%M, %K] : tensor<?x?xbf16>
    tk.bind %w[%K, %N] : tensor<?x?xbf16>
    %c0 = arith.constant 0 : index
    %0 = arith.index_cast %K : index to i64
    %1 = arith.sitofp %0 : i64 to f32
    %2 = tk.compute ["i"] in(%M) {
    ^bb0(%i: index):
      %6 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %8 = tk.load %x[%i, %k] : tensor<?x?xbf16>
        %9 = arith.extf %8 : bf16 to f32
        tk.yield %9 : f32
      } : f32
      %7 = arith.divf %6, %1 : f32
      tk.yield %7 : f32
    } names ["mu"] : tensor<?xf32>
    %3 = tk.compute ["i"] in(%M) {
    ^bb0(%i: index):
      %6 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %8 = tk.load %x[%i, %k] : tensor<?x?xbf16>
        %9 = arith.extf %8 : bf16 to f32
        %10 = tk.load %2[%i] : tensor<?xf32>
        %11 = arith.subf %9, %10 : f32
        %12 = arith.mulf %11, %11 : f32
        tk.yield %12 : f32
      } : f32
      %7 = arith.divf %6, %1 : f32
      tk.yield %7 : f32
    } names ["var"] : tensor<?xf32>
    %cst = arith.constant 9.99999974E-6 : f32
    %4 = tk.compute ["i", "k"] in(%M, %K) {
    ^bb0(%i: index, %k: index):
      %6 = tk.load %x[%i, %k] : tensor<?x?xbf16>
      %7 = arith.extf %6 : bf16 to f32
      %8 = tk.load %2[%i] : tensor<?xf32>
      %9 = arith.subf %7, %8 : f32
      %10 = tk.load %3[%i] : tensor<?xf32>
      %11 = arith.addf %10, %cst : f32
      %12 = math.rsqrt %11 : f32
      %13 = arith.mulf %9, %12 : f32
      tk.yield %13 : f32
    } names ["h"] : tensor<?x?xf32>
    %5 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %6 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %8 = tk.load %4[%i, %k] : tensor<?x?xf32>
        %9 = arith.truncf %8 : f32 to bf16
        %10 = arith.extf %9 : bf16 to f32
        %11 = tk.load %w[%k, %j] : tensor<?x?xbf16>
        %12 = arith.extf %11 : bf16 to f32
        %13 = arith.mulf %10, %12 : f32
        tk.yield %13 : f32
      } : f32
      %7 = arith.truncf %6 : f32 to bf16
      tk.yield %7 : bf16
    } names ["y"] : tensor<?x?xbf16>
    tk.return %5 : tensor<?x?xbf16>
  }
  tk.kernel @totals dims ["N"] params [#tk.param<"x">] results ["s", "t", "m"] {
  ^bb0(%N: index, %x: tensor<?xf32>):
    tk.bind %x[%N] : tensor<?xf32>
    %c0 = arith.constant 0 : index
    %0 = tk.compute [] in() {
      %3 = tk.reduce [#tk.kind<sum>] ["i"] from(%c0) to(%N) {
      ^bb0(%i: index):
        %4 = tk.load %x[%i] : tensor<?xf32>
        tk.yield %4 : f32
      } : f32
      tk.yield %3 : f32
    } names ["s"] : tensor<f32>
    %1 = tk.compute [] in() {
      %3 = tk.reduce [#tk.kind<sum>] ["i"] from(%c0) to(%N) {
      ^bb0(%i: index):
        %4 = tk.load %x[%i] : tensor<?xf32>
        %5 = arith.mulf %4, %4 : f32
        tk.yield %5 : f32
      } : f32
      tk.yield %3 : f32
    } names ["t"] : tensor<f32>
    %2 = tk.compute [] in() {
      %3 = tk.reduce [#tk.kind<max>] ["i"] from(%c0) to(%N) {
      ^bb0(%i: index):
        %4 = tk.load %x[%i] : tensor<?xf32>
        tk.yield %4 : f32
      } : f32
      tk.yield %3 : f32
    } names ["m"] : tensor<f32>
    tk.return %0, %1, %2 : tensor<f32>, tensor<f32>, tensor<f32>
  }
  tk.kernel @vec_lse dims ["N"] params [#tk.param<"x">] results ["s"] {
  ^bb0(%N: index, %x: tensor<?xf32>):
    tk.bind %x[%N] : tensor<?xf32>
    %c0 = arith.constant 0 : index
    %cst = arith.constant 0x7F800000 : f32
    %0 = tk.compute [] in() {
      %1 = tk.reduce [#tk.kind<max>] ["i"] from(%c0) to(%N) {
      ^bb0(%i: index):
        %7 = tk.load %x[%i] : tensor<?xf32>
        tk.yield %7 : f32
      } : f32
      %2 = arith.cmpf oeq, %1, %cst : f32
      %3 = tk.reduce [#tk.kind<sum>] ["i"] from(%c0) to(%N) {
      ^bb0(%i: index):
        %7 = tk.load %x[%i] : tensor<?xf32>
        %8 = tk.exp_diff %7, %1 : f32
        tk.yield %8 : f32
      } : f32
      %4 = math.log %3 : f32
      %5 = arith.addf %1, %4 : f32
      %6 = arith.select %2, %cst, %5 : f32
      tk.yield %6 : f32
    } names ["s"] : tensor<f32>
    tk.return %0 : tensor<f32>
  }
  tk.kernel @cosine dims ["R", "C"] params [#tk.param<"a">, #tk.param<"b">] results ["y"] {
  ^bb0(%R: index, %C: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
    tk.bind %a[%R, %C] : tensor<?x?xf32>
    tk.bind %b[%R, %C] : tensor<?x?xf32>
    %c0 = arith.constant 0 : index
    %0 = tk.compute ["r"] in(%R) {
    ^bb0(%r: index):
      %3 = tk.reduce [#tk.kind<sum>] ["c"] from(%c0) to(%C) {
      ^bb0(%c: index):
        %5 = tk.load %a[%r, %c] : tensor<?x?xf32>
        %6 = arith.mulf %5, %5 : f32
        tk.yield %6 : f32
      } : f32
      %4 = math.sqrt %3 : f32
      tk.yield %4 : f32
    } names ["na"] : tensor<?xf32>
    %1 = tk.compute ["r"] in(%R) {
    ^bb0(%r: index):
      %3 = tk.reduce [#tk.kind<sum>] ["c"] from(%c0) to(%C) {
      ^bb0(%c: index):
        %5 = tk.load %b[%r, %c] : tensor<?x?xf32>
        %6 = arith.mulf %5, %5 : f32
        tk.yield %6 : f32
      } : f32
      %4 = math.sqrt %3 : f32
      tk.yield %4 : f32
    } names ["nb"] : tensor<?xf32>
    %2 = tk.compute ["r"] in(%R) {
    ^bb0(%r: index):
      %3 = tk.reduce [#tk.kind<sum>] ["c"] from(%c0) to(%C) {
      ^bb0(%c: index):
        %4 = tk.load %a[%r, %c] : tensor<?x?xf32>
        %5 = tk.load %0[%r] : tensor<?xf32>
        %6 = arith.divf %4, %5 : f32
        %7 = tk.load %b[%r, %c] : tensor<?x?xf32>
        %8 = tk.load %1[%r] : tensor<?xf32>
        %9 = arith.divf %7, %8 : f32
        %10 = arith.mulf %6, %9 : f32
        tk.yield %10 : f32
      } : f32
      tk.yield %3 : f32
    } names ["y"] : tensor<?xf32>
    tk.return %2 : tensor<?xf32>
  }
  tk.kernel @scanned dims ["R", "C"] params [#tk.param<"x">] results ["y", "m"] {
  ^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
    tk.bind %x[%R, %C] : tensor<?x?xf32>
    %c0 = arith.constant 0 : index
    %0 = tk.compute ["r", "c"] in(%R, %C) {
    ^bb0(%r: index, %c: index):
      %4 = tk.scan <sum> "c" from %c0 to %C at %c {
      ^bb0(%c_0: index):
        %5 = tk.load %x[%r, %c_0] : tensor<?x?xf32>
        tk.yield %5 : f32
      } : f32
      tk.yield %4 : f32
    } names ["s.scan"] : tensor<?x?xf32>
    %1 = tk.compute ["r", "c"] in(%R, %C) {
    ^bb0(%r: index, %c: index):
      %4 = tk.load %0[%r, %c] : tensor<?x?xf32>
      tk.yield %4 : f32
    } names ["s"] : tensor<?x?xf32>
    %c1 = arith.constant 1 : index
    %2 = tk.compute ["r", "c"] in(%R, %C) {
    ^bb0(%r: index, %c: index):
      %4 = tk.load %1[%r, %c] : tensor<?x?xf32>
      %5 = arith.addi %c, %c1 : index
      %6 = arith.index_cast %5 : index to i64
      %7 = arith.sitofp %6 : i64 to f32
      %8 = arith.divf %4, %7 : f32
      %9 = tk.load %x[%r, %c] : tensor<?x?xf32>
      %10 = arith.subf %8, %9 : f32
      tk.yield %10 : f32
    } names ["y"] : tensor<?x?xf32>
    %3 = tk.compute ["r"] in(%R) {
    ^bb0(%r: index):
      %4 = tk.reduce [#tk.kind<max>] ["c"] from(%c0) to(%C) {
      ^bb0(%c: index):
        %5 = tk.load %1[%r, %c] : tensor<?x?xf32>
        tk.yield %5 : f32
      } : f32
      tk.yield %4 : f32
    } names ["m"] : tensor<?xf32>
    tk.return %2, %3 : tensor<?x?xf32>, tensor<?xf32>
  }
  tk.kernel @conv2 dims ["N", "C", "H", "W", "K", "L"] params [#tk.param<"x">, #tk.param<"w">, #tk.param<"u">] results ["y"] {
  ^bb0(%N: index, %C: index, %H: index, %W: index, %K: index, %L: index, %x: tensor<?x?x?x?xf32>, %w: tensor<?x?x3x3xf32>, %u: tensor<?x?x3x3xf32>):
    tk.bind %x[%N, %C, %H, %W] : tensor<?x?x?x?xf32>
    %c3 = arith.constant 3 : index
    tk.bind %w[%K, %C, %c3, %c3] : tensor<?x?x3x3xf32>
    tk.bind %u[%L, %K, %c3, %c3] : tensor<?x?x3x3xf32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tk.compute ["n", "k", "p", "q"] in(%N, %K, %H, %W) {
    ^bb0(%n: index, %k: index, %p: index, %q: index):
      %2 = tk.reduce [#tk.kind<sum>] ["c", "r", "s"] from(%c0, %c0, %c0) to(%C, %c3, %c3) {
      ^bb0(%c: index, %r: index, %s: index):
        %4 = arith.addi %p, %r : index
        %5 = arith.subi %4, %c1 : index
        %6 = arith.addi %q, %s : index
        %7 = arith.subi %6, %c1 : index
        %8 = tk.load %x[%n, %c, %5, %7] pad %cst : f32 : tensor<?x?x?x?xf32>
        %9 = tk.load %w[%k, %c, %r, %s] : tensor<?x?x3x3xf32>
        %10 = arith.mulf %8, %9 : f32
        tk.yield %10 : f32
      } : f32
      %3 = arith.maximumf %2, %cst : f32
      tk.yield %3 : f32
    } names ["a"] : tensor<?x?x?x?xf32>
    %1 = tk.compute ["n", "l", "p", "q"] in(%N, %L, %H, %W) {
    ^bb0(%n: index, %l: index, %p: index, %q: index):
      %2 = tk.reduce [#tk.kind<sum>] ["k", "r", "s"] from(%c0, %c0, %c0) to(%K, %c3, %c3) {
      ^bb0(%k: index, %r: index, %s: index):
        %3 = arith.addi %p, %r : index
        %4 = arith.subi %3, %c1 : index
        %5 = arith.addi %q, %s : index
        %6 = arith.subi %5, %c1 : index
        %7 = tk.load %0[%n, %k, %4, %6] pad %cst : f32 : tensor<?x?x?x?xf32>
        %8 = tk.load %u[%l, %k, %r, %s] : tensor<?x?x3x3xf32>
        %9 = arith.mulf %7, %8 : f32
        tk.yield %9 : f32
      } : f32
      tk.yield %2 : f32
    } names ["y"] : tensor<?x?x?x?xf32>
    tk.return %1 : tensor<?x?x?x?xf32>
  }
  tk.kernel @lin_attn dims ["B", "S", "D", "E"] params [#tk.param<"q">, #tk.param<"k">, #tk.param<"v">] results ["o"] {
  ^bb0(%B: index, %S: index, %D: index, %E: index, %q: tensor<?x?x?xf32>, %k: tensor<?x?x?xf32>, %v: tensor<?x?x?xf32>):
    tk.bind %q[%B, %S, %D] : tensor<?x?x?xf32>
    tk.bind %k[%B, %S, %D] : tensor<?x?x?xf32>
    tk.bind %v[%B, %S, %E] : tensor<?x?x?xf32>
    %c0 = arith.constant 0 : index
    %0 = tk.compute ["b", "i", "j"] in(%B, %S, %S) {
    ^bb0(%b: index, %i: index, %j: index):
      %2 = tk.reduce [#tk.kind<sum>] ["d"] from(%c0) to(%D) {
      ^bb0(%d: index):
        %3 = tk.load %q[%b, %i, %d] : tensor<?x?x?xf32>
        %4 = tk.load %k[%b, %j, %d] : tensor<?x?x?xf32>
        %5 = arith.mulf %3, %4 : f32
        tk.yield %5 : f32
      } : f32
      tk.yield %2 : f32
    } names ["s"] : tensor<?x?x?xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %1 = tk.compute ["b", "i", "e"] in(%B, %S, %E) {
    ^bb0(%b: index, %i: index, %e: index):
      %2 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%S) {
      ^bb0(%j: index):
        %3 = arith.cmpi sle, %j, %i : index
        %4 = tk.load %0[%b, %i, %j] : tensor<?x?x?xf32>
        %5 = tk.load %v[%b, %j, %e] : tensor<?x?x?xf32>
        %6 = arith.mulf %4, %5 : f32
        %7 = arith.select %3, %6, %cst : f32
        tk.yield %7 : f32
      } : f32
      tk.yield %2 : f32
    } names ["o"] : tensor<?x?x?xf32>
    tk.return %1 : tensor<?x?x?xf32>
  }
  tk.kernel @sink dims ["B", "H", "S", "D", "E"] params [#tk.param<"q">, #tk.param<"k">, #tk.param<"v">, #tk.param<"sk">] results ["o"] {
  ^bb0(%B: index, %H: index, %S: index, %D: index, %E: index, %q: tensor<?x?x?x?xf32>, %k: tensor<?x?x?x?xf32>, %v: tensor<?x?x?x?xf32>, %sk: tensor<?xf32>):
    tk.bind %q[%B, %H, %S, %D] : tensor<?x?x?x?xf32>
    tk.bind %k[%B, %H, %S, %D] : tensor<?x?x?x?xf32>
    tk.bind %v[%B, %H, %S, %E] : tensor<?x?x?x?xf32>
    tk.bind %sk[%H] : tensor<?xf32>
    %c0 = arith.constant 0 : index
    %0 = tk.compute ["b", "h", "i", "j"] in(%B, %H, %S, %S) {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %4 = tk.reduce [#tk.kind<sum>] ["d"] from(%c0) to(%D) {
      ^bb0(%d: index):
        %5 = tk.load %q[%b, %h, %i, %d] : tensor<?x?x?x?xf32>
        %6 = tk.load %k[%b, %h, %j, %d] : tensor<?x?x?x?xf32>
        %7 = arith.mulf %5, %6 : f32
        tk.yield %7 : f32
      } : f32
      tk.yield %4 : f32
    } names ["s"] : tensor<?x?x?x?xf32>
    %1 = tk.compute ["b", "h", "i"] in(%B, %H, %S) {
    ^bb0(%b: index, %h: index, %i: index):
      %4 = tk.reduce [#tk.kind<max>] ["j"] from(%c0) to(%S) {
      ^bb0(%j: index):
        %7 = tk.load %0[%b, %h, %i, %j] : tensor<?x?x?x?xf32>
        tk.yield %7 : f32
      } : f32
      %5 = tk.load %sk[%h] : tensor<?xf32>
      %6 = arith.maximumf %4, %5 : f32
      tk.yield %6 : f32
    } names ["m"] : tensor<?x?x?xf32>
    %2 = tk.compute ["b", "h", "i"] in(%B, %H, %S) {
    ^bb0(%b: index, %h: index, %i: index):
      %4 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%S) {
      ^bb0(%j: index):
        %10 = tk.load %0[%b, %h, %i, %j] : tensor<?x?x?x?xf32>
        %11 = tk.load %1[%b, %h, %i] : tensor<?x?x?xf32>
        %12 = arith.subf %10, %11 : f32
        %13 = math.exp %12 : f32
        tk.yield %13 : f32
      } : f32
      %5 = tk.load %sk[%h] : tensor<?xf32>
      %6 = tk.load %1[%b, %h, %i] : tensor<?x?x?xf32>
      %7 = arith.subf %5, %6 : f32
      %8 = math.exp %7 : f32
      %9 = arith.addf %4, %8 : f32
      tk.yield %9 : f32
    } names ["z"] : tensor<?x?x?xf32>
    %3 = tk.compute ["b", "h", "i", "e"] in(%B, %H, %S, %E) {
    ^bb0(%b: index, %h: index, %i: index, %e: index):
      %4 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%S) {
      ^bb0(%j: index):
        %7 = tk.load %0[%b, %h, %i, %j] : tensor<?x?x?x?xf32>
        %8 = tk.load %1[%b, %h, %i] : tensor<?x?x?xf32>
        %9 = arith.subf %7, %8 : f32
        %10 = math.exp %9 : f32
        %11 = tk.load %v[%b, %h, %j, %e] : tensor<?x?x?x?xf32>
        %12 = arith.mulf %10, %11 : f32
        tk.yield %12 : f32
      } : f32
      %5 = tk.load %2[%b, %h, %i] : tensor<?x?x?xf32>
      %6 = arith.divf %4, %5 : f32
      tk.yield %6 : f32
    } names ["o"] : tensor<?x?x?x?xf32>
    tk.return %3 : tensor<?x?x?x?xf32>
  }
  tk.kernel @alibi dims ["B", "H", "S", "D", "E"] params [#tk.param<"q">, #tk.param<"k">, #tk.param<"v">, #tk.param<"slope">] results ["o"] {
  ^bb0(%B: index, %H: index, %S: index, %D: index, %E: index, %q: tensor<?x?x?x?xf32>, %k: tensor<?x?x?x?xf32>, %v: tensor<?x?x?x?xf32>, %slope: tensor<?xf32>):
    tk.bind %q[%B, %H, %S, %D] : tensor<?x?x?x?xf32>
    tk.bind %k[%B, %H, %S, %D] : tensor<?x?x?x?xf32>
    tk.bind %v[%B, %H, %S, %E] : tensor<?x?x?x?xf32>
    tk.bind %slope[%H] : tensor<?xf32>
    %c0 = arith.constant 0 : index
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %0 = tk.compute ["b", "h", "i", "j"] in(%B, %H, %S, %S) {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %4 = tk.reduce [#tk.kind<sum>] ["d"] from(%c0) to(%D) {
      ^bb0(%d: index):
        %14 = tk.load %q[%b, %h, %i, %d] : tensor<?x?x?x?xf32>
        %15 = tk.load %k[%b, %h, %j, %d] : tensor<?x?x?x?xf32>
        %16 = arith.mulf %14, %15 : f32
        tk.yield %16 : f32
      } : f32
      %5 = tk.load %slope[%h] : tensor<?xf32>
      %6 = arith.subi %j, %i : index
      %7 = arith.index_cast %6 : index to i64
      %8 = arith.sitofp %7 : i64 to f32
      %9 = arith.mulf %5, %8 : f32
      %10 = arith.addf %4, %9 : f32
      %11 = arith.cmpi sle, %j, %i : index
      %12 = arith.select %11, %cst, %cst_0 : f32
      %13 = arith.addf %10, %12 : f32
      tk.yield %13 : f32
    } names ["s"] : tensor<?x?x?x?xf32>
    %1 = tk.compute ["b", "h", "i"] in(%B, %H, %S) {
    ^bb0(%b: index, %h: index, %i: index):
      %4 = tk.reduce [#tk.kind<max>] ["j"] from(%c0) to(%S) {
      ^bb0(%j: index):
        %5 = tk.load %0[%b, %h, %i, %j] : tensor<?x?x?x?xf32>
        tk.yield %5 : f32
      } : f32
      tk.yield %4 : f32
    } names ["o.max"] : tensor<?x?x?xf32>
    %2 = tk.compute ["b", "h", "i"] in(%B, %H, %S) {
    ^bb0(%b: index, %h: index, %i: index):
      %4 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%S) {
      ^bb0(%j: index):
        %5 = tk.load %0[%b, %h, %i, %j] : tensor<?x?x?x?xf32>
        %6 = tk.load %1[%b, %h, %i] : tensor<?x?x?xf32>
        %7 = tk.exp_diff %5, %6 : f32
        tk.yield %7 : f32
      } : f32
      tk.yield %4 : f32
    } names ["o.sum"] : tensor<?x?x?xf32>
    %3 = tk.compute ["b", "h", "i", "e"] in(%B, %H, %S, %E) {
    ^bb0(%b: index, %h: index, %i: index, %e: index):
      %4 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%S) {
      ^bb0(%j: index):
        %5 = tk.load %0[%b, %h, %i, %j] : tensor<?x?x?x?xf32>
        %6 = tk.load %1[%b, %h, %i] : tensor<?x?x?xf32>
        %7 = tk.exp_diff %5, %6 : f32
        %8 = tk.load %2[%b, %h, %i] : tensor<?x?x?xf32>
        %9 = tk.div_or_zero %7, %8 : f32
        %10 = tk.load %v[%b, %h, %j, %e] : tensor<?x?x?x?xf32>
        %11 = arith.mulf %9, %10 : f32
        tk.yield %11 : f32
      } : f32
      tk.yield %4 : f32
    } names ["o"] : tensor<?x?x?x?xf32>
    tk.return %3 : tensor<?x?x?x?xf32>
  }
  tk.kernel @doc_mask dims ["B", "S", "D", "E"] params [#tk.param<"q">, #tk.param<"k">, #tk.param<"v">, #tk.param<"doc">] results ["o"] {
  ^bb0(%B: index, %S: index, %D: index, %E: index, %q: tensor<?x?x?xf32>, %k: tensor<?x?x?xf32>, %v: tensor<?x?x?xf32>, %doc: tensor<?x?xi32>):
    tk.bind %q[%B, %S, %D] : tensor<?x?x?xf32>
    tk.bind %k[%B, %S, %D] : tensor<?x?x?xf32>
    tk.bind %v[%B, %S, %E] : tensor<?x?x?xf32>
    tk.bind %doc[%B, %S] : tensor<?x?xi32>
    %c0 = arith.constant 0 : index
    %cst = arith.constant 0xFF800000 : f32
    %0 = tk.compute ["b", "i", "j"] in(%B, %S, %S) {
    ^bb0(%b: index, %i: index, %j: index):
      %4 = tk.load %doc[%b, %i] : tensor<?x?xi32>
      %5 = tk.load %doc[%b, %j] : tensor<?x?xi32>
      %6 = arith.cmpi eq, %4, %5 : i32
      %7 = arith.cmpi sle, %j, %i : index
      %8 = arith.andi %6, %7 : i1
      %9 = tk.reduce [#tk.kind<sum>] ["d"] from(%c0) to(%D) {
      ^bb0(%d: index):
        %11 = tk.load %q[%b, %i, %d] : tensor<?x?x?xf32>
        %12 = tk.load %k[%b, %j, %d] : tensor<?x?x?xf32>
        %13 = arith.mulf %11, %12 : f32
        tk.yield %13 : f32
      } : f32
      %10 = arith.select %8, %9, %cst : f32
      tk.yield %10 : f32
    } names ["s"] : tensor<?x?x?xf32>
    %1 = tk.compute ["b", "i"] in(%B, %S) {
    ^bb0(%b: index, %i: index):
      %4 = tk.reduce [#tk.kind<max>] ["j"] from(%c0) to(%S) {
      ^bb0(%j: index):
        %5 = tk.load %0[%b, %i, %j] : tensor<?x?x?xf32>
        tk.yield %5 : f32
      } : f32
      tk.yield %4 : f32
    } names ["o.max"] : tensor<?x?xf32>
    %2 = tk.compute ["b", "i"] in(%B, %S) {
    ^bb0(%b: index, %i: index):
      %4 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%S) {
      ^bb0(%j: index):
        %5 = tk.load %0[%b, %i, %j] : tensor<?x?x?xf32>
        %6 = tk.load %1[%b, %i] : tensor<?x?xf32>
        %7 = tk.exp_diff %5, %6 : f32
        tk.yield %7 : f32
      } : f32
      tk.yield %4 : f32
    } names ["o.sum"] : tensor<?x?xf32>
    %3 = tk.compute ["b", "i", "e"] in(%B, %S, %E) {
    ^bb0(%b: index, %i: index, %e: index):
      %4 = tk.reduce [#tk.kind<sum>] ["j"] from(%c0) to(%S) {
      ^bb0(%j: index):
        %5 = tk.load %0[%b, %i, %j] : tensor<?x?x?xf32>
        %6 = tk.load %1[%b, %i] : tensor<?x?xf32>
        %7 = tk.exp_diff %5, %6 : f32
        %8 = tk.load %2[%b, %i] : tensor<?x?xf32>
        %9 = tk.div_or_zero %7, %8 : f32
        %10 = tk.load %v[%b, %j, %e] : tensor<?x?x?xf32>
        %11 = arith.mulf %9, %10 : f32
        tk.yield %11 : f32
      } : f32
      tk.yield %4 : f32
    } names ["o"] : tensor<?x?x?xf32>
    tk.return %3 : tensor<?x?x?xf32>
  }
  tk.kernel @moe dims ["M", "K", "X", "N"] params [#tk.param<"x">, #tk.param<"w">, #tk.param<"g">] results ["y"] {
  ^bb0(%M: index, %K: index, %X: index, %N: index, %x: tensor<?x?xf32>, %w: tensor<?x?x?xf32>, %g: tensor<?x?xf32>):
    tk.bind %x[%M, %K] : tensor<?x?xf32>
    tk.bind %w[%X, %K, %N] : tensor<?x?x?xf32>
    tk.bind %g[%M, %X] : tensor<?x?xf32>
    %c0 = arith.constant 0 : index
    %0 = tk.compute ["i"] in(%M) {
    ^bb0(%i: index):
      %5 = tk.reduce [#tk.kind<max>] ["a"] from(%c0) to(%X) {
      ^bb0(%a: index):
        %6 = tk.load %g[%i, %a] : tensor<?x?xf32>
        tk.yield %6 : f32
      } : f32
      tk.yield %5 : f32
    } names ["p.max"] : tensor<?xf32>
    %1 = tk.compute ["i"] in(%M) {
    ^bb0(%i: index):
      %5 = tk.reduce [#tk.kind<sum>] ["a"] from(%c0) to(%X) {
      ^bb0(%a: index):
        %6 = tk.load %g[%i, %a] : tensor<?x?xf32>
        %7 = tk.load %0[%i] : tensor<?xf32>
        %8 = tk.exp_diff %6, %7 : f32
        tk.yield %8 : f32
      } : f32
      tk.yield %5 : f32
    } names ["p.sum"] : tensor<?xf32>
    %2 = tk.compute ["i", "a"] in(%M, %X) {
    ^bb0(%i: index, %a: index):
      %5 = tk.load %g[%i, %a] : tensor<?x?xf32>
      %6 = tk.load %0[%i] : tensor<?xf32>
      %7 = tk.exp_diff %5, %6 : f32
      %8 = tk.load %1[%i] : tensor<?xf32>
      %9 = tk.div_or_zero %7, %8 : f32
      tk.yield %9 : f32
    } names ["p"] : tensor<?x?xf32>
    %3 = tk.compute ["i", "a", "j"] in(%M, %X, %N) {
    ^bb0(%i: index, %a: index, %j: index):
      %5 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %6 = tk.load %x[%i, %k] : tensor<?x?xf32>
        %7 = tk.load %w[%a, %k, %j] : tensor<?x?x?xf32>
        %8 = arith.mulf %6, %7 : f32
        tk.yield %8 : f32
      } : f32
      tk.yield %5 : f32
    } names ["h"] : tensor<?x?x?xf32>
    %4 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %5 = tk.reduce [#tk.kind<sum>] ["a"] from(%c0) to(%X) {
      ^bb0(%a: index):
        %6 = tk.load %2[%i, %a] : tensor<?x?xf32>
        %7 = tk.load %3[%i, %a, %j] : tensor<?x?x?xf32>
        %cst = arith.constant 0.000000e+00 : f32
        %8 = arith.maximumf %7, %cst : f32
        %9 = arith.mulf %6, %8 : f32
        tk.yield %9 : f32
      } : f32
      tk.yield %5 : f32
    } names ["y"] : tensor<?x?xf32>
    tk.return %4 : tensor<?x?xf32>
  }
  tk.kernel @xent dims ["R", "D", "V"] params [#tk.param<"x">, #tk.param<"w">, #tk.param<"label">] results ["loss"] {
  ^bb0(%R: index, %D: index, %V: index, %x: tensor<?x?xbf16>, %w: tensor<?x?xbf16>, %label: tensor<?xi32>):
    tk.bind %x[%R, %D] : tensor<?x?xbf16>
    tk.bind %w[%D, %V] : tensor<?x?xbf16>
    tk.bind %label[%R] : tensor<?xi32>
    %c0 = arith.constant 0 : index
    %0 = arith.cmpi sgt, %R, %c0 : index
    tk.assume %0, "R > 0"
    %1 = tk.compute ["r", "v"] in(%R, %V) {
    ^bb0(%r: index, %v: index):
      %5 = tk.reduce [#tk.kind<sum>] ["d"] from(%c0) to(%D) {
      ^bb0(%d: index):
        %6 = tk.load %x[%r, %d] : tensor<?x?xbf16>
        %7 = arith.extf %6 : bf16 to f32
        %8 = tk.load %w[%d, %v] : tensor<?x?xbf16>
        %9 = arith.extf %8 : bf16 to f32
        %10 = arith.mulf %7, %9 : f32
        tk.yield %10 : f32
      } : f32
      tk.yield %5 : f32
    } names ["s"] : tensor<?x?xf32>
    %cst = arith.constant 0x7F800000 : f32
    %cst_0 = arith.constant 0.000000e+00 : f32
    %2 = arith.index_cast %R : index to i64
    %3 = arith.sitofp %2 : i64 to f32
    %4 = tk.compute [] in() {
      %5 = tk.reduce [#tk.kind<sum>] ["r"] from(%c0) to(%R) {
      ^bb0(%r: index):
        %7 = tk.reduce [#tk.kind<max>] ["v"] from(%c0) to(%V) {
        ^bb0(%v: index):
          %17 = tk.load %1[%r, %v] : tensor<?x?xf32>
          tk.yield %17 : f32
        } : f32
        %8 = arith.cmpf oeq, %7, %cst : f32
        %9 = tk.reduce [#tk.kind<sum>] ["v"] from(%c0) to(%V) {
        ^bb0(%v: index):
          %17 = tk.load %1[%r, %v] : tensor<?x?xf32>
          %18 = tk.exp_diff %17, %7 : f32
          tk.yield %18 : f32
        } : f32
        %10 = math.log %9 : f32
        %11 = arith.addf %7, %10 : f32
        %12 = arith.select %8, %cst, %11 : f32
        %13 = tk.load %label[%r] : tensor<?xi32>
        %14 = arith.index_cast %13 : i32 to index
        %15 = tk.load %1[%r, %14] pad %cst_0 : f32 : tensor<?x?xf32>
        %16 = arith.subf %12, %15 : f32
        tk.yield %16 : f32
      } : f32
      %6 = arith.divf %5, %3 : f32
      tk.yield %6 : f32
    } names ["loss"] : tensor<f32>
    tk.return %4 : tensor<f32>
  }
  tk.kernel @quant dims ["R", "C"] params [#tk.param<"x">] results ["y", "scale"] {
  ^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>):
    tk.bind %x[%R, %C] : tensor<?x?xbf16>
    %c0 = arith.constant 0 : index
    %cst = arith.constant 1.270000e+02 : f32
    %0 = tk.compute ["r"] in(%R) {
    ^bb0(%r: index):
      %2 = tk.reduce [#tk.kind<max>] ["c"] from(%c0) to(%C) {
      ^bb0(%c: index):
        %4 = tk.load %x[%r, %c] : tensor<?x?xbf16>
        %5 = arith.extf %4 : bf16 to f32
        %6 = math.absf %5 : f32
        tk.yield %6 : f32
      } : f32
      %3 = arith.divf %2, %cst : f32
      tk.yield %3 : f32
    } names ["scale"] : tensor<?xf32>
    %1 = tk.compute ["r", "c"] in(%R, %C) {
    ^bb0(%r: index, %c: index):
      %2 = tk.load %x[%r, %c] : tensor<?x?xbf16>
      %3 = arith.extf %2 : bf16 to f32
      %4 = tk.load %0[%r] : tensor<?xf32>
      %5 = arith.divf %3, %4 : f32
      %6 = math.roundeven %5 : f32
      %cst_0 = arith.constant 0.000000e+00 : f32
      %cst_1 = arith.constant -1.280000e+02 : f32
      %cst_2 = arith.constant 1.280000e+02 : f32
      %7 = arith.cmpf ole, %6, %cst_1 : f32
      %8 = arith.cmpf oge, %6, %cst_2 : f32
      %9 = arith.cmpf uno, %6, %6 : f32
      %10 = arith.ori %7, %8 : i1
      %11 = arith.ori %10, %9 : i1
      %12 = arith.select %11, %cst_0, %6 : f32
      %13 = arith.fptosi %12 : f32 to i8
      %c-128_i8 = arith.constant -128 : i8
      %14 = arith.select %7, %c-128_i8, %13 : i8
      %c127_i8 = arith.constant 127 : i8
      %15 = arith.select %8, %c127_i8, %14 : i8
      tk.yield %15 : i8
    } names ["y"] : tensor<?x?xi8>
    tk.return %1, %0 : tensor<?x?xi8>, tensor<?xf32>
  }
}
