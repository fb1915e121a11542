// RUN: tk-opt %s --tk-scatter-rows | FileCheck %s

// The compute op itself finds the first element that names a row. It changes a row that some element names.
// CHECK-LABEL: tk.kernel @write
// CHECK-NOT: cache.first
// CHECK: tk.compute ["p", "d"]
// CHECK: %[[ENDS:.*]]:2 = tk.reduce [#tk.kind<max>, #tk.kind<min>] ["t"]
// CHECK: %[[FIRST:.*]] = arith.index_cast %[[ENDS]]#1 : i32 to index
// CHECK: %[[SOME:.*]] = arith.cmpi slt, %[[FIRST]], %T : index
// CHECK: tk.reduce [#tk.kind<sum>]
// CHECK: arith.select %[[SOME]],
// CHECK-NOT: tk.compute

// Of more elements than rows, each row is compared with all.
// CHECK-LABEL: tk.kernel @many
// CHECK: tk.compute ["p"]
// CHECK: names ["cache.first", "cache.end"]
// CHECK: tk.compute ["p", "d"]
module attributes {tkgpu.small_tensors, tkgpu.target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>} {
  tk.kernel @write dims ["P", "D", "T"] params [#tk.param<"cache", inout = true>, #tk.param<"k">, #tk.param<"slot">] results [] facts [#tk.fact<divisor = 128, upper = 131072>, #tk.fact<divisor = 128, upper = 128>, #tk.fact<divisor = 256, upper = 256>] {
  ^bb0(%P: index, %D: index, %T: index, %cache: tensor<?x?xf32>, %k: tensor<?x?xf32>, %slot: tensor<?xi32>):
    %c1_i32 = arith.constant 1 : i32
    %c0_i32 = arith.constant 0 : i32
    %c1 = arith.constant 1 : index
    %cst = arith.constant 0.000000e+00 : f32
    %c0 = arith.constant 0 : index
    tk.bind %cache[%P, %D] : tensor<?x?xf32>
    tk.bind %k[%T, %D] : tensor<?x?xf32>
    tk.bind %slot[%T] : tensor<?xi32>
    %0:2 = tk.compute ["p"] in(%P) {
    ^bb0(%p: index):
      %2:2 = tk.reduce [#tk.kind<max>, #tk.kind<min>] ["t"] from(%c0) to(%T) {
      ^bb0(%t: index, %running_max: i32):
        %3 = tk.load %slot[%t] : tensor<?xi32>
        %4 = arith.index_cast %3 : i32 to index
        %5 = arith.cmpi eq, %4, %p : index
        %6 = arith.addi %t, %c1 : index
        %7 = arith.index_cast %6 : index to i32
        %8 = arith.select %5, %7, %c0_i32 : i32
        %9 = arith.index_cast %t : index to i32
        %10 = arith.index_cast %T : index to i32
        %11 = arith.select %5, %9, %10 : i32
        tk.yield %8, %11 : i32, i32
      } rescale {
      ^bb0(%arg0: i32, %arg1: i32):
        tk.yield %c1_i32 : i32
      } : i32, i32
      tk.yield %2#1, %2#0 : i32, i32
    } names ["cache.first", "cache.end"] over [array<i64: 0>, array<i64: 0>] : tensor<?xi32>, tensor<?xi32>
    %1 = tk.compute ["p", "d"] in(%P, %D) {
    ^bb0(%p: index, %d: index):
      %2 = tk.load %0#0[%p] : tensor<?xi32>
      %3 = arith.index_cast %2 : i32 to index
      %4 = tk.load %0#1[%p] : tensor<?xi32>
      %5 = arith.index_cast %4 : i32 to index
      %6 = arith.cmpi slt, %3, %5 : index
      %7 = arith.minsi %5, %T : index
      %8 = arith.subi %7, %3 : index
      %9 = arith.minsi %8, %T : index
      %10 = tk.reduce [#tk.kind<sum>] ["t"] from(%c0) to(%9) {
      ^bb0(%t: index):
        %13 = arith.addi %3, %t : index
        %14 = tk.load %slot[%13] : tensor<?xi32>
        %15 = arith.index_cast %14 : i32 to index
        %16 = arith.cmpi eq, %15, %p : index
        %17 = tk.load %k[%13, %d] : tensor<?x?xf32>
        %18 = arith.select %16, %17, %cst : f32
        tk.yield %18 : f32
      } : f32
      %11 = tk.load %cache[%p, %d] : tensor<?x?xf32>
      %12 = arith.select %6, %10, %11 : f32
      tk.yield %12 : f32
    } names ["cache"] {tkgpu.plan = #tkgpu.plan<in_place = true>} : tensor<?x?xf32>
    tk.return %1 : tensor<?x?xf32>
  } {tkgpu.least_sizes = array<i64: 0, 0, 129>}

  tk.kernel @many dims ["P", "D", "T"] params [#tk.param<"cache", inout = true>, #tk.param<"k">, #tk.param<"slot">] results [] facts [#tk.fact<divisor = 128, upper = 1024>, #tk.fact<divisor = 128, upper = 128>, #tk.fact<divisor = 256, upper = 65536>] {
  ^bb0(%P: index, %D: index, %T: index, %cache: tensor<?x?xf32>, %k: tensor<?x?xf32>, %slot: tensor<?xi32>):
    %c1_i32 = arith.constant 1 : i32
    %c0_i32 = arith.constant 0 : i32
    %c1 = arith.constant 1 : index
    %cst = arith.constant 0.000000e+00 : f32
    %c0 = arith.constant 0 : index
    tk.bind %cache[%P, %D] : tensor<?x?xf32>
    tk.bind %k[%T, %D] : tensor<?x?xf32>
    tk.bind %slot[%T] : tensor<?xi32>
    %0:2 = tk.compute ["p"] in(%P) {
    ^bb0(%p: index):
      %2:2 = tk.reduce [#tk.kind<max>, #tk.kind<min>] ["t"] from(%c0) to(%T) {
      ^bb0(%t: index, %running_max: i32):
        %3 = tk.load %slot[%t] : tensor<?xi32>
        %4 = arith.index_cast %3 : i32 to index
        %5 = arith.cmpi eq, %4, %p : index
        %6 = arith.addi %t, %c1 : index
        %7 = arith.index_cast %6 : index to i32
        %8 = arith.select %5, %7, %c0_i32 : i32
        %9 = arith.index_cast %t : index to i32
        %10 = arith.index_cast %T : index to i32
        %11 = arith.select %5, %9, %10 : i32
        tk.yield %8, %11 : i32, i32
      } rescale {
      ^bb0(%arg0: i32, %arg1: i32):
        tk.yield %c1_i32 : i32
      } : i32, i32
      tk.yield %2#1, %2#0 : i32, i32
    } names ["cache.first", "cache.end"] over [array<i64: 0>, array<i64: 0>] : tensor<?xi32>, tensor<?xi32>
    %1 = tk.compute ["p", "d"] in(%P, %D) {
    ^bb0(%p: index, %d: index):
      %2 = tk.load %0#0[%p] : tensor<?xi32>
      %3 = arith.index_cast %2 : i32 to index
      %4 = tk.load %0#1[%p] : tensor<?xi32>
      %5 = arith.index_cast %4 : i32 to index
      %6 = arith.cmpi slt, %3, %5 : index
      %7 = arith.minsi %5, %T : index
      %8 = arith.subi %7, %3 : index
      %9 = arith.minsi %8, %T : index
      %10 = tk.reduce [#tk.kind<sum>] ["t"] from(%c0) to(%9) {
      ^bb0(%t: index):
        %13 = arith.addi %3, %t : index
        %14 = tk.load %slot[%13] : tensor<?xi32>
        %15 = arith.index_cast %14 : i32 to index
        %16 = arith.cmpi eq, %15, %p : index
        %17 = tk.load %k[%13, %d] : tensor<?x?xf32>
        %18 = arith.select %16, %17, %cst : f32
        tk.yield %18 : f32
      } : f32
      %11 = tk.load %cache[%p, %d] : tensor<?x?xf32>
      %12 = arith.select %6, %10, %11 : f32
      tk.yield %12 : f32
    } names ["cache"] {tkgpu.plan = #tkgpu.plan<in_place = true>} : tensor<?x?xf32>
    tk.return %1 : tensor<?x?xf32>
  } {tkgpu.least_sizes = array<i64: 0, 0, 129>}
}
