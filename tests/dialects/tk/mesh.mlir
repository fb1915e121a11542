// RUN: tk-opt %s | tk-opt | FileCheck %s

// CHECK-LABEL: tk.kernel @up
tk.kernel @up dims ["M", "C", "F_tp"] params [#tk.param<"x">, #tk.param<"w">] results ["h"] {
^bb0(%M: index, %C: index, %F_tp: index, %x: tensor<?x?xbf16>, %w: tensor<?x?xbf16>):
  tk.bind %x[%M, %C] : tensor<?x?xbf16>
  tk.bind %w[%C, %F_tp] : tensor<?x?xbf16>
  // CHECK: tk.rank "tp"
  %r = tk.rank "tp"
  // CHECK: tk.all_gather %x over "tp" dim 0 : tensor<?x?xbf16> -> tensor<?x?xbf16>
  %whole = tk.all_gather %x over "tp" dim 0 : tensor<?x?xbf16> -> tensor<?x?xbf16>
  // CHECK: tk.launch @up_1(%{{.*}}, %w) extents(%M, %F_tp) : (tensor<?x?xbf16>, tensor<?x?xbf16>) -> tensor<?x?xbf16>
  %h = tk.launch @up_1(%whole, %w) extents(%M, %F_tp)
      : (tensor<?x?xbf16>, tensor<?x?xbf16>) -> tensor<?x?xbf16>
  tk.return %h : tensor<?x?xbf16>
} {tk.mesh = ["tp"], tk.mesh_sizes = array<i64: 2>, tk.shardings = [["tp", ""], ["", "tp"], ["", "tp"]], tk.placed}

// CHECK-LABEL: tk.kernel @combined
tk.kernel @combined dims ["M", "C"] params [#tk.param<"partial">, #tk.param<"x">] results ["y"] {
^bb0(%M: index, %C: index, %partial: tensor<?x?xf32>, %x: tensor<?x?xf32>):
  tk.bind %partial[%M, %C] : tensor<?x?xf32>
  tk.bind %x[%M, %C] : tensor<?x?xf32>
  // CHECK: tk.all_reduce <sum> %partial over "tp" : tensor<?x?xf32>
  %sum = tk.all_reduce <sum> %partial over "tp" : tensor<?x?xf32>
  // CHECK: tk.reduce_scatter <sum> %partial over "tp" dim 0 : tensor<?x?xf32> -> tensor<?x?xf32>
  %share = tk.reduce_scatter <sum> %partial over "tp" dim 0
      : tensor<?x?xf32> -> tensor<?x?xf32>
  // CHECK: tk.all_to_all %x over "tp" from 0 to 1 : tensor<?x?xf32> -> tensor<?x?xf32>
  %y = tk.all_to_all %x over "tp" from 0 to 1 : tensor<?x?xf32> -> tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
} {tk.mesh = ["tp"], tk.mesh_sizes = array<i64: 2>, tk.shardings = [["", ""], ["tp", ""], ["", "tp"]], tk.placed}

// Rows that go to each rank, all of a block or those that count; and launches of blocks of rows.
// CHECK-LABEL: tk.kernel @blocks
tk.kernel @blocks dims ["M", "C"] params [#tk.param<"x">, #tk.param<"sent">, #tk.param<"received">] results ["z"] {
^bb0(%M: index, %C: index, %x: tensor<?x?xf32>, %sent: tensor<2xi32>, %received: tensor<2xi32>):
  %c2 = arith.constant 2 : index
  tk.bind %x[%M, %C] : tensor<?x?xf32>
  tk.bind %sent[%c2] : tensor<2xi32>
  tk.bind %received[%c2] : tensor<2xi32>
  // CHECK: tk.exchange %x over "ep" : tensor<?x?xf32> -> tensor<?x?xf32>
  %a = tk.exchange %x over "ep" : tensor<?x?xf32> -> tensor<?x?xf32>
  // CHECK: tk.exchange %x over "ep" counts(%sent, %received : tensor<2xi32>, tensor<2xi32>) : tensor<?x?xf32> -> tensor<?x?xf32>
  %y = tk.exchange %x over "ep" counts(%sent, %received : tensor<2xi32>, tensor<2xi32>)
      : tensor<?x?xf32> -> tensor<?x?xf32>
  // CHECK: tk.launch @blocks_1(%{{.*}}) extents(%M, %C) by_rows "ep" {slicedOperands = array<i64: 0>, slicedResults = array<i64: 0>}
  %z = tk.launch @blocks_1(%y) extents(%M, %C) by_rows "ep"
      {slicedOperands = array<i64: 0>, slicedResults = array<i64: 0>}
      : (tensor<?x?xf32>) -> tensor<?x?xf32>
  tk.return %z : tensor<?x?xf32>
} {tk.mesh = ["ep"], tk.mesh_sizes = array<i64: 2>, tk.shardings = [["", ""], [""], [""], ["", ""]], tk.placed}
