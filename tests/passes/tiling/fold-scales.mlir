// RUN: tk-opt %s --tk-convert-indices --tk-approximate-functions --tk-tile --tk-refine-tiles --canonicalize --cse | FileCheck %s

// Scores with a positive factor are not multiplied: the loop carries the maximum of the products'
// sums, the factor joins the weights' exponents, and the maximum gets it afterwards.
// CHECK-LABEL: tkgpu.func @scaled_o_m
// CHECK: %[[LOOP:.*]]:3 = scf.for {{.*}} iter_args(%[[M:.*]] = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}})
// CHECK: %[[S:.*]] = tkgpu.dot
// CHECK-NOT: arith.mulf %[[S]]
// CHECK: %[[IN:.*]] = scf.if {{.*}} -> (tensor<64x32xf32>)
// CHECK: tkgpu.reduce <max> %[[IN]] axis 1
// CHECK: %[[NEW:.*]] = arith.maximumf %[[M]],
// CHECK: tkgpu.scaled_exp_diff %[[M]], %[[NEW]] by %{{.*}} : tensor<64xf32>
// CHECK: tkgpu.scaled_exp_diff %[[IN]], %{{.*}} by %{{.*}} : tensor<64x32xf32>
// CHECK: arith.mulf %[[LOOP]]#0, %{{.*}} : tensor<64xf32>
tk.kernel @scaled dims ["S"] params [#tk.param<"q">, #tk.param<"k">, #tk.param<"v">] results ["o", "m"] {
^bb0(%S: index, %q: tensor<?x16xbf16>, %k: tensor<?x16xbf16>, %v: tensor<?x16xbf16>):
  %c16 = arith.constant 16 : index
  tk.bind %q[%S, %c16] : tensor<?x16xbf16>
  tk.bind %k[%S, %c16] : tensor<?x16xbf16>
  tk.bind %v[%S, %c16] : tensor<?x16xbf16>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %scale = arith.constant 0.25 : f32
  %o:2 = tk.compute ["i", "e"] in (%S, %c16) {
  ^bb0(%i: index, %e: index):
    %next = arith.addi %i, %one : index
    %end = arith.minsi %next, %S : index
    %r:3 = tk.reduce [#tk.kind<max>, #tk.kind<sum>, #tk.kind<sum>] ["j"] from (%zero) to (%end) {
    ^bb0(%j: index, %m_run: f32, %z_run: f32):
      %dot = tk.reduce [#tk.kind<sum>] ["d"] from (%zero) to (%c16) {
      ^bb0(%d: index):
        %x = tk.load %q[%i, %d] : tensor<?x16xbf16>
        %y = tk.load %k[%j, %d] : tensor<?x16xbf16>
        %xf = arith.extf %x : bf16 to f32
        %yf = arith.extf %y : bf16 to f32
        %p = arith.mulf %xf, %yf : f32
        tk.yield %p : f32
      } : f32
      %s = arith.mulf %dot, %scale : f32
      %w = tk.exp_diff %s, %m_run : f32
      %wn = arith.truncf %w : f32 to bf16
      %wf = arith.extf %wn : bf16 to f32
      %y = tk.load %v[%j, %e] : tensor<?x16xbf16>
      %yf = arith.extf %y : bf16 to f32
      %t = arith.mulf %wf, %yf : f32
      tk.yield %s, %w, %t : f32, f32, f32
    } rescale {
    ^bb0(%m_old: f32, %z_old: f32, %m_new: f32, %z_new: f32):
      %f = tk.exp_diff %m_old, %m_new : f32
      tk.yield %f, %f : f32, f32
    } : f32, f32, f32
    %n = tk.div_or_zero %r#2, %r#1 : f32
    %h = arith.truncf %n : f32 to bf16
    tk.yield %h, %r#0 : bf16, f32
  } names ["o", "m"] over [array<i64: 0, 1>, array<i64: 0>] {tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [64, 16], reduce = [32, 16]>>} : tensor<?x16xbf16>, tensor<?xf32>
  tk.return %o#0, %o#1 : tensor<?x16xbf16>, tensor<?xf32>
}

// The sign of a factor from outside is not known: the scores are multiplied.
// CHECK-LABEL: tkgpu.func @unknown_o
// CHECK: %[[S:.*]] = tkgpu.dot
// CHECK: arith.mulf %[[S]],
// CHECK-NOT: scaled_exp_diff
// CHECK: tkgpu.return
tk.kernel @unknown dims ["S"] params [#tk.param<"q">, #tk.param<"k">, #tk.param<"v">, #tk.param<"scale">] results ["o"] {
^bb0(%S: index, %q: tensor<?x16xbf16>, %k: tensor<?x16xbf16>, %v: tensor<?x16xbf16>, %scale: f32):
  %c16 = arith.constant 16 : index
  tk.bind %q[%S, %c16] : tensor<?x16xbf16>
  tk.bind %k[%S, %c16] : tensor<?x16xbf16>
  tk.bind %v[%S, %c16] : tensor<?x16xbf16>
  %zero = arith.constant 0 : index
  %o = tk.compute ["i", "e"] in (%S, %c16) {
  ^bb0(%i: index, %e: index):
    %r:3 = tk.reduce [#tk.kind<max>, #tk.kind<sum>, #tk.kind<sum>] ["j"] from (%zero) to (%S) {
    ^bb0(%j: index, %m_run: f32, %z_run: f32):
      %dot = tk.reduce [#tk.kind<sum>] ["d"] from (%zero) to (%c16) {
      ^bb0(%d: index):
        %x = tk.load %q[%i, %d] : tensor<?x16xbf16>
        %y = tk.load %k[%j, %d] : tensor<?x16xbf16>
        %xf = arith.extf %x : bf16 to f32
        %yf = arith.extf %y : bf16 to f32
        %p = arith.mulf %xf, %yf : f32
        tk.yield %p : f32
      } : f32
      %s = arith.mulf %dot, %scale : f32
      %w = tk.exp_diff %s, %m_run : f32
      %wn = arith.truncf %w : f32 to bf16
      %wf = arith.extf %wn : bf16 to f32
      %y = tk.load %v[%j, %e] : tensor<?x16xbf16>
      %yf = arith.extf %y : bf16 to f32
      %t = arith.mulf %wf, %yf : f32
      tk.yield %s, %w, %t : f32, f32, f32
    } rescale {
    ^bb0(%m_old: f32, %z_old: f32, %m_new: f32, %z_new: f32):
      %f = tk.exp_diff %m_old, %m_new : f32
      tk.yield %f, %f : f32, f32
    } : f32, f32, f32
    %n = tk.div_or_zero %r#2, %r#1 : f32
    %h = arith.truncf %n : f32 to bf16
    tk.yield %h : bf16
  } names ["o"] {tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [64, 16], reduce = [32, 16]>>} : tensor<?x16xbf16>
  tk.return %o : tensor<?x16xbf16>
}
