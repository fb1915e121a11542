// RUN: tk-opt --tk-fuse-producers --tk-merge-computes --tk-restrict-ranges --tk-simplify --tk-online-reductions %s | FileCheck %s
// RUN: tk-opt --tk-fuse-producers --tk-merge-computes --tk-restrict-ranges --tk-simplify --tk-online-reductions %s | FileCheck %s --check-prefix=NOTES

// Scores, mask, softmax, product and log-sum-exp become one loop over keys with a running maximum and
// two running sums. The causal mask is the loop's bound.
// CHECK-LABEL: @attention
// CHECK: tk.compute ["b", "h", "i", "e"]
// CHECK: %[[END:.*]] = arith.minsi %T
// CHECK: tk.reduce [#tk.kind<max>, #tk.kind<sum>, #tk.kind<sum>] ["j"] from({{.*}}) to(%[[END]])
// CHECK: tk.reduce [#tk.kind<sum>] ["d"]
// CHECK-NOT: tk.reduce
// CHECK-NOT: select
// CHECK: tk.exp_diff %{{.*}}, %running_max
// CHECK: rescale
// CHECK: tk.exp_diff
// CHECK: tk.div_or_zero
// CHECK: names ["o", "lse"] over [array<i64: 0, 1, 2, 3>, array<i64: 0, 1, 2>]
// CHECK-NOT: tk.compute
// CHECK: tk.return

// NOTES: is part of one loop: it is multiplied by exp(old - new) when the running maximum changes
// NOTES: tk-online-reductions
tk.kernel @attention dims ["B", "H", "G", "S", "T", "D", "E"]
    params [#tk.param<"q">, #tk.param<"k">, #tk.param<"v">, #tk.param<"scale">]
    results ["o", "lse"] {
^bb0(%B: index, %H: index, %G: index, %S: index, %T: index, %D: index, %E: index,
     %q: tensor<?x?x?x?xbf16>, %k: tensor<?x?x?x?xbf16>, %v: tensor<?x?x?x?xbf16>, %scale: f32):
  tk.bind %q[%B, %H, %S, %D] : tensor<?x?x?x?xbf16>
  tk.bind %k[%B, %G, %T, %D] : tensor<?x?x?x?xbf16>
  tk.bind %v[%B, %G, %T, %E] : tensor<?x?x?x?xbf16>
  %zero = arith.constant 0 : index
  %ninf = arith.constant 0xFF800000 : f32
  %rest = tk.floor_mod %H, %G : index
  %even = arith.cmpi eq, %rest, %zero : index
  tk.assume %even, "H % G == 0"
  %some = arith.cmpi sgt, %G, %zero : index
  tk.assume %some, "G > 0"
  %group = tk.floor_div %H, %G : index
  %offset = arith.subi %T, %S : index
  %s = tk.compute ["b", "h", "i", "j"] in (%B, %H, %S, %T) {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %g = tk.floor_div %h, %group : index
    %dot = tk.reduce [#tk.kind<sum>] ["d"] from (%zero) to (%D) {
    ^bb0(%d: index):
      %x = tk.load %q[%b, %h, %i, %d] : tensor<?x?x?x?xbf16>
      %y = tk.load %k[%b, %g, %j, %d] : tensor<?x?x?x?xbf16>
      %xf = arith.extf %x : bf16 to f32
      %yf = arith.extf %y : bf16 to f32
      %p = arith.mulf %xf, %yf : f32
      tk.yield %p : f32
    } : f32
    %r = arith.mulf %dot, %scale : f32
    tk.yield %r : f32
  } names ["s"] : tensor<?x?x?x?xf32>
  %m = tk.compute ["b", "h", "i", "j"] in (%B, %H, %S, %T) {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %last = arith.addi %i, %offset : index
    %seen = arith.cmpi sle, %j, %last : index
    %x = tk.load %s[%b, %h, %i, %j] : tensor<?x?x?x?xf32>
    %r = arith.select %seen, %x, %ninf : f32
    tk.yield %r : f32
  } names ["m"] : tensor<?x?x?x?xf32>
  %pmax = tk.compute ["b", "h", "i"] in (%B, %H, %S) {
  ^bb0(%b: index, %h: index, %i: index):
    %r = tk.reduce [#tk.kind<max>] ["j"] from (%zero) to (%T) {
    ^bb0(%j: index):
      %x = tk.load %m[%b, %h, %i, %j] : tensor<?x?x?x?xf32>
      tk.yield %x : f32
    } : f32
    tk.yield %r : f32
  } names ["p.max"] : tensor<?x?x?xf32>
  %psum = tk.compute ["b", "h", "i"] in (%B, %H, %S) {
  ^bb0(%b: index, %h: index, %i: index):
    %r = tk.reduce [#tk.kind<sum>] ["j"] from (%zero) to (%T) {
    ^bb0(%j: index):
      %x = tk.load %m[%b, %h, %i, %j] : tensor<?x?x?x?xf32>
      %mx = tk.load %pmax[%b, %h, %i] : tensor<?x?x?xf32>
      %e = tk.exp_diff %x, %mx : f32
      tk.yield %e : f32
    } : f32
    tk.yield %r : f32
  } names ["p.sum"] : tensor<?x?x?xf32>
  %p = tk.compute ["b", "h", "i", "j"] in (%B, %H, %S, %T) {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tk.load %m[%b, %h, %i, %j] : tensor<?x?x?x?xf32>
    %mx = tk.load %pmax[%b, %h, %i] : tensor<?x?x?xf32>
    %z = tk.load %psum[%b, %h, %i] : tensor<?x?x?xf32>
    %e = tk.exp_diff %x, %mx : f32
    %r = tk.div_or_zero %e, %z : f32
    tk.yield %r : f32
  } names ["p"] : tensor<?x?x?x?xf32>
  %o = tk.compute ["b", "h", "i", "e"] in (%B, %H, %S, %E) {
  ^bb0(%b: index, %h: index, %i: index, %e: index):
    %g = tk.floor_div %h, %group : index
    %dot = tk.reduce [#tk.kind<sum>] ["j"] from (%zero) to (%T) {
    ^bb0(%j: index):
      %w = tk.load %p[%b, %h, %i, %j] : tensor<?x?x?x?xf32>
      %wt = arith.truncf %w : f32 to bf16
      %wf = arith.extf %wt : bf16 to f32
      %x = tk.load %v[%b, %g, %j, %e] : tensor<?x?x?x?xbf16>
      %xf = arith.extf %x : bf16 to f32
      %t = arith.mulf %wf, %xf : f32
      tk.yield %t : f32
    } : f32
    %r = arith.truncf %dot : f32 to bf16
    tk.yield %r : bf16
  } names ["o"] : tensor<?x?x?x?xbf16>
  %lse = tk.compute ["b", "h", "i"] in (%B, %H, %S) {
  ^bb0(%b: index, %h: index, %i: index):
    %mx = tk.reduce [#tk.kind<max>] ["j"] from (%zero) to (%T) {
    ^bb0(%j: index):
      %x = tk.load %m[%b, %h, %i, %j] : tensor<?x?x?x?xf32>
      tk.yield %x : f32
    } : f32
    %z = tk.reduce [#tk.kind<sum>] ["j"] from (%zero) to (%T) {
    ^bb0(%j: index):
      %x = tk.load %m[%b, %h, %i, %j] : tensor<?x?x?x?xf32>
      %e = tk.exp_diff %x, %mx : f32
      tk.yield %e : f32
    } : f32
    %l = math.log %z : f32
    %r = arith.addf %mx, %l : f32
    tk.yield %r : f32
  } names ["lse"] : tensor<?x?x?xf32>
  tk.return %o, %lse : tensor<?x?x?x?xbf16>, tensor<?x?x?xf32>
}
