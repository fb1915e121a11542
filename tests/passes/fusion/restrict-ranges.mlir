// RUN: tk-opt --tk-restrict-ranges --tk-simplify %s | FileCheck %s

// A window bounds both ends; the selections are gone.
// CHECK-LABEL: @window
// CHECK: %[[NEXT:.*]] = arith.addi %i, %c1
// CHECK: %[[HI:.*]] = arith.minsi %T, %[[NEXT]]
// CHECK: %[[LO:.*]] = arith.maxsi
// CHECK: tk.reduce [#tk.kind<max>] ["j"] from(%[[LO]]) to(%[[HI]])
// CHECK-NOT: select
// CHECK: arith.minsi
// CHECK: tk.reduce [#tk.kind<sum>]
// CHECK-NOT: select
// CHECK: tk.return
tk.kernel @window dims ["S", "T"]
    params [#tk.param<"x">, #tk.param<"v">]
    results ["m", "y"] {
^bb0(%S: index, %T: index, %x: tensor<?x?xf32>, %v: tensor<?xf32>):
  tk.bind %x[%S, %T] : tensor<?x?xf32>
  tk.bind %v[%T] : tensor<?xf32>
  %zero = arith.constant 0 : index
  %ninf = arith.constant 0xFF800000 : f32
  %fzero = arith.constant 0.0 : f32
  %w = arith.constant 2 : index
  %m = tk.compute ["i"] in (%S) {
  ^bb0(%i: index):
    %m0 = tk.reduce [#tk.kind<max>] ["j"] from (%zero) to (%T) {
    ^bb0(%j: index):
    %a = tk.load %x[%i, %j] : tensor<?x?xf32>
    %past = arith.cmpi sle, %j, %i : index
    %d = arith.subi %i, %j : index
    %near = arith.cmpi slt, %d, %w : index
    %c = arith.andi %past, %near : i1
    %b = arith.select %c, %a, %ninf : f32
    tk.yield %b : f32
    } : f32
    tk.yield %m0 : f32
  } names ["m"] : tensor<?xf32>
  %y = tk.compute ["i"] in (%S) {
  ^bb0(%i: index):
    %s0 = tk.reduce [#tk.kind<sum>] ["j"] from (%zero) to (%T) {
    ^bb0(%j: index):
    %a = tk.load %x[%i, %j] : tensor<?x?xf32>
    %d = arith.addi %j, %i : index
    %far = arith.cmpi sge, %w, %d : index
    %b = arith.select %far, %a, %fzero : f32
    %u = tk.load %v[%j] : tensor<?xf32>
    %p = arith.mulf %b, %u : f32
    tk.yield %p : f32
    } : f32
    tk.yield %s0 : f32
  } names ["y"] : tensor<?xf32>
  tk.return %m, %y : tensor<?xf32>, tensor<?xf32>
}

// Exponentials of distances from -inf or NaN are NaN where the mask is not: the sum is, if there were
// terms and any is left out. Under a division that may give 0, and a choice, that would not hold.
// CHECK-LABEL: @distances
// CHECK: %[[HI:.*]] = arith.minsi %C
// CHECK: %[[OUT:.*]] = arith.cmpi sgt, %C, %[[HI]]
// CHECK: %[[S:.*]] = tk.reduce [#tk.kind<sum>] ["c"] from(%c0) to(%[[HI]])
// CHECK-NOT: select
// CHECK: %[[NONE:.*]] = arith.cmpf ule, %from, %{{.*}} : f32
// CHECK: arith.andi
// CHECK: %[[N:.*]] = arith.andi
// CHECK: %[[Y:.*]] = arith.select %[[N]], %{{.*}}, %[[S]] : f32
// CHECK: tk.yield %[[Y]]
// CHECK: tk.reduce [#tk.kind<sum>] ["c"] from(%c0) to(%C)
// CHECK: arith.select
// CHECK: tk.div_or_zero
tk.kernel @distances dims ["R", "C"]
    params [#tk.param<"x">, #tk.param<"from">]
    results ["y", "z"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>, %from: f32):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %ninf = arith.constant 0xFF800000 : f32
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %past = arith.cmpi sle, %c, %r : index
    %b = arith.select %past, %a, %ninf : f32
    %d = arith.subf %b, %from : f32
    %e = math.exp %d : f32
    tk.yield %e : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] : tensor<?xf32>
  %z = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %past = arith.cmpi sle, %c, %r : index
    %b = arith.select %past, %a, %ninf : f32
    %d = arith.subf %b, %from : f32
    %e = math.exp %d : f32
    %w = tk.div_or_zero %e, %a : f32
    tk.yield %w : f32
    } : f32
    tk.yield %s : f32
  } names ["z"] : tensor<?xf32>
  tk.return %y, %z : tensor<?xf32>, tensor<?xf32>
}

// Sums of 64 bits of indices and narrower numbers are sums of indices. A number of 64 bits is no farther
// from 0 than one more than the sizes that the indices are below.
// CHECK-LABEL: @sums
// CHECK-DAG: %[[BY:.*]] = arith.index_cast %by : i32 to index
// CHECK: %[[HI:.*]] = arith.addi %r, %[[BY]] : index
// CHECK: %[[END:.*]] = arith.minsi %C, %[[HI]]
// CHECK: tk.reduce [#tk.kind<sum>] ["c"] from(%c0) to(%[[END]])
// CHECK-NOT: select
// CHECK: tk.yield
// CHECK: %[[MOST:.*]] = arith.index_cast %{{.*}} : index to i64
// CHECK: %[[LEAST:.*]] = arith.subi %{{.*}}, %[[MOST]] : i64
// CHECK: %[[SOME:.*]] = arith.minsi %[[MOST]], %far : i64
// CHECK: %[[CLAMPED:.*]] = arith.maxsi %[[LEAST]], %[[SOME]] : i64
// CHECK: %[[FAR:.*]] = arith.index_cast %[[CLAMPED]] : i64 to index
// CHECK: arith.subi %r{{.*}}, %[[FAR]] : index
// CHECK: %[[BEGIN:.*]] = arith.maxsi
// CHECK: tk.reduce [#tk.kind<sum>] ["c"] from(%[[BEGIN]]) to(%C)
// CHECK-NOT: select
// CHECK: tk.yield
tk.kernel @sums dims ["R", "C"]
    params [#tk.param<"x">, #tk.param<"by">, #tk.param<"far">]
    results ["y", "z"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>, %by: i32, %far: i64):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %wide = arith.extsi %by : i32 to i64
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%c0) to (%C) {
    ^bb0(%c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %p = arith.index_cast %r : index to i64
    %q = arith.index_cast %c : index to i64
    %e = arith.addi %p, %wide : i64
    %h = arith.cmpi slt, %q, %e : i64
    %b = arith.select %h, %a, %zero : f32
    tk.yield %b : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] : tensor<?xf32>
  %z = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%c0) to (%C) {
    ^bb0(%c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %p = arith.index_cast %r : index to i64
    %q = arith.index_cast %c : index to i64
    %e = arith.addi %q, %far : i64
    %h = arith.cmpi sge, %e, %p : i64
    %b = arith.select %h, %a, %zero : f32
    tk.yield %b : f32
    } : f32
    tk.yield %s : f32
  } names ["z"] : tensor<?xf32>
  tk.return %y, %z : tensor<?xf32>, tensor<?xf32>
}

// 0 divided by a constant, by a size that is known, or by a number above 0 is 0. Divided by a
// parameter it is NaN if that is 0 or NaN. A divisor that varies and may be 0 keeps the mask.
// CHECK-LABEL: @quotients
// CHECK: tk.reduce [#tk.kind<sum>] ["c"] from(%c0) to(%{{[0-9]+}})
// CHECK-NOT: select
// CHECK: tk.yield
// CHECK: %[[HI:.*]] = arith.minsi %C
// CHECK: %[[OUT:.*]] = arith.cmpi sgt, %C, %[[HI]]
// CHECK: %[[S:.*]] = tk.reduce [#tk.kind<sum>] ["c"] from(%c0) to(%[[HI]])
// CHECK-NOT: select
// CHECK: tk.yield
// CHECK: arith.cmpf ueq, %by, %{{.*}} : f32
// CHECK: arith.andi
// CHECK: %[[N:.*]] = arith.andi
// CHECK: arith.select %[[N]], %{{.*}}, %[[S]] : f32
// CHECK: tk.reduce [#tk.kind<sum>] ["c"] from(%c0) to(%{{[0-9]+}})
// CHECK-NOT: select
// CHECK: tk.yield
// CHECK: tk.reduce [#tk.kind<sum>] ["c"] from(%c0) to(%C)
// CHECK: arith.select
// CHECK: tk.return
tk.kernel @quotients dims ["R", "C"]
    params [#tk.param<"x">, #tk.param<"by">]
    results ["constant", "parameter", "above", "any"]
    facts [#tk.fact<>, #tk.fact<>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>, %by: f32):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %none = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %three = arith.constant 3.0 : f32
  %constant = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %past = arith.cmpi sle, %c, %r : index
    %b = arith.select %past, %a, %none : f32
    %d = arith.divf %b, %three : f32
    %w = arith.mulf %d, %a : f32
    tk.yield %w : f32
    } : f32
    tk.yield %s : f32
  } names ["constant"] : tensor<?xf32>
  %parameter = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %past = arith.cmpi sle, %c, %r : index
    %b = arith.select %past, %a, %none : f32
    %d = arith.divf %b, %by : f32
    %w = arith.mulf %d, %a : f32
    tk.yield %w : f32
    } : f32
    tk.yield %s : f32
  } names ["parameter"] : tensor<?xf32>
  %above = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %past = arith.cmpi sle, %c, %r : index
    %b = arith.select %past, %a, %none : f32
    %distance = math.absf %a : f32
    %divisor = arith.addf %distance, %one : f32
    %d = arith.divf %b, %divisor : f32
    tk.yield %d : f32
    } : f32
    tk.yield %s : f32
  } names ["above"] : tensor<?xf32>
  %any = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %past = arith.cmpi sle, %c, %r : index
    %b = arith.select %past, %a, %none : f32
    %d = arith.divf %b, %a : f32
    tk.yield %d : f32
    } : f32
    tk.yield %s : f32
  } names ["any"] : tensor<?xf32>
  tk.return %constant, %parameter, %above, %any
      : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
