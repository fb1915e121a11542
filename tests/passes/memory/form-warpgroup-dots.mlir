// RUN: tk-opt %s --tk-form-warpgroup-dots | FileCheck %s

// Boxes: the masks are the ends of the tensors. Products read what bulk copies bring; b is transposed
// by how it lies.
// CHECK-LABEL: tkgpu.func @aligned args ["M", "N", "K", "a", "b", "a_map", "b_map", "c"]
// CHECK-DAG: %[[SA:.*]] = tkgpu.alloc_shared : <[128, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
// CHECK-DAG: %[[SB:.*]] = tkgpu.alloc_shared : <[64, 128], bf16 order = [1, 0] chunk = 8 phases = 8 panel = 64>
// CHECK: scf.for %[[K:.*]] = %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}})
// CHECK-NOT: tkgpu.load
// CHECK: tkgpu.bulk_copy %[[SA]], %{{.*}}[%{{.*}}, %[[K]]] :
// CHECK: tkgpu.bulk_copy %[[SB]], %{{.*}}[%[[K]], %{{.*}}] :
// CHECK: %[[D:.*]] = tkgpu.warpgroup_dot %[[SA]], %[[SB]], %[[ACC]]
// CHECK: %[[W:.*]] = tkgpu.warpgroup_wait %[[D]] pending 0
// CHECK: scf.yield %[[W]]

// Rows that begin at any address are no boxes.
// CHECK-LABEL: tkgpu.func @unaligned
// CHECK-NOT: bulk_copy
// CHECK: tkgpu.dot

// CHECK-LABEL: tk.kernel @f
// CHECK: %[[AM:.*]] = tkgpu.tensor_map %{{.*}} : tensor<?x?xbf16> extents(%{{.*}}, %{{.*}}) strides(%{{.*}}, %{{.*}}) box [128, 64] swizzle 128
// CHECK: %[[BM:.*]] = tkgpu.tensor_map %{{.*}} : tensor<?x?xbf16> extents(%{{.*}}, %{{.*}}) strides(%{{.*}}, %{{.*}}) box [64, 64] swizzle 128
// CHECK: tkgpu.launch @aligned {{.*}} args({{.*}}, %[[AM]], %[[BM]] :
// CHECK-LABEL: tk.kernel @g
// CHECK: declined = "the contraction over tiles of 128 x 128 does not use wgmma: the left operand is not a TMA box of a tensor: a stride is not known to be a multiple of 16 bytes"
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tkgpu.func @aligned args ["M", "N", "K", "a", "b", "c"] facts [#tk.fact<divisor = 8>, #tk.fact<divisor = 8>, #tk.fact<divisor = 8>, #tk.fact<>, #tk.fact<>, #tk.fact<>] {
  ^bb0(%M: index, %N: index, %K: index, %a: !tkgpu.buffer<bf16>, %b: !tkgpu.buffer<bf16>, %c: !tkgpu.buffer<bf16>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant 0.0 : bf16
    %acc0 = arith.constant dense<0.0> : tensor<128x128xf32>
    %p = tkgpu.program_id x
    %j0 = arith.muli %p, %c128 : index
    %i = tkgpu.iota : tensor<128xindex>
    %ik = tkgpu.iota : tensor<64xindex>
    %jb = tkgpu.broadcast %j0 dims [] : index -> tensor<128xindex>
    %j = arith.addi %jb, %i : tensor<128xindex>
    %Mb = tkgpu.broadcast %M dims [] : index -> tensor<128xindex>
    %mi = arith.cmpi slt, %i, %Mb : tensor<128xindex>
    %Nb = tkgpu.broadcast %N dims [] : index -> tensor<128xindex>
    %mj = arith.cmpi slt, %j, %Nb : tensor<128xindex>
    %acc = scf.for %k0 = %c0 to %K step %c64 iter_args(%s = %acc0) -> (tensor<128x128xf32>) {
      %kb = tkgpu.broadcast %k0 dims [] : index -> tensor<64xindex>
      %k = arith.addi %kb, %ik : tensor<64xindex>
      %Kb = tkgpu.broadcast %K dims [] : index -> tensor<64xindex>
      %mk = arith.cmpi slt, %k, %Kb : tensor<64xindex>
      %x = tkgpu.load %a[%i, %k] dims [array<i64: 0>, array<i64: 1>] strides(%K, %c1) masks(%mi, %mk) over [array<i64: 0>, array<i64: 1>] other(%zero) : (!tkgpu.buffer<bf16>, tensor<128xindex>, tensor<64xindex>, index, index, tensor<128xi1>, tensor<64xi1>, bf16) -> tensor<128x64xbf16>
      %y = tkgpu.load %b[%k, %j] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks(%mk, %mj) over [array<i64: 0>, array<i64: 1>] other(%zero) : (!tkgpu.buffer<bf16>, tensor<64xindex>, tensor<128xindex>, index, index, tensor<64xi1>, tensor<128xi1>, bf16) -> tensor<64x128xbf16>
      %d = tkgpu.dot %x, %y, %s : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    %r = arith.truncf %acc : tensor<128x128xf32> to tensor<128x128xbf16>
    tkgpu.store %r, %c[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks(%mi, %mj) over [array<i64: 0>, array<i64: 1>] : (tensor<128x128xbf16>, !tkgpu.buffer<bf16>, tensor<128xindex>, tensor<128xindex>, index, index, tensor<128xi1>, tensor<128xi1>) -> ()
    tkgpu.return
  } {num_warps = 8 : i64, tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [128, 128], reduce = [64], warps = 8, per_thread = 64, vector = 16, stages = 4, persistent = 1>>}
  tkgpu.func @unaligned args ["M", "N", "K", "a", "b", "c"] facts [#tk.fact<divisor = 8>, #tk.fact<divisor = 4>, #tk.fact<divisor = 4>, #tk.fact<>, #tk.fact<>, #tk.fact<>] {
  ^bb0(%M: index, %N: index, %K: index, %a: !tkgpu.buffer<bf16>, %b: !tkgpu.buffer<bf16>, %c: !tkgpu.buffer<bf16>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant 0.0 : bf16
    %acc0 = arith.constant dense<0.0> : tensor<128x128xf32>
    %p = tkgpu.program_id x
    %j0 = arith.muli %p, %c128 : index
    %i = tkgpu.iota : tensor<128xindex>
    %ik = tkgpu.iota : tensor<64xindex>
    %jb = tkgpu.broadcast %j0 dims [] : index -> tensor<128xindex>
    %j = arith.addi %jb, %i : tensor<128xindex>
    %Mb = tkgpu.broadcast %M dims [] : index -> tensor<128xindex>
    %mi = arith.cmpi slt, %i, %Mb : tensor<128xindex>
    %Nb = tkgpu.broadcast %N dims [] : index -> tensor<128xindex>
    %mj = arith.cmpi slt, %j, %Nb : tensor<128xindex>
    %acc = scf.for %k0 = %c0 to %K step %c64 iter_args(%s = %acc0) -> (tensor<128x128xf32>) {
      %kb = tkgpu.broadcast %k0 dims [] : index -> tensor<64xindex>
      %k = arith.addi %kb, %ik : tensor<64xindex>
      %Kb = tkgpu.broadcast %K dims [] : index -> tensor<64xindex>
      %mk = arith.cmpi slt, %k, %Kb : tensor<64xindex>
      %x = tkgpu.load %a[%i, %k] dims [array<i64: 0>, array<i64: 1>] strides(%K, %c1) masks(%mi, %mk) over [array<i64: 0>, array<i64: 1>] other(%zero) : (!tkgpu.buffer<bf16>, tensor<128xindex>, tensor<64xindex>, index, index, tensor<128xi1>, tensor<64xi1>, bf16) -> tensor<128x64xbf16>
      %y = tkgpu.load %b[%k, %j] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks(%mk, %mj) over [array<i64: 0>, array<i64: 1>] other(%zero) : (!tkgpu.buffer<bf16>, tensor<64xindex>, tensor<128xindex>, index, index, tensor<64xi1>, tensor<128xi1>, bf16) -> tensor<64x128xbf16>
      %d = tkgpu.dot %x, %y, %s : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    %r = arith.truncf %acc : tensor<128x128xf32> to tensor<128x128xbf16>
    tkgpu.store %r, %c[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks(%mi, %mj) over [array<i64: 0>, array<i64: 1>] : (tensor<128x128xbf16>, !tkgpu.buffer<bf16>, tensor<128xindex>, tensor<128xindex>, index, index, tensor<128xi1>, tensor<128xi1>) -> ()
    tkgpu.return
  } {num_warps = 8 : i64, tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [128, 128], reduce = [64], warps = 8, per_thread = 64, vector = 16, stages = 4, persistent = 1>>}
  tk.kernel @f dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] {
  ^bb0(%M: index, %N: index, %K: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>):
    %c1 = arith.constant 1 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%K, %N] : tensor<?x?xbf16>
    %c = tkgpu.launch @aligned grid(%N, %c1, %c1) args(%M, %N, %K, %a, %b : index, index, index, tensor<?x?xbf16>, tensor<?x?xbf16>) shapes(%M, %N) {names = ["c"]} : tensor<?x?xbf16>
    tk.return %c : tensor<?x?xbf16>
  }
  tk.kernel @g dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] {
  ^bb0(%M: index, %N: index, %K: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>):
    %c1 = arith.constant 1 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%K, %N] : tensor<?x?xbf16>
    %c = tkgpu.launch @unaligned grid(%N, %c1, %c1) args(%M, %N, %K, %a, %b : index, index, index, tensor<?x?xbf16>, tensor<?x?xbf16>) shapes(%M, %N) {names = ["c"]} : tensor<?x?xbf16>
    tk.return %c : tensor<?x?xbf16>
  }
}
