// RUN: tk-opt %s --tk-convert-indices --tk-approximate-functions --tk-tile --tk-refine-tiles --canonicalize --cse | FileCheck %s

// The corners of a tile at which bounds are taken, and what is known of sizes.

// The end S - i falls along the tile: full tiles end where it is least, at the last row inside; the
// loop ends where it is greatest, at the first.
// CHECK-LABEL: tkgpu.func @falling_y
// CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %c64
// CHECK: %[[GREATEST:.*]] = arith.subi %[[S:.*]], %[[FIRST]] : index
// CHECK: %[[PAST:.*]] = arith.addi %[[FIRST]], %c64
// CHECK: %[[INSIDE:.*]] = arith.minsi %[[PAST]], %[[S]]
// CHECK: %[[LAST:.*]] = arith.subi %[[INSIDE]], %c1
// CHECK: %[[LEAST:.*]] = arith.subi %[[S]], %[[LAST]] : index
// CHECK: scf.for {{.*}} to %{{.*}} step
// CHECK: scf.for {{.*}} to %[[GREATEST]] step
tk.kernel @falling dims ["S"] params [#tk.param<"x">] results ["y"] {
^bb0(%S: index, %x: tensor<?x?xf32>):
  tk.bind %x[%S, %S] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["i"] in (%S) {
  ^bb0(%i: index):
    %end = arith.subi %S, %i : index
    %s = tk.reduce [#tk.kind<sum>] ["j"] from (%zero) to (%end) {
    ^bb0(%j: index):
      %v = tk.load %x[%i, %j] : tensor<?x?xf32>
      tk.yield %v : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] {tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [64], reduce = [32]>>} : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// A product of factors that may be negative is greatest anywhere: it is computed for all rows.
// CHECK-LABEL: tkgpu.func @product_y
// CHECK: %[[END:.*]] = arith.muli {{.*}} : tensor<64xindex>
// CHECK: tkgpu.reduce <max> %{{.*}} axis 0 : tensor<64xindex> -> index
tk.kernel @product dims ["S"] params [#tk.param<"x">] results ["y"] {
^bb0(%S: index, %x: tensor<?x?xf32>):
  tk.bind %x[%S, %S] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %minus = arith.constant -2 : index
  %y = tk.compute ["i"] in (%S) {
  ^bb0(%i: index):
    %p = arith.muli %minus, %i : index
    %end = arith.addi %p, %S : index
    %s = tk.reduce [#tk.kind<sum>] ["j"] from (%zero) to (%end) {
    ^bb0(%j: index):
      %v = tk.load %x[%i, %j] : tensor<?x?xf32>
      tk.yield %v : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] {tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [64], reduce = [32]>>} : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// A range that one tile could hold, were it not to begin at 1: the one tile of its loop begins there.
// CHECK-LABEL: tkgpu.func @from_one_y
// CHECK: %[[BEGIN:.*]] = arith.constant dense<1> : tensor<8xindex>
// CHECK: %[[K:.*]] = arith.addi %{{.*}}, %[[BEGIN]] : tensor<8xindex>
// CHECK: arith.cmpi slt, %[[K]],
// CHECK: tkgpu.load %{{.*}}, %[[K]]]
tk.kernel @from_one dims ["R"] params [#tk.param<"x">] results ["y"] {
^bb0(%R: index, %x: tensor<?x8xf32>):
  %one = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  tk.bind %x[%R, %c8] : tensor<?x8xf32>
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%one) to (%c8) {
    ^bb0(%k: index):
      %v = tk.load %x[%r, %k] : tensor<?x8xf32>
      tk.yield %v : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] {tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [32], reduce = [8]>>} : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// K is a multiple of the tile, K + 4 is not: the last tile is masked.
// CHECK-LABEL: tkgpu.func @beyond_y
// CHECK: scf.for %[[AT:.*]] = %c0 to %[[END:.*]] step %c32
// CHECK: %[[POSITION:.*]] = arith.addi {{.*}} : tensor<32xindex>
// CHECK: arith.cmpi slt, %[[POSITION]], {{.*}} : tensor<32xindex>
tk.kernel @beyond dims ["R", "K"] params [#tk.param<"x">] results ["y"] facts [#tk.fact<divisor = 64>, #tk.fact<divisor = 64>] {
^bb0(%R: index, %K: index, %x: tensor<?x?xf32>):
  %zero = arith.constant 0 : index
  %four = arith.constant 4 : index
  %end = arith.addi %K, %four : index
  tk.bind %x[%R, %end] : tensor<?x?xf32>
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%end) {
    ^bb0(%k: index):
      %v = tk.load %x[%r, %k] : tensor<?x?xf32>
      tk.yield %v : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] {tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [64], reduce = [32]>>} : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// The larger of a size without a bound and 16 has no bound: it takes a loop.
// CHECK-LABEL: tkgpu.func @larger_y
// CHECK: scf.for
tk.kernel @larger dims ["R", "K"] params [#tk.param<"x">] results ["y"] {
^bb0(%R: index, %K: index, %x: tensor<?x?xf32>):
  %zero = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %end = arith.maxsi %K, %c16 : index
  tk.bind %x[%R, %end] : tensor<?x?xf32>
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%end) {
    ^bb0(%k: index):
      %v = tk.load %x[%r, %k] : tensor<?x?xf32>
      tk.yield %v : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] {tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [64], reduce = [16]>>} : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// The masked loads make x 0 beyond the end, but not the sum with w: the terms are masked.
// CHECK-LABEL: tkgpu.func @sum_of_two_y
// CHECK: %[[TERM:.*]] = arith.addf %{{.*}}, %{{.*}} : tensor<64x32xf32>
// CHECK: arith.select %{{.*}}, %[[TERM]], %{{.*}} : tensor<64x32xi1>, tensor<64x32xf32>
tk.kernel @sum_of_two dims ["R", "K"] params [#tk.param<"x">, #tk.param<"w">] results ["y"] {
^bb0(%R: index, %K: index, %x: tensor<?x?xf32>, %w: tensor<?xf32>):
  %zero = arith.constant 0 : index
  tk.bind %x[%R, %K] : tensor<?x?xf32>
  tk.bind %w[%R] : tensor<?xf32>
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%K) {
    ^bb0(%k: index):
      %v = tk.load %x[%r, %k] : tensor<?x?xf32>
      %u = tk.load %w[%r] : tensor<?xf32>
      %t = arith.addf %v, %u : f32
      tk.yield %t : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] {tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [64], reduce = [32]>>} : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}
