// RUN: tk-opt %s --tk-select-schedule --verify-diagnostics

module attributes {tkgpu.target = #tkgpu.target<arch = 80>} {
tk.kernel @bytes dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] {
^bb0(%M: index, %N: index, %K: index, %a: tensor<?x?xf8E4M3FN>, %b: tensor<?x?xf8E5M2>):
  tk.bind %a[%M, %K] : tensor<?x?xf8E4M3FN>
  tk.bind %b[%K, %N] : tensor<?x?xf8E5M2>
  %zero = arith.constant 0 : index
  %c = tk.compute ["i", "j"] in (%M, %N) {
  ^bb0(%i: index, %j: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%K) {
    ^bb0(%k: index):
      %x = tk.load %a[%i, %k] : tensor<?x?xf8E4M3FN>
      %y = tk.load %b[%k, %j] : tensor<?x?xf8E5M2>
      %u = arith.extf %x : f8E4M3FN to f32
      %v = arith.extf %y : f8E5M2 to f32
      // expected-error@+1 {{f8e4m3 products need sm_89, target is sm_80}}
      %p = arith.mulf %u, %v : f32
      tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["c"] : tensor<?x?xf32>
  tk.return %c : tensor<?x?xf32>
}
}
