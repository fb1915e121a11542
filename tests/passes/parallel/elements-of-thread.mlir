// RUN: tk-opt %s --tk-select-schedule --tk-coarsen-threads | FileCheck %s
module attributes {tkgpu.target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>} {
// Long rows beside which nothing is read leave room for twice as many elements a thread, and so do
// those that lie in shared memory (tk-keep-rows), with weights in the cache beside them.
// CHECK-LABEL: tk.kernel @alone
// CHECK: reduce = [16384], warps = 8, per_thread = 64,
tk.kernel @alone dims ["R", "C"] params [#tk.param<"x">, #tk.param<"w">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 16384, upper = 16384>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>, %w: tensor<?xbf16>):
  tk.bind %x[%R, %C] : tensor<?x?xbf16>
  tk.bind %w[%C] : tensor<?xbf16>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%C) {
    ^bb0(%k: index):
      %b = tk.load %x[%r, %k] : tensor<?x?xbf16>
      %v = arith.extf %b : bf16 to f32
      tk.yield %v : f32
    } : f32
    %b = tk.load %x[%r, %c] : tensor<?x?xbf16>
    %v = arith.extf %b : bf16 to f32
    %q = arith.divf %v, %s : f32
    tk.yield %q : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}
// CHECK-LABEL: tk.kernel @beside_weights
// CHECK: reduce = [16384], warps = 8, per_thread = 64,
tk.kernel @beside_weights dims ["R", "C"] params [#tk.param<"x">, #tk.param<"w">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 16384, upper = 16384>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>, %w: tensor<?xbf16>):
  tk.bind %x[%R, %C] : tensor<?x?xbf16>
  tk.bind %w[%C] : tensor<?xbf16>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%C) {
    ^bb0(%k: index):
      %b = tk.load %x[%r, %k] : tensor<?x?xbf16>
      %v = arith.extf %b : bf16 to f32
      tk.yield %v : f32
    } : f32
    %b = tk.load %x[%r, %c] : tensor<?x?xbf16>
    %v = arith.extf %b : bf16 to f32
    %q = arith.divf %v, %s : f32
    %g = tk.load %w[%c] : tensor<?xbf16>
    %gf = arith.extf %g : bf16 to f32
    %o = arith.mulf %q, %gf : f32
    tk.yield %o : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}
// CHECK-LABEL: tk.kernel @numbered
// CHECK: reduce = [16384], warps = 8, per_thread = 64,
tk.kernel @numbered dims ["R", "C"] params [#tk.param<"x">, #tk.param<"w">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 16384, upper = 16384>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>, %w: tensor<?xbf16>):
  tk.bind %x[%R, %C] : tensor<?x?xbf16>
  tk.bind %w[%C] : tensor<?xbf16>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%C) {
    ^bb0(%k: index):
      %b = tk.load %x[%r, %k] : tensor<?x?xbf16>
      %v = arith.extf %b : bf16 to f32
      tk.yield %v : f32
    } : f32
    %b = tk.load %x[%r, %c] : tensor<?x?xbf16>
    %v = arith.extf %b : bf16 to f32
    %q = arith.divf %v, %s : f32
    %number = arith.index_cast %c : index to i32
    %gf = arith.sitofp %number : i32 to f32
    %o = arith.mulf %q, %gf : f32
    tk.yield %o : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}
// CHECK-LABEL: tk.kernel @at_any_address
// CHECK: reduce = [16384], warps = 16, per_thread = 32,
tk.kernel @at_any_address dims ["R", "C"] params [#tk.param<"x">, #tk.param<"w">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 1, upper = 16384>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>, %w: tensor<?xbf16>):
  tk.bind %x[%R, %C] : tensor<?x?xbf16>
  tk.bind %w[%C] : tensor<?xbf16>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%C) {
    ^bb0(%k: index):
      %b = tk.load %x[%r, %k] : tensor<?x?xbf16>
      %v = arith.extf %b : bf16 to f32
      tk.yield %v : f32
    } : f32
    %b = tk.load %x[%r, %c] : tensor<?x?xbf16>
    %v = arith.extf %b : bf16 to f32
    %q = arith.divf %v, %s : f32
    tk.yield %q : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}

// They are shared by clusters of 4 blocks and not of 8.
// CHECK-LABEL: tk.kernel @long_alone
// CHECK: reduce = [131072], warps = 64, {{.*}} cluster = 4>
tk.kernel @long_alone dims ["R", "C"] params [#tk.param<"x">, #tk.param<"w">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 131072, upper = 131072>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>, %w: tensor<?xbf16>):
  tk.bind %x[%R, %C] : tensor<?x?xbf16>
  tk.bind %w[%C] : tensor<?xbf16>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%C) {
    ^bb0(%k: index):
      %b = tk.load %x[%r, %k] : tensor<?x?xbf16>
      %v = arith.extf %b : bf16 to f32
      tk.yield %v : f32
    } : f32
    %b = tk.load %x[%r, %c] : tensor<?x?xbf16>
    %v = arith.extf %b : bf16 to f32
    %q = arith.divf %v, %s : f32
    tk.yield %q : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}
// CHECK-LABEL: tk.kernel @long_beside_weights
// CHECK: reduce = [131072], warps = 128, {{.*}} cluster = 8>
tk.kernel @long_beside_weights dims ["R", "C"] params [#tk.param<"x">, #tk.param<"w">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 131072, upper = 131072>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>, %w: tensor<?xbf16>):
  tk.bind %x[%R, %C] : tensor<?x?xbf16>
  tk.bind %w[%C] : tensor<?xbf16>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%C) {
    ^bb0(%k: index):
      %b = tk.load %x[%r, %k] : tensor<?x?xbf16>
      %v = arith.extf %b : bf16 to f32
      tk.yield %v : f32
    } : f32
    %b = tk.load %x[%r, %c] : tensor<?x?xbf16>
    %v = arith.extf %b : bf16 to f32
    %q = arith.divf %v, %s : f32
    %g = tk.load %w[%c] : tensor<?xbf16>
    %gf = arith.extf %g : bf16 to f32
    %o = arith.mulf %q, %gf : f32
    tk.yield %o : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}

// Rows that end before their tiles go to half as many threads, but not if those had too many.
// Rows that no registers hold are kept by 16 blocks, which go through them.
// CHECK-LABEL: tk.kernel @longest
// CHECK: reduce = [524288], warps = 128, per_thread = 128, {{.*}} persistent = 3, cluster = 16>
tk.kernel @longest dims ["R", "C"] params [#tk.param<"x">, #tk.param<"w">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 524288, upper = 524288>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>, %w: tensor<?xbf16>):
  tk.bind %x[%R, %C] : tensor<?x?xbf16>
  tk.bind %w[%C] : tensor<?xbf16>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%C) {
    ^bb0(%k: index):
      %b = tk.load %x[%r, %k] : tensor<?x?xbf16>
      %v = arith.extf %b : bf16 to f32
      tk.yield %v : f32
    } : f32
    %b = tk.load %x[%r, %c] : tensor<?x?xbf16>
    %v = arith.extf %b : bf16 to f32
    %q = arith.divf %v, %s : f32
    %g = tk.load %w[%c] : tensor<?xbf16>
    %gf = arith.extf %g : bf16 to f32
    %o = arith.mulf %q, %gf : f32
    tk.yield %o : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}

// Rows that end before their tiles go to half as many threads, but not if those had too many.
// CHECK-LABEL: tk.kernel @three_quarters
// CHECK: reduce = [8192], warps = 4, per_thread = 64,
tk.kernel @three_quarters dims ["R", "C"] params [#tk.param<"x">, #tk.param<"w">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 2048, upper = 6144>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>, %w: tensor<?xbf16>):
  tk.bind %x[%R, %C] : tensor<?x?xbf16>
  tk.bind %w[%C] : tensor<?xbf16>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%C) {
    ^bb0(%k: index):
      %b = tk.load %x[%r, %k] : tensor<?x?xbf16>
      %v = arith.extf %b : bf16 to f32
      tk.yield %v : f32
    } : f32
    %b = tk.load %x[%r, %c] : tensor<?x?xbf16>
    %v = arith.extf %b : bf16 to f32
    %q = arith.divf %v, %s : f32
    %g = tk.load %w[%c] : tensor<?xbf16>
    %gf = arith.extf %g : bf16 to f32
    %o = arith.mulf %q, %gf : f32
    tk.yield %o : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}
// CHECK-LABEL: tk.kernel @three_quarters_alone
// CHECK: reduce = [16384], warps = 8, per_thread = 64,
tk.kernel @three_quarters_alone dims ["R", "C"] params [#tk.param<"x">, #tk.param<"w">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 4096, upper = 12288>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>, %w: tensor<?xbf16>):
  tk.bind %x[%R, %C] : tensor<?x?xbf16>
  tk.bind %w[%C] : tensor<?xbf16>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%C) {
    ^bb0(%k: index):
      %b = tk.load %x[%r, %k] : tensor<?x?xbf16>
      %v = arith.extf %b : bf16 to f32
      tk.yield %v : f32
    } : f32
    %b = tk.load %x[%r, %c] : tensor<?x?xbf16>
    %v = arith.extf %b : bf16 to f32
    %q = arith.divf %v, %s : f32
    tk.yield %q : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}
// The sum of two rows alone is needed behind the reduction: a cluster of 16 blocks keeps it, where
// the rows do not fit; it has its multiprocessors to itself.
// CHECK-LABEL: tk.kernel @sum_of_rows
// CHECK: reduce = [524288], warps = 512,
tk.kernel @sum_of_rows dims ["R", "C"] params [#tk.param<"x">, #tk.param<"w">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 524288, upper = 524288>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>, %w: tensor<?x?xbf16>):
  tk.bind %x[%R, %C] : tensor<?x?xbf16>
  tk.bind %w[%R, %C] : tensor<?x?xbf16>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %s = tk.reduce [#tk.kind<max>] ["k"] from (%zero) to (%C) {
    ^bb0(%k: index):
      %a = tk.load %x[%r, %k] : tensor<?x?xbf16>
      %b = tk.load %w[%r, %k] : tensor<?x?xbf16>
      %ab = arith.addf %a, %b : bf16
      tk.yield %ab : bf16
    } : bf16
    %a = tk.load %x[%r, %c] : tensor<?x?xbf16>
    %b = tk.load %w[%r, %c] : tensor<?x?xbf16>
    %ab = arith.addf %a, %b : bf16
    %q = arith.divf %ab, %s : bf16
    tk.yield %q : bf16
  } names ["y"] : tensor<?x?xbf16>
  tk.return %y : tensor<?x?xbf16>
}
// So is one of them: a block reads both again.
// CHECK-LABEL: tk.kernel @sum_and_row
// CHECK: reduce = [8192], loop = 1, warps = 16,
tk.kernel @sum_and_row dims ["R", "C"] params [#tk.param<"x">, #tk.param<"w">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 524288, upper = 524288>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>, %w: tensor<?x?xbf16>):
  tk.bind %x[%R, %C] : tensor<?x?xbf16>
  tk.bind %w[%R, %C] : tensor<?x?xbf16>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %s = tk.reduce [#tk.kind<max>] ["k"] from (%zero) to (%C) {
    ^bb0(%k: index):
      %a = tk.load %x[%r, %k] : tensor<?x?xbf16>
      %b = tk.load %w[%r, %k] : tensor<?x?xbf16>
      %ab = arith.addf %a, %b : bf16
      tk.yield %ab : bf16
    } : bf16
    %a = tk.load %x[%r, %c] : tensor<?x?xbf16>
    %b = tk.load %w[%r, %c] : tensor<?x?xbf16>
    %ab = arith.addf %a, %b : bf16
    %q = arith.divf %ab, %s : bf16
    %o = arith.mulf %q, %a : bf16
    tk.yield %o : bf16
  } names ["y"] : tensor<?x?xbf16>
  tk.return %y : tensor<?x?xbf16>
}
}
