// RUN: tk-opt %s --tk-form-warpgroup-dots --tk-coalesce-accesses --tk-form-bulk-stores --canonicalize | FileCheck %s

// A residual is loaded a piece at a time: for the first piece before the loop of the products, for
// each other one before the piece before it is written.
// CHECK-LABEL: tkgpu.func @residual
// CHECK: %[[FIRST:.*]] = tkgpu.load %{{.*}} -> tensor<128x64xbf16
// CHECK: scf.for
// CHECK: tkgpu.warpgroup_dot
// CHECK-NOT: tkgpu.load
// CHECK: arith.extf %[[FIRST]]
// CHECK: %[[SECOND:.*]] = tkgpu.load %{{.*}} -> tensor<128x64xbf16
// CHECK: tkgpu.bulk_store_wait 0
// CHECK: tkgpu.local_store
// CHECK: tkgpu.bulk_store %
// CHECK-NOT: tkgpu.load
// CHECK: arith.extf %[[SECOND]]
// CHECK: tkgpu.load
// CHECK: tkgpu.local_store
// CHECK: tkgpu.bulk_store %

// Two of them in f32 leave too few registers: each is loaded where it is used.
// CHECK-LABEL: tkgpu.func @two
// CHECK-NOT: tkgpu.load %
// CHECK: scf.for
// CHECK: tkgpu.warpgroup_dot
// CHECK-NOT: tkgpu.load %
// CHECK: scf.yield
// CHECK: tkgpu.extract
// CHECK: tkgpu.load %
// CHECK: tkgpu.load %
// CHECK-NOT: tkgpu.load %
// CHECK: tkgpu.bulk_store %
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tkgpu.func @residual args ["M", "N", "K", "a", "b", "r0", "c"] facts [#tk.fact<divisor = 256>, #tk.fact<divisor = 256>, #tk.fact<divisor = 64>, #tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<>] {
  ^bb0(%M: index, %N: index, %K: index, %a: !tkgpu.buffer<bf16>, %b: !tkgpu.buffer<bf16>, %r0: !tkgpu.buffer<bf16>, %c: !tkgpu.buffer<bf16>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    %acc0 = arith.constant dense<0.0> : tensor<128x256xf32>
    %p = tkgpu.program_id x
    %j0 = arith.muli %p, %c256 : index
    %i = tkgpu.iota : tensor<128xindex>
    %run = tkgpu.iota : tensor<256xindex>
    %ik = tkgpu.iota : tensor<64xindex>
    %jb = tkgpu.broadcast %j0 dims [] : index -> tensor<256xindex>
    %j = arith.addi %jb, %run : tensor<256xindex>
    %acc = scf.for %k0 = %c0 to %K step %c64 iter_args(%s = %acc0) -> (tensor<128x256xf32>) {
      %kb = tkgpu.broadcast %k0 dims [] : index -> tensor<64xindex>
      %k = arith.addi %kb, %ik : tensor<64xindex>
      %x = tkgpu.load %a[%i, %k] dims [array<i64: 0>, array<i64: 1>] strides(%K, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<128xindex>, tensor<64xindex>, index, index) -> tensor<128x64xbf16>
      %y = tkgpu.load %b[%k, %j] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<64xindex>, tensor<256xindex>, index, index) -> tensor<64x256xbf16>
      %d = tkgpu.dot %x, %y, %s : tensor<128x64xbf16>, tensor<64x256xbf16> -> tensor<128x256xf32>
      scf.yield %d : tensor<128x256xf32>
    }
    %l0 = tkgpu.load %r0[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<128xindex>, tensor<256xindex>, index, index) -> tensor<128x256xbf16>
    %e0 = arith.extf %l0 : tensor<128x256xbf16> to tensor<128x256xf32>
    %t0 = arith.addf %acc, %e0 : tensor<128x256xf32>
    %r = arith.truncf %t0 : tensor<128x256xf32> to tensor<128x256xbf16>
    tkgpu.store %r, %c[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (tensor<128x256xbf16>, !tkgpu.buffer<bf16>, tensor<128xindex>, tensor<256xindex>, index, index) -> ()
    tkgpu.return
  } {num_warps = 8 : i64, tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [128, 256], reduce = [64], warps = 8, per_thread = 128, vector = 16, stages = 4>>}
  tk.kernel @residual_host dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">, #tk.param<"r0">] results ["c"] {
  ^bb0(%M: index, %N: index, %K: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>, %r0: tensor<?x?xbf16>):
    %c1 = arith.constant 1 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%K, %N] : tensor<?x?xbf16>
    tk.bind %r0[%M, %N] : tensor<?x?xbf16>
    %c = tkgpu.launch @residual grid(%N, %c1, %c1) args(%M, %N, %K, %a, %b, %r0 : index, index, index, tensor<?x?xbf16>, tensor<?x?xbf16>, tensor<?x?xbf16>) shapes(%M, %N) {names = ["c"]} : tensor<?x?xbf16>
    tk.return %c : tensor<?x?xbf16>
  }
  tkgpu.func @two args ["M", "N", "K", "a", "b", "r0", "r1", "c"] facts [#tk.fact<divisor = 256>, #tk.fact<divisor = 256>, #tk.fact<divisor = 64>, #tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<>] {
  ^bb0(%M: index, %N: index, %K: index, %a: !tkgpu.buffer<bf16>, %b: !tkgpu.buffer<bf16>, %r0: !tkgpu.buffer<f32>, %r1: !tkgpu.buffer<f32>, %c: !tkgpu.buffer<bf16>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    %acc0 = arith.constant dense<0.0> : tensor<128x256xf32>
    %p = tkgpu.program_id x
    %j0 = arith.muli %p, %c256 : index
    %i = tkgpu.iota : tensor<128xindex>
    %run = tkgpu.iota : tensor<256xindex>
    %ik = tkgpu.iota : tensor<64xindex>
    %jb = tkgpu.broadcast %j0 dims [] : index -> tensor<256xindex>
    %j = arith.addi %jb, %run : tensor<256xindex>
    %acc = scf.for %k0 = %c0 to %K step %c64 iter_args(%s = %acc0) -> (tensor<128x256xf32>) {
      %kb = tkgpu.broadcast %k0 dims [] : index -> tensor<64xindex>
      %k = arith.addi %kb, %ik : tensor<64xindex>
      %x = tkgpu.load %a[%i, %k] dims [array<i64: 0>, array<i64: 1>] strides(%K, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<128xindex>, tensor<64xindex>, index, index) -> tensor<128x64xbf16>
      %y = tkgpu.load %b[%k, %j] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<64xindex>, tensor<256xindex>, index, index) -> tensor<64x256xbf16>
      %d = tkgpu.dot %x, %y, %s : tensor<128x64xbf16>, tensor<64x256xbf16> -> tensor<128x256xf32>
      scf.yield %d : tensor<128x256xf32>
    }
    %l0 = tkgpu.load %r0[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<128xindex>, tensor<256xindex>, index, index) -> tensor<128x256xf32>
    %t0 = arith.addf %acc, %l0 : tensor<128x256xf32>
    %l1 = tkgpu.load %r1[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<128xindex>, tensor<256xindex>, index, index) -> tensor<128x256xf32>
    %t1 = arith.addf %t0, %l1 : tensor<128x256xf32>
    %r = arith.truncf %t1 : tensor<128x256xf32> to tensor<128x256xbf16>
    tkgpu.store %r, %c[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (tensor<128x256xbf16>, !tkgpu.buffer<bf16>, tensor<128xindex>, tensor<256xindex>, index, index) -> ()
    tkgpu.return
  } {num_warps = 8 : i64, tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [128, 256], reduce = [64], warps = 8, per_thread = 128, vector = 16, stages = 4>>}
  tk.kernel @two_host dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">, #tk.param<"r0">, #tk.param<"r1">] results ["c"] {
  ^bb0(%M: index, %N: index, %K: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>, %r0: tensor<?x?xf32>, %r1: tensor<?x?xf32>):
    %c1 = arith.constant 1 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%K, %N] : tensor<?x?xbf16>
    tk.bind %r0[%M, %N] : tensor<?x?xf32>
    tk.bind %r1[%M, %N] : tensor<?x?xf32>
    %c = tkgpu.launch @two grid(%N, %c1, %c1) args(%M, %N, %K, %a, %b, %r0, %r1 : index, index, index, tensor<?x?xbf16>, tensor<?x?xbf16>, tensor<?x?xf32>, tensor<?x?xf32>) shapes(%M, %N) {names = ["c"]} : tensor<?x?xbf16>
    tk.return %c : tensor<?x?xbf16>
  }
}
