// RUN: tk-opt %s --tk-specialize-warps | FileCheck %s

// Copies of a tensor of 16384 x 4096, which the cache does not hold, and of one of 4096 x 4096, which it may.
#layout = #tkgpu.layout<register = [[0, 1], [0, 2], [0, 4], [8, 0], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0]]>
module attributes {tkgpu.target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>} {
  // CHECK-LABEL: tkgpu.func @copies
  // CHECK: producer {
  // CHECK: scf.for %[[K:[a-z0-9]+]] =
  tkgpu.func @copies args ["large", "small", "n", "c"] {
  ^bb0(%large: !tkgpu.tensor_map, %small: !tkgpu.tensor_map, %n: index, %c: !tkgpu.buffer<bf16>):
    %own = tkgpu.alloc_shared : <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
    %held = tkgpu.alloc_shared : <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
    %all = tkgpu.alloc_shared : <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
    %two = tkgpu.alloc_shared : <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
    %again = tkgpu.alloc_shared : <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
    %anywhere = tkgpu.alloc_shared : <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %c4096 = arith.constant 4096 : index
    %block = tkgpu.program_id x
    %row = arith.muli %block, %c64 : index
    %group = arith.divsi %block, %c2 : index
    %shared = arith.muli %group, %c64 : index
    scf.for %k = %c0 to %c4096 step %c64 {
      // Every block reads rows of its own, and others in each step.
      // CHECK: tkgpu.bulk_copy {{.*}} {once} :
      tkgpu.bulk_copy %own, %large[%row, %k] : <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
      // The cache may hold this tensor.
      // CHECK: tkgpu.bulk_copy
      // CHECK-NOT: once
      tkgpu.bulk_copy %held, %small[%row, %k] : <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
      // All blocks read the same rows.
      // CHECK: tkgpu.bulk_copy
      // CHECK-NOT: once
      tkgpu.bulk_copy %all, %large[%c0, %k] : <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
      // Two blocks read the same rows.
      // CHECK: tkgpu.bulk_copy
      // CHECK-NOT: once
      tkgpu.bulk_copy %two, %large[%shared, %k] : <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
      // Each block reads them again in every step.
      // CHECK: tkgpu.bulk_copy
      // CHECK-NOT: once
      tkgpu.bulk_copy %again, %large[%row, %c0] : <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
      // Where columns begin anywhere a block may read them again.
      // CHECK: tkgpu.bulk_copy
      // CHECK-NOT: once
      tkgpu.bulk_copy %anywhere, %large[%row, %n] : <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
      %v_own = tkgpu.local_load %own : <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8> -> tensor<64x64xbf16, #layout>
      %v_held = tkgpu.local_load %held : <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8> -> tensor<64x64xbf16, #layout>
      %v_all = tkgpu.local_load %all : <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8> -> tensor<64x64xbf16, #layout>
      %v_two = tkgpu.local_load %two : <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8> -> tensor<64x64xbf16, #layout>
      %v_again = tkgpu.local_load %again : <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8> -> tensor<64x64xbf16, #layout>
      %v_anywhere = tkgpu.local_load %anywhere : <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8> -> tensor<64x64xbf16, #layout>
    }
    // CHECK: consumer {
    tkgpu.return
  } {num_warps = 2 : i64}
  tk.kernel @k dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] facts [#tk.fact<divisor = 64, upper = 16384>, #tk.fact<divisor = 64, upper = 4096>, #tk.fact<divisor = 4096, upper = 4096>] {
  ^bb0(%M: index, %N: index, %K: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>):
    %c1 = arith.constant 1 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%N, %K] : tensor<?x?xbf16>
    %0 = tkgpu.tensor_map %a : tensor<?x?xbf16> extents(%M, %K) strides(%K, %c1) box [64, 64] swizzle 128
    %1 = tkgpu.tensor_map %b : tensor<?x?xbf16> extents(%N, %K) strides(%K, %c1) box [64, 64] swizzle 128
    %2 = tkgpu.launch @copies grid(%M, %c1, %c1) args(%0, %1, %N : !tkgpu.tensor_map, !tkgpu.tensor_map, index) shapes(%M, %N) {names = ["c"]} : tensor<?x?xbf16>
    tk.return %2 : tensor<?x?xbf16>
  }
}
