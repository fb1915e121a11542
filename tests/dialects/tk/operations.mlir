// The examples of the operations in dialects/tk/*.td.
// RUN: tk-opt %s --mlir-print-op-generic | tk-opt | FileCheck %s

// CHECK-LABEL: tk.kernel @sizes
// CHECK: tk.default %eps = %{{.*}} : f32
// CHECK: tk.assume %{{.*}}, "G > 0"
// CHECK: tk.schedule_condition %{{.*}}, "M >= 1024" block 0
// CHECK: tk.scalar_case %{{.*}}, %{{.*}}, "0 < cap <= 50"
tk.kernel @sizes dims ["M", "K", "G"] params [#tk.param<"a">, #tk.param<"eps">, #tk.param<"cap">,
    #tk.param<"q", strided = true>] results ["c"]
    facts [#tk.fact<divisor = 16>, #tk.fact<divisor = 4096, upper = 4096>, #tk.fact<>] {
^bb0(%M: index, %K: index, %G: index, %a: tensor<?x?xbf16>, %eps: f32, %cap: f32,
    %q: tensor<?x?xbf16>):
  tk.bind %a[%M, %K] : tensor<?x?xbf16>
  tk.bind %q[%M, %K] : tensor<?x?xbf16>
  %c0 = arith.constant 0 : index
  %c1024 = arith.constant 1024 : index
  %value = arith.constant 1.0e-5 : f32
  %zero = arith.constant 0.0 : f32
  %most = arith.constant 50.0 : f32
  tk.default %eps = %value : f32
  %some = arith.cmpi sgt, %G, %c0 : index
  tk.assume %some, "G > 0"
  %large = arith.cmpi sge, %M, %c1024 : index
  tk.schedule_condition %large, "M >= 1024" block 0
  %positive = arith.cmpf ogt, %cap, %zero : f32
  %small = arith.cmpf ole, %cap, %most : f32
  "tk.scalar_case"(%positive, %small) <{text = "0 < cap <= 50"}> : (i1, i1) -> ()
  %c = tk.compute ["i", "j"] in (%M, %K) {
  ^bb0(%i: index, %j: index):
    %v = tk.load %a[%i, %j] : tensor<?x?xbf16>
    tk.yield %v : bf16
  } names ["c"] : tensor<?x?xbf16>
  tk.return %c : tensor<?x?xbf16>
}

// CHECK-LABEL: tk.kernel @bodies
// CHECK: tk.compute ["r", "c"] in(%R, %C)
// CHECK: } names ["y", "m"] over [array<i64: 0, 1>, array<i64: 0>]
// CHECK: tk.scan <sum> "k" from %{{.*}} to %C at %c
// CHECK: tk.load %x[%r, %{{.*}}] pad %{{.*}} : f32
// CHECK: tk.floor_div
// CHECK: tk.floor_mod
// CHECK: tk.exp_diff
// CHECK: tk.div_or_zero
// CHECK: tk.rand
tk.kernel @bodies dims ["R", "C"] params [#tk.param<"x">, #tk.param<"sum">] results ["y", "m", "p"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>, %sum: tensor<?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  tk.bind %sum[%R] : tensor<?xf32>
  %y, %m = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %s = tk.load %sum[%r] : tensor<?xf32>
    %v = tk.load %x[%r, %c] : tensor<?x?xf32>
    %d = arith.subf %v, %s : f32
    tk.yield %d, %s : f32, f32
  } names ["y", "m"] over [array<i64: 0, 1>, array<i64: 0>] : tensor<?x?xf32>, tensor<?xf32>
  %first = arith.constant 0 : index
  %padding = arith.constant 0.0 : f32
  %page = arith.constant 16 : index
  %ratio = arith.constant 4 : index
  %seed = arith.constant 7 : i64
  %out = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %s = tk.scan <sum> "k" from %first to %C at %c {
    ^bb0(%k: index):
      %v = tk.load %x[%r, %k] : tensor<?x?xf32>
      tk.yield %v : f32
    } : f32
    %q = arith.addi %c, %page : index
    %w = tk.load %x[%r, %q] pad %padding : f32 : tensor<?x?xf32>
    %group = tk.floor_div %q, %ratio : index
    %rest = tk.floor_mod %q, %page : index
    %max = tk.load %sum[%r] : tensor<?xf32>
    %e = tk.exp_diff %w, %max : f32
    %p = tk.div_or_zero %e, %s : f32
    %number = arith.addi %group, %rest : index
    %n = arith.index_cast %number : index to i64
    %u = tk.rand %seed, %n : i64, i64 -> f32
    %o = arith.mulf %p, %u : f32
    tk.yield %o : f32
  } names ["p"] : tensor<?x?xf32>
  tk.return %y, %m, %out : tensor<?x?xf32>, tensor<?xf32>, tensor<?x?xf32>
}

// CHECK-LABEL: tk.kernel @normalizer
// CHECK: tk.reduce [#tk.kind<max>, #tk.kind<sum>] ["j"]
// CHECK: } rescale {
// CHECK: tk.reduce [#tk.kind<argmax>] ["j"]
// CHECK: : i64
tk.kernel @normalizer dims ["M", "N"] params [#tk.param<"s">] results ["y", "k"] {
^bb0(%M: index, %N: index, %s: tensor<?x?xf32>):
  tk.bind %s[%M, %N] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %y, %k = tk.compute ["i"] in (%M) {
  ^bb0(%i: index):
    %m, %z = tk.reduce [#tk.kind<max>, #tk.kind<sum>] ["j"] from (%zero) to (%N) {
    ^bb0(%j: index, %m_run: f32):
      %x = tk.load %s[%i, %j] : tensor<?x?xf32>
      %e = tk.exp_diff %x, %m_run : f32
      tk.yield %x, %e : f32, f32
    } rescale {
    ^bb0(%m_old: f32, %m_new: f32):
      %f = tk.exp_diff %m_old, %m_new : f32
      tk.yield %f : f32
    } : f32, f32
    %where = tk.reduce [#tk.kind<argmax>] ["j"] from (%zero) to (%N) {
    ^bb0(%j: index):
      %x = tk.load %s[%i, %j] : tensor<?x?xf32>
      tk.yield %x : f32
    } : i64
    tk.yield %z, %where : f32, i64
  } names ["y", "k"] : tensor<?xf32>, tensor<?xi64>
  tk.return %y, %k : tensor<?xf32>, tensor<?xi64>
}
