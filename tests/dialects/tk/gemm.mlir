// RUN: tk-opt %s | tk-opt | FileCheck %s

// CHECK-LABEL: tk.kernel @gemm dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">] results ["c"]
tk.kernel @gemm dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">] results ["c"]
    facts [#tk.fact<divisor = 16>, #tk.fact<upper = 4096>, #tk.fact<>] {
^bb0(%M: index, %N: index, %K: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>):
  // CHECK: tk.bind %{{.*}}[%{{.*}}, %{{.*}}] : tensor<?x?xbf16>
  tk.bind %a[%M, %K] : tensor<?x?xbf16>
  tk.bind %b[%K, %N] : tensor<?x?xbf16>
  %zero = arith.constant 0 : index
  // CHECK: tk.compute ["i", "j"] in(%M, %N) {
  %c = tk.compute ["i", "j"] in (%M, %N) {
  ^bb0(%i: index, %j: index):
    // CHECK: tk.reduce [#tk.kind<sum>] ["k"] from(%{{.*}}) to(%K) {
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%K) {
    ^bb0(%k: index):
      %x = tk.load %a[%i, %k] : tensor<?x?xbf16>
      %y = tk.load %b[%k, %j] : tensor<?x?xbf16>
      %xf = arith.extf %x : bf16 to f32
      %yf = arith.extf %y : bf16 to f32
      %p = arith.mulf %xf, %yf : f32
      tk.yield %p : f32
    } : f32
    %r = arith.truncf %s : f32 to bf16
    tk.yield %r : bf16
  // CHECK: } names ["c"] : tensor<?x?xbf16>
  } names ["c"] : tensor<?x?xbf16>
  tk.return %c : tensor<?x?xbf16>
}
