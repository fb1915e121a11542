// RUN: tk-opt --tk-fuse-producers --tk-online-reductions %s | FileCheck %s

// Products of one batch are chained: the scores are never stored, and nothing needs rescaling.
// CHECK-LABEL: @attention_sigmoid
// CHECK: tk.compute
// CHECK: tk.reduce [#tk.kind<sum>] ["j"]
// CHECK-NOT: rescale
// CHECK: tk.reduce [#tk.kind<sum>] ["d"]
// CHECK: math.exp
// CHECK-NOT: tk.compute
// CHECK: tk.return
tk.kernel @attention_sigmoid dims ["B", "H", "S", "T", "D", "E"]
    params [#tk.param<"q">, #tk.param<"k">, #tk.param<"v">]
    results ["o"] {
^bb0(%B: index, %H: index, %S: index, %T: index, %D: index, %E: index, %q: tensor<?x?x?x?xf32>, %k: tensor<?x?x?x?xf32>, %v: tensor<?x?x?x?xf32>):
  tk.bind %q[%B, %H, %S, %D] : tensor<?x?x?x?xf32>
  tk.bind %k[%B, %H, %T, %D] : tensor<?x?x?x?xf32>
  tk.bind %v[%B, %H, %T, %E] : tensor<?x?x?x?xf32>
  %zero = arith.constant 0 : index
  %s = tk.compute ["b", "h", "i", "j"] in (%B, %H, %S, %T) {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %dot = tk.reduce [#tk.kind<sum>] ["d"] from (%zero) to (%D) {
    ^bb0(%d: index):
    %fa = tk.load %q[%b, %h, %i, %d] : tensor<?x?x?x?xf32>
    %fb = tk.load %k[%b, %h, %j, %d] : tensor<?x?x?x?xf32>
    %fp = arith.mulf %fa, %fb : f32
    tk.yield %fp : f32
    } : f32
    tk.yield %dot : f32
  } names ["s"] : tensor<?x?x?x?xf32>
  %o = tk.compute ["b", "h", "i", "e"] in (%B, %H, %S, %E) {
  ^bb0(%b: index, %h: index, %i: index, %e: index):
    %r = tk.reduce [#tk.kind<sum>] ["j"] from (%zero) to (%T) {
    ^bb0(%j: index):
    %x = tk.load %s[%b, %h, %i, %j] : tensor<?x?x?x?xf32>
    %one = arith.constant 1.0 : f32
    %n = arith.negf %x : f32
    %ex = math.exp %n : f32
    %d = arith.addf %one, %ex : f32
    %g = arith.divf %one, %d : f32
    %y = tk.load %v[%b, %h, %j, %e] : tensor<?x?x?x?xf32>
    %p = arith.mulf %g, %y : f32
    tk.yield %p : f32
    } : f32
    tk.yield %r : f32
  } names ["o"] : tensor<?x?x?x?xf32>
  tk.return %o : tensor<?x?x?x?xf32>
}

// No batch is shared: the hidden layer would be computed once for every tile of p.
// CHECK-LABEL: @perceptron
// CHECK: tk.compute ["i", "n"]
// CHECK: maximumf
// CHECK: tk.compute ["i", "p"]
// CHECK-NOT: tk.compute
// CHECK: tk.return
// CHECK: declined = "'h' is stored: its products would be repeated for every tile of index 'p'"
tk.kernel @perceptron dims ["M", "K", "N", "P"]
    params [#tk.param<"x">, #tk.param<"w1">, #tk.param<"w2">]
    results ["y"] {
^bb0(%M: index, %K: index, %N: index, %P: index, %x: tensor<?x?xf32>, %w1: tensor<?x?xf32>, %w2: tensor<?x?xf32>):
  tk.bind %x[%M, %K] : tensor<?x?xf32>
  tk.bind %w1[%K, %N] : tensor<?x?xf32>
  tk.bind %w2[%N, %P] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %h = tk.compute ["i", "n"] in (%M, %N) {
  ^bb0(%i: index, %n: index):
    %dot = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%K) {
    ^bb0(%k: index):
    %fa = tk.load %x[%i, %k] : tensor<?x?xf32>
    %fb = tk.load %w1[%k, %n] : tensor<?x?xf32>
    %fp = arith.mulf %fa, %fb : f32
    tk.yield %fp : f32
    } : f32
    %c0 = arith.constant 0.0 : f32
    %r = arith.maximumf %dot, %c0 : f32
    tk.yield %r : f32
  } names ["h"] : tensor<?x?xf32>
  %y = tk.compute ["i", "p"] in (%M, %P) {
  ^bb0(%i: index, %p: index):
    %dot = tk.reduce [#tk.kind<sum>] ["n"] from (%zero) to (%N) {
    ^bb0(%n: index):
    %fa = tk.load %h[%i, %n] : tensor<?x?xf32>
    %fb = tk.load %w2[%n, %p] : tensor<?x?xf32>
    %fp = arith.mulf %fa, %fb : f32
    tk.yield %fp : f32
    } : f32
    tk.yield %dot : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}

// A product is the input of its epilogue.
// CHECK-LABEL: @linear_gelu
// CHECK: tk.compute
// CHECK: tk.reduce [#tk.kind<sum>] ["k"]
// CHECK-NOT: tk.compute
// CHECK: math.erf
// CHECK-NOT: tk.reduce
// CHECK: names ["y"]
tk.kernel @linear_gelu dims ["M", "K", "N"]
    params [#tk.param<"x">, #tk.param<"w">, #tk.param<"bias">]
    results ["y"] {
^bb0(%M: index, %K: index, %N: index, %x: tensor<?x?xbf16>, %w: tensor<?x?xbf16>, %bias: tensor<?xbf16>):
  tk.bind %x[%M, %K] : tensor<?x?xbf16>
  tk.bind %w[%N, %K] : tensor<?x?xbf16>
  tk.bind %bias[%N] : tensor<?xbf16>
  %zero = arith.constant 0 : index
  %s = tk.compute ["i", "j"] in (%M, %N) {
  ^bb0(%i: index, %j: index):
    %dot = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%K) {
    ^bb0(%k: index):
    %x0 = tk.load %x[%i, %k] : tensor<?x?xbf16>
    %y0 = tk.load %w[%j, %k] : tensor<?x?xbf16>
    %x1 = arith.extf %x0 : bf16 to f32
    %y1 = arith.extf %y0 : bf16 to f32
    %p = arith.mulf %x1, %y1 : f32
    tk.yield %p : f32
    } : f32
    tk.yield %dot : f32
  } names ["s"] : tensor<?x?xf32>
  %t = tk.compute ["i", "j"] in (%M, %N) {
  ^bb0(%i: index, %j: index):
    %a = tk.load %s[%i, %j] : tensor<?x?xf32>
    %b0 = tk.load %bias[%j] : tensor<?xbf16>
    %b = arith.extf %b0 : bf16 to f32
    %r = arith.addf %a, %b : f32
    tk.yield %r : f32
  } names ["t"] : tensor<?x?xf32>
  %y = tk.compute ["i", "j"] in (%M, %N) {
  ^bb0(%i: index, %j: index):
    %a = tk.load %t[%i, %j] : tensor<?x?xf32>
    %c = arith.constant 0.70710678 : f32
    %h = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %u = arith.mulf %a, %c : f32
    %e = math.erf %u : f32
    %f = arith.addf %e, %one : f32
    %g = arith.mulf %a, %h : f32
    %r = arith.mulf %f, %g : f32
    %o = arith.truncf %r : f32 to bf16
    tk.yield %o : bf16
  } names ["y"] : tensor<?x?xbf16>
  tk.return %y : tensor<?x?xbf16>
}

// The block that writes a row computes its mean and variance. The variance needs the mean in a way
// that does not separate.
// CHECK-LABEL: @layernorm
// CHECK: tk.compute ["r", "c"]
// CHECK: tk.reduce [#tk.kind<sum>]
// CHECK: tk.reduce [#tk.kind<sum>]
// CHECK-NOT: tk.reduce
// CHECK: names ["z"]
// CHECK: is a loop of its own: an earlier result enters its term through a difference
tk.kernel @layernorm dims ["R", "C"]
    params [#tk.param<"x">, #tk.param<"gamma">]
    results ["z"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>, %gamma: tensor<?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  tk.bind %gamma[%C] : tensor<?xf32>
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
  %var = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %b = tk.load %mu[%r] : tensor<?xf32>
    %d = arith.subf %a, %b : f32
    %q = arith.mulf %d, %d : f32
    tk.yield %q : f32
    } : f32
    %m = arith.divf %s, %cf : f32
    tk.yield %m : f32
  } names ["var"] : tensor<?xf32>
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %b = tk.load %mu[%r] : tensor<?xf32>
    %d = arith.subf %a, %b : f32
    %v = tk.load %var[%r] : tensor<?xf32>
    %eps = arith.constant 1.0e-5 : f32
    %w = arith.addf %v, %eps : f32
    %i = math.rsqrt %w : f32
    %n = arith.mulf %d, %i : f32
    %g = tk.load %gamma[%c] : tensor<?xf32>
    %o = arith.mulf %n, %g : f32
    tk.yield %o : f32
  } names ["y"] : tensor<?x?xf32>
  %z = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %a = tk.load %y[%r, %c] : tensor<?x?xf32>
    %zz = arith.constant 0.0 : f32
    %o = arith.maximumf %a, %zz : f32
    tk.yield %o : f32
  } names ["z"] : tensor<?x?xf32>
  tk.return %z : tensor<?x?xf32>
}

// A stencil of a stencil would compute each element of the first three times.
// CHECK-LABEL: @two_stencils
// CHECK: tk.compute
// CHECK: names ["a"]
// CHECK: tk.compute
// CHECK: names ["b"]
tk.kernel @two_stencils dims ["N"]
    params [#tk.param<"x">, #tk.param<"w">]
    results ["b"] {
^bb0(%N: index, %x: tensor<?xf32>, %w: tensor<?xf32>):
  tk.bind %x[%N] : tensor<?xf32>
  tk.bind %w[%N] : tensor<?xf32>
  %zero = arith.constant 0 : index
  %two = arith.constant 3 : index
  %pad = arith.constant 0.0 : f32
  %a = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %s = tk.reduce [#tk.kind<sum>] ["t"] from (%zero) to (%two) {
    ^bb0(%t: index):
    %p = arith.addi %i, %t : index
    %v = tk.load %x[%p] pad %pad : f32 : tensor<?xf32>
    %u = tk.load %w[%i] : tensor<?xf32>
    %q = arith.mulf %v, %u : f32
    tk.yield %q : f32
    } : f32
    tk.yield %s : f32
  } names ["a"] : tensor<?xf32>
  %b = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %s = tk.reduce [#tk.kind<sum>] ["t"] from (%zero) to (%two) {
    ^bb0(%t: index):
    %p = arith.addi %i, %t : index
    %v = tk.load %a[%p] pad %pad : f32 : tensor<?xf32>
    %u = tk.load %w[%i] : tensor<?xf32>
    %q = arith.mulf %v, %u : f32
    tk.yield %q : f32
    } : f32
    tk.yield %s : f32
  } names ["b"] : tensor<?xf32>
  tk.return %b : tensor<?xf32>
}

// Outside the bounds the reader sees its own padding, and the producer's loads stay inside.
// CHECK-LABEL: @padded
// CHECK: tk.compute
// CHECK: tk.load %{{.*}} pad
// CHECK: addf
// CHECK: select
// CHECK: names ["b"]
tk.kernel @padded dims ["N"]
    params [#tk.param<"x">]
    results ["b"] {
^bb0(%N: index, %x: tensor<?xf32>):
  tk.bind %x[%N] : tensor<?xf32>
  %zero = arith.constant 0 : index
  %pad = arith.constant 5.0 : f32
  %three = arith.constant 3 : index
  %a = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %v = tk.load %x[%i] : tensor<?xf32>
    %one = arith.constant 1.0 : f32
    %u = arith.addf %v, %one : f32
    tk.yield %u : f32
  } names ["a"] : tensor<?xf32>
  %b = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %p = arith.addi %i, %three : index
    %v = tk.load %a[%p] pad %pad : f32 : tensor<?xf32>
    tk.yield %v : f32
  } names ["b"] : tensor<?xf32>
  tk.return %b : tensor<?xf32>
}

// An element at a constant place is computed outside a reduction only where there is one whatever the sizes
// are: %K may be 0.
// CHECK-LABEL: @first
// CHECK: tk.reduce
// CHECK: tk.load %x[%i, %c0]
// CHECK: tk.return
// CHECK-LABEL: @third
// CHECK: tk.load %x[%i, %c2]
// CHECK: tk.reduce
// CHECK: tk.return
tk.kernel @first dims ["N", "K"]
    params [#tk.param<"x">]
    results ["y"] {
^bb0(%N: index, %K: index, %x: tensor<?x?xf32>):
  tk.bind %x[%N, %K] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %t = tk.compute ["n", "k"] in (%N, %K) {
  ^bb0(%n: index, %k: index):
    %a = tk.load %x[%n, %k] : tensor<?x?xf32>
    %b = arith.mulf %a, %a : f32
    tk.yield %b : f32
  } names ["t"] : tensor<?x?xf32>
  %y = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%K) {
    ^bb0(%k: index):
      %v = tk.load %t[%i, %zero] : tensor<?x?xf32>
      tk.yield %v : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}
tk.kernel @third dims ["N", "K"]
    params [#tk.param<"x">]
    results ["y"] {
^bb0(%N: index, %K: index, %x: tensor<?x?xf32>):
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  tk.bind %x[%N, %c4] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %t = tk.compute ["n", "k"] in (%N, %c4) {
  ^bb0(%n: index, %k: index):
    %a = tk.load %x[%n, %k] : tensor<?x?xf32>
    %b = arith.mulf %a, %a : f32
    tk.yield %b : f32
  } names ["t"] : tensor<?x?xf32>
  %y = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%K) {
    ^bb0(%k: index):
      %v = tk.load %t[%i, %c2] : tensor<?x?xf32>
      tk.yield %v : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}
