// RUN: tk-opt --tk-simplify %s | FileCheck %s

// Equal reductions are one, whatever their indices are called; the factor leaves the sum, which stays
// 0 over an empty range.
// CHECK-LABEL: @factors
// CHECK: %[[S:.*]] = tk.reduce
// CHECK-NOT: mulf
// CHECK: } : f32
// CHECK: %[[BOUNDED:.*]] = math.tanh
// CHECK: mulf %[[S]], %[[BOUNDED]]
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
    %f = math.tanh %b : f32
    %p = arith.mulf %a, %f : f32
    tk.yield %p : f32
    } : f32
    %t = tk.reduce [#tk.kind<sum>] ["d"] from (%zero) to (%C) {
    ^bb0(%d: index):
    %a = tk.load %x[%r, %d] : tensor<?x?xf32>
    %b = tk.load %g[%r] : tensor<?xf32>
    %f = math.tanh %b : f32
    %p = arith.mulf %f, %a : f32
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

// A factor that may be infinite stays, and so does a divisor that may be 0: one term is NaN then and
// the others need not be.
// CHECK-LABEL: @infinite
// CHECK: %[[S:.*]] = tk.reduce
// CHECK: mulf
// CHECK: } : f32
// CHECK: %[[T:.*]] = tk.reduce
// CHECK: divf
// CHECK: } : f32
// CHECK: addf %[[S]], %[[T]]
// CHECK: declined = "an operand that does not vary stays inside the sum over c in 'y': it may be infinite"
// CHECK-SAME: declined = "an operand that does not vary stays inside the sum over c in 'y': it may be 0"
tk.kernel @infinite dims ["R", "C", "D"]
    params [#tk.param<"x">, #tk.param<"g">]
    results ["y"] {
^bb0(%R: index, %C: index, %D: index, %x: tensor<?x?xf32>, %g: tensor<?xf32>):
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
    %t = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %b = tk.load %g[%r] : tensor<?xf32>
    %p = arith.divf %a, %b : f32
    tk.yield %p : f32
    } : f32
    %o = arith.addf %s, %t : f32
    tk.yield %o : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// What is bounded leaves, whatever it is computed from.
// CHECK-LABEL: @bounded
// CHECK: %[[S:.*]] = tk.reduce
// CHECK: %[[X:.*]] = tk.load
// CHECK-NEXT: tk.yield %[[X]]
// CHECK: %[[LOW:.*]] = arith.maximumf
// CHECK: %[[CLAMPED:.*]] = arith.minimumf %[[LOW]]
// CHECK: mulf {{.*}}%[[CLAMPED]]
// CHECK: arith.sitofp
// CHECK: select
tk.kernel @bounded dims ["R", "C", "D"]
    params [#tk.param<"x">, #tk.param<"g">]
    results ["y"] {
^bb0(%R: index, %C: index, %D: index, %x: tensor<?x?xf32>, %g: tensor<?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  tk.bind %g[%R] : tensor<?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %low = arith.constant -1.0e+30 : f32
    %high = arith.constant 1.0e+30 : f32
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %b = tk.load %g[%r] : tensor<?xf32>
    %above = arith.maximumf %b, %low : f32
    %clamped = arith.minimumf %above, %high : f32
    %p = arith.mulf %a, %clamped : f32
    %wide = arith.index_cast %C : index to i64
    %n = arith.sitofp %wide : i64 to f32
    %q = arith.mulf %p, %n : f32
    tk.yield %q : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// Half a clamp may be infinite, and 16 bits do not hold all integers.
// CHECK-LABEL: @unbounded
// CHECK: tk.reduce
// CHECK: maximumf
// CHECK: mulf
// CHECK: sitofp
// CHECK: mulf
// CHECK: } : f32
// CHECK-NEXT: tk.yield
tk.kernel @unbounded dims ["R", "C", "D"]
    params [#tk.param<"x">, #tk.param<"g">]
    results ["y"] {
^bb0(%R: index, %C: index, %D: index, %x: tensor<?x?xf32>, %g: tensor<?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  tk.bind %g[%R] : tensor<?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %low = arith.constant -1.0e+30 : f32
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %b = tk.load %g[%r] : tensor<?xf32>
    %above = arith.maximumf %b, %low : f32
    %p = arith.mulf %a, %above : f32
    %wide = arith.index_cast %C : index to i64
    %n = arith.sitofp %wide : i64 to f16
    %m = arith.extf %n : f16 to f32
    %q = arith.mulf %p, %m : f32
    tk.yield %q : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// The divisor of weights leaves; where it is a sum over another range it may be NaN while nothing is
// summed up.
// CHECK-LABEL: @weights
// CHECK: %[[Z:.*]] = tk.reduce
// CHECK: %[[S:.*]] = tk.reduce
// CHECK: %[[SAME:.*]] = tk.div_or_zero %[[S]], %[[Z]]
// CHECK: %[[T:.*]] = tk.reduce
// CHECK: %[[OTHER:.*]] = tk.div_or_zero %[[T]], %[[Z]]
// CHECK: %[[ANY:.*]] = arith.cmpi
// CHECK: %[[KEPT:.*]] = arith.select %[[ANY]], %[[OTHER]]
// CHECK: addf %[[SAME]], %[[KEPT]]
tk.kernel @weights dims ["R", "C", "D"]
    params [#tk.param<"x">, #tk.param<"g">]
    results ["y"] {
^bb0(%R: index, %C: index, %D: index, %x: tensor<?x?xf32>, %g: tensor<?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  tk.bind %g[%R] : tensor<?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %z = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    tk.yield %a : f32
    } : f32
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %e = math.exp %a : f32
    %w = tk.div_or_zero %e, %z : f32
    tk.yield %w : f32
    } : f32
    %t = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%D) {
    ^bb0(%c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %e = math.exp %a : f32
    %w = tk.div_or_zero %e, %z : f32
    tk.yield %w : f32
    } : f32
    %o = arith.addf %s, %t : f32
    tk.yield %o : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// The divisor of weights that are spelled out leaves: one of its terms is exp(0). It is 0 where there
// are none, and then so is the sum.
// CHECK-LABEL: @spelled
// CHECK: tk.reduce [#tk.kind<max>]
// CHECK: %[[Z:.*]] = tk.reduce [#tk.kind<sum>]
// CHECK: %[[S:.*]] = tk.reduce [#tk.kind<sum>]
// CHECK-NOT: divf
// CHECK: } : f32
// CHECK: %[[Q:.*]] = arith.divf %[[S]], %[[Z]]
// CHECK: arith.select {{.*}}, %[[Q]]
tk.kernel @spelled dims ["R", "C"] params [#tk.param<"x">, #tk.param<"v">] results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>, %v: tensor<?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  tk.bind %v[%C] : tensor<?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %m = tk.reduce [#tk.kind<max>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    tk.yield %a : f32
    } : f32
    %z = tk.reduce [#tk.kind<sum>] ["d"] from (%zero) to (%C) {
    ^bb0(%d: index):
    %a = tk.load %x[%r, %d] : tensor<?x?xf32>
    %s = arith.subf %a, %m : f32
    %e = math.exp %s : f32
    tk.yield %e : f32
    } : f32
    %o = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %s = arith.subf %a, %m : f32
    %e = math.exp %s : f32
    %w = arith.divf %e, %z : f32
    %b = tk.load %v[%c] : tensor<?xf32>
    %p = arith.mulf %w, %b : f32
    tk.yield %p : f32
    } : f32
    tk.yield %o : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// Exponentials of distances from something else may all be 0.
// CHECK-LABEL: @other_distances
// CHECK: tk.reduce [#tk.kind<max>]
// CHECK: tk.reduce [#tk.kind<sum>]
// CHECK: tk.reduce [#tk.kind<sum>]
// CHECK: divf
// CHECK: } : f32
// CHECK-NEXT: tk.yield
tk.kernel @other_distances dims ["R", "C"] params [#tk.param<"x">, #tk.param<"v">] results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>, %v: tensor<?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  tk.bind %v[%C] : tensor<?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %m = tk.reduce [#tk.kind<max>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    tk.yield %a : f32
    } : f32
    %z = tk.reduce [#tk.kind<sum>] ["d"] from (%zero) to (%C) {
    ^bb0(%d: index):
    %a = tk.load %v[%d] : tensor<?xf32>
    %s = arith.subf %a, %m : f32
    %e = math.exp %s : f32
    tk.yield %e : f32
    } : f32
    %o = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %w = arith.divf %a, %z : f32
    tk.yield %w : f32
    } : f32
    tk.yield %o : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// An exponential under the logarithm of a sum is one of its terms over it.
// CHECK-LABEL: @log_weights
// CHECK: %[[M:.*]] = tk.reduce [#tk.kind<max>]
// CHECK: %[[S:.*]] = tk.reduce [#tk.kind<sum>]
// CHECK-NOT: math.
// CHECK: %[[INF:.*]] = arith.cmpf oeq, %[[M]]
// CHECK: %[[OVER:.*]] = arith.divf %{{.*}}, %[[S]]
// CHECK: %[[FACTOR:.*]] = arith.select %[[INF]], %{{.*}}, %[[OVER]]
// CHECK: %[[E:.*]] = tk.exp_diff %{{.*}}, %[[M]]
// CHECK: arith.mulf %[[E]], %[[FACTOR]]
// CHECK: tk.notes{{.*}}derived = "an exponential relative to the logarithm of the sum over k in 'y' is one of its elements, divided by it"
tk.kernel @log_weights dims ["R", "C"] params [#tk.param<"x">, #tk.param<"b">] results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>, %b: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  tk.bind %b[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %inf = arith.constant 0x7F800000 : f32
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %m = tk.reduce [#tk.kind<max>] ["k"] from (%zero) to (%C) {
    ^bb0(%k: index):
      %v = tk.load %x[%r, %k] : tensor<?x?xf32>
      tk.yield %v : f32
    } : f32
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%C) {
    ^bb0(%k: index):
      %v = tk.load %x[%r, %k] : tensor<?x?xf32>
      %e = tk.exp_diff %v, %m : f32
      tk.yield %e : f32
    } : f32
    %log = math.log %s : f32
    %sum = arith.addf %m, %log : f32
    %at_inf = arith.cmpf oeq, %m, %inf : f32
    %z = arith.select %at_inf, %inf, %sum : f32
    %v = tk.load %x[%r, %c] : tensor<?x?xf32>
    %d = arith.subf %v, %z : f32
    %p = math.exp %d : f32
    tk.yield %p : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}

// Not so where it is none of the terms, or where the terms may be greater than what they are under.
// CHECK-LABEL: @other_weights
// CHECK: math.exp
tk.kernel @other_weights dims ["R", "C"] params [#tk.param<"x">, #tk.param<"b">] results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>, %b: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  tk.bind %b[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %inf = arith.constant 0x7F800000 : f32
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %m = tk.reduce [#tk.kind<max>] ["k"] from (%zero) to (%C) {
    ^bb0(%k: index):
      %v = tk.load %x[%r, %k] : tensor<?x?xf32>
      tk.yield %v : f32
    } : f32
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%C) {
    ^bb0(%k: index):
      %v = tk.load %x[%r, %k] : tensor<?x?xf32>
      %e = tk.exp_diff %v, %m : f32
      tk.yield %e : f32
    } : f32
    %log = math.log %s : f32
    %sum = arith.addf %m, %log : f32
    %at_inf = arith.cmpf oeq, %m, %inf : f32
    %z = arith.select %at_inf, %inf, %sum : f32
    %v = tk.load %b[%r, %c] : tensor<?x?xf32>
    %d = arith.subf %v, %z : f32
    %p = math.exp %d : f32
    tk.yield %p : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}
// CHECK-LABEL: @other_bound
// CHECK: math.exp
tk.kernel @other_bound dims ["R", "C"] params [#tk.param<"x">, #tk.param<"b">] results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>, %b: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  tk.bind %b[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %inf = arith.constant 0x7F800000 : f32
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %m = tk.reduce [#tk.kind<max>] ["k"] from (%zero) to (%C) {
    ^bb0(%k: index):
      %v = tk.load %b[%r, %k] : tensor<?x?xf32>
      tk.yield %v : f32
    } : f32
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%C) {
    ^bb0(%k: index):
      %v = tk.load %x[%r, %k] : tensor<?x?xf32>
      %e = tk.exp_diff %v, %m : f32
      tk.yield %e : f32
    } : f32
    %log = math.log %s : f32
    %sum = arith.addf %m, %log : f32
    %at_inf = arith.cmpf oeq, %m, %inf : f32
    %z = arith.select %at_inf, %inf, %sum : f32
    %v = tk.load %x[%r, %c] : tensor<?x?xf32>
    %d = arith.subf %v, %z : f32
    %p = math.exp %d : f32
    tk.yield %p : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}

// ... but not where the term has the rounded quotient in another place as well.
// CHECK-LABEL: @entropy
// CHECK: tk.reduce
// CHECK: %[[W:.*]] = tk.div_or_zero
// CHECK-NEXT: %[[T:.*]] = arith.truncf %[[W]] : f32 to f16
// CHECK-NEXT: %[[N:.*]] = arith.extf %[[T]]
// CHECK-NEXT: %[[L:.*]] = math.log %[[N]]
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[N]], %[[L]]
// CHECK-NEXT: tk.yield %[[P]]
tk.kernel @entropy dims ["N"] params [#tk.param<"x">, #tk.param<"z">] results ["s"] {
^bb0(%N: index, %x: tensor<?xf32>, %z: f32):
  tk.bind %x[%N] : tensor<?xf32>
  %zero = arith.constant 0 : index
  %s = tk.compute [] in () {
    %t = tk.reduce [#tk.kind<sum>] ["j"] from (%zero) to (%N) {
    ^bb0(%j: index):
      %e = tk.load %x[%j] : tensor<?xf32>
      %w = tk.div_or_zero %e, %z : f32
      %n = arith.truncf %w : f32 to f16
      %r = arith.extf %n : f16 to f32
      %l = math.log %r : f32
      %p = arith.mulf %r, %l : f32
      tk.yield %p : f32
    } : f32
    tk.yield %t : f32
  } names ["s"] : tensor<f32>
  tk.return %s : tensor<f32>
}

// The rounding of a quotient applies to the weight. To 8 bits, of which numbers below 1 have few, it
// is that of the weight times the largest power of two, without the limits of saturation.
// CHECK-LABEL: @rounded
// CHECK: %[[LARGEST:.*]] = arith.constant 2.560000e+02
// CHECK: %[[BACK:.*]] = arith.constant 3.906250e-03
// CHECK: %[[S:.*]] = tk.reduce [#tk.kind<sum>]
// CHECK: %[[E:.*]] = math.exp
// CHECK-NEXT: arith.truncf %[[E]] : f32 to bf16
// CHECK: tk.div_or_zero %[[S]]
// CHECK: %[[T:.*]] = tk.reduce [#tk.kind<sum>]
// CHECK: %[[F:.*]] = math.exp
// CHECK-NEXT: %[[L:.*]] = arith.mulf %[[F]], %[[LARGEST]] : f32
// CHECK-NEXT: arith.truncf %[[L]] : f32 to f8E4M3FN
// CHECK: %[[Q:.*]] = tk.div_or_zero %[[T]]
// CHECK: arith.mulf %[[Q]], %[[BACK]] : f32
tk.kernel @rounded dims ["R", "C"] params [#tk.param<"x">, #tk.param<"z">] results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>, %z: tensor<?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  tk.bind %z[%R] : tensor<?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %b = tk.load %z[%r] : tensor<?xf32>
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %e = math.exp %a : f32
    %w = tk.div_or_zero %e, %b : f32
    %n = arith.truncf %w : f32 to bf16
    %v = arith.extf %n : bf16 to f32
    tk.yield %v : f32
    } : f32
    %t = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %most = arith.constant 448.0 : f32
    %least = arith.constant -448.0 : f32
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %e = math.exp %a : f32
    %w = tk.div_or_zero %e, %b : f32
    %i = arith.minimumf %w, %most : f32
    %k = arith.maximumf %i, %least : f32
    %n = arith.truncf %k : f32 to f8E4M3FN
    %v = arith.extf %n : f8E4M3FN to f32
    tk.yield %v : f32
    } : f32
    %o = arith.addf %s, %t : f32
    tk.yield %o : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// Where a product alone asks for the rounding, it comes before the weight's division also if what
// stands between them is linear. A divisor that may be 0 stays.
// CHECK-LABEL: @linear
// CHECK: %[[S:.*]] = tk.reduce [#tk.kind<sum>]
// CHECK: %[[E:.*]] = tk.load
// CHECK: %[[Q:.*]] = arith.divf %[[E]], %{{.*}} : f32
// CHECK: %[[K:.*]] = arith.select %{{.*}}, %{{.*}}, %[[Q]] : f32
// CHECK: arith.truncf %[[K]] {tk.rounded_factor} : f32 to bf16
// CHECK: tk.div_or_zero %[[S]]
tk.kernel @linear dims ["C"] params [#tk.param<"x">, #tk.param<"v">, #tk.param<"z">, #tk.param<"d">] results ["y"] {
^bb0(%C: index, %x: tensor<?xf32>, %v: tensor<?xbf16>, %z: f32, %d: f32):
  tk.bind %x[%C] : tensor<?xf32>
  tk.bind %v[%C] : tensor<?xbf16>
  %zero = arith.constant 0 : index
  %none = arith.constant 0.0 : f32
  %y = tk.compute [] in () {
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %e = tk.load %x[%c] : tensor<?xf32>
    %w = tk.div_or_zero %e, %z : f32
    %q = arith.divf %w, %d : f32
    %t = arith.cmpf ogt, %e, %none : f32
    %k = arith.select %t, %none, %q : f32
    %n = arith.truncf %k {tk.rounded_factor} : f32 to bf16
    %r = arith.extf %n : bf16 to f32
    %a = tk.load %v[%c] : tensor<?xbf16>
    %f = arith.extf %a : bf16 to f32
    %p = arith.mulf %r, %f : f32
    tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] : tensor<f32>
  tk.return %y : tensor<f32>
}

// ... but not a rounding that a declared type asks for,
// CHECK-LABEL: @declared
// CHECK: tk.reduce
// CHECK: tk.div_or_zero
// CHECK: arith.truncf
// CHECK-NOT: tk.div_or_zero
tk.kernel @declared dims ["C"] params [#tk.param<"x">, #tk.param<"v">, #tk.param<"z">, #tk.param<"d">] results ["y"] {
^bb0(%C: index, %x: tensor<?xf32>, %v: tensor<?xbf16>, %z: f32, %d: f32):
  tk.bind %x[%C] : tensor<?xf32>
  tk.bind %v[%C] : tensor<?xbf16>
  %zero = arith.constant 0 : index
  %none = arith.constant 0.0 : f32
  %y = tk.compute [] in () {
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %e = tk.load %x[%c] : tensor<?xf32>
    %w = tk.div_or_zero %e, %z : f32
    %q = arith.divf %w, %d : f32
    %t = arith.cmpf ogt, %e, %none : f32
    %k = arith.select %t, %none, %q : f32
    %n = arith.truncf %k : f32 to bf16
    %r = arith.extf %n : bf16 to f32
    %a = tk.load %v[%c] : tensor<?xbf16>
    %f = arith.extf %a : bf16 to f32
    %p = arith.mulf %r, %f : f32
    tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] : tensor<f32>
  tk.return %y : tensor<f32>
}

// ... nor one to a type that what is not divided may not fit.
// CHECK-LABEL: @narrow
// CHECK: tk.reduce
// CHECK: tk.div_or_zero
// CHECK: arith.truncf
// CHECK-NOT: tk.div_or_zero
tk.kernel @narrow dims ["C"] params [#tk.param<"x">, #tk.param<"v">, #tk.param<"z">, #tk.param<"d">] results ["y"] {
^bb0(%C: index, %x: tensor<?xf32>, %v: tensor<?xf16>, %z: f32, %d: f32):
  tk.bind %x[%C] : tensor<?xf32>
  tk.bind %v[%C] : tensor<?xf16>
  %zero = arith.constant 0 : index
  %none = arith.constant 0.0 : f32
  %y = tk.compute [] in () {
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %e = tk.load %x[%c] : tensor<?xf32>
    %w = tk.div_or_zero %e, %z : f32
    %q = arith.divf %w, %d : f32
    %t = arith.cmpf ogt, %e, %none : f32
    %k = arith.select %t, %none, %q : f32
    %n = arith.truncf %k {tk.rounded_factor} : f32 to f16
    %r = arith.extf %n : f16 to f32
    %a = tk.load %v[%c] : tensor<?xf16>
    %f = arith.extf %a : f16 to f32
    %p = arith.mulf %r, %f : f32
    tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] : tensor<f32>
  tk.return %y : tensor<f32>
}

// A choice against 0 that does not vary leaves a sum, but no product with what varies: that may be
// NaN.
// CHECK-LABEL: @chosen
// CHECK: %[[S:.*]] = tk.reduce
// CHECK: %[[A:.*]] = tk.load %x
// CHECK: %[[E:.*]] = arith.select %{{.*}}, %[[A]], %{{.*}} : f32
// CHECK: mulf {{.*}}%[[E]]
// CHECK: } : f32
// CHECK: %[[T:.*]] = tk.reduce
// CHECK-NOT: select
// CHECK: } : f32
// CHECK: arith.select %{{.*}}, %[[T]], %{{.*}} : f32
tk.kernel @chosen dims ["R", "C"]
    params [#tk.param<"x">, #tk.param<"v">, #tk.param<"b">]
    results ["y", "z"] {
^bb0(%R: index, %C: index, %x: tensor<?xf32>, %v: tensor<?xf32>, %b: tensor<?xi1>):
  tk.bind %x[%C] : tensor<?xf32>
  tk.bind %v[%C] : tensor<?xf32>
  tk.bind %b[%R] : tensor<?xi1>
  %zero = arith.constant 0 : index
  %none = arith.constant 0.0 : f32
  %y:2 = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %i = tk.load %b[%r] : tensor<?xi1>
    %a = tk.load %x[%c] : tensor<?xf32>
    %e = arith.select %i, %a, %none : f32
    %f = tk.load %v[%c] : tensor<?xf32>
    %p = arith.mulf %e, %f : f32
    tk.yield %p : f32
    } : f32
    %t = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %i = tk.load %b[%r] : tensor<?xi1>
    %a = tk.load %x[%c] : tensor<?xf32>
    %f = tk.load %v[%c] : tensor<?xf32>
    %p = arith.mulf %a, %f : f32
    %e = arith.select %i, %p, %none : f32
    tk.yield %e : f32
    } : f32
    tk.yield %s, %t : f32, f32
  } names ["y", "z"] : tensor<?xf32>, tensor<?xf32>
  tk.return %y#0, %y#1 : tensor<?xf32>, tensor<?xf32>
}

// Masks stand on the second side of a selection; of two constants the infinite one is the mask's.
// Numbers of floats have no opposite comparison that is as cheap.
// CHECK-LABEL: @mask_second
// CHECK-DAG: %[[PAST:.*]] = arith.cmpi sle, %c, %r
// CHECK-DAG: %[[FAR:.*]] = arith.cmpi ne, %c, %
// CHECK-DAG: %[[BOTH:.*]] = arith.andi
// CHECK: arith.select %[[BOTH]], %[[A:.*]], %
// CHECK: arith.select %[[PAST]], %[[ZERO:.*]], %[[NINF:.*]] :
// CHECK: %[[LESS:.*]] = arith.cmpf olt
// CHECK: arith.select %[[LESS]], %[[ZERO]], %
tk.kernel @mask_second dims ["R", "C"] params [#tk.param<"x">] results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %ninf = arith.constant 0xFF800000 : f32
  %fzero = arith.constant 0.0 : f32
  %seven = arith.constant 7 : index
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %past = arith.cmpi sgt, %c, %r : index
    %at = arith.cmpi eq, %c, %seven : index
    %either = arith.ori %past, %at : i1
    %b = arith.select %either, %ninf, %a : f32
    %m = arith.select %past, %ninf, %fzero : f32
    %d = arith.addf %b, %m : f32
    %below = arith.cmpf olt, %d, %a : f32
    %e = arith.select %below, %fzero, %d : f32
    tk.yield %e : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}
