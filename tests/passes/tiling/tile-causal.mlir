// RUN: tk-opt %s --tk-convert-indices --tk-approximate-functions --tk-tile --tk-refine-tiles --canonicalize --cse | FileCheck %s

// Bounds that depend on a tiled index: one loop, in which only tiles that reach beyond the least
// bound mask the scores; the weights of what is masked are 0 by themselves. The running values are
// corrected when the maximum changes; the inner product stays on the block.
// CHECK-LABEL: tkgpu.func @causal_o
// CHECK: scf.for %[[AT:.*]] = {{.*}} iter_args
// CHECK: %[[S:.*]] = tkgpu.dot {{.*}} : tensor<64x16xbf16>, tensor<16x32xbf16> -> tensor<64x32xf32>
// CHECK: %[[END:.*]] = arith.addi %[[AT]], %{{.*}} : index
// CHECK: %[[PARTIAL:.*]] = arith.cmpi sgt, %[[END]], %{{.*}} : index
// CHECK: %[[MASKED:.*]] = scf.if %[[PARTIAL]] -> (tensor<64x32xf32>) {
// CHECK:   %[[IN:.*]] = arith.cmpi slt, {{.*}} : tensor<64x32xindex>
// CHECK:   %[[SELECTED:.*]] = arith.select %[[IN]], %[[S]], %{{.*}} : tensor<64x32xi1>
// CHECK:   scf.yield %[[SELECTED]]
// CHECK: } else {
// CHECK:   scf.yield %[[S]]
// CHECK: }
// CHECK-NOT: arith.select
// CHECK: tkgpu.reduce <max> %[[MASKED]] axis 1 {free_reference} : tensor<64x32xf32> -> tensor<64xf32>
// CHECK: tk.exp_diff {{.*}} : tensor<64xf32>
// CHECK: tk.exp_diff %[[MASKED]], {{.*}} : tensor<64x32xf32>
// CHECK-NOT: arith.select
// CHECK: tkgpu.dot {{.*}} : tensor<64x32xbf16>, tensor<32x16xbf16> -> tensor<64x16xf32>
// CHECK-NOT: scf.for
// CHECK: tk.div_or_zero {{.*}} : tensor<64x16xf32>
// CHECK: tkgpu.store
tk.kernel @causal dims ["S"] params [#tk.param<"q">, #tk.param<"k">, #tk.param<"v">] results ["o"] {
^bb0(%S: index, %q: tensor<?x16xbf16>, %k: tensor<?x16xbf16>, %v: tensor<?x16xbf16>):
  %c16 = arith.constant 16 : index
  tk.bind %q[%S, %c16] : tensor<?x16xbf16>
  tk.bind %k[%S, %c16] : tensor<?x16xbf16>
  tk.bind %v[%S, %c16] : tensor<?x16xbf16>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %o = tk.compute ["i", "e"] in (%S, %c16) {
  ^bb0(%i: index, %e: index):
    %next = arith.addi %i, %one : index
    %end = arith.minsi %next, %S : index
    %r:3 = tk.reduce [#tk.kind<max>, #tk.kind<sum>, #tk.kind<sum>] ["j"] from (%zero) to (%end) {
    ^bb0(%j: index, %m_run: f32, %z_run: f32):
      %s = tk.reduce [#tk.kind<sum>] ["d"] from (%zero) to (%c16) {
      ^bb0(%d: index):
        %x = tk.load %q[%i, %d] : tensor<?x16xbf16>
        %y = tk.load %k[%j, %d] : tensor<?x16xbf16>
        %xf = arith.extf %x : bf16 to f32
        %yf = arith.extf %y : bf16 to f32
        %p = arith.mulf %xf, %yf : f32
        tk.yield %p : f32
      } : f32
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
    tk.yield %n : f32
  } names ["o"] {tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [64, 16], reduce = [32, 16]>>} : tensor<?x16xf32>
  tk.return %o : tensor<?x16xf32>
}
