// RUN: tk-opt %s --tk-place-collectives --tk-split-at-collectives | FileCheck %s

// A local kernel knows what the program says of its sizes.
// CHECK-LABEL: tk.kernel @whole_1 dims ["H", "F_tp", "G"]
// CHECK: %[[M:.*]] = tk.floor_mod %H, %G
// CHECK: %[[E:.*]] = arith.cmpi eq, %[[M]]
// CHECK: tk.assume %[[E]], "H % G == 0"
// CHECK-NOT: tk.divides
// CHECK: tk.compute
tk.kernel @whole dims ["H", "F", "G"] params [#tk.param<"a">, #tk.param<"b">] results ["y"] {
^bb0(%H: index, %F: index, %G: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
  tk.bind %a[%H, %F] : tensor<?x?xf32>
  tk.bind %b[%G, %F] : tensor<?x?xf32>
  %c0 = arith.constant 0 : index
  %rest = tk.floor_mod %H, %G : index
  %divides = arith.cmpi eq, %rest, %c0 : index
  tk.assume %divides, "H % G == 0"
  %group = tk.floor_div %H, %G : index
  %y = tk.compute ["h"] in (%H) {
  ^bb0(%h: index):
    %g = tk.floor_div %h, %group : index
    %s = tk.reduce [#tk.kind<sum>] ["f"] from (%c0) to (%F) {
    ^bb0(%f: index):
      %l = tk.load %a[%h, %f] : tensor<?x?xf32>
      %r = tk.load %b[%g, %f] : tensor<?x?xf32>
      %p = arith.mulf %l, %r : f32
      tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
} {tk.mesh = ["tp"], tk.mesh_dims = array<i64: 256, 256, 256>, tk.mesh_sizes = array<i64: 2>, tk.shardings = [["", "tp"], ["", "tp"], [""]]}

// Of shares of both sizes it holds as well.
// CHECK-LABEL: tk.kernel @shares_1 dims ["H_tp", "F", "G_tp"]
// CHECK: %[[N:.*]] = tk.floor_mod %H_tp, %G_tp
// CHECK: %[[D:.*]] = arith.cmpi eq, %[[N]]
// CHECK: tk.assume %[[D]], "H % G == 0"
// A size that no tensor of the local kernel has is not asked for.
// CHECK-NOT: "T > 4"
// CHECK: tk.compute
tk.kernel @shares dims ["H", "F", "G", "T"] params [#tk.param<"a">, #tk.param<"b">, #tk.param<"t">] results ["y"] {
^bb0(%H: index, %F: index, %G: index, %T: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %t: tensor<?xf32>):
  tk.bind %a[%H, %F] : tensor<?x?xf32>
  tk.bind %b[%G, %F] : tensor<?x?xf32>
  tk.bind %t[%T] : tensor<?xf32>
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %more = arith.cmpi sgt, %T, %c4 : index
  tk.assume %more, "T > 4"
  %rest = tk.floor_mod %H, %G : index
  %divides = arith.cmpi eq, %rest, %c0 : index
  tk.assume %divides, "H % G == 0"
  %group = tk.floor_div %H, %G : index
  %y = tk.compute ["h"] in (%H) {
  ^bb0(%h: index):
    %g = tk.floor_div %h, %group : index
    %s = tk.reduce [#tk.kind<sum>] ["f"] from (%c0) to (%F) {
    ^bb0(%f: index):
      %l = tk.load %a[%h, %f] : tensor<?x?xf32>
      %r = tk.load %b[%g, %f] : tensor<?x?xf32>
      %p = arith.mulf %l, %r : f32
      tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
} {tk.mesh = ["tp"], tk.mesh_dims = array<i64: 256, 256, 256, 256>, tk.mesh_sizes = array<i64: 2>, tk.shardings = [["tp", ""], ["tp", ""], [""], ["tp"]]}
