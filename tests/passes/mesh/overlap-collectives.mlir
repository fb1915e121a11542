// RUN: tk-opt %s --tk-place-collectives --tk-split-at-collectives --tk-overlap-collectives --split-input-file | FileCheck %s

// A launch that reads gathered rows runs for the rank's own rows first, then for those that arrive.
// CHECK-LABEL: tk.kernel @up dims
// CHECK: %[[X:.*]] = tk.all_gather %x over "tp" dim 0 {tk.beside_launch}
// CHECK: tk.launch @up_1(%[[X]], %w, %r) extents(%M, %{{.*}}) by_rows "tp" {names = ["h"], slicedOperands = array<i64: 0, 2>, slicedResults = array<i64: 0>}
// CHECK-LABEL: tk.kernel @up_1 dims
tk.kernel @up dims ["M", "C", "F"] params [#tk.param<"x">, #tk.param<"w">, #tk.param<"r">] results ["h"] {
^bb0(%M: index, %C: index, %F: index, %x: tensor<?x?xbf16>, %w: tensor<?x?xbf16>, %r: tensor<?xf32>):
  tk.bind %x[%M, %C] : tensor<?x?xbf16>
  tk.bind %w[%C, %F] : tensor<?x?xbf16>
  tk.bind %r[%M] : tensor<?xf32>
  %c0 = arith.constant 0 : index
  %h = tk.compute ["m", "f"] in (%M, %F) {
  ^bb0(%m: index, %f: index):
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%c0) to (%C) {
    ^bb0(%c: index):
      %a = tk.load %x[%m, %c] : tensor<?x?xbf16>
      %b = tk.load %w[%c, %f] : tensor<?x?xbf16>
      %af = arith.extf %a : bf16 to f32
      %bf = arith.extf %b : bf16 to f32
      %p = arith.mulf %af, %bf : f32
      tk.yield %p : f32
    } : f32
    %scale = tk.load %r[%m] : tensor<?xf32>
    %t = arith.mulf %s, %scale : f32
    tk.yield %t : f32
  } names ["h"] : tensor<?x?xf32>
  tk.return %h : tensor<?x?xf32>
} {tk.mesh = ["tp"], tk.mesh_dims = array<i64: 8192, 4096, 14336>, tk.mesh_sizes = array<i64: 2>,
   tk.shardings = [["tp", ""], ["", "tp"], [""], ["", "tp"]]}

// -----

// Small tensors are gathered first: each block would be a launch that reads all of w.
// CHECK-LABEL: tk.kernel @small dims
// CHECK-NOT: by_rows
tk.kernel @small dims ["M", "C", "F"] params [#tk.param<"x">, #tk.param<"w">] results ["h"] {
^bb0(%M: index, %C: index, %F: index, %x: tensor<?x?xbf16>, %w: tensor<?x?xbf16>):
  tk.bind %x[%M, %C] : tensor<?x?xbf16>
  tk.bind %w[%C, %F] : tensor<?x?xbf16>
  %c0 = arith.constant 0 : index
  %h = tk.compute ["m", "f"] in (%M, %F) {
  ^bb0(%m: index, %f: index):
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%c0) to (%C) {
    ^bb0(%c: index):
      %a = tk.load %x[%m, %c] : tensor<?x?xbf16>
      %b = tk.load %w[%c, %f] : tensor<?x?xbf16>
      %af = arith.extf %a : bf16 to f32
      %bf = arith.extf %b : bf16 to f32
      %p = arith.mulf %af, %bf : f32
      tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["h"] : tensor<?x?xf32>
  tk.return %h : tensor<?x?xf32>
} {tk.mesh = ["tp"], tk.mesh_dims = array<i64: 16, 4096, 14336>, tk.mesh_sizes = array<i64: 2>,
   tk.shardings = [["tp", ""], ["", "tp"], ["", "tp"]]}

// -----

// A statement that uses the number of a row does not run by rows.
// CHECK-LABEL: tk.kernel @numbered dims
// CHECK-NOT: by_rows
tk.kernel @numbered dims ["M", "C", "F"] params [#tk.param<"x">, #tk.param<"w">] results ["h"] {
^bb0(%M: index, %C: index, %F: index, %x: tensor<?x?xbf16>, %w: tensor<?x?xbf16>):
  tk.bind %x[%M, %C] : tensor<?x?xbf16>
  tk.bind %w[%C, %F] : tensor<?x?xbf16>
  %c0 = arith.constant 0 : index
  %h = tk.compute ["m", "f"] in (%M, %F) {
  ^bb0(%m: index, %f: index):
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%c0) to (%C) {
    ^bb0(%c: index):
      %a = tk.load %x[%m, %c] : tensor<?x?xbf16>
      %b = tk.load %w[%c, %f] : tensor<?x?xbf16>
      %af = arith.extf %a : bf16 to f32
      %bf = arith.extf %b : bf16 to f32
      %p = arith.mulf %af, %bf : f32
      tk.yield %p : f32
    } : f32
    %i = arith.index_cast %m : index to i32
    %row = arith.sitofp %i : i32 to f32
    %t = arith.addf %s, %row : f32
    tk.yield %t : f32
  } names ["h"] : tensor<?x?xf32>
  tk.return %h : tensor<?x?xf32>
} {tk.mesh = ["tp"], tk.mesh_dims = array<i64: 8192, 4096, 14336>, tk.mesh_sizes = array<i64: 2>,
   tk.shardings = [["tp", ""], ["", "tp"], ["", "tp"]]}

// -----

// Partial sums go to their owners block by block, and the owner adds them up in the order of the ranks.
// CHECK-LABEL: tk.kernel @down dims
// CHECK: %[[P:.*]] = tk.launch @down_1(%h, %w) extents(%M, %C) by_rows "tp" {names = ["y"], slicedOperands = array<i64: 0>, slicedResults = array<i64: 0>}
// CHECK: %[[E:.*]] = tk.exchange %[[P]] over "tp" {tk.beside_launch}
// CHECK: tk.launch @down_2(%[[E]])
// CHECK-LABEL: tk.kernel @down_2 dims
// CHECK: %[[A:.*]] = tk.load %{{.*}}[%{{.*}}, %{{.*}}]
// CHECK: %[[B:.*]] = tk.load %{{.*}}[%{{.*}}, %{{.*}}]
// CHECK: arith.addf %[[A]], %[[B]]
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
    tk.yield %s : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
} {tk.mesh = ["tp"], tk.mesh_dims = array<i64: 8192, 14336, 4096>, tk.mesh_sizes = array<i64: 2>,
   tk.shardings = [["", "tp"], ["tp", ""], ["tp", ""]]}

// -----

// Two products in a row: each is a launch of its own, beside the transfers of its rows.
// CHECK-LABEL: tk.kernel @both dims
// CHECK: %[[X:.*]] = tk.all_gather %x over "tp" dim 0 {tk.beside_launch}
// CHECK: %[[H:.*]] = tk.launch @both_1(%[[X]], %u) extents(%M, %{{.*}}) by_rows "tp"
// CHECK: %[[P:.*]] = tk.launch @both_2(%[[H]], %w) extents(%M, %C) by_rows "tp"
// CHECK: tk.exchange %[[P]] over "tp" {tk.beside_launch}
tk.kernel @both dims ["M", "C", "F"] params [#tk.param<"x">, #tk.param<"u">, #tk.param<"w">] results ["y"] {
^bb0(%M: index, %C: index, %F: index, %x: tensor<?x?xbf16>, %u: tensor<?x?xbf16>, %w: tensor<?x?xbf16>):
  tk.bind %x[%M, %C] : tensor<?x?xbf16>
  tk.bind %u[%C, %F] : tensor<?x?xbf16>
  tk.bind %w[%F, %C] : tensor<?x?xbf16>
  %c0 = arith.constant 0 : index
  %h = tk.compute ["m", "f"] in (%M, %F) {
  ^bb0(%m: index, %f: index):
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%c0) to (%C) {
    ^bb0(%c: index):
      %a = tk.load %x[%m, %c] : tensor<?x?xbf16>
      %b = tk.load %u[%c, %f] : tensor<?x?xbf16>
      %af = arith.extf %a : bf16 to f32
      %bf = arith.extf %b : bf16 to f32
      %p = arith.mulf %af, %bf : f32
      tk.yield %p : f32
    } : f32
    %t = arith.truncf %s : f32 to bf16
    tk.yield %t : bf16
  } names ["h"] : tensor<?x?xbf16>
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
    tk.yield %s : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
} {tk.mesh = ["tp"], tk.mesh_dims = array<i64: 2048, 4096, 14336>, tk.mesh_sizes = array<i64: 2>,
   tk.shardings = [["tp", ""], ["", "tp"], ["tp", ""], ["tp", ""]]}

// -----

// Of two collectives next to a launch the pass chooses the one that saves more: here the exchange of
// partial sums, which are wider than the gathered rows.
// CHECK-LABEL: tk.kernel @two dims
// CHECK: tk.all_gather %x over "dp" dim 0 : tensor
// CHECK: %[[P:.*]] = tk.launch @two_1(%{{.*}}) extents(%M, %C) by_rows "tp"
// CHECK: tk.exchange %[[P]] over "tp" {tk.beside_launch}
tk.kernel @two dims ["M", "C", "F"] params [#tk.param<"x">, #tk.param<"w">] results ["y"] {
^bb0(%M: index, %C: index, %F: index, %x: tensor<?x?xbf16>, %w: tensor<?x?xbf16>):
  tk.bind %x[%M, %F] : tensor<?x?xbf16>
  tk.bind %w[%F, %C] : tensor<?x?xbf16>
  %c0 = arith.constant 0 : index
  %y = tk.compute ["m", "c"] in (%M, %C) {
  ^bb0(%m: index, %c: index):
    %s = tk.reduce [#tk.kind<sum>] ["f"] from (%c0) to (%F) {
    ^bb0(%f: index):
      %a = tk.load %x[%m, %f] : tensor<?x?xbf16>
      %b = tk.load %w[%f, %c] : tensor<?x?xbf16>
      %af = arith.extf %a : bf16 to f32
      %bf = arith.extf %b : bf16 to f32
      %p = arith.mulf %af, %bf : f32
      tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
} {tk.mesh = ["dp", "tp"], tk.mesh_dims = array<i64: 2048, 16384, 1024>, tk.mesh_sizes = array<i64: 2, 2>,
   tk.shardings = [["dp", "tp"], ["tp", ""], ["tp", ""]]}
