// RUN: tk-opt --tk-lower-to-cpu %s | FileCheck %s

// A product becomes register tiles: outer products into a block of vectors, in a parallel body.
// CHECK-LABEL: func.func @tk_entry_gemm(
// CHECK: llvm.call %{{.*}} : !llvm.ptr
// CHECK-LABEL: func.func @gemm.part0(
// CHECK: vector.load
// CHECK: scf.for {{.*}} iter_args
// CHECK: vector.fma
// CHECK: vector.store
tk.kernel @gemm dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] {
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
}

// A value of the row stands between the loop over rows, which is the parallel one, and the loop
// over columns.
// CHECK-LABEL: func.func @center.part
// CHECK: %[[SUM:.*]] = memref.alloca() {{.*}} : memref<f32>
// CHECK: scf.for
// CHECK: arith.addf %{{.*}}, %{{.*}} fastmath<reassoc>
// CHECK: memref.store %{{.*}}, %[[SUM]]
// CHECK: scf.for
// CHECK: memref.load %[[SUM]]
// CHECK: arith.subf
tk.kernel @center dims ["R", "C"] params [#tk.param<"x">] results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%C) {
    ^bb0(%k: index):
      %v = tk.load %x[%r, %k] : tensor<?x?xf32>
      tk.yield %v : f32
    } : f32
    %v = tk.load %x[%r, %c] : tensor<?x?xf32>
    %d = arith.subf %v, %s : f32
    tk.yield %d : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}

// A padded access reads a safe element and selects.
// CHECK-LABEL: func.func @shift.part
// CHECK: arith.cmpi ult
// CHECK: memref.load
// CHECK: arith.select
tk.kernel @shift dims ["N"] params [#tk.param<"x">] results ["y"] {
^bb0(%N: index, %x: tensor<?xf32>):
  tk.bind %x[%N] : tensor<?xf32>
  %one = arith.constant 1 : index
  %pad = arith.constant 0.0 : f32
  %y = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %j = arith.subi %i, %one : index
    %v = tk.load %x[%j] pad %pad : f32 : tensor<?xf32>
    tk.yield %v : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}
