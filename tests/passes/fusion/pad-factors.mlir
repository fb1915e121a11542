// RUN: tk-opt %s --split-input-file --tk-transpose-factors | FileCheck %s

// Rows of both factors begin anywhere: both are stored in rows of whole lines, and the sum goes on to
// their end.
// CHECK-LABEL: tk.kernel @odd
// CHECK: %[[L:.*]] = arith.addi %K, %c63
// CHECK: %[[Q:.*]] = tk.floor_div %[[L]], %c64
// CHECK: %[[KP:.*]] = arith.muli %[[Q]], %c64
// CHECK: %[[A:.*]] = tk.compute ["at0", "at1"] in(%M, %[[KP]]) {
// CHECK: tk.load %a[%{{.*}}, %{{.*}}] pad
// CHECK: %[[B:.*]] = tk.compute ["at0", "at1"] in(%K, %{{.*}}) {
// CHECK: tk.load %b[%{{.*}}, %{{.*}}] pad
// CHECK: tk.compute ["i", "j"] in(%M, %N)
// CHECK: tk.reduce {{.*}} from(%c0) to(%[[KP]])
// CHECK: tk.load %[[A]][%i, %k] pad
// CHECK: tk.load %[[B]][%k, %j] pad
// CHECK: derived = "operands of the sum over k in 'c' are stored again, in rows of whole lines"
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tk.kernel @odd dims ["K", "M", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 1, upper = 2048>, #tk.fact<divisor = 1, upper = 2048>, #tk.fact<divisor = 1, upper = 2048>] {
  ^bb0(%K: index, %M: index, %N: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%K, %N] : tensor<?x?xbf16>
    %0 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %1 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %a0 = tk.load %a[%i, %k] : tensor<?x?xbf16>
        %b0 = tk.load %b[%k, %j] : tensor<?x?xbf16>
        %ax = arith.extf %a0 : bf16 to f32
        %bx = arith.extf %b0 : bf16 to f32
        %p = arith.mulf %ax, %bx : f32
        tk.yield %p : f32
      } : f32
      tk.yield %1 : f32
    } names ["c"] : tensor<?x?xf32>
    tk.return %0 : tensor<?x?xf32>
  }
}

// -----

// What copies take as it is stays; its rows beyond the sum's old end are zeros.
// CHECK-LABEL: tk.kernel @one_side
// CHECK-COUNT-1: names ["c.padded"]
// CHECK-NOT: names ["c.padded"]
// CHECK: tk.load %b[%k, %j] pad
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tk.kernel @one_side dims ["K", "M", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 1, upper = 2048>, #tk.fact<divisor = 1, upper = 2048>, #tk.fact<divisor = 8, upper = 2048>] {
  ^bb0(%K: index, %M: index, %N: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%K, %N] : tensor<?x?xbf16>
    %0 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %1 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %a0 = tk.load %a[%i, %k] : tensor<?x?xbf16>
        %b0 = tk.load %b[%k, %j] : tensor<?x?xbf16>
        %ax = arith.extf %a0 : bf16 to f32
        %bx = arith.extf %b0 : bf16 to f32
        %p = arith.mulf %ax, %bx : f32
        tk.yield %p : f32
      } : f32
      tk.yield %1 : f32
    } names ["c"] : tensor<?x?xf32>
    tk.return %0 : tensor<?x?xf32>
  }
}

// -----

// Rows along the results alone: the sum ends where it did.
// CHECK-LABEL: tk.kernel @across
// CHECK-COUNT-2: names ["c.padded"]
// CHECK: tk.reduce {{.*}} from(%c0) to(%K)
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tk.kernel @across dims ["K", "M", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 1, upper = 2048>, #tk.fact<divisor = 1, upper = 2048>, #tk.fact<divisor = 1, upper = 2048>] {
  ^bb0(%K: index, %M: index, %N: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%K, %M] : tensor<?x?xbf16>
    tk.bind %b[%K, %N] : tensor<?x?xbf16>
    %0 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %1 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %a0 = tk.load %a[%k, %i] : tensor<?x?xbf16>
        %b0 = tk.load %b[%k, %j] : tensor<?x?xbf16>
        %ax = arith.extf %a0 : bf16 to f32
        %bx = arith.extf %b0 : bf16 to f32
        %p = arith.mulf %ax, %bx : f32
        tk.yield %p : f32
      } : f32
      tk.yield %1 : f32
    } names ["c"] : tensor<?x?xf32>
    tk.return %0 : tensor<?x?xf32>
  }
}

// -----

// Of a part of a sum the end is that of the padded rows.
// CHECK-LABEL: tk.kernel @part
// CHECK: %[[KP:.*]] = arith.muli
// CHECK: %[[END:.*]] = arith.minsi %c1024, %[[KP]]
// CHECK: tk.reduce {{.*}} to(%[[END]])
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tk.kernel @part dims ["K", "M", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 1, upper = 2048>, #tk.fact<divisor = 1, upper = 8192>, #tk.fact<divisor = 1, upper = 8192>] {
  ^bb0(%K: index, %M: index, %N: index, %a: tensor<?x?xf64>, %b: tensor<?x?xf64>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%M, %K] : tensor<?x?xf64>
    tk.bind %b[%N, %K] : tensor<?x?xf64>
    %c1024 = arith.constant 1024 : index
    %end = arith.minsi %c1024, %K : index
    %0 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %1 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%end) {
      ^bb0(%k: index):
        %a0 = tk.load %a[%i, %k] : tensor<?x?xf64>
        %b0 = tk.load %b[%j, %k] : tensor<?x?xf64>
        %p = arith.mulf %a0, %b0 : f64
        tk.yield %p : f64
      } : f64
      tk.yield %1 : f64
    } names ["c"] : tensor<?x?xf64>
    tk.return %0 : tensor<?x?xf64>
  }
}

// -----

// Not where copies take the rows as they are, where it takes longer than it saves, where sizes are
// not known, where neighbours are not multiplied as they are stored, and not if the sum is over a
// part of the rows.
// CHECK-LABEL: tk.kernel @aligned
// CHECK-NOT: padded
// CHECK: tk.return
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tk.kernel @aligned dims ["K", "M", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 8, upper = 2048>, #tk.fact<divisor = 1, upper = 2048>, #tk.fact<divisor = 8, upper = 2048>] {
  ^bb0(%K: index, %M: index, %N: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%K, %N] : tensor<?x?xbf16>
    %0 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %1 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %a0 = tk.load %a[%i, %k] : tensor<?x?xbf16>
        %b0 = tk.load %b[%k, %j] : tensor<?x?xbf16>
        %ax = arith.extf %a0 : bf16 to f32
        %bx = arith.extf %b0 : bf16 to f32
        %p = arith.mulf %ax, %bx : f32
        tk.yield %p : f32
      } : f32
      tk.yield %1 : f32
    } names ["c"] : tensor<?x?xf32>
    tk.return %0 : tensor<?x?xf32>
  }
}

// -----

// CHECK-LABEL: tk.kernel @small
// CHECK-NOT: padded
// CHECK: tk.return
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tk.kernel @small dims ["K", "M", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 1, upper = 64>, #tk.fact<divisor = 1, upper = 64>, #tk.fact<divisor = 1, upper = 64>] {
  ^bb0(%K: index, %M: index, %N: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%K, %N] : tensor<?x?xbf16>
    %0 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %1 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %a0 = tk.load %a[%i, %k] : tensor<?x?xbf16>
        %b0 = tk.load %b[%k, %j] : tensor<?x?xbf16>
        %ax = arith.extf %a0 : bf16 to f32
        %bx = arith.extf %b0 : bf16 to f32
        %p = arith.mulf %ax, %bx : f32
        tk.yield %p : f32
      } : f32
      tk.yield %1 : f32
    } names ["c"] : tensor<?x?xf32>
    tk.return %0 : tensor<?x?xf32>
  }
}

// -----

// CHECK-LABEL: tk.kernel @few_rows
// CHECK-NOT: padded
// CHECK: tk.return
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tk.kernel @few_rows dims ["K", "M", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 1, upper = 4096>, #tk.fact<divisor = 1, upper = 4>, #tk.fact<divisor = 1, upper = 4096>] {
  ^bb0(%K: index, %M: index, %N: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%N, %K] : tensor<?x?xbf16>
    %0 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %1 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %a0 = tk.load %a[%i, %k] : tensor<?x?xbf16>
        %b0 = tk.load %b[%j, %k] : tensor<?x?xbf16>
        %ax = arith.extf %a0 : bf16 to f32
        %bx = arith.extf %b0 : bf16 to f32
        %p = arith.mulf %ax, %bx : f32
        tk.yield %p : f32
      } : f32
      tk.yield %1 : f32
    } names ["c"] : tensor<?x?xf32>
    tk.return %0 : tensor<?x?xf32>
  }
}

// -----

// CHECK-LABEL: tk.kernel @f8_across
// CHECK-NOT: padded
// CHECK: tk.return
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tk.kernel @f8_across dims ["K", "M", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 1, upper = 2048>, #tk.fact<divisor = 1, upper = 2048>, #tk.fact<divisor = 1, upper = 2048>] {
  ^bb0(%K: index, %M: index, %N: index, %a: tensor<?x?xf8E4M3FN>, %b: tensor<?x?xf8E4M3FN>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%M, %K] : tensor<?x?xf8E4M3FN>
    tk.bind %b[%K, %N] : tensor<?x?xf8E4M3FN>
    %0 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %1 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) precision <fast> {
      ^bb0(%k: index):
        %a0 = tk.load %a[%i, %k] : tensor<?x?xf8E4M3FN>
        %b0 = tk.load %b[%k, %j] : tensor<?x?xf8E4M3FN>
        %ax = arith.extf %a0 : f8E4M3FN to f32
        %bx = arith.extf %b0 : f8E4M3FN to f32
        %p = arith.mulf %ax, %bx : f32
        tk.yield %p : f32
      } : f32
      tk.yield %1 : f32
    } names ["c"] : tensor<?x?xf32>
    tk.return %0 : tensor<?x?xf32>
  }
}

// -----

// CHECK-LABEL: tk.kernel @half
// CHECK-NOT: padded
// CHECK: tk.return
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tk.kernel @half dims ["K", "M", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 1, upper = 2048>, #tk.fact<divisor = 1, upper = 2048>, #tk.fact<divisor = 1, upper = 2048>] {
  ^bb0(%K: index, %M: index, %N: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%N, %K] : tensor<?x?xbf16>
    %c2 = arith.constant 2 : index
    %half = tk.floor_div %K, %c2 : index
    %0 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %1 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%half) {
      ^bb0(%k: index):
        %a0 = tk.load %a[%i, %k] : tensor<?x?xbf16>
        %b0 = tk.load %b[%j, %k] : tensor<?x?xbf16>
        %ax = arith.extf %a0 : bf16 to f32
        %bx = arith.extf %b0 : bf16 to f32
        %p = arith.mulf %ax, %bx : f32
        tk.yield %p : f32
      } : f32
      tk.yield %1 : f32
    } names ["c"] : tensor<?x?xf32>
    tk.return %0 : tensor<?x?xf32>
  }
}

// -----

// CHECK-LABEL: tk.kernel @unknown
// CHECK-NOT: padded
// CHECK: tk.return
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tk.kernel @unknown dims ["K", "M", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 1>, #tk.fact<divisor = 1>, #tk.fact<divisor = 1>] {
  ^bb0(%K: index, %M: index, %N: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%K, %N] : tensor<?x?xbf16>
    %0 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %1 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %a0 = tk.load %a[%i, %k] : tensor<?x?xbf16>
        %b0 = tk.load %b[%k, %j] : tensor<?x?xbf16>
        %ax = arith.extf %a0 : bf16 to f32
        %bx = arith.extf %b0 : bf16 to f32
        %p = arith.mulf %ax, %bx : f32
        tk.yield %p : f32
      } : f32
      tk.yield %1 : f32
    } names ["c"] : tensor<?x?xf32>
    tk.return %0 : tensor<?x?xf32>
  }
}

// -----

// Large factors of f32 that lie along the sum are stored across it, also one whose own rows copies
// take, where those of its columns begin anywhere.
// CHECK-LABEL: tk.kernel @turned
// CHECK: %[[A:.*]] = tk.compute ["at0", "at1"] in(%K, %{{.*}}) {
// CHECK-NEXT: ^bb0(%[[K0:.*]]: index, %[[I0:.*]]: index):
// CHECK: tk.load %a[%[[I0]], %[[K0]]] pad
// CHECK: %[[B:.*]] = tk.compute ["at0", "at1"] in(%K, %{{.*}}) {
// CHECK: tk.reduce {{.*}} from(%c0) to(%K)
// CHECK: tk.load %[[A]][%k, %i] pad
// CHECK: tk.load %[[B]][%k, %j] pad
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tk.kernel @turned dims ["K", "M", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 4, upper = 4096>, #tk.fact<divisor = 1, upper = 4096>, #tk.fact<divisor = 1, upper = 4096>] {
  ^bb0(%K: index, %M: index, %N: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%M, %K] : tensor<?x?xf32>
    tk.bind %b[%N, %K] : tensor<?x?xf32>
    %0 = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %1 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %a0 = tk.load %a[%i, %k] : tensor<?x?xf32>
        %b0 = tk.load %b[%j, %k] : tensor<?x?xf32>
        %p = arith.mulf %a0, %b0 : f32
        tk.yield %p : f32
      } : f32
      tk.yield %1 : f32
    } names ["c"] : tensor<?x?xf32>
    tk.return %0 : tensor<?x?xf32>
  }
}
