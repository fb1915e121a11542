// RUN: tk-opt %s --tk-place-collectives --split-input-file | FileCheck %s

// Rows go to the ranks that hold their matrices: the ids first, then what the statement reads by
// rows, and the results come back. A statement with the same ids computes on what is in the slots.
// CHECK-LABEL: tk.kernel @experts dims
// CHECK: names ["rows.owner"] : tensor<?xi32>
// CHECK: tk.scan <sum>
// CHECK: names ["rows.slot"] : tensor<?xi32>
// CHECK: names ["rows.sent"] : tensor<2xi32>
// CHECK: names ["rows.out"] : tensor<?xi32>
// CHECK: %[[IDS:.*]] = tk.exchange %{{.*}} over "ep" : tensor<?xi32> -> tensor<?xi32>
// CHECK: names ["rows.received"] : tensor<2xi32>
// CHECK: names ["h.in"] : tensor<?x?xbf16>
// CHECK: %[[X:.*]] = tk.exchange %{{.*}} over "ep" counts(%[[SENT:.*]], %[[RECEIVED:.*]] : tensor<2xi32>, tensor<2xi32>) : tensor<?x?xbf16>
// CHECK: tk.compute ["row", "f"]
// CHECK: tk.load %[[X]][%row, %c]
// CHECK: tk.load %[[IDS]][%row]
// CHECK: %[[OWN:.*]] = arith.subi
// CHECK: tk.load %w[%[[OWN]], %c, %f] pad
// CHECK: names ["h.rows"] : tensor<?x?xf32>
// CHECK: tk.compute ["row", "c"]
// CHECK: tk.load %{{.*}}[%row, %f]
// CHECK: names ["y.rows"] : tensor<?x?xf32>
// CHECK: tk.exchange %{{.*}} over "ep" counts(%[[RECEIVED]], %[[SENT]] : tensor<2xi32>, tensor<2xi32>) : tensor<?x?xf32>
// CHECK-NOT: tk.exchange
// CHECK: tk.compute ["m", "c"]
tk.kernel @experts dims ["M", "C", "E", "F"] params [#tk.param<"x">, #tk.param<"ids">, #tk.param<"w">, #tk.param<"v">] results ["y"] {
^bb0(%M: index, %C: index, %E: index, %F: index, %x: tensor<?x?xbf16>, %ids: tensor<?xi32>, %w: tensor<?x?x?xbf16>, %v: tensor<?x?x?xbf16>):
  tk.bind %x[%M, %C] : tensor<?x?xbf16>
  tk.bind %ids[%M] : tensor<?xi32>
  tk.bind %w[%E, %C, %F] : tensor<?x?x?xbf16>
  tk.bind %v[%E, %F, %C] : tensor<?x?x?xbf16>
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : bf16
  %h = tk.compute ["m", "f"] in (%M, %F) {
  ^bb0(%m: index, %f: index):
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%c0) to (%C) {
    ^bb0(%c: index):
      %a = tk.load %x[%m, %c] : tensor<?x?xbf16>
      %id = tk.load %ids[%m] : tensor<?xi32>
      %e = arith.index_cast %id : i32 to index
      %b = tk.load %w[%e, %c, %f] pad %zero : bf16 : tensor<?x?x?xbf16>
      %af = arith.extf %a : bf16 to f32
      %bf = arith.extf %b : bf16 to f32
      %p = arith.mulf %af, %bf : f32
      tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["h"] : tensor<?x?xf32>
  %y = tk.compute ["m", "c"] in (%M, %C) {
  ^bb0(%m: index, %c: index):
    %s = tk.reduce [#tk.kind<sum>] ["f"] from (%c0) to (%F) {
    ^bb0(%f: index):
      %a = tk.load %h[%m, %f] : tensor<?x?xf32>
      %id = tk.load %ids[%m] : tensor<?xi32>
      %e = arith.index_cast %id : i32 to index
      %b = tk.load %v[%e, %f, %c] pad %zero : bf16 : tensor<?x?x?xbf16>
      %bf = arith.extf %b : bf16 to f32
      %p = arith.mulf %a, %bf : f32
      tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
} {tk.mesh = ["ep"], tk.mesh_dims = array<i64: 8192, 2048, 64, 1408>, tk.mesh_sizes = array<i64: 2>,
   tk.shardings = [["ep", ""], ["ep"], ["ep", "", ""], ["ep", "", ""], ["ep", ""]]}

// -----

// Few rows and small matrices: to gather the table takes less time than to send rows.
// CHECK-LABEL: tk.kernel @small dims
// CHECK-NOT: tk.exchange
// CHECK: tk.all_gather %w over "ep" dim 0
tk.kernel @small dims ["M", "C", "E", "F"] params [#tk.param<"x">, #tk.param<"ids">, #tk.param<"w">] results ["h"] {
^bb0(%M: index, %C: index, %E: index, %F: index, %x: tensor<?x?xbf16>, %ids: tensor<?xi32>, %w: tensor<?x?x?xbf16>):
  tk.bind %x[%M, %C] : tensor<?x?xbf16>
  tk.bind %ids[%M] : tensor<?xi32>
  tk.bind %w[%E, %C, %F] : tensor<?x?x?xbf16>
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : bf16
  %h = tk.compute ["m", "f"] in (%M, %F) {
  ^bb0(%m: index, %f: index):
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%c0) to (%C) {
    ^bb0(%c: index):
      %a = tk.load %x[%m, %c] : tensor<?x?xbf16>
      %id = tk.load %ids[%m] : tensor<?xi32>
      %e = arith.index_cast %id : i32 to index
      %b = tk.load %w[%e, %c, %f] pad %zero : bf16 : tensor<?x?x?xbf16>
      %af = arith.extf %a : bf16 to f32
      %bf = arith.extf %b : bf16 to f32
      %p = arith.mulf %af, %bf : f32
      tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["h"] : tensor<?x?xf32>
  tk.return %h : tensor<?x?xf32>
} {tk.mesh = ["ep"], tk.mesh_dims = array<i64: 16, 32, 8, 24>, tk.mesh_sizes = array<i64: 2>,
   tk.shardings = [["ep", ""], ["ep"], ["ep", "", ""], ["ep", ""]]}

// -----

// A row's number that is more than a subscript stays where it is: the table is gathered.
// CHECK-LABEL: tk.kernel @numbered dims
// CHECK-NOT: tk.exchange
// CHECK: tk.all_gather %w over "ep" dim 0
tk.kernel @numbered dims ["M", "C", "E", "F"] params [#tk.param<"x">, #tk.param<"ids">, #tk.param<"w">] results ["h"] {
^bb0(%M: index, %C: index, %E: index, %F: index, %x: tensor<?x?xbf16>, %ids: tensor<?xi32>, %w: tensor<?x?x?xbf16>):
  tk.bind %x[%M, %C] : tensor<?x?xbf16>
  tk.bind %ids[%M] : tensor<?xi32>
  tk.bind %w[%E, %C, %F] : tensor<?x?x?xbf16>
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : bf16
  %h = tk.compute ["m", "f"] in (%M, %F) {
  ^bb0(%m: index, %f: index):
    %s = tk.reduce [#tk.kind<sum>] ["c"] from (%c0) to (%C) {
    ^bb0(%c: index):
      %a = tk.load %x[%m, %c] : tensor<?x?xbf16>
      %id = tk.load %ids[%m] : tensor<?xi32>
      %e = arith.index_cast %id : i32 to index
      %b = tk.load %w[%e, %c, %f] pad %zero : bf16 : tensor<?x?x?xbf16>
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
} {tk.mesh = ["ep"], tk.mesh_dims = array<i64: 8192, 2048, 64, 1408>, tk.mesh_sizes = array<i64: 2>,
   tk.shardings = [["ep", ""], ["ep"], ["ep", "", ""], ["ep", ""]]}
