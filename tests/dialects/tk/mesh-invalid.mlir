// RUN: tk-opt %s --split-input-file --verify-diagnostics

tk.kernel @axis dims [] params [#tk.param<"x">] results [] {
^bb0(%x: tensor<4xf32>):
  // expected-error @+1 {{expected an axis of the kernel's mesh, got "ep"}}
  %0 = tk.all_gather %x over "ep" dim 0 : tensor<4xf32> -> tensor<8xf32>
  tk.return
} {tk.mesh = ["tp"], tk.shardings = [[""]]}

// -----

tk.kernel @dim dims [] params [#tk.param<"x">] results [] {
^bb0(%x: tensor<4xf32>):
  // expected-error @+1 {{expected a dimension below 1, got 1}}
  %0 = tk.reduce_scatter <sum> %x over "tp" dim 1 : tensor<4xf32> -> tensor<2xf32>
  tk.return
} {tk.mesh = ["tp"], tk.shardings = [[""]]}

// -----

tk.kernel @kind dims [] params [#tk.param<"x">] results [] {
^bb0(%x: tensor<4xf32>):
  // expected-error @+1 {{expected kind sum, prod, max, min, any or all, got argmax}}
  %0 = tk.all_reduce <argmax> %x over "tp" : tensor<4xf32>
  tk.return
} {tk.mesh = ["tp"], tk.shardings = [[""]]}

// -----

tk.kernel @twice dims [] params [#tk.param<"x">] results [] {
^bb0(%x: tensor<4x4xf32>):
  // expected-error @+1 {{expected two dimensions, got 1 twice}}
  %0 = tk.all_to_all %x over "tp" from 1 to 1 : tensor<4x4xf32> -> tensor<4x4xf32>
  tk.return
} {tk.mesh = ["tp"], tk.shardings = [["", ""]]}

// -----

tk.kernel @elements dims [] params [#tk.param<"x">] results [] {
^bb0(%x: tensor<4xf32>):
  // expected-error @+1 {{expected a result of rank 1 with elements 'f32', got 'tensor<8xbf16>'}}
  %0 = tk.all_gather %x over "tp" dim 0 : tensor<4xf32> -> tensor<8xbf16>
  tk.return
} {tk.mesh = ["tp"], tk.shardings = [[""]]}

// -----

tk.kernel @counts dims [] params [#tk.param<"x">, #tk.param<"n">] results [] {
^bb0(%x: tensor<4xf32>, %n: tensor<2xf32>):
  // expected-error @+1 {{expected counts of type tensor<?xi32>, got 'tensor<2xf32>'}}
  %0 = tk.exchange %x over "tp" counts(%n, %n : tensor<2xf32>, tensor<2xf32>) : tensor<4xf32> -> tensor<4xf32>
  tk.return
} {tk.mesh = ["tp"], tk.shardings = [[""], [""]]}

// -----

tk.kernel @axis dims [] params [#tk.param<"x">] results [] {
^bb0(%x: tensor<4xf32>):
  // expected-error @+1 {{expected an axis of the kernel's mesh, got "ep"}}
  %0 = tk.exchange %x over "ep" : tensor<4xf32> -> tensor<4xf32>
  tk.return
} {tk.mesh = ["tp"], tk.shardings = [[""]]}
