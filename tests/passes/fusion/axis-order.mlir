// The axes of a product are brought in the order of a matrix product where the module names it.
// RUN: tk-opt %s --tk-split-reductions | FileCheck %s
// RUN: tk-opt %s --tk-split-reductions=disable=axis-order | FileCheck %s --check-prefix=OFF

// OFF-NOT: ordered

// Factor `x` is copied, the parameter `y` gets two axes, and the result is written as two.
// CHECK-LABEL: tk.kernel @patches
// CHECK: tk.bind %y[%{{.*}}, %D]
// CHECK: %[[O:.*]] = tk.compute ["h.w", "p.c"]
// CHECK-NEXT: ^bb0(%[[R:.*]]: index, %[[K:.*]]: index):
// CHECK-DAG: %[[W:.*]] = tk.floor_mod %[[R]], %W
// CHECK-DAG: %[[H:.*]] = tk.floor_div %[[R]], %W
// CHECK-DAG: %[[C:.*]] = tk.floor_mod %[[K]], %C
// CHECK-DAG: %[[P:.*]] = tk.floor_div %[[K]], %C
// CHECK: tk.load %x[%[[H]], %[[P]], %[[W]], %[[C]]]
// CHECK: names ["z.ordered"] : tensor<?x?xbf16>
// CHECK: %[[Z:.*]] = tk.compute ["h.w", "d"]
// CHECK: tk.reduce {{.*}} ["p.c"]
// CHECK: tk.load %[[O]][%h.w, %p.c]
// CHECK: tk.load %y[%p.c, %d]
// CHECK: names ["z"] : tensor<?x?xf32>
// CHECK: tk.return %[[Z]]
// CHECK-NOT: tk.axes_out_of_order
module attributes {tk.order_axes_by_time = ["z"], tkgpu.target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>} {
  tk.kernel @patches dims ["H", "P", "W", "C", "D"] params [#tk.param<"x">, #tk.param<"y">] results ["z"] {
  ^bb0(%H: index, %P: index, %W: index, %C: index, %D: index, %x: tensor<?x?x?x?xbf16>, %y: tensor<?x?x?xbf16>):
    %c0 = arith.constant 0 : index
    tk.bind %x[%H, %P, %W, %C] : tensor<?x?x?x?xbf16>
    tk.bind %y[%P, %C, %D] : tensor<?x?x?xbf16>
    %0 = tk.compute ["h", "w", "d"] in(%H, %W, %D) {
    ^bb0(%h: index, %w: index, %d: index):
      %1 = tk.reduce [#tk.kind<sum>] ["p", "c"] from(%c0, %c0) to(%P, %C) {
      ^bb0(%p: index, %c: index):
        %2 = tk.load %x[%h, %p, %w, %c] : tensor<?x?x?x?xbf16>
        %3 = arith.extf %2 : bf16 to f32
        %4 = tk.load %y[%p, %c, %d] : tensor<?x?x?xbf16>
        %5 = arith.extf %4 : bf16 to f32
        %6 = arith.mulf %3, %5 : f32
        tk.yield %6 : f32
      } : f32
      tk.yield %1 : f32
    } names ["z"] : tensor<?x?x?xf32>
    tk.return %0 : tensor<?x?x?xf32>
  }

  // The rows come first in the copy of `x` and in the product, since the last axes of `x` and of the
  // result are rows. The last compute op brings the result in the order of the program.
  // CHECK-LABEL: tk.kernel @turned
  // CHECK: tk.compute ["b", "a.c"]
  // CHECK: names ["z.ordered"]
  // CHECK: %[[Q:.*]] = tk.compute ["d", "a.c"]
  // CHECK: tk.load %{{.*}}[%b, %a.c]
  // CHECK: tk.load %y[%b, %d]
  // CHECK: names ["z.product"]
  // CHECK: tk.compute ["a", "d", "c"]
  // CHECK: %[[AC:.*]] = arith.muli %a, %C
  // CHECK: %[[AT:.*]] = arith.addi %[[AC]], %c
  // CHECK: tk.load %[[Q]][%d, %[[AT]]]
  // CHECK: names ["z"] : tensor<?x?x?xf32>
  tk.kernel @turned dims ["A", "B", "C", "D"] params [#tk.param<"x">, #tk.param<"y">] results ["z"] {
  ^bb0(%A: index, %B: index, %C: index, %D: index, %x: tensor<?x?x?xbf16>, %y: tensor<?x?xbf16>):
    %c0 = arith.constant 0 : index
    tk.bind %x[%A, %B, %C] : tensor<?x?x?xbf16>
    tk.bind %y[%B, %D] : tensor<?x?xbf16>
    %0 = tk.compute ["a", "d", "c"] in(%A, %D, %C) {
    ^bb0(%a: index, %d: index, %c: index):
      %1 = tk.reduce [#tk.kind<sum>] ["b"] from(%c0) to(%B) {
      ^bb0(%b: index):
        %2 = tk.load %x[%a, %b, %c] : tensor<?x?x?xbf16>
        %3 = arith.extf %2 : bf16 to f32
        %4 = tk.load %y[%b, %d] : tensor<?x?xbf16>
        %5 = arith.extf %4 : bf16 to f32
        %6 = arith.mulf %3, %5 : f32
        tk.yield %6 : f32
      } : f32
      tk.yield %1 : f32
    } names ["z"] : tensor<?x?x?xf32>
    tk.return %0 : tensor<?x?x?xf32>
  }

  // Products in order, and those that the module does not name, stay as they are. The latter are listed.
  // CHECK-LABEL: tk.kernel @others
  // CHECK: tk.compute ["i", "j"]
  // CHECK: names ["p"]
  // CHECK: tk.compute ["a", "i", "c"]
  // CHECK: names ["u"]
  // CHECK: tk.axes_out_of_order = ["u"]
  tk.kernel @others dims ["I", "J", "K", "A", "C"] params [#tk.param<"x">, #tk.param<"y">, #tk.param<"v">] results ["p", "u"] {
  ^bb0(%I: index, %J: index, %K: index, %A: index, %C: index, %x: tensor<?x?xbf16>, %y: tensor<?x?xbf16>, %v: tensor<?x?x?xbf16>):
    %c0 = arith.constant 0 : index
    tk.bind %x[%I, %K] : tensor<?x?xbf16>
    tk.bind %y[%K, %J] : tensor<?x?xbf16>
    tk.bind %v[%A, %K, %C] : tensor<?x?x?xbf16>
    %0 = tk.compute ["i", "j"] in(%I, %J) {
    ^bb0(%i: index, %j: index):
      %2 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %3 = tk.load %x[%i, %k] : tensor<?x?xbf16>
        %4 = arith.extf %3 : bf16 to f32
        %5 = tk.load %y[%k, %j] : tensor<?x?xbf16>
        %6 = arith.extf %5 : bf16 to f32
        %7 = arith.mulf %4, %6 : f32
        tk.yield %7 : f32
      } : f32
      tk.yield %2 : f32
    } names ["p"] : tensor<?x?xf32>
    %1 = tk.compute ["a", "i", "c"] in(%A, %I, %C) {
    ^bb0(%a: index, %i: index, %c: index):
      %2 = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %3 = tk.load %x[%i, %k] : tensor<?x?xbf16>
        %4 = arith.extf %3 : bf16 to f32
        %5 = tk.load %v[%a, %k, %c] : tensor<?x?x?xbf16>
        %6 = arith.extf %5 : bf16 to f32
        %7 = arith.mulf %4, %6 : f32
        tk.yield %7 : f32
      } : f32
      tk.yield %2 : f32
    } names ["u"] : tensor<?x?x?xf32>
    tk.return %0, %1 : tensor<?x?xf32>, tensor<?x?x?xf32>
  }
}
