// RUN: tk-opt --tk-online-reductions %s | FileCheck %s

// A plain exponential is NaN if all terms are -inf, and only then.
// CHECK-LABEL: @exponential
// CHECK: %[[R:.*]]:2 = tk.reduce [#tk.kind<max>, #tk.kind<sum>]
// CHECK: tk.exp_diff %{{.*}}, %running
// CHECK: rescale
// CHECK: tk.exp_diff
// CHECK: cmpf oeq, %[[R]]#0
// CHECK: select
tk.kernel @exponential dims ["R", "C"]
    params [#tk.param<"x">, #tk.param<"v">, #tk.param<"w">]
    results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>, %v: tensor<?x?xf32>, %w: tensor<?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  tk.bind %v[%R, %C] : tensor<?x?xf32>
  tk.bind %w[%R] : tensor<?xf32>
  %zero = arith.constant 0 : index
  %ninf = arith.constant 0xFF800000 : f32
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %m = tk.reduce [#tk.kind<max>] ["j"] from (%zero) to (%C) {
    ^bb0(%j: index):
    %a = tk.load %x[%r, %j] : tensor<?x?xf32>
    tk.yield %a : f32
    } : f32
    %z = tk.reduce [#tk.kind<sum>] ["i"] from (%zero) to (%C) {
    ^bb0(%i: index):
    %a = tk.load %x[%r, %i] : tensor<?x?xf32>
    %d = arith.subf %a, %m : f32
    %e = math.exp %d : f32
    %b = tk.load %v[%r, %i] : tensor<?x?xf32>
    %p = arith.mulf %e, %b : f32
    tk.yield %p : f32
    } : f32
    tk.yield %z : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// CHECK-LABEL: @powers_of_two
// CHECK: tk.reduce [#tk.kind<max>, #tk.kind<sum>]
// CHECK: rescale
// CHECK: subf
// CHECK: mulf
// CHECK: math.exp2
tk.kernel @powers_of_two dims ["R", "C"]
    params [#tk.param<"x">, #tk.param<"v">, #tk.param<"w">]
    results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>, %v: tensor<?x?xf32>, %w: tensor<?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  tk.bind %v[%R, %C] : tensor<?x?xf32>
  tk.bind %w[%R] : tensor<?xf32>
  %zero = arith.constant 0 : index
  %ninf = arith.constant 0xFF800000 : f32
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %m = tk.reduce [#tk.kind<max>] ["j"] from (%zero) to (%C) {
    ^bb0(%j: index):
    %a = tk.load %x[%r, %j] : tensor<?x?xf32>
    tk.yield %a : f32
    } : f32
    %z = tk.reduce [#tk.kind<sum>] ["i"] from (%zero) to (%C) {
    ^bb0(%i: index):
    %a = tk.load %x[%r, %i] : tensor<?x?xf32>
    %d = arith.subf %a, %m : f32
    %c = arith.constant 1.44269504 : f32
    %s = arith.mulf %d, %c : f32
    %e = math.exp2 %s : f32
    tk.yield %e : f32
    } : f32
    tk.yield %z : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// The bound may be more than the running maximum.
// CHECK-LABEL: @sink
// CHECK: tk.reduce [#tk.kind<max>, #tk.kind<sum>]
// CHECK: maximumf %running{{.*}}, %[[S:.*]] :
// CHECK: rescale
// CHECK: maximumf
// CHECK: maximumf
// CHECK: tk.exp_diff
tk.kernel @sink dims ["R", "C"]
    params [#tk.param<"x">, #tk.param<"v">, #tk.param<"w">]
    results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>, %v: tensor<?x?xf32>, %w: tensor<?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  tk.bind %v[%R, %C] : tensor<?x?xf32>
  tk.bind %w[%R] : tensor<?xf32>
  %zero = arith.constant 0 : index
  %ninf = arith.constant 0xFF800000 : f32
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %m = tk.reduce [#tk.kind<max>] ["j"] from (%zero) to (%C) {
    ^bb0(%j: index):
    %a = tk.load %x[%r, %j] : tensor<?x?xf32>
    tk.yield %a : f32
    } : f32
    %s = tk.load %w[%r] : tensor<?xf32>
    %n = arith.maximumf %m, %s : f32
    %z = tk.reduce [#tk.kind<sum>] ["i"] from (%zero) to (%C) {
    ^bb0(%i: index):
    %a = tk.load %x[%r, %i] : tensor<?x?xf32>
    %e = tk.exp_diff %a, %n : f32
    tk.yield %e : f32
    } : f32
    %t = tk.exp_diff %s, %n : f32
    %o = arith.addf %z, %t : f32
    tk.yield %o : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// The maximum of something else does not keep the exponential from overflowing on the way.
// CHECK-LABEL: @unbounded
// CHECK-NOT: rescale
// CHECK: is a loop of its own: the exponent is not bounded by a running maximum of its own terms
tk.kernel @unbounded dims ["R", "C"]
    params [#tk.param<"x">, #tk.param<"v">, #tk.param<"w">]
    results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>, %v: tensor<?x?xf32>, %w: tensor<?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  tk.bind %v[%R, %C] : tensor<?x?xf32>
  tk.bind %w[%R] : tensor<?xf32>
  %zero = arith.constant 0 : index
  %ninf = arith.constant 0xFF800000 : f32
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %m = tk.reduce [#tk.kind<max>] ["j"] from (%zero) to (%C) {
    ^bb0(%j: index):
    %a = tk.load %x[%r, %j] : tensor<?x?xf32>
    tk.yield %a : f32
    } : f32
    %z = tk.reduce [#tk.kind<sum>] ["i"] from (%zero) to (%C) {
    ^bb0(%i: index):
    %a = tk.load %v[%r, %i] : tensor<?x?xf32>
    %e = tk.exp_diff %a, %m : f32
    tk.yield %e : f32
    } : f32
    tk.yield %z : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// Mirrored for a minimum; a reduction that needs nothing comes along.
// CHECK-LABEL: @minimum
// CHECK: tk.reduce [#tk.kind<min>, #tk.kind<sum>, #tk.kind<sum>]
// CHECK: rescale
// CHECK: negf
// CHECK: tk.exp_diff
// CHECK: tk.yield %{{.*}}, %cst
tk.kernel @minimum dims ["R", "C"]
    params [#tk.param<"x">]
    results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %m = tk.reduce [#tk.kind<min>] ["j"] from (%zero) to (%C) {
    ^bb0(%j: index):
    %a = tk.load %x[%r, %j] : tensor<?x?xf32>
    tk.yield %a : f32
    } : f32
    %z = tk.reduce [#tk.kind<sum>] ["i"] from (%zero) to (%C) {
    ^bb0(%i: index):
    %a = tk.load %x[%r, %i] : tensor<?x?xf32>
    %d = arith.subf %m, %a : f32
    %e = math.exp %d : f32
    tk.yield %e : f32
    } : f32
    %s = tk.reduce [#tk.kind<sum>] ["l"] from (%zero) to (%C) {
    ^bb0(%l: index):
    %a = tk.load %x[%r, %l] : tensor<?x?xf32>
    tk.yield %a : f32
    } : f32
    %t = arith.addf %z, %s : f32
    tk.yield %t : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// A weight that a selection replaces by something else than 0 does not scale with the others.
// CHECK-LABEL: @replaced
// CHECK: tk.reduce [#tk.kind<max>] ["j"]
// CHECK: tk.reduce [#tk.kind<sum>] ["i"]
// CHECK-NOT: rescale
tk.kernel @replaced dims ["R", "C"]
    params [#tk.param<"x">, #tk.param<"v">]
    results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>, %v: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  tk.bind %v[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %none = arith.constant 0.0 : f32
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %m = tk.reduce [#tk.kind<max>] ["j"] from (%zero) to (%C) {
    ^bb0(%j: index):
    %a = tk.load %x[%r, %j] : tensor<?x?xf32>
    tk.yield %a : f32
    } : f32
    %z = tk.reduce [#tk.kind<sum>] ["i"] from (%zero) to (%C) {
    ^bb0(%i: index):
    %a = tk.load %x[%r, %i] : tensor<?x?xf32>
    %e = tk.exp_diff %a, %m : f32
    %b = tk.load %v[%r, %i] : tensor<?x?xf32>
    %c = arith.cmpf ogt, %b, %none : f32
    %p = arith.select %c, %e, %one : f32
    tk.yield %p : f32
    } : f32
    tk.yield %z : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// One that a selection replaces by 0 does, on whichever side it stands.
// CHECK-LABEL: @dropped
// CHECK: tk.reduce [#tk.kind<max>, #tk.kind<sum>]
// CHECK: rescale
tk.kernel @dropped dims ["R", "C"]
    params [#tk.param<"x">, #tk.param<"v">]
    results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>, %v: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  tk.bind %v[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %none = arith.constant 0.0 : f32
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %m = tk.reduce [#tk.kind<max>] ["j"] from (%zero) to (%C) {
    ^bb0(%j: index):
    %a = tk.load %x[%r, %j] : tensor<?x?xf32>
    tk.yield %a : f32
    } : f32
    %z = tk.reduce [#tk.kind<sum>] ["i"] from (%zero) to (%C) {
    ^bb0(%i: index):
    %a = tk.load %x[%r, %i] : tensor<?x?xf32>
    %e = tk.exp_diff %a, %m : f32
    %b = tk.load %v[%r, %i] : tensor<?x?xf32>
    %c = arith.cmpf ogt, %b, %none : f32
    %p = arith.select %c, %none, %e : f32
    tk.yield %p : f32
    } : f32
    tk.yield %z : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// The constant before the difference stands in the factor, too.
// CHECK-LABEL: @scaled
// CHECK: tk.reduce [#tk.kind<max>, #tk.kind<sum>]
// CHECK: rescale
// CHECK: %[[SCALE:.*]] = arith.constant 2.000000e+00 : f32
// CHECK: %[[FALL:.*]] = arith.subf
// CHECK: %[[EXPONENT:.*]] = arith.mulf %[[FALL]], %[[SCALE]]
// CHECK: math.exp %[[EXPONENT]]
tk.kernel @scaled dims ["R", "C"]
    params [#tk.param<"x">]
    results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %m = tk.reduce [#tk.kind<max>] ["j"] from (%zero) to (%C) {
    ^bb0(%j: index):
    %a = tk.load %x[%r, %j] : tensor<?x?xf32>
    tk.yield %a : f32
    } : f32
    %z = tk.reduce [#tk.kind<sum>] ["i"] from (%zero) to (%C) {
    ^bb0(%i: index):
    %a = tk.load %x[%r, %i] : tensor<?x?xf32>
    %d = arith.subf %a, %m : f32
    %c = arith.constant 2.0 : f32
    %s = arith.mulf %d, %c : f32
    %e = math.exp %s : f32
    tk.yield %e : f32
    } : f32
    tk.yield %z : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// A maximum of products with a weight does not scale with the weight: a factor may be negative.
// CHECK-LABEL: @weighted_maximum
// CHECK-NOT: rescale
// CHECK: is a loop of its own: only a sum can be rescaled
tk.kernel @weighted_maximum dims ["R", "C"]
    params [#tk.param<"x">, #tk.param<"v">]
    results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>, %v: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  tk.bind %v[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %m = tk.reduce [#tk.kind<max>] ["j"] from (%zero) to (%C) {
    ^bb0(%j: index):
    %a = tk.load %x[%r, %j] : tensor<?x?xf32>
    tk.yield %a : f32
    } : f32
    %z = tk.reduce [#tk.kind<max>] ["i"] from (%zero) to (%C) {
    ^bb0(%i: index):
    %a = tk.load %x[%r, %i] : tensor<?x?xf32>
    %e = tk.exp_diff %a, %m : f32
    %b = tk.load %v[%r, %i] : tensor<?x?xf32>
    %p = arith.mulf %e, %b : f32
    tk.yield %p : f32
    } : f32
    tk.yield %z : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}
