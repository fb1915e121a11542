// RUN: tk-opt %s --tk-tile | FileCheck %s
// RUN: tk-opt %s --tk-tile=naive | FileCheck %s --check-prefix=NAIVE

// CHECK-LABEL: tkgpu.func @gemm_c
// CHECK: %[[ACC:.*]] = scf.for {{.*}} iter_args(%[[C:.*]] = %{{.*}}) -> (tensor<128x128xf32>)
// CHECK: %[[A:.*]] = tkgpu.load {{.*}} -> tensor<128x32xbf16>
// CHECK: %[[B:.*]] = tkgpu.load {{.*}} -> tensor<32x128xbf16>
// CHECK: tkgpu.dot %[[A]], %[[B]], %[[C]] : tensor<128x32xbf16>, tensor<32x128xbf16> -> tensor<128x128xf32>
// CHECK: arith.truncf %[[ACC]] : tensor<128x128xf32> to tensor<128x128xbf16>
// CHECK: tkgpu.store {{.*}} dims [array<i64: 0>, array<i64: 1>]
// CHECK: tkgpu.launch @gemm_c grid

// NAIVE-LABEL: tkgpu.func @gemm_c
// NAIVE-NOT: tkgpu.dot
// NAIVE: scf.for
// NAIVE: tkgpu.load {{.*}} -> tensor<128xbf16>
tk.kernel @gemm dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] {
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
      %xf = arith.extf %x : bf16 to f32
      %yf = arith.extf %y : bf16 to f32
      %p = arith.mulf %xf, %yf : f32
      tk.yield %p : f32
    } : f32
    %r = arith.truncf %s : f32 to bf16
    tk.yield %r : bf16
  } names ["c"] {tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [128, 128], reduce = [32]>>} : tensor<?x?xbf16>
  tk.return %c : tensor<?x?xbf16>
}
