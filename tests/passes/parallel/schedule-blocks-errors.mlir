// RUN: tk-opt %s --tk-select-schedule --tk-coarsen-threads --split-input-file --verify-diagnostics

module attributes {tkgpu.target = #tkgpu.target<arch = 90>} {
// expected-error@+2 {{a tile of 1048576 outputs leaves 4096 to each of 256 threads, which hold at most 512}}
// expected-note@+1 {{try a tile of at most 131072 outputs}}
tk.kernel @large dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] {
^bb0(%M: index, %N: index, %K: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
  tk.bind %a[%M, %K] : tensor<?x?xf32>
  tk.bind %b[%K, %N] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %c = tk.compute ["i", "j"] in (%M, %N) {
  ^bb0(%i: index, %j: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%K) {
    ^bb0(%k: index):
      %x = tk.load %a[%i, %k] : tensor<?x?xf32>
      %y = tk.load %b[%k, %j] : tensor<?x?xf32>
      %p = arith.mulf %x, %y : f32
      tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["c"] : tensor<?x?xf32>
  tk.return %c : tensor<?x?xf32>
} {tk.schedules = [{tile = {i = 1024, j = 1024}}]}
}

// -----

module attributes {tkgpu.target = #tkgpu.target<arch = 90, hopper = true>} {
// expected-error@+2 {{a tile of 64 rows cannot be shared by 2 warpgroups: each computes 64 rows, or a multiple}}
// expected-note@+1 {{try tile i = 128}}
tk.kernel @consumers dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">] results ["c"]
    facts [#tk.fact<>, #tk.fact<divisor = 64>, #tk.fact<divisor = 64>] {
^bb0(%M: index, %N: index, %K: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>):
  tk.bind %a[%M, %K] : tensor<?x?xbf16>
  tk.bind %b[%K, %N] : tensor<?x?xbf16>
  %zero = arith.constant 0 : index
  %c = tk.compute ["i", "j"] in (%M, %N) {
  ^bb0(%i: index, %j: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%K) {
    ^bb0(%k: index):
      %x = tk.load %a[%i, %k] : tensor<?x?xbf16>
      %y = tk.load %b[%k, %j] : tensor<?x?xbf16>
      %u = arith.extf %x : bf16 to f32
      %v = arith.extf %y : bf16 to f32
      %p = arith.mulf %u, %v : f32
      tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["c"] : tensor<?x?xf32>
  tk.return %c : tensor<?x?xf32>
} {tk.schedules = [{tile = {i = 64}, consumers = 2}]}
}
