// RUN: tk-opt %s --tk-convert-indices --tk-approximate-functions --tk-tile --tk-refine-tiles --canonicalize --cse | FileCheck %s

// Weights that are rounded to 16 bits and summed, and the quotient by their sum, take fewer bits.
// The blocks with most terms start first.
// CHECK-LABEL: tkgpu.func @weights_o
// CHECK: %[[BLOCK:.*]] = tkgpu.program_id x
// CHECK: arith.subi {{.*}}, %[[BLOCK]] : index
// CHECK-NOT: tk.exp_diff {{[^{]*}} : tensor
// CHECK: tk.exp_diff {{.*}} {tkgpu.math = #tkgpu.math<approx, rescale>} : tensor<64xf32>
// CHECK: tk.exp_diff {{.*}} {tkgpu.math = #tkgpu.math<approx>} : tensor<64x32xf32>
// CHECK: tk.div_or_zero {{.*}} {tkgpu.math = #tkgpu.math<approx>} : tensor<64x16xf32>
tk.kernel @weights dims ["S"] params [#tk.param<"q">, #tk.param<"k">, #tk.param<"v">] results ["o"] {
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
    %h = arith.truncf %n : f32 to bf16
    tk.yield %h : bf16
  } names ["o"] {tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [64, 16], reduce = [32, 16]>>} : tensor<?x16xbf16>
  tk.return %o : tensor<?x16xbf16>
}

// A weight that is a factor as it is keeps all of its bits.
// CHECK-LABEL: tkgpu.func @exact_o
// CHECK-NOT: approx
// CHECK: tkgpu.return
tk.kernel @exact dims ["S"] params [#tk.param<"q">, #tk.param<"k">, #tk.param<"v">] results ["o"] {
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
      %y = tk.load %v[%j, %e] : tensor<?x16xbf16>
      %yf = arith.extf %y : bf16 to f32
      %t = arith.mulf %w, %yf : f32
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

// Weights that are only summed keep their bits: nothing rounds their sum.
// CHECK-LABEL: tkgpu.func @summed_z
// CHECK-NOT: approx
// CHECK: tkgpu.return
tk.kernel @summed dims ["S"] params [#tk.param<"s">] results ["z"] {
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
  } names ["z"] {tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [64], reduce = [32]>>} : tensor<?xf32>
  tk.return %z : tensor<?xf32>
}

// Where all that is read of their sum is its logarithm, the maximum is taken off exactly.
// CHECK-LABEL: tkgpu.func @logarithm_z
// CHECK: tk.exp_diff {{.*}} {tkgpu.math = #tkgpu.math<approx, rescale>} : tensor<64xf32>
// CHECK: tk.exp_diff {{.*}} {tkgpu.math = #tkgpu.math<approx, rescale>} : tensor<64x32xf32>
// CHECK: math.log
// CHECK: arith.addf
tk.kernel @logarithm dims ["S"] params [#tk.param<"s">] results ["z"] {
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
    %l = math.log %sum : f32
    %lse = arith.addf %m, %l : f32
    tk.yield %lse : f32
  } names ["z"] {tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [64], reduce = [32]>>} : tensor<?xf32>
  tk.return %z : tensor<?xf32>
}

// Weights that the reciprocal of their sum multiplies are like quotients by it, if what is done with
// them is rounded in the end.
// CHECK-LABEL: tkgpu.func @scaled_p
// CHECK-NOT: tk.exp_diff {{[^{]*}} : tensor
// CHECK: tk.exp_diff {{.*}} {tkgpu.math = #tkgpu.math<approx, wide>} : tensor<64x32xf32>
// CHECK: tk.exp_diff {{.*}} {tkgpu.math = #tkgpu.math<approx, wide>} : tensor<64x32xf32>
// CHECK: arith.truncf
tk.kernel @scaled dims ["S"] params [#tk.param<"s">] results ["p"] {
^bb0(%S: index, %scores: tensor<?x?xf32>):
  tk.bind %scores[%S, %S] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %inf = arith.constant 0x7F800000 : f32
  %p = tk.compute ["i", "j"] in (%S, %S) {
  ^bb0(%i: index, %j: index):
    %m, %sum = tk.reduce [#tk.kind<max>, #tk.kind<sum>] ["k"] from (%zero) to (%S) {
    ^bb0(%k: index, %m_run: f32):
      %s = tk.load %scores[%i, %k] : tensor<?x?xf32>
      %w = tk.exp_diff %s, %m_run : f32
      tk.yield %s, %w : f32, f32
    } rescale {
    ^bb0(%m_old: f32, %m_new: f32):
      %f = tk.exp_diff %m_old, %m_new : f32
      tk.yield %f : f32
    } : f32, f32
    %at_inf = arith.cmpf oeq, %m, %inf : f32
    %reciprocal = arith.divf %one, %sum : f32
    %factor = arith.select %at_inf, %one, %reciprocal : f32
    %s = tk.load %scores[%i, %j] : tensor<?x?xf32>
    %w = tk.exp_diff %s, %m : f32
    %q = arith.mulf %w, %factor : f32
    %d = arith.subf %q, %one : f32
    %n = arith.truncf %d : f32 to bf16
    tk.yield %n : bf16
  } names ["p"] {tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [64, 32], reduce = [32]>>} : tensor<?x?xbf16>
  tk.return %p : tensor<?x?xbf16>
}

// CHECK-LABEL: tkgpu.func @scaled_exact_p
// CHECK-NOT: approx
// CHECK: tkgpu.return
tk.kernel @scaled_exact dims ["S"] params [#tk.param<"s">] results ["p"] {
^bb0(%S: index, %scores: tensor<?x?xf32>):
  tk.bind %scores[%S, %S] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %inf = arith.constant 0x7F800000 : f32
  %p = tk.compute ["i", "j"] in (%S, %S) {
  ^bb0(%i: index, %j: index):
    %m, %sum = tk.reduce [#tk.kind<max>, #tk.kind<sum>] ["k"] from (%zero) to (%S) {
    ^bb0(%k: index, %m_run: f32):
      %s = tk.load %scores[%i, %k] : tensor<?x?xf32>
      %w = tk.exp_diff %s, %m_run : f32
      tk.yield %s, %w : f32, f32
    } rescale {
    ^bb0(%m_old: f32, %m_new: f32):
      %f = tk.exp_diff %m_old, %m_new : f32
      tk.yield %f : f32
    } : f32, f32
    %at_inf = arith.cmpf oeq, %m, %inf : f32
    %reciprocal = arith.divf %one, %sum : f32
    %factor = arith.select %at_inf, %one, %reciprocal : f32
    %s = tk.load %scores[%i, %j] : tensor<?x?xf32>
    %w = tk.exp_diff %s, %m : f32
    %q = arith.mulf %w, %factor : f32
    %d = arith.subf %q, %one : f32
    tk.yield %d : f32
  } names ["p"] {tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [64, 32], reduce = [32]>>} : tensor<?x?xf32>
  tk.return %p : tensor<?x?xf32>
}

// A product with a power of two rounds nothing, whatever its sign.
// CHECK-LABEL: tkgpu.func @negative_o
// CHECK: tk.exp_diff {{.*}} {tkgpu.math = #tkgpu.math<approx>} : tensor<64x32xf32>
tk.kernel @negative dims ["S"] params [#tk.param<"q">, #tk.param<"k">, #tk.param<"v">] results ["o"] {
^bb0(%S: index, %q: tensor<?x16xbf16>, %k: tensor<?x16xbf16>, %v: tensor<?x16xbf16>):
  %c16 = arith.constant 16 : index
  tk.bind %q[%S, %c16] : tensor<?x16xbf16>
  tk.bind %k[%S, %c16] : tensor<?x16xbf16>
  tk.bind %v[%S, %c16] : tensor<?x16xbf16>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %minus_four = arith.constant -4.0 : f32
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
      %minus = arith.mulf %w, %minus_four : f32
      %wn = arith.truncf %minus : f32 to bf16
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
