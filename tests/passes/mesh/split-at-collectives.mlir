// RUN: tk-opt %s --tk-place-collectives --tk-split-at-collectives | FileCheck %s

// The kernel launches local kernels, with the collective between them.
// CHECK-LABEL: tk.kernel @down
// CHECK: %[[P:.*]] = tk.launch @down_1(%h, %w) extents(%M, %C)
// CHECK: %[[Q:.*]] = tk.reduce_scatter <sum> %[[P]] over "tp" dim 0
// CHECK: %[[Y:.*]] = tk.launch @down_2(%[[Q]], %{{.*}}) extents(%{{.*}}, %C)
// CHECK: tk.return %[[Y]]

// Extents of tensors are dimensions: a whole one, or a share.
// CHECK-LABEL: tk.kernel @down_1 dims ["M", "F_tp", "C"] params [#tk.param<"h">, #tk.param<"w">] results ["y.sum"]
// CHECK: tk.bind %h[%M, %F_tp]
// CHECK: tk.reduce [#tk.kind<sum>] ["f"] from(%{{.*}}) to(%F_tp)

// The rank is a parameter where an index needs its global value.
// CHECK-LABEL: tk.kernel @down_2 dims ["M_tp", "C"] params [#tk.param<"y.sum">, #tk.param<"tp_rank">] results ["y"]
// CHECK: arith.index_cast %tp_rank : i64 to index
tk.kernel @down dims ["M", "F", "C"] params [#tk.param<"h">, #tk.param<"w">] results ["y"] {
^bb0(%M: index, %F: index, %C: index, %h: tensor<?x?xbf16>, %w: tensor<?x?xbf16>):
  tk.bind %h[%M, %F] : tensor<?x?xbf16>
  tk.bind %w[%F, %C] : tensor<?x?xbf16>
  %c0 = arith.constant 0 : index
  %y = tk.compute ["m", "c"] in (%M, %C) {
  ^bb0(%m: index, %c: index):
    %s = tk.reduce [#tk.kind<sum>] ["f"] from (%c0) to (%F) {
    ^bb0(%f: index):
      %a = tk.load %h[%m, %f] : tensor<?x?xbf16>
      %b = tk.load %w[%f, %c] : tensor<?x?xbf16>
      %af = arith.extf %a : bf16 to f32
      %bf = arith.extf %b : bf16 to f32
      %p = arith.mulf %af, %bf : f32
      tk.yield %p : f32
    } : f32
    %i = arith.index_cast %m : index to i32
    %row = arith.sitofp %i : i32 to f32
    %t = arith.addf %s, %row : f32
    tk.yield %t : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
} {tk.mesh = ["tp"], tk.mesh_dims = array<i64: 256, 256, 256>, tk.mesh_sizes = array<i64: 4>, tk.shardings = [["", "tp"], ["tp", ""], ["tp", ""]]}
