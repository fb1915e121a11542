// RUN: tk-opt --tk-fuse-producers --tk-online-reductions %s | FileCheck %s

// CHECK-LABEL: @log_softmax
// CHECK: tk.compute ["r", "c"]
// CHECK: tk.reduce [#tk.kind<max>, #tk.kind<sum>]
// CHECK-NOT: tk.reduce
// CHECK: tk.return
tk.kernel @log_softmax dims ["R", "C"]
    params [#tk.param<"x">]
    results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %m = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %m0 = tk.reduce [#tk.kind<max>] ["j"] from (%zero) to (%C) {
    ^bb0(%j: index):
    %a = tk.load %x[%r, %j] : tensor<?x?xf32>
    tk.yield %a : f32
    } : f32
    tk.yield %m0 : f32
  } names ["m"] : tensor<?xf32>
  %z = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %z0 = tk.reduce [#tk.kind<sum>] ["j"] from (%zero) to (%C) {
    ^bb0(%j: index):
    %a = tk.load %x[%r, %j] : tensor<?x?xf32>
    %b = tk.load %m[%r] : tensor<?xf32>
    %e = tk.exp_diff %a, %b : f32
    tk.yield %e : f32
    } : f32
    tk.yield %z0 : f32
  } names ["z"] : tensor<?xf32>
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %a = tk.load %x[%r, %c] : tensor<?x?xf32>
    %b = tk.load %m[%r] : tensor<?xf32>
    %d = tk.load %z[%r] : tensor<?xf32>
    %l = math.log %d : f32
    %e = arith.subf %a, %b : f32
    %f = arith.subf %e, %l : f32
    tk.yield %f : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}

// The label's score is subtracted from what its row of scores is reduced to: both read the stored scores.
// CHECK-LABEL: @projected_cross_entropy
// CHECK: tk.compute ["r", "v"]
// CHECK: tk.reduce [#tk.kind<sum>] ["d"]
// CHECK: names ["s"]
// CHECK: tk.compute ["r"]
// CHECK: tk.reduce [#tk.kind<max>, #tk.kind<sum>] ["v"]
// CHECK-NOT: tk.reduce
// CHECK: tk.return
tk.kernel @projected_cross_entropy dims ["R", "D", "V"]
    params [#tk.param<"x">, #tk.param<"w">, #tk.param<"label">]
    results ["loss"] {
^bb0(%R: index, %D: index, %V: index, %x: tensor<?x?xf32>, %w: tensor<?x?xf32>, %label: tensor<?xi32>):
  tk.bind %x[%R, %D] : tensor<?x?xf32>
  tk.bind %w[%D, %V] : tensor<?x?xf32>
  tk.bind %label[%R] : tensor<?xi32>
  %zero = arith.constant 0 : index
  %s = tk.compute ["r", "v"] in (%R, %V) {
  ^bb0(%r: index, %v: index):
    %dot = tk.reduce [#tk.kind<sum>] ["d"] from (%zero) to (%D) {
    ^bb0(%d: index):
    %fa = tk.load %x[%r, %d] : tensor<?x?xf32>
    %fb = tk.load %w[%d, %v] : tensor<?x?xf32>
    %fp = arith.mulf %fa, %fb : f32
    tk.yield %fp : f32
    } : f32
    tk.yield %dot : f32
  } names ["s"] : tensor<?x?xf32>
  %lse = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %m = tk.reduce [#tk.kind<max>] ["v"] from (%zero) to (%V) {
    ^bb0(%v: index):
    %a = tk.load %s[%r, %v] : tensor<?x?xf32>
    tk.yield %a : f32
    } : f32
    %z = tk.reduce [#tk.kind<sum>] ["v"] from (%zero) to (%V) {
    ^bb0(%v: index):
    %a = tk.load %s[%r, %v] : tensor<?x?xf32>
    %e = tk.exp_diff %a, %m : f32
    tk.yield %e : f32
    } : f32
    %l = math.log %z : f32
    %o = arith.addf %m, %l : f32
    tk.yield %o : f32
  } names ["lse"] : tensor<?xf32>
  %loss = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %a = tk.load %lse[%r] : tensor<?xf32>
    %i = tk.load %label[%r] : tensor<?xi32>
    %n = arith.index_cast %i : i32 to index
    %c0 = arith.constant 0.0 : f32
    %b = tk.load %s[%r, %n] pad %c0 : f32 : tensor<?x?xf32>
    %o = arith.subf %a, %b : f32
    tk.yield %o : f32
  } names ["loss"] : tensor<?xf32>
  tk.return %loss : tensor<?xf32>
}
