#loc = loc("tests/passes/tiling/bound-scores.tk":64:17)
#loc1 = loc("tests/passes/tiling/bound-scores.tk":65:24)
#loc2 = loc("tests/passes/tiling/bound-scores.tk":65:17)
#loc3 = loc(fused[#loc, #loc2])
module attributes {tkgpu.small_tensors, tkgpu.target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>} {
  tkgpu.func @unknown_o args ["S", "E", "cap", "T", "q", "k", "v", "o"] facts [#tk.fact<>, #tk.fact<divisor = 8>, #tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<>] {
  ^bb0(%arg0: index, %arg1: index, %arg2: f32, %arg3: index, %arg4: !tkgpu.buffer<bf16>, %arg5: !tkgpu.buffer<bf16>, %arg6: !tkgpu.buffer<bf16>, %arg7: !tkgpu.buffer<bf16>):
    %cst = arith.constant dense<0xFF800000> : tensor<128x64xf32>
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<128x64xf32>
    %cst_1 = arith.constant 0.000000e+00 : bf16
    %c1 = arith.constant 1 : index
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
    %cst_3 = arith.constant dense<0.000000e+00> : tensor<128xf32>
    %cst_4 = arith.constant dense<0xFF800000> : tensor<128xf32>
    %cst_5 = arith.constant 1.000000e+00 : f32
    %c64 = arith.constant 64 : index
    %c0 = arith.constant 0 : index
    %c128 = arith.constant 128 : index
    %c127 = arith.constant 127 : index
    %0 = tkgpu.program_id  x
    %1 = arith.addi %arg1, %c127 : index
    %2 = arith.divsi %1, %c128 : index
    %3 = arith.remsi %0, %2 : index
    %4 = arith.divsi %0, %2 : index
    %5 = arith.muli %3, %c128 : index
    %6 = arith.muli %4, %c128 : index
    %7 = tkgpu.iota : tensor<128xindex>
    %8 = tkgpu.broadcast %6 dims [] : index -> tensor<128xindex>
    %9 = arith.addi %8, %7 : tensor<128xindex>
    %10 = arith.divf %cst_5, %arg2 : f32
    %11 = tkgpu.broadcast %5 dims [] : index -> tensor<128xindex>
    %12 = arith.addi %11, %7 : tensor<128xindex>
    %13 = tkgpu.iota : tensor<64xindex>
    %14 = tkgpu.broadcast %arg0 dims [] : index -> tensor<128xindex>
    %15 = arith.cmpi slt, %9, %14 : tensor<128xindex>
    %16 = tkgpu.load %arg4[%9, %13] dims [array<i64: 0>, array<i64: 1>] strides(%c64, %c1) masks(%15) over [array<i64: 0>] other(%cst_1) : (!tkgpu.buffer<bf16>, tensor<128xindex>, tensor<64xindex>, index, index, tensor<128xi1>, bf16) -> tensor<128x64xbf16>
    %17 = tkgpu.broadcast %arg1 dims [] : index -> tensor<128xindex>
    %18 = arith.cmpi slt, %12, %17 : tensor<128xindex>
    %19:3 = scf.for %arg8 = %c0 to %arg3 step %c64 iter_args(%arg9 = %cst_4, %arg10 = %cst_3, %arg11 = %cst_2) -> (tensor<128xf32>, tensor<128xf32>, tensor<128x128xf32>) {
      %23 = tkgpu.broadcast %arg8 dims [] : index -> tensor<64xindex>
      %24 = arith.addi %23, %13 : tensor<64xindex>
      %25 = tkgpu.broadcast %arg3 dims [] : index -> tensor<64xindex>
      %26 = arith.cmpi slt, %24, %25 : tensor<64xindex>
      %27 = tkgpu.load %arg5[%24, %13] dims [array<i64: 0>, array<i64: 1>] strides(%c64, %c1) masks(%26) over [array<i64: 0>] other(%cst_1) : (!tkgpu.buffer<bf16>, tensor<64xindex>, tensor<64xindex>, index, index, tensor<64xi1>, bf16) -> tensor<64x64xbf16>
      %28 = tkgpu.transpose %27 by [1, 0] : tensor<64x64xbf16> -> tensor<64x64xbf16>
      %29 = tkgpu.dot %16, %28, %cst_0 : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
      %30 = tkgpu.broadcast %10 dims [] : f32 -> tensor<128x64xf32>
      %31 = arith.mulf %29, %30 : tensor<128x64xf32>
      %32 = math.tanh %31 {approx} : tensor<128x64xf32>
      %33 = tkgpu.broadcast %arg2 dims [] : f32 -> tensor<128x64xf32>
      %34 = arith.mulf %33, %32 : tensor<128x64xf32>
      %35 = arith.addi %arg8, %c64 : index
      %36 = arith.cmpi sgt, %35, %arg3 : index
      %37 = scf.if %36 -> (tensor<128x64xf32>) {
        %51 = tkgpu.broadcast %26 dims [1] : tensor<64xi1> -> tensor<128x64xi1>
        %52 = arith.select %51, %34, %cst : tensor<128x64xi1>, tensor<128x64xf32>
        scf.yield %52 : tensor<128x64xf32>
      } else {
        scf.yield %34 : tensor<128x64xf32>
      }
      %38 = tkgpu.reduce <max> %37 axis 1 : tensor<128x64xf32> -> tensor<128xf32>
      %39 = arith.maximumf %arg9, %38 : tensor<128xf32>
      %40 = tk.exp_diff %arg9, %39 {approx, rescale} : tensor<128xf32>
      %41 = arith.mulf %arg10, %40 : tensor<128xf32>
      %42 = tkgpu.broadcast %39 dims [0] : tensor<128xf32> -> tensor<128x64xf32>
      %43 = tk.exp_diff %37, %42 {approx} : tensor<128x64xf32>
      %44 = tkgpu.reduce <sum> %43 axis 1 : tensor<128x64xf32> -> tensor<128xf32>
      %45 = arith.addf %41, %44 : tensor<128xf32>
      %46 = tkgpu.broadcast %40 dims [0] : tensor<128xf32> -> tensor<128x128xf32>
      %47 = arith.mulf %arg11, %46 : tensor<128x128xf32>
      %48 = arith.truncf %43 : tensor<128x64xf32> to tensor<128x64xbf16>
      %49 = tkgpu.load %arg6[%24, %12] dims [array<i64: 0>, array<i64: 1>] strides(%arg1, %c1) masks(%26, %18) over [array<i64: 0>, array<i64: 1>] other(%cst_1) : (!tkgpu.buffer<bf16>, tensor<64xindex>, tensor<128xindex>, index, index, tensor<64xi1>, tensor<128xi1>, bf16) -> tensor<64x128xbf16>
      %50 = tkgpu.dot %48, %49, %47 : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %39, %45, %50 : tensor<128xf32>, tensor<128xf32>, tensor<128x128xf32>
    }
    %20 = tkgpu.broadcast %19#1 dims [0] : tensor<128xf32> -> tensor<128x128xf32>
    %21 = tk.div_or_zero %19#2, %20 {approx} : tensor<128x128xf32>
    %22 = arith.truncf %21 : tensor<128x128xf32> to tensor<128x128xbf16>
    tkgpu.store %22, %arg7[%9, %12] dims [array<i64: 0>, array<i64: 1>] strides(%arg1, %c1) masks(%15, %18) over [array<i64: 0>, array<i64: 1>] : (tensor<128x128xbf16>, !tkgpu.buffer<bf16>, tensor<128xindex>, tensor<128xindex>, index, index, tensor<128xi1>, tensor<128xi1>) -> ()
    tkgpu.return
  } {index_bits = 32 : i64, tkgpu.schedule = #tkgpu.schedule<tile = [128, 128], reduce = [64, 64], warps = 4, per_thread = 128, vector = 16, stages = 2>}
  tk.kernel @unknown dims ["S", "D", "T", "E"] params [#tk.param<"q">, #tk.param<"k">, #tk.param<"v">, #tk.param<"cap">] results ["o"] facts [#tk.fact<>, #tk.fact<divisor = 64, upper = 64>, #tk.fact<>, #tk.fact<divisor = 8>] {
  ^bb0(%S: index, %D: index, %T: index, %E: index, %q: tensor<?x?xbf16>, %k: tensor<?x?xbf16>, %v: tensor<?x?xbf16>, %cap: f32):
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %c127 = arith.constant 127 : index
    tk.bind %q[%S, %D] : tensor<?x?xbf16>
    tk.bind %k[%T, %D] : tensor<?x?xbf16>
    tk.bind %v[%T, %E] : tensor<?x?xbf16>
    %0 = arith.addi %S, %c127 : index
    %1 = tk.floor_div %0, %c128 : index
    %2 = arith.addi %E, %c127 : index
    %3 = tk.floor_div %2, %c128 : index
    %4 = arith.muli %1, %3 : index
    %5 = tkgpu.launch @unknown_o grid(%4, %c1, %c1) args(%S, %E, %cap, %T, %q, %k, %v : index, index, f32, index, tensor<?x?xbf16>, tensor<?x?xbf16>, tensor<?x?xbf16>) shapes(%S, %E) {names = ["o"]} : tensor<?x?xbf16>
    tk.return %5 : tensor<?x?xbf16>
  } {tk.notes = [{at = #loc, derived = "'p.max' is computed where 'p' reads it", pass = "tk-fuse-producers"}, {at = #loc, derived = "'p.max' is computed where 'p.sum' reads it", pass = "tk-fuse-producers"}, {at = #loc, derived = "'p.sum' is computed where 'p' reads it", pass = "tk-fuse-producers"}, {at = #loc1, derived = "'p' is computed where 'o' reads it", pass = "tk-fuse-producers"}, {at = #loc, derived = "'p.score' is computed where 'o' reads it", pass = "tk-fuse-producers"}, {at = #loc2, derived = "a factor that does not vary is applied to the sum over j in 'o' and not to its terms", pass = "tk-simplify"}, {at = #loc, derived = "in one loop: max over j in 'o': carried as it is", pass = "tk-online-reductions"}, {at = #loc, derived = "in one loop: sum over j in 'o': its terms separate, so that it is multiplied by exp(old - new) when the running maximum changes", pass = "tk-online-reductions"}, {at = #loc2, derived = "in one loop: sum over j in 'o': its terms separate, so that it is multiplied by exp(old - new) when the running maximum changes", pass = "tk-online-reductions"}, {at = #loc3, declined = "the max, sum, sum over j in 'o' stays whole: its rows are too many for one tile, or sizes are not known", pass = "tk-split-chains"}]}
}
