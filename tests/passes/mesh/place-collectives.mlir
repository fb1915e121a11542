// RUN: tk-opt %s --tk-place-collectives --split-input-file | FileCheck %s

// An operand that is sharded by another index than the one that is divided is gathered: the smaller
// one, as the other operand stays where it is.
// CHECK-LABEL: tk.kernel @gathered
// CHECK: tk.bind %x[%[[M:.*]], %C]
// CHECK: tk.bind %w[%C, %[[F:.*]]]
// CHECK: %[[X:.*]] = tk.all_gather %x over "tp" dim 0
// CHECK: tk.compute ["m", "f"] in(%M, %[[F]])
// CHECK: tk.load %[[X]][%m, %c]
// CHECK: tk.load %w[%c, %f]
// CHECK: tk.assume %{{.*}}, "M % 2 == 0 (axis 'tp' of the mesh)"
tk.kernel @gathered dims ["M", "C", "F"] params [#tk.param<"x">, #tk.param<"w">] results ["h"] {
^bb0(%M: index, %C: index, %F: index, %x: tensor<?x?xf32>, %w: tensor<?x?xf32>):
  tk.bind %x[%M, %C] : tensor<?x?xf32>
  tk.bind %w[%C, %F] : tensor<?x?xf32>
  %c0 = arith.constant 0 : index
  %h = tk.compute ["m", "f"] in (%M, %F) {
  ^bb0(%m: index, %f: index):
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%c0) to (%C) {
    ^bb0(%c: index):
      %a = tk.load %x[%m, %c] : tensor<?x?xf32>
      %b = tk.load %w[%c, %f] : tensor<?x?xf32>
      %p = arith.mulf %a, %b : f32
      tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["h"] : tensor<?x?xf32>
  tk.return %h : tensor<?x?xf32>
} {tk.mesh = ["tp"], tk.mesh_sizes = array<i64: 2>, tk.shardings = [["tp", ""], ["", "tp"], ["", "tp"]]}

// -----

// A sum over a sharded index leaves partial sums. What the statement does with the sum follows the
// collective.
// CHECK-LABEL: tk.kernel @partial
// CHECK: %[[P:.*]] = tk.compute ["m", "c"] in(%M, %C)
// CHECK: tk.reduce [#tk.kind<sum>] ["f"] from(%{{.*}}) to(%[[F:.*]]) {
// CHECK: names ["y.sum"] : tensor<?x?xf32>
// CHECK: %[[Q:.*]] = tk.reduce_scatter <sum> %[[P]] over "tp" dim 0
// CHECK: tk.compute ["m", "c"]
// CHECK: tk.load %[[Q]][%m, %c]
// CHECK: math.exp
tk.kernel @partial dims ["M", "C", "F"] params [#tk.param<"h">, #tk.param<"w">] results ["y"] {
^bb0(%M: index, %C: index, %F: index, %h: tensor<?x?xf32>, %w: tensor<?x?xf32>):
  tk.bind %h[%M, %F] : tensor<?x?xf32>
  tk.bind %w[%F, %C] : tensor<?x?xf32>
  %c0 = arith.constant 0 : index
  %y = tk.compute ["m", "c"] in (%M, %C) {
  ^bb0(%m: index, %c: index):
    %s = tk.reduce [#tk.kind<sum>] ["f"] from (%c0) to (%F) {
    ^bb0(%f: index):
      %a = tk.load %h[%m, %f] : tensor<?x?xf32>
      %b = tk.load %w[%f, %c] : tensor<?x?xf32>
      %p = arith.mulf %a, %b : f32
      tk.yield %p : f32
    } : f32
    %e = math.exp %s : f32
    tk.yield %e : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
} {tk.mesh = ["tp"], tk.mesh_dims = array<i64: 256, 256, 256>, tk.mesh_sizes = array<i64: 4>, tk.shardings = [["", "tp"], ["tp", ""], ["tp", ""]]}

// -----

// A maximum is combined likewise, and a result that is whole asks for an all-reduce.
// CHECK-LABEL: tk.kernel @maximum
// CHECK: tk.reduce [#tk.kind<max>]
// CHECK: tk.all_reduce <max> %{{.*}} over "tp" : tensor<?xf32>
tk.kernel @maximum dims ["R", "C"] params [#tk.param<"x">] results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %c0 = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<max>] ["c"] from (%c0) to (%C) {
    ^bb0(%c: index):
      %a = tk.load %x[%r, %c] : tensor<?x?xf32>
      tk.yield %a : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
} {tk.mesh = ["tp"], tk.mesh_sizes = array<i64: 2>, tk.shardings = [["", "tp"], [""]]}

// -----

// Sharded by one index in the operand and by another one in the result.
// CHECK-LABEL: tk.kernel @exchanged
// CHECK: tk.all_to_all %{{.*}} over "tp" from 0 to 1
// CHECK-NOT: tk.all_gather
tk.kernel @exchanged dims ["M", "N"] params [#tk.param<"x">] results ["y"] {
^bb0(%M: index, %N: index, %x: tensor<?x?xf32>):
  tk.bind %x[%M, %N] : tensor<?x?xf32>
  %y = tk.compute ["m", "n"] in (%M, %N) {
  ^bb0(%m: index, %n: index):
    %a = tk.load %x[%m, %n] : tensor<?x?xf32>
    tk.yield %a : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
} {tk.mesh = ["tp"], tk.mesh_sizes = array<i64: 2>, tk.shardings = [["tp", ""], ["", "tp"]]}

// -----

// The values of an index are global: a rank adds where its share begins. A neighbour may lie on
// another rank, so the operand is gathered.
// CHECK-LABEL: tk.kernel @positions
// CHECK: %[[X:.*]] = tk.all_gather %x over "tp" dim 0
// CHECK: %[[RANK:.*]] = tk.rank "tp"
// CHECK: %[[BEGIN:.*]] = arith.muli %[[RANK]], %[[SHARE:.*]] : index
// CHECK: tk.compute ["i"] in(%[[SHARE]])
// CHECK: %[[I:.*]] = arith.addi %i, %[[BEGIN]] : index
// CHECK: %[[NEXT:.*]] = arith.addi %[[I]], %{{.*}} : index
// CHECK: tk.load %[[X]][%[[NEXT]]] pad
tk.kernel @positions dims ["N"] params [#tk.param<"x">] results ["y"] {
^bb0(%N: index, %x: tensor<?xf32>):
  tk.bind %x[%N] : tensor<?xf32>
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %y = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %j = arith.addi %i, %c1 : index
    %a = tk.load %x[%j] pad %zero : f32 : tensor<?xf32>
    tk.yield %a : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
} {tk.mesh = ["tp"], tk.mesh_sizes = array<i64: 2>, tk.shardings = [["tp"], ["tp"]]}

// -----

// Heads of queries and of keys: the quotient by the ratio of their numbers selects from a share.
// CHECK-LABEL: tk.kernel @groups
// CHECK-NOT: tk.all_gather
// CHECK: tk.compute ["h"]
// CHECK: %[[G:.*]] = tk.floor_div %h, %{{.*}} : index
// CHECK: tk.load %k[%[[G]]]
tk.kernel @groups dims ["H", "G"] params [#tk.param<"q">, #tk.param<"k">] results ["y"] {
^bb0(%H: index, %G: index, %q: tensor<?xf32>, %k: tensor<?xf32>):
  tk.bind %q[%H] : tensor<?xf32>
  tk.bind %k[%G] : tensor<?xf32>
  %ratio = tk.floor_div %H, %G : index
  %y = tk.compute ["h"] in (%H) {
  ^bb0(%h: index):
    %g = tk.floor_div %h, %ratio : index
    %a = tk.load %q[%h] : tensor<?xf32>
    %b = tk.load %k[%g] : tensor<?xf32>
    %p = arith.mulf %a, %b : f32
    tk.yield %p : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
} {tk.mesh = ["tp"], tk.mesh_sizes = array<i64: 2>, tk.shardings = [["tp"], ["tp"], ["tp"]]}

// -----

// An extent that the axis does not divide fails at launch.
// CHECK-LABEL: tk.kernel @literal
// CHECK: tk.assume %{{.*}}, "5 % 2 == 0 (axis 'tp' of the mesh)" {tk.divides}
tk.kernel @literal dims [] params [#tk.param<"x">] results [] {
^bb0(%x: tensor<5xf32>):
  %c5 = arith.constant 5 : index
  tk.bind %x[%c5] : tensor<5xf32>
  tk.return
} {tk.mesh = ["tp"], tk.mesh_sizes = array<i64: 2>, tk.shardings = [["tp"]]}

// -----

// Of two operands the smaller one is gathered: by the sizes, if they are known.
// CHECK-LABEL: tk.kernel @few_rows
// CHECK: tk.all_gather %x over "tp" dim 0
// CHECK: tk.all_gather %{{.*}} over "tp" dim 1
tk.kernel @few_rows dims ["M", "C", "F"] params [#tk.param<"x">, #tk.param<"w">] results ["h"] {
^bb0(%M: index, %C: index, %F: index, %x: tensor<?x?xf32>, %w: tensor<?x?xf32>):
  tk.bind %x[%M, %C] : tensor<?x?xf32>
  tk.bind %w[%C, %F] : tensor<?x?xf32>
  %c0 = arith.constant 0 : index
  %h = tk.compute ["m", "f"] in (%M, %F) {
  ^bb0(%m: index, %f: index):
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%c0) to (%C) {
    ^bb0(%c: index):
      %a = tk.load %x[%m, %c] : tensor<?x?xf32>
      %b = tk.load %w[%c, %f] : tensor<?x?xf32>
      %p = arith.mulf %a, %b : f32
      tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["h"] : tensor<?x?xf32>
  tk.return %h : tensor<?x?xf32>
} {tk.mesh = ["tp"], tk.mesh_dims = array<i64: 256, 8192, 65536>, tk.mesh_sizes = array<i64: 2>, tk.shardings = [["tp", ""], ["", "tp"], ["", ""]]}

// -----

// CHECK-LABEL: tk.kernel @few_columns
// CHECK: tk.all_gather %w over "tp" dim 1
// CHECK: tk.all_gather %{{.*}} over "tp" dim 0
tk.kernel @few_columns dims ["M", "C", "F"] params [#tk.param<"x">, #tk.param<"w">] results ["h"] {
^bb0(%M: index, %C: index, %F: index, %x: tensor<?x?xf32>, %w: tensor<?x?xf32>):
  tk.bind %x[%M, %C] : tensor<?x?xf32>
  tk.bind %w[%C, %F] : tensor<?x?xf32>
  %c0 = arith.constant 0 : index
  %h = tk.compute ["m", "f"] in (%M, %F) {
  ^bb0(%m: index, %f: index):
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%c0) to (%C) {
    ^bb0(%c: index):
      %a = tk.load %x[%m, %c] : tensor<?x?xf32>
      %b = tk.load %w[%c, %f] : tensor<?x?xf32>
      %p = arith.mulf %a, %b : f32
      tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["h"] : tensor<?x?xf32>
  tk.return %h : tensor<?x?xf32>
} {tk.mesh = ["tp"], tk.mesh_dims = array<i64: 65536, 8192, 256>, tk.mesh_sizes = array<i64: 2>, tk.shardings = [["tp", ""], ["", "tp"], ["", ""]]}
