// RUN: tk-opt --tk-to-linalg --canonicalize --cse %s | FileCheck %s

// A product: a parallel loop over tiles of the result, a loop over chunks of the terms, which
// carries the sum, and inside register tiles of full panels, then single rows.
// CHECK-LABEL: func.func @gemm(
// CHECK-SAME: {tk.dim = "M"}
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<?x?xf32> {tk.param = "a"}
// CHECK-SAME: %[[C:[a-z0-9]*]]: tensor<?x?xf32> {tk.result = "c"}
// CHECK: scf.forall {{.*}} shared_outs(%{{.*}} = %[[C]])
// CHECK: scf.for {{.*}} step %c256 iter_args(%{{.*}}) -> (tensor<128x512xf32>)
// CHECK: tensor.extract_slice %[[A]]
// CHECK: linalg.matmul {{.*}} outs(%{{.*}} : tensor<8x32xf32>)
// CHECK: linalg.matmul {{.*}} outs(%{{.*}} : tensor<1x32xf32>)
// CHECK: tensor.parallel_insert_slice
// CHECK: {tk.indices = ["i", "j"]}
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
// over tiles of columns.
// CHECK-LABEL: func.func @center(
// CHECK: scf.forall
// CHECK: %[[SUM:.*]] = linalg.generic {doc = "k", {{.*}} iterator_types = ["reduction"]}
// CHECK: arith.addf %{{.*}}, %{{.*}} fastmath<reassoc>
// CHECK: %[[MEAN:.*]] = tensor.extract %[[SUM]][]
// CHECK: scf.for
// CHECK: linalg.generic {doc = "c", {{.*}} iterator_types = ["parallel"]}
// CHECK: arith.subf %{{.*}}, %[[MEAN]]
// CHECK: {tk.indices = ["r"]}
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

// What only the terms of a reduction use of those around it is computed before it, not for each term.
// CHECK-LABEL: func.func @deviation(
// CHECK: %[[SUM:.*]] = linalg.generic {doc = "r, k", {{.*}} iterator_types = ["parallel", "reduction"]}
// CHECK: linalg.generic {doc = "r, l", {{.*}} iterator_types = ["parallel", "reduction"]} ins({{.*}}%[[SUM]]
// CHECK-NOT: scf.for
// CHECK: linalg.yield
// CHECK: {tk.indices = ["r"]}
tk.kernel @deviation dims ["R", "C"] params [#tk.param<"x">] results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%C) {
    ^bb0(%k: index):
      %v = tk.load %x[%r, %k] : tensor<?x?xf32>
      tk.yield %v : f32
    } : f32
    %most = tk.reduce [#tk.kind<max>] ["l"] from (%zero) to (%C) {
    ^bb0(%l: index):
      %v = tk.load %x[%r, %l] : tensor<?x?xf32>
      %d = arith.subf %v, %s : f32
      tk.yield %d : f32
    } : f32
    tk.yield %most : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// A padded access reads a safe element in the body, and selects.
// CHECK-LABEL: func.func @shift(
// CHECK: linalg.generic {{.*}} outs
// CHECK: arith.cmpi ult
// CHECK: tensor.extract
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

// An access a constant away is a slice.
// CHECK-LABEL: func.func @next(
// CHECK: %[[X:.*]] = tensor.extract_slice
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<?xf32>) outs
// CHECK-NOT: tensor.extract %
tk.kernel @next dims ["N"] params [#tk.param<"x">] results ["y"] {
^bb0(%N: index, %x: tensor<?xf32>):
  %one = arith.constant 1 : index
  %all = arith.addi %N, %one : index
  tk.bind %x[%all] : tensor<?xf32>
  %y = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %j = arith.addi %i, %one : index
    %v = tk.load %x[%j] : tensor<?xf32>
    %w = arith.negf %v : f32
    tk.yield %w : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// Each element is replaced where it is: the parameter itself is what the loop writes.
// CHECK-LABEL: func.func @bump(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<?xf32> {tk.inout, tk.param = "x"}
// CHECK: scf.forall {{.*}} shared_outs(%{{.*}} = %[[X]])
// CHECK: linalg.generic {{.*}} outs
// CHECK: ^bb0(%[[OLD:[a-z]*]]: f32):
// CHECK: arith.addf %[[OLD]]
tk.kernel @bump dims ["N"] params [#tk.param<"x", inout = true>] results [] {
^bb0(%N: index, %x: tensor<?xf32>):
  tk.bind %x[%N] : tensor<?xf32>
  %one = arith.constant 1.0 : f32
  %y = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %v = tk.load %x[%i] : tensor<?xf32>
    %w = arith.addf %v, %one : f32
    tk.yield %w : f32
  } names ["x"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}
