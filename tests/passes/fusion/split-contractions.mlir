// RUN: tk-opt %s --split-input-file --tk-split-contractions | FileCheck %s
// RUN: tk-opt %s --tk-split-reductions | FileCheck %s --check-prefix=WHOLE

// Parts of products are not tk-split-reductions' to make, asked for or not.
// WHOLE-NOT: chunk

#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>

// 8 x 8 tiles for 132 processors, and 16384 terms: two parts.
// CHECK-LABEL: tk.kernel @long
// CHECK: %[[P:.*]] = tk.compute ["k.part", "i", "j"] in(%c2{{.*}}, %{{.*}}, %{{.*}}) {
// CHECK: ^bb0(%[[PART:.*]]: index, %[[I:.*]]: index, %[[J:.*]]: index):
// CHECK: tk.reduce [#tk.kind<sum>] ["k"] from(%{{.*}}) to(%[[LENGTH:.*]]) {
// CHECK: %[[FIRST:.*]] = arith.muli %[[PART]], %[[LENGTH]]
// CHECK: %[[AT:.*]] = arith.addi %[[FIRST]], %{{.*}}
// CHECK: tk.load %{{.*}}[%[[I]], %[[AT]]] pad
// CHECK: tk.load %{{.*}}[%[[AT]], %[[J]]] pad
// CHECK: names ["c.parts"]
// CHECK: tk.compute ["i", "j"]
// CHECK-COUNT-2: tk.load %[[P]][
// CHECK: arith.truncf

// Enough tiles; too short a sum; a single row, which has no tiles; rows that the hardware cannot copy.
// CHECK-LABEL: tk.kernel @many
// CHECK-NOT: c.parts
// CHECK-LABEL: tk.kernel @short
// CHECK-NOT: c.parts
// CHECK-LABEL: tk.kernel @one_row
// CHECK-NOT: c.parts
// CHECK-LABEL: tk.kernel @unaligned
// CHECK-NOT: c.parts

// As many parts as the schedule block asks for.
// CHECK-LABEL: tk.kernel @asked
// CHECK: tk.compute ["k.part", "i", "j"] in(%c3{{.*}},
// CHECK: names ["c.parts"]
module attributes {tkgpu.target = #target} {
  tk.kernel @long dims ["M", "K", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 8, upper = 1024>, #tk.fact<divisor = 8, upper = 16384>, #tk.fact<divisor = 8, upper = 1024>] {
  ^bb0(%M: index, %K: index, %N: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%K, %N] : tensor<?x?xbf16>
    %c = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %s = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %x = tk.load %a[%i, %k] : tensor<?x?xbf16>
        %x1 = arith.extf %x : bf16 to f32
        %y = tk.load %b[%k, %j] : tensor<?x?xbf16>
        %y1 = arith.extf %y : bf16 to f32
        %p = arith.mulf %x1, %y1 : f32
        tk.yield %p : f32
      } : f32
      %r = arith.truncf %s : f32 to bf16
      tk.yield %r : bf16
    } names ["c"] : tensor<?x?xbf16>
    tk.return %c : tensor<?x?xbf16>
  }
  tk.kernel @many dims ["M", "K", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 8, upper = 4096>, #tk.fact<divisor = 8, upper = 16384>, #tk.fact<divisor = 8, upper = 4096>] {
  ^bb0(%M: index, %K: index, %N: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%K, %N] : tensor<?x?xbf16>
    %c = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %s = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %x = tk.load %a[%i, %k] : tensor<?x?xbf16>
        %x1 = arith.extf %x : bf16 to f32
        %y = tk.load %b[%k, %j] : tensor<?x?xbf16>
        %y1 = arith.extf %y : bf16 to f32
        %p = arith.mulf %x1, %y1 : f32
        tk.yield %p : f32
      } : f32
      %r = arith.truncf %s : f32 to bf16
      tk.yield %r : bf16
    } names ["c"] : tensor<?x?xbf16>
    tk.return %c : tensor<?x?xbf16>
  }
  tk.kernel @short dims ["M", "K", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 8, upper = 1024>, #tk.fact<divisor = 8, upper = 1024>, #tk.fact<divisor = 8, upper = 1024>] {
  ^bb0(%M: index, %K: index, %N: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%K, %N] : tensor<?x?xbf16>
    %c = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %s = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %x = tk.load %a[%i, %k] : tensor<?x?xbf16>
        %x1 = arith.extf %x : bf16 to f32
        %y = tk.load %b[%k, %j] : tensor<?x?xbf16>
        %y1 = arith.extf %y : bf16 to f32
        %p = arith.mulf %x1, %y1 : f32
        tk.yield %p : f32
      } : f32
      %r = arith.truncf %s : f32 to bf16
      tk.yield %r : bf16
    } names ["c"] : tensor<?x?xbf16>
    tk.return %c : tensor<?x?xbf16>
  }
  tk.kernel @one_row dims ["M", "K", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<upper = 1>, #tk.fact<divisor = 8, upper = 16384>, #tk.fact<divisor = 8, upper = 4096>] {
  ^bb0(%M: index, %K: index, %N: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%N, %K] : tensor<?x?xbf16>
    %c = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %s = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %x = tk.load %a[%i, %k] : tensor<?x?xbf16>
        %x1 = arith.extf %x : bf16 to f32
        %y = tk.load %b[%j, %k] : tensor<?x?xbf16>
        %y1 = arith.extf %y : bf16 to f32
        %p = arith.mulf %x1, %y1 : f32
        tk.yield %p : f32
      } : f32
      %r = arith.truncf %s : f32 to bf16
      tk.yield %r : bf16
    } names ["c"] : tensor<?x?xbf16>
    tk.return %c : tensor<?x?xbf16>
  }
  tk.kernel @unaligned dims ["M", "K", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 4, upper = 1024>, #tk.fact<divisor = 4, upper = 16384>, #tk.fact<divisor = 4, upper = 1024>] {
  ^bb0(%M: index, %K: index, %N: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%K, %N] : tensor<?x?xbf16>
    %c = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %s = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %x = tk.load %a[%i, %k] : tensor<?x?xbf16>
        %x1 = arith.extf %x : bf16 to f32
        %y = tk.load %b[%k, %j] : tensor<?x?xbf16>
        %y1 = arith.extf %y : bf16 to f32
        %p = arith.mulf %x1, %y1 : f32
        tk.yield %p : f32
      } : f32
      %r = arith.truncf %s : f32 to bf16
      tk.yield %r : bf16
    } names ["c"] : tensor<?x?xbf16>
    tk.return %c : tensor<?x?xbf16>
  }
  tk.kernel @asked dims ["M", "K", "N"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 8, upper = 1024>, #tk.fact<divisor = 8, upper = 1024>, #tk.fact<divisor = 8, upper = 1024>] {
  ^bb0(%M: index, %K: index, %N: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>):
    %c0 = arith.constant 0 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%K, %N] : tensor<?x?xbf16>
    %c = tk.compute ["i", "j"] in(%M, %N) {
    ^bb0(%i: index, %j: index):
      %s = tk.reduce [#tk.kind<sum>] ["k"] from(%c0) to(%K) {
      ^bb0(%k: index):
        %x = tk.load %a[%i, %k] : tensor<?x?xbf16>
        %x1 = arith.extf %x : bf16 to f32
        %y = tk.load %b[%k, %j] : tensor<?x?xbf16>
        %y1 = arith.extf %y : bf16 to f32
        %p = arith.mulf %x1, %y1 : f32
        tk.yield %p : f32
      } : f32
      %r = arith.truncf %s : f32 to bf16
      tk.yield %r : bf16
    } names ["c"] : tensor<?x?xbf16>
    tk.return %c : tensor<?x?xbf16>
  } {tk.schedules = [{split = {k = 3 : i64}}]}
}
