// RUN: tk-opt --tk-widen-sums %s | FileCheck %s

// A sum of f32 is accumulated in f64.
// CHECK-LABEL: tk.kernel @rows
// CHECK: %[[SUM:.*]] = tk.reduce [#tk.kind<sum>]
// CHECK: %[[TERM:.*]] = arith.extf {{.*}} : f32 to f64
// CHECK: tk.yield %[[TERM]] : f64
// CHECK: } : f64
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[SUM]] : f64 to f32
// CHECK: tk.yield %[[ROUNDED]] : f32
tk.kernel @rows dims ["R", "C"] params [#tk.param<"x">] results ["y"] {
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
    tk.yield %s : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// Neither a maximum nor a matrix product is.
// CHECK-LABEL: tk.kernel @others
// CHECK-NOT: f64
// CHECK: tk.return
tk.kernel @others dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">] results ["c", "m"] {
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
  %m = tk.compute ["i"] in (%M) {
  ^bb0(%i: index):
    %s = tk.reduce [#tk.kind<max>] ["k"] from (%zero) to (%K) {
    ^bb0(%k: index):
      %x = tk.load %a[%i, %k] : tensor<?x?xf32>
      tk.yield %x : f32
    } : f32
    tk.yield %s : f32
  } names ["m"] : tensor<?xf32>
  tk.return %c, %m : tensor<?x?xf32>, tensor<?xf32>
}

// A running sum.
// CHECK-LABEL: tk.kernel @running
// CHECK: %[[SUM:.*]] = tk.scan
// CHECK: arith.extf {{.*}} : f32 to f64
// CHECK: arith.truncf %[[SUM]] : f64 to f32
tk.kernel @running dims ["R", "C"] params [#tk.param<"x">] results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %s = tk.scan <sum> "k" from %zero to %C at %c {
    ^bb0(%k: index):
      %v = tk.load %x[%r, %k] : tensor<?x?xf32>
      tk.yield %v : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}

// An online sum: its correction is in f64, too; the maximum beside it stays.
// CHECK-LABEL: tk.kernel @online
// CHECK: tk.reduce [#tk.kind<max>, #tk.kind<sum>]
// CHECK: %[[TERM:.*]] = arith.extf {{.*}} : f32 to f64
// CHECK: tk.yield %{{.*}}, %[[TERM]] : f32, f64
// CHECK: rescale
// CHECK: %[[F:.*]] = tk.exp_diff
// CHECK: %[[WIDE:.*]] = arith.extf %[[F]] : f32 to f64
// CHECK: tk.yield %[[WIDE]] : f64
// CHECK: } : f32, f64
tk.kernel @online dims ["S"] params [#tk.param<"s">] results ["z"] {
^bb0(%S: index, %scores: tensor<?x?xf32>):
  tk.bind %scores[%S, %S] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %z = tk.compute ["i"] in (%S) {
  ^bb0(%i: index):
    %m, %sum = tk.reduce [#tk.kind<max>, #tk.kind<sum>] ["j"] from (%zero) to (%S) {
    ^bb0(%j: index, %m_run: f32):
      %s = tk.load %scores[%i, %j] : tensor<?x?xf32>
      %w = tk.exp_diff %s, %m_run : f32
      tk.yield %s, %w : f32, f32
    } rescale {
    ^bb0(%m_old: f32, %m_new: f32):
      %f = tk.exp_diff %m_old, %m_new : f32
      tk.yield %f : f32
    } : f32, f32
    tk.yield %sum : f32
  } names ["z"] : tensor<?xf32>
  tk.return %z : tensor<?xf32>
}

// A sum that a later accumulator uses: what that gets is the rounded one.
// CHECK-LABEL: tk.kernel @used
// CHECK: ^bb0(%{{.*}}: index, %[[RUNNING:.*]]: f64):
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[RUNNING]] : f64 to f32
// CHECK: arith.mulf %{{.*}}, %[[ROUNDED]]
// CHECK: rescale
// CHECK: ^bb0(%{{.*}}: f64, %{{.*}}: f64):
// CHECK: tk.yield %{{.*}} : f64
// CHECK: } : f64, f64
tk.kernel @used dims ["S"] params [#tk.param<"s">] results ["z"] {
^bb0(%S: index, %x: tensor<?x?xf32>):
  tk.bind %x[%S, %S] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %z = tk.compute ["i"] in (%S) {
  ^bb0(%i: index):
    %a, %b = tk.reduce [#tk.kind<sum>, #tk.kind<sum>] ["j"] from (%zero) to (%S) {
    ^bb0(%j: index, %run: f32):
      %s = tk.load %x[%i, %j] : tensor<?x?xf32>
      %w = arith.mulf %s, %run : f32
      tk.yield %s, %w : f32, f32
    } rescale {
    ^bb0(%old: f32, %new: f32):
      tk.yield %one : f32
    } : f32, f32
    tk.yield %b : f32
  } names ["z"] : tensor<?xf32>
  tk.return %z : tensor<?xf32>
}
