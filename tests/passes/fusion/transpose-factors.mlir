// RUN: tk-opt %s --split-input-file --tk-transpose-factors | FileCheck %s

// Neither factor is contiguous along the sum: the right one, no larger than the left one, is stored
// once more.
// CHECK-LABEL: tk.kernel @columns
// CHECK: %[[T:.*]] = tk.compute ["j", "k"] in(%N, %K) {
// CHECK-NEXT: ^bb0(%[[J:.*]]: index, %[[K:.*]]: index):
// CHECK-NEXT: tk.load %b[%[[K]], %[[J]]]
// CHECK: names ["c.turned"]
// CHECK: tk.compute ["i", "j"]
// CHECK: precision <tf32>
// CHECK: tk.load %a[%k, %i]
// CHECK: tk.load %[[T]][%j, %k]
// CHECK: derived = "an operand of the sum over k in 'c' is stored again, contiguous along the sum"
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tk.kernel @columns dims ["K", "M", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 4096, upper = 4096>, #tk.fact<divisor = 128, upper = 4096>, #tk.fact<divisor = 128, upper = 4096>] {
  ^bb0(%K: index, %M: index, %N: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%K, %M] : tensor<?x?xf32>
    tk.bind %b[%K, %N] : tensor<?x?xf32>
    %0 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %1 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) precision <tf32> {
      ^bb0(%k: index):
        %2 = tk.load %a[%k, %i] : tensor<?x?xf32>
        %3 = tk.load %b[%k, %j] : tensor<?x?xf32>
        %4 = arith.mulf %2, %3 : f32
        tk.yield %4 : f32
      } : f32
      tk.yield %1 : f32
    } names ["c"] : tensor<?x?xf32>
    tk.return %0 : tensor<?x?xf32>
  }
}

// -----

// The left factor is the smaller one.
// CHECK-LABEL: tk.kernel @few_rows
// CHECK: %[[T:.*]] = tk.compute ["i", "k"] in(%M, %K)
// CHECK: tk.load %a[%{{.*}}, %{{.*}}]
// CHECK: tk.load %[[T]][%i, %k]
// CHECK: tk.load %b[%k, %j]
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tk.kernel @few_rows dims ["K", "M", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 4096, upper = 4096>, #tk.fact<divisor = 128, upper = 1024>, #tk.fact<divisor = 128, upper = 16384>] {
  ^bb0(%K: index, %M: index, %N: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%K, %M] : tensor<?x?xf32>
    tk.bind %b[%K, %N] : tensor<?x?xf32>
    %0 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %1 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) precision <tf32> {
      ^bb0(%k: index):
        %2 = tk.load %a[%k, %i] : tensor<?x?xf32>
        %3 = tk.load %b[%k, %j] : tensor<?x?xf32>
        %4 = arith.mulf %2, %3 : f32
        tk.yield %4 : f32
      } : f32
      tk.yield %1 : f32
    } names ["c"] : tensor<?x?xf32>
    tk.return %0 : tensor<?x?xf32>
  }
}

// -----

// A factor that is contiguous along the sum is there: the other one goes through registers.
// CHECK-LABEL: tk.kernel @rows
// CHECK-COUNT-1: tk.compute
// CHECK-NOT: tk.compute
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tk.kernel @rows dims ["K", "M", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 4096, upper = 4096>, #tk.fact<divisor = 128, upper = 4096>, #tk.fact<divisor = 128, upper = 4096>] {
  ^bb0(%K: index, %M: index, %N: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%M, %K] : tensor<?x?xf32>
    tk.bind %b[%K, %N] : tensor<?x?xf32>
    %0 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %1 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) precision <tf32> {
      ^bb0(%k: index):
        %2 = tk.load %a[%i, %k] : tensor<?x?xf32>
        %3 = tk.load %b[%k, %j] : tensor<?x?xf32>
        %4 = arith.mulf %2, %3 : f32
        tk.yield %4 : f32
      } : f32
      tk.yield %1 : f32
    } names ["c"] : tensor<?x?xf32>
    tk.return %0 : tensor<?x?xf32>
  }
}

// -----

// Products of f32 in full precision are not for warpgroups.
// CHECK-LABEL: tk.kernel @full
// CHECK-COUNT-1: tk.compute
// CHECK-NOT: tk.compute
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tk.kernel @full dims ["K", "M", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 4096, upper = 4096>, #tk.fact<divisor = 128, upper = 4096>, #tk.fact<divisor = 128, upper = 4096>] {
  ^bb0(%K: index, %M: index, %N: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%K, %M] : tensor<?x?xf32>
    tk.bind %b[%K, %N] : tensor<?x?xf32>
    %0 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %1 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %2 = tk.load %a[%k, %i] : tensor<?x?xf32>
        %3 = tk.load %b[%k, %j] : tensor<?x?xf32>
        %4 = arith.mulf %2, %3 : f32
        tk.yield %4 : f32
      } : f32
      tk.yield %1 : f32
    } names ["c"] : tensor<?x?xf32>
    tk.return %0 : tensor<?x?xf32>
  }
}

// -----

// Storing the factor takes longer than it saves.
// CHECK-LABEL: tk.kernel @small
// CHECK-COUNT-1: tk.compute
// CHECK-NOT: tk.compute
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tk.kernel @small dims ["K", "M", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 64, upper = 512>, #tk.fact<divisor = 64, upper = 512>, #tk.fact<divisor = 64, upper = 512>] {
  ^bb0(%K: index, %M: index, %N: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%K, %M] : tensor<?x?xf32>
    tk.bind %b[%K, %N] : tensor<?x?xf32>
    %0 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %1 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) precision <tf32> {
      ^bb0(%k: index):
        %2 = tk.load %a[%k, %i] : tensor<?x?xf32>
        %3 = tk.load %b[%k, %j] : tensor<?x?xf32>
        %4 = arith.mulf %2, %3 : f32
        tk.yield %4 : f32
      } : f32
      tk.yield %1 : f32
    } names ["c"] : tensor<?x?xf32>
    tk.return %0 : tensor<?x?xf32>
  }
}

// -----

// Once stored anew, rows would not be a multiple of 16 bytes apart.
// CHECK-LABEL: tk.kernel @odd
// CHECK-COUNT-1: tk.compute
// CHECK-NOT: tk.compute
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tk.kernel @odd dims ["K", "M", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 2, upper = 4096>, #tk.fact<divisor = 128, upper = 4096>, #tk.fact<divisor = 128, upper = 4096>] {
  ^bb0(%K: index, %M: index, %N: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%K, %M] : tensor<?x?xf32>
    tk.bind %b[%K, %N] : tensor<?x?xf32>
    %0 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %1 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) precision <tf32> {
      ^bb0(%k: index):
        %2 = tk.load %a[%k, %i] : tensor<?x?xf32>
        %3 = tk.load %b[%k, %j] : tensor<?x?xf32>
        %4 = arith.mulf %2, %3 : f32
        tk.yield %4 : f32
      } : f32
      tk.yield %1 : f32
    } names ["c"] : tensor<?x?xf32>
    tk.return %0 : tensor<?x?xf32>
  }
}

// -----

// Before sm_90 there are no warpgroups.
// CHECK-LABEL: tk.kernel @ampere
// CHECK-COUNT-1: tk.compute
// CHECK-NOT: tk.compute
#target = #tkgpu.target<arch = 80, shared = 232448, processors = 132>
module attributes {tkgpu.target = #target} {
  tk.kernel @ampere dims ["K", "M", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 4096, upper = 4096>, #tk.fact<divisor = 128, upper = 4096>, #tk.fact<divisor = 128, upper = 4096>] {
  ^bb0(%K: index, %M: index, %N: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%K, %M] : tensor<?x?xf32>
    tk.bind %b[%K, %N] : tensor<?x?xf32>
    %0 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %1 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) precision <tf32> {
      ^bb0(%k: index):
        %2 = tk.load %a[%k, %i] : tensor<?x?xf32>
        %3 = tk.load %b[%k, %j] : tensor<?x?xf32>
        %4 = arith.mulf %2, %3 : f32
        tk.yield %4 : f32
      } : f32
      tk.yield %1 : f32
    } names ["c"] : tensor<?x?xf32>
    tk.return %0 : tensor<?x?xf32>
  }
}

// -----

// Two products of one factor share what was stored.
// CHECK-LABEL: tk.kernel @shared
// CHECK: %[[T:.*]] = tk.compute ["j", "k"]
// CHECK-NOT: tk.compute ["j", "k"]
// CHECK: tk.compute ["i", "j"]
// CHECK: tk.load %a[%k, %i]
// CHECK: tk.load %[[T]][%j, %k]
// CHECK: tk.load %d[%k, %i]
// CHECK: tk.load %[[T]][%j, %k]
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tk.kernel @shared dims ["K", "M", "N"] params [#tk.param<"a">, #tk.param<"b">, #tk.param<"d">] results ["c"] facts [#tk.fact<divisor = 4096, upper = 4096>, #tk.fact<divisor = 128, upper = 4096>, #tk.fact<divisor = 128, upper = 4096>] {
  ^bb0(%K: index, %M: index, %N: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %d: tensor<?x?xf32>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%K, %M] : tensor<?x?xf32>
    tk.bind %b[%K, %N] : tensor<?x?xf32>
    tk.bind %d[%K, %M] : tensor<?x?xf32>
    %0 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %1 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) precision <tf32> {
      ^bb0(%k: index):
        %2 = tk.load %a[%k, %i] : tensor<?x?xf32>
        %3 = tk.load %b[%k, %j] : tensor<?x?xf32>
        %4 = arith.mulf %2, %3 : f32
        tk.yield %4 : f32
      } : f32
      %5 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) precision <tf32> {
      ^bb0(%k: index):
        %6 = tk.load %d[%k, %i] : tensor<?x?xf32>
        %7 = tk.load %b[%k, %j] : tensor<?x?xf32>
        %8 = arith.mulf %6, %7 : f32
        tk.yield %8 : f32
      } : f32
      %9 = arith.mulf %1, %5 : f32
      tk.yield %9 : f32
    } names ["c"] : tensor<?x?xf32>
    tk.return %0 : tensor<?x?xf32>
  }
}

// -----

// Of f32 that no matrix unit multiplies, both factors are stored across the sum.
// CHECK-LABEL: tk.kernel @cuda_cores
// CHECK: %[[A:.*]] = tk.compute ["k", "i"] in(%K, %M)
// CHECK: tk.load %a[
// CHECK: %[[B:.*]] = tk.compute ["k", "j"] in(%K, %N)
// CHECK: tk.load %b[
// CHECK: tk.load %[[A]][%k, %i]
// CHECK: tk.load %[[B]][%k, %j]
// CHECK: stored again, contiguous across the sum
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tk.kernel @cuda_cores dims ["K", "M", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 4096, upper = 4096>, #tk.fact<divisor = 4, upper = 4096>, #tk.fact<divisor = 128, upper = 4096>] {
  ^bb0(%K: index, %M: index, %N: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%M, %K] : tensor<?x?xf32>
    tk.bind %b[%N, %K] : tensor<?x?xf32>
    %0 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %1 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %2 = tk.load %a[%i, %k] : tensor<?x?xf32>
        %3 = tk.load %b[%j, %k] : tensor<?x?xf32>
        %4 = arith.mulf %2, %3 : f32
        tk.yield %4 : f32
      } : f32
      tk.yield %1 : f32
    } names ["c"] : tensor<?x?xf32>
    tk.return %0 : tensor<?x?xf32>
  }
}

// -----

// Not where it takes longer than it saves: the right factor serves few rows, the left one few
// columns; nor where rows would not begin at multiples of 16 bytes.
// CHECK-LABEL: tk.kernel @few
// CHECK-NOT: turned
// CHECK: tk.return
// CHECK-LABEL: tk.kernel @unaligned
// CHECK-NOT: turned
// CHECK: tk.return
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tk.kernel @few dims ["K", "M", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 4096, upper = 4096>, #tk.fact<divisor = 4, upper = 64>, #tk.fact<divisor = 128, upper = 64>] {
  ^bb0(%K: index, %M: index, %N: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%M, %K] : tensor<?x?xf32>
    tk.bind %b[%N, %K] : tensor<?x?xf32>
    %0 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %1 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %2 = tk.load %a[%i, %k] : tensor<?x?xf32>
        %3 = tk.load %b[%j, %k] : tensor<?x?xf32>
        %4 = arith.mulf %2, %3 : f32
        tk.yield %4 : f32
      } : f32
      tk.yield %1 : f32
    } names ["c"] : tensor<?x?xf32>
    tk.return %0 : tensor<?x?xf32>
  }
  tk.kernel @unaligned dims ["K", "M", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 4096, upper = 4096>, #tk.fact<divisor = 2, upper = 4096>, #tk.fact<divisor = 1, upper = 4096>] {
  ^bb0(%K: index, %M: index, %N: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%M, %K] : tensor<?x?xf32>
    tk.bind %b[%N, %K] : tensor<?x?xf32>
    %0 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %1 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %2 = tk.load %a[%i, %k] : tensor<?x?xf32>
        %3 = tk.load %b[%j, %k] : tensor<?x?xf32>
        %4 = arith.mulf %2, %3 : f32
        tk.yield %4 : f32
      } : f32
      tk.yield %1 : f32
    } names ["c"] : tensor<?x?xf32>
    tk.return %0 : tensor<?x?xf32>
  }
}
