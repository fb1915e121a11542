#loc = loc("dw.tk":6:40)
#loc1 = loc("dw.tk":5:46)
#loc2 = loc("dw.tk":6:61)
#loc3 = loc("dw.tk":3:3)
#loc4 = loc("dw.tk":6:3)
#loc5 = loc("dw.tk":5:21)
#loc6 = loc("dw.tk":7:3)
#loc7 = loc("dw.tk":7:24)
module attributes {tkgpu.small_tensors, tkgpu.target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>} {
  tk.kernel @chain dims ["N", "C", "H", "W", "J"] params [#tk.param<"x">, #tk.param<"w">, #tk.param<"b">, #tk.param<"g">, #tk.param<"e">, #tk.param<"w1">, #tk.param<"b1">] results ["y"] facts [#tk.fact<divisor = 16, upper = 16>, #tk.fact<divisor = 64, upper = 256>, #tk.fact<divisor = 4, upper = 32>, #tk.fact<divisor = 4, upper = 32>, #tk.fact<divisor = 128, upper = 768>] {
  ^bb0(%N: index, %C: index, %H: index, %W: index, %J: index, %x: tensor<?x?x?x?xf32>, %w: tensor<?x7x7xf32>, %b: tensor<?xf32>, %g: tensor<?xf32>, %e: tensor<?xf32>, %w1: tensor<?x?xf32>, %b1: tensor<?xf32>):
    %cst = arith.constant 1.000000e+00 : f32
    %cst_0 = arith.constant 5.000000e-01 : f32
    %cst_1 = arith.constant 0.707106769 : f32
    %cst_2 = arith.constant 9.99999997E-7 : f32
    %cst_3 = arith.constant 0.000000e+00 : f32
    %c3 = arith.constant 3 : index
    %c0 = arith.constant 0 : index
    %c7 = arith.constant 7 : index
    tk.bind %x[%N, %C, %H, %W] : tensor<?x?x?x?xf32>
    tk.bind %w[%C, %c7, %c7] : tensor<?x7x7xf32>
    tk.bind %b[%C] : tensor<?xf32>
    tk.bind %g[%C] : tensor<?xf32>
    tk.bind %e[%C] : tensor<?xf32>
    tk.bind %w1[%J, %C] : tensor<?x?xf32>
    tk.bind %b1[%J] : tensor<?xf32>
    %0 = tk.compute ["n", "c", "p", "q"] in(%N, %C, %H, %W) {
    ^bb0(%n: index, %c: index, %p: index, %q: index):
      %19 = tk.reduce [#tk.kind<sum>] ["i", "j"] from(%c0, %c0) to(%c7, %c7) {
      ^bb0(%i: index, %j: index):
        %22 = arith.addi %p, %i : index
        %23 = arith.subi %22, %c3 : index
        %24 = arith.addi %q, %j : index
        %25 = arith.subi %24, %c3 : index
        %26 = tk.load %x[%n, %c, %23, %25] pad %cst_3 : f32 : tensor<?x?x?x?xf32>
        %27 = tk.load %w[%c, %i, %j] : tensor<?x7x7xf32>
        %28 = arith.mulf %26, %27 : f32
        tk.yield %28 : f32
      } : f32
      %20 = tk.load %b[%c] : tensor<?xf32>
      %21 = arith.addf %19, %20 : f32
      tk.yield %21 : f32
    } names ["t"] : tensor<?x?x?x?xf32>
    %1 = arith.index_cast %C : index to i64
    %2 = arith.sitofp %1 : i64 to f32
    %3 = tk.compute ["n", "c", "h", "v"] in(%N, %C, %H, %W) {
    ^bb0(%n: index, %c: index, %h: index, %v: index):
      %19 = tk.load %0[%n, %c, %h, %v] : tensor<?x?x?x?xf32>
      %20 = tk.reduce [#tk.kind<sum>] ["c"] from(%c0) to(%C) {
      ^bb0(%c_11: index):
        %32 = tk.load %0[%n, %c_11, %h, %v] : tensor<?x?x?x?xf32>
        tk.yield %32 : f32
      } : f32
      %21 = arith.divf %20, %2 : f32
      %22 = arith.subf %19, %21 : f32
      %23 = tk.reduce [#tk.kind<sum>] ["c"] from(%c0) to(%C) {
      ^bb0(%c_11: index):
        %32 = tk.load %0[%n, %c_11, %h, %v] : tensor<?x?x?x?xf32>
        %33 = arith.subf %32, %21 : f32
        %34 = arith.mulf %33, %33 : f32
        tk.yield %34 : f32
      } : f32
      %24 = arith.divf %23, %2 : f32
      %25 = arith.addf %24, %cst_2 : f32
      %26 = math.rsqrt %25 : f32
      %27 = arith.mulf %22, %26 : f32
      %28 = tk.load %g[%c] : tensor<?xf32>
      %29 = arith.mulf %27, %28 : f32
      %30 = tk.load %e[%c] : tensor<?xf32>
      %31 = arith.addf %29, %30 : f32
      tk.yield %31 : f32
    } names ["z"] : tensor<?x?x?x?xf32>
    %c0_4 = arith.constant 0 : index
    %c0_5 = arith.constant 0 : index
    %4 = arith.maxsi %C, %c0_5 : index
    %c128 = arith.constant 128 : index
    %c1 = arith.constant 1 : index
    %c127 = arith.constant 127 : index
    %5 = arith.addi %4, %c127 : index
    %6 = tk.floor_div %5, %c128 : index
    %7 = tk.compute ["along.chunk", "at0", "at2", "at3"] in(%6, %N, %H, %W) {
    ^bb0(%along.chunk: index, %at0: index, %at2: index, %at3: index):
      %19 = arith.muli %along.chunk, %c128 : index
      %20 = arith.addi %c0_4, %19 : index
      %21 = arith.addi %20, %c128 : index
      %22 = arith.minsi %21, %C : index
      %c0_11 = arith.constant 0 : index
      %23 = tk.reduce [#tk.kind<max>] ["along"] from(%20) to(%22) {
      ^bb0(%along: index):
        %24 = tk.load %3[%at0, %along, %at2, %at3] : tensor<?x?x?x?xf32>
        %25 = math.absf %24 : f32
        %cst_12 = arith.constant 0x7F800000 : f32
        %26 = math.absf %24 : f32
        %27 = arith.cmpf olt, %26, %cst_12 : f32
        %cst_13 = arith.constant 0.000000e+00 : f32
        %28 = arith.select %27, %25, %cst_13 : f32
        tk.yield %28 : f32
      } : f32
      tk.yield %23 : f32
    } names ["y.scale.partial"] : tensor<?x?x?x?xf32>
    %8:2 = tk.compute ["at0", "at2", "at3"] in(%N, %H, %W) {
    ^bb0(%at0: index, %at2: index, %at3: index):
      %c0_11 = arith.constant 0 : index
      %c0_12 = arith.constant 0 : index
      %19 = tk.reduce [#tk.kind<max>] ["along.chunk"] from(%c0_12) to(%6) {
      ^bb0(%along.chunk: index):
        %32 = tk.load %7[%along.chunk, %at0, %at2, %at3] : tensor<?x?x?x?xf32>
        tk.yield %32 : f32
      } : f32
      %cst_13 = arith.constant 1.000000e+00 : f32
      %cst_14 = arith.constant 3.7252903E-9 : f32
      %20 = arith.cmpf olt, %19, %cst_14 : f32
      %cst_15 = arith.constant 2.560000e+02 : f32
      %21 = arith.select %20, %cst_15, %cst_13 : f32
      %cst_16 = arith.constant 3.906250e-03 : f32
      %22 = arith.select %20, %cst_16, %cst_13 : f32
      %cst_17 = arith.constant 1.45519152E-11 : f32
      %23 = arith.cmpf olt, %19, %cst_17 : f32
      %cst_18 = arith.constant 6.553600e+04 : f32
      %24 = arith.select %23, %cst_18, %21 : f32
      %cst_19 = arith.constant 1.52587891E-5 : f32
      %25 = arith.select %23, %cst_19, %22 : f32
      %cst_20 = arith.constant 5.68434189E-14 : f32
      %26 = arith.cmpf olt, %19, %cst_20 : f32
      %cst_21 = arith.constant 0x4B800000 : f32
      %27 = arith.select %26, %cst_21, %24 : f32
      %cst_22 = arith.constant 5.96046448E-8 : f32
      %28 = arith.select %26, %cst_22, %25 : f32
      %cst_23 = arith.constant 1.70141183E+38 : f32
      %29 = arith.cmpf oge, %19, %cst_23 : f32
      %cst_24 = arith.constant 5.000000e-01 : f32
      %30 = arith.select %29, %cst_24, %27 : f32
      %cst_25 = arith.constant 2.000000e+00 : f32
      %31 = arith.select %29, %cst_25, %28 : f32
      tk.yield %30, %31 : f32, f32
    } names ["y.scale", "y.unscale"] : tensor<?x?x?xf32>, tensor<?x?x?xf32>
    %c128_6 = arith.constant 128 : index
    %c127_7 = arith.constant 127 : index
    %9 = arith.addi %C, %c127_7 : index
    %10 = tk.floor_div %9, %c128_6 : index
    %11 = arith.muli %10, %c128_6 : index
    %c128_8 = arith.constant 128 : index
    %c127_9 = arith.constant 127 : index
    %12 = arith.addi %W, %c127_9 : index
    %13 = tk.floor_div %12, %c128_8 : index
    %14 = arith.muli %13, %c128_8 : index
    %c4 = arith.constant 4 : index
    %15 = tk.compute ["at0", "at1", "at2", "part", "at3"] in(%N, %11, %H, %c4, %14) {
    ^bb0(%at0: index, %at1: index, %at2: index, %part: index, %at3: index):
      %cst_11 = arith.constant 0.000000e+00 : f32
      %19 = tk.load %3[%at0, %at1, %at2, %at3] pad %cst_11 : f32 : tensor<?x?x?x?xf32>
      %cst_12 = arith.constant 1.000000e+00 : f32
      %20 = tk.load %8#0[%at0, %at2, %at3] pad %cst_12 : f32 : tensor<?x?x?xf32>
      %21 = arith.mulf %19, %20 : f32
      %22 = arith.truncf %21 : f32 to bf16
      %cst_13 = arith.constant 0.000000e+00 : f32
      %cst_14 = arith.constant 0x7F800000 : f32
      %23 = math.absf %21 : f32
      %24 = arith.cmpf olt, %23, %cst_14 : f32
      %25 = arith.select %24, %21, %cst_13 : f32
      %26 = arith.truncf %25 : f32 to bf16
      %27 = arith.extf %26 : bf16 to f32
      %28 = arith.subf %25, %27 : f32
      %29 = arith.truncf %28 : f32 to bf16
      %30 = arith.extf %29 : bf16 to f32
      %31 = arith.subf %28, %30 : f32
      %32 = arith.truncf %31 : f32 to bf16
      %c2 = arith.constant 2 : index
      %33 = arith.cmpi eq, %part, %c2 : index
      %34 = arith.select %33, %29, %32 : bf16
      %c1_15 = arith.constant 1 : index
      %35 = arith.cmpi eq, %part, %c1_15 : index
      %36 = arith.select %35, %26, %34 : bf16
      %c0_16 = arith.constant 0 : index
      %37 = arith.cmpi eq, %part, %c0_16 : index
      %38 = arith.select %37, %22, %36 : bf16
      tk.yield %38 : bf16
    } names ["y.parts"] over [array<i64: 3, 0, 1, 2, 4>] : tensor<4x?x?x?x?xbf16>
    %16:2 = tk.compute ["at0"] in(%J) {
    ^bb0(%at0: index):
      %c0_11 = arith.constant 0 : index
      %19 = tk.reduce [#tk.kind<max>] ["along"] from(%c0_11) to(%C) {
      ^bb0(%along: index):
        %32 = tk.load %w1[%at0, %along] : tensor<?x?xf32>
        %33 = math.absf %32 : f32
        %cst_25 = arith.constant 0x7F800000 : f32
        %34 = math.absf %32 : f32
        %35 = arith.cmpf olt, %34, %cst_25 : f32
        %cst_26 = arith.constant 0.000000e+00 : f32
        %36 = arith.select %35, %33, %cst_26 : f32
        tk.yield %36 : f32
      } : f32
      %cst_12 = arith.constant 1.000000e+00 : f32
      %cst_13 = arith.constant 3.7252903E-9 : f32
      %20 = arith.cmpf olt, %19, %cst_13 : f32
      %cst_14 = arith.constant 2.560000e+02 : f32
      %21 = arith.select %20, %cst_14, %cst_12 : f32
      %cst_15 = arith.constant 3.906250e-03 : f32
      %22 = arith.select %20, %cst_15, %cst_12 : f32
      %cst_16 = arith.constant 1.45519152E-11 : f32
      %23 = arith.cmpf olt, %19, %cst_16 : f32
      %cst_17 = arith.constant 6.553600e+04 : f32
      %24 = arith.select %23, %cst_17, %21 : f32
      %cst_18 = arith.constant 1.52587891E-5 : f32
      %25 = arith.select %23, %cst_18, %22 : f32
      %cst_19 = arith.constant 5.68434189E-14 : f32
      %26 = arith.cmpf olt, %19, %cst_19 : f32
      %cst_20 = arith.constant 0x4B800000 : f32
      %27 = arith.select %26, %cst_20, %24 : f32
      %cst_21 = arith.constant 5.96046448E-8 : f32
      %28 = arith.select %26, %cst_21, %25 : f32
      %cst_22 = arith.constant 1.70141183E+38 : f32
      %29 = arith.cmpf oge, %19, %cst_22 : f32
      %cst_23 = arith.constant 5.000000e-01 : f32
      %30 = arith.select %29, %cst_23, %27 : f32
      %cst_24 = arith.constant 2.000000e+00 : f32
      %31 = arith.select %29, %cst_24, %28 : f32
      tk.yield %30, %31 : f32, f32
    } names ["y.scale", "y.unscale"] : tensor<?xf32>, tensor<?xf32>
    %c4_10 = arith.constant 4 : index
    %17 = tk.compute ["at0", "part", "at1"] in(%J, %c4_10, %11) {
    ^bb0(%at0: index, %part: index, %at1: index):
      %cst_11 = arith.constant 0.000000e+00 : f32
      %19 = tk.load %w1[%at0, %at1] pad %cst_11 : f32 : tensor<?x?xf32>
      %20 = tk.load %16#0[%at0] : tensor<?xf32>
      %21 = arith.mulf %19, %20 : f32
      %22 = arith.truncf %21 : f32 to bf16
      %cst_12 = arith.constant 0.000000e+00 : f32
      %cst_13 = arith.constant 0x7F800000 : f32
      %23 = math.absf %21 : f32
      %24 = arith.cmpf olt, %23, %cst_13 : f32
      %25 = arith.select %24, %21, %cst_12 : f32
      %26 = arith.truncf %25 : f32 to bf16
      %27 = arith.extf %26 : bf16 to f32
      %28 = arith.subf %25, %27 : f32
      %29 = arith.truncf %28 : f32 to bf16
      %30 = arith.extf %29 : bf16 to f32
      %31 = arith.subf %28, %30 : f32
      %32 = arith.truncf %31 : f32 to bf16
      %c2 = arith.constant 2 : index
      %33 = arith.cmpi eq, %part, %c2 : index
      %34 = arith.select %33, %29, %32 : bf16
      %c1_14 = arith.constant 1 : index
      %35 = arith.cmpi eq, %part, %c1_14 : index
      %36 = arith.select %35, %26, %34 : bf16
      %c0_15 = arith.constant 0 : index
      %37 = arith.cmpi eq, %part, %c0_15 : index
      %38 = arith.select %37, %22, %36 : bf16
      tk.yield %38 : bf16
    } names ["y.parts"] over [array<i64: 1, 0, 2>] : tensor<4x?x?xbf16>
    %18 = tk.compute ["n", "h", "v", "j"] in(%N, %H, %W, %J) {
    ^bb0(%n: index, %h: index, %v: index, %j: index):
      %c0_11 = arith.constant 0 : index
      %c6 = arith.constant 6 : index
      %19 = tk.reduce [#tk.kind<sum>] ["pair", "c"] from(%c0_11, %c0) to(%c6, %11) precision <blocked> {
      ^bb0(%pair: index, %c: index):
        %c2 = arith.constant 2 : index
        %c4_12 = arith.constant 4 : index
        %31 = arith.muli %pair, %c2 : index
        %c411 = arith.constant 411 : index
        %32 = arith.shrui %c411, %31 : index
        %33 = tk.floor_mod %32, %c4_12 : index
        %c2_13 = arith.constant 2 : index
        %c4_14 = arith.constant 4 : index
        %34 = arith.muli %pair, %c2_13 : index
        %c633 = arith.constant 633 : index
        %35 = arith.shrui %c633, %34 : index
        %36 = tk.floor_mod %35, %c4_14 : index
        %37 = tk.load %15[%33, %n, %c, %h, %v] : tensor<4x?x?x?x?xbf16>
        %38 = arith.extf %37 : bf16 to f32
        %39 = tk.load %17[%36, %j, %c] : tensor<4x?x?xbf16>
        %40 = arith.extf %39 : bf16 to f32
        %41 = arith.mulf %38, %40 : f32
        tk.yield %41 : f32
      } : f32
      %20 = tk.load %8#1[%n, %h, %v] : tensor<?x?x?xf32>
      %21 = arith.mulf %19, %20 : f32
      %22 = tk.load %16#1[%j] : tensor<?xf32>
      %23 = arith.mulf %21, %22 : f32
      %24 = tk.load %b1[%j] : tensor<?xf32>
      %25 = arith.addf %23, %24 : f32
      %26 = arith.mulf %25, %cst_1 : f32
      %27 = math.erf %26 : f32
      %28 = arith.mulf %25, %cst_0 : f32
      %29 = arith.addf %27, %cst : f32
      %30 = arith.mulf %28, %29 : f32
      tk.yield %30 : f32
    } names ["y"] : tensor<?x?x?x?xf32>
    tk.return %18 : tensor<?x?x?x?xf32>
  } {tk.notes = [{at = #loc, derived = "'mu' is computed where 'z' reads it", pass = "tk-fuse-producers"}, {at = #loc1, derived = "'mu' is computed where 'va' reads it", pass = "tk-fuse-producers"}, {at = #loc2, derived = "'va' is computed where 'z' reads it", pass = "tk-fuse-producers"}, {at = #loc3, declined = "'t' is stored: it is read at several kinds of indices, and would be computed once for each", pass = "tk-fuse-producers", stored = "t"}, {at = #loc4, declined = "'z' is stored: its reductions would be repeated for every tile of index 'j'", pass = "tk-fuse-producers", stored = "z"}, {at = #loc5, declined = "the sum over c in 'z' is a loop of its own: an earlier result enters its term through arith.subf, which does not separate into a product", pass = "tk-online-reductions"}, {at = #loc6, derived = "the max over along in 'y.scale', 'y.unscale' is computed from partial results", pass = "tk-split-reductions"}, {at = #loc7, derived = "the sum over c in 'y' multiplies f32 numbers as three bf16 parts each, six pairs of them, on the matrix unit", pass = "tk-split-significands"}]}
}
