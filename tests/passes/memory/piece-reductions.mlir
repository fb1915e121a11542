// RUN: tk-opt %s --tk-form-warpgroup-dots --tk-coalesce-accesses --tk-form-bulk-stores --canonicalize | FileCheck %s

// What is reduced along the rows of a tile that is stored in pieces takes in a piece at a time.
// CHECK-LABEL: tkgpu.func @along
// CHECK: %[[FIRST:.*]] = tkgpu.reduce <max> %{{.*}} axis 1 : tensor<128x64xf32
// CHECK: tkgpu.bulk_store %
// CHECK: %[[SECOND:.*]] = tkgpu.reduce <max> %{{.*}} axis 1 : tensor<128x64xf32
// CHECK: %[[BOTH:.*]] = arith.maximumf %[[FIRST]], %[[SECOND]]
// CHECK: %[[THIRD:.*]] = tkgpu.reduce <max>
// CHECK: %[[THREE:.*]] = arith.maximumf %[[BOTH]], %[[THIRD]]
// CHECK: %[[LAST:.*]] = tkgpu.reduce <max>
// CHECK: %[[ALL:.*]] = arith.maximumf %[[THREE]], %[[LAST]]
// CHECK: tkgpu.store %[[ALL]]

// Minima, too.
// CHECK-LABEL: tkgpu.func @least
// CHECK-COUNT-3: arith.minimumf
// CHECK-NOT: arith.m

// A piece has only a part of its columns' results: what goes down them reduces the whole tile.
// CHECK-LABEL: tkgpu.func @down
// CHECK: tkgpu.reduce <max> %{{.*}} axis 0 : tensor<128x256xf32
// CHECK-NOT: tkgpu.reduce
// CHECK: tkgpu.return

// So does what is used before the tile is stored.
// CHECK-LABEL: tkgpu.func @before
// CHECK: tkgpu.reduce <max> %{{.*}} axis 1 : tensor<128x256xf32
// CHECK-NOT: tkgpu.reduce
// CHECK: tkgpu.return
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tkgpu.func @along args ["M", "N", "K", "a", "b", "s", "c"] facts [#tk.fact<divisor = 256>, #tk.fact<divisor = 256>, #tk.fact<divisor = 64>, #tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<>] {
  ^bb0(%M: index, %N: index, %K: index, %a: !tkgpu.buffer<bf16>, %b: !tkgpu.buffer<bf16>, %s: !tkgpu.buffer<f32>, %c: !tkgpu.buffer<bf16>):
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
    %acc = scf.for %k0 = %c0 to %K step %c64 iter_args(%sum = %acc0) -> (tensor<128x256xf32>) {
      %kb = tkgpu.broadcast %k0 dims [] : index -> tensor<64xindex>
      %k = arith.addi %kb, %ik : tensor<64xindex>
      %x = tkgpu.load %a[%i, %k] dims [array<i64: 0>, array<i64: 1>] strides(%K, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<128xindex>, tensor<64xindex>, index, index) -> tensor<128x64xbf16>
      %y = tkgpu.load %b[%k, %j] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<64xindex>, tensor<256xindex>, index, index) -> tensor<64x256xbf16>
      %d = tkgpu.dot %x, %y, %sum : tensor<128x64xbf16>, tensor<64x256xbf16> -> tensor<128x256xf32>
      scf.yield %d : tensor<128x256xf32>
    }
    %r = arith.truncf %acc : tensor<128x256xf32> to tensor<128x256xbf16>
    %m = tkgpu.reduce <max> %acc axis 1 : tensor<128x256xf32> -> tensor<128xf32>
    tkgpu.store %r, %c[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (tensor<128x256xbf16>, !tkgpu.buffer<bf16>, tensor<128xindex>, tensor<256xindex>, index, index) -> ()
    tkgpu.store %m, %s[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<128xf32>, !tkgpu.buffer<f32>, tensor<128xindex>, index) -> ()
    tkgpu.return
  } {num_warps = 8 : i64, tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [128, 256], reduce = [64], warps = 8, per_thread = 128, vector = 16, stages = 4>>}
  tk.kernel @along_host dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">, #tk.param<"s">] results ["c"] {
  ^bb0(%M: index, %N: index, %K: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>, %s: tensor<?xf32>):
    %c1 = arith.constant 1 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%K, %N] : tensor<?x?xbf16>
    tk.bind %s[%M] : tensor<?xf32>
    %c = tkgpu.launch @along grid(%N, %c1, %c1) args(%M, %N, %K, %a, %b, %s : index, index, index, tensor<?x?xbf16>, tensor<?x?xbf16>, tensor<?xf32>) shapes(%M, %N) {names = ["c"]} : tensor<?x?xbf16>
    tk.return %c : tensor<?x?xbf16>
  }
  tkgpu.func @least args ["M", "N", "K", "a", "b", "s", "c"] facts [#tk.fact<divisor = 256>, #tk.fact<divisor = 256>, #tk.fact<divisor = 64>, #tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<>] {
  ^bb0(%M: index, %N: index, %K: index, %a: !tkgpu.buffer<bf16>, %b: !tkgpu.buffer<bf16>, %s: !tkgpu.buffer<f32>, %c: !tkgpu.buffer<bf16>):
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
    %acc = scf.for %k0 = %c0 to %K step %c64 iter_args(%sum = %acc0) -> (tensor<128x256xf32>) {
      %kb = tkgpu.broadcast %k0 dims [] : index -> tensor<64xindex>
      %k = arith.addi %kb, %ik : tensor<64xindex>
      %x = tkgpu.load %a[%i, %k] dims [array<i64: 0>, array<i64: 1>] strides(%K, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<128xindex>, tensor<64xindex>, index, index) -> tensor<128x64xbf16>
      %y = tkgpu.load %b[%k, %j] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<64xindex>, tensor<256xindex>, index, index) -> tensor<64x256xbf16>
      %d = tkgpu.dot %x, %y, %sum : tensor<128x64xbf16>, tensor<64x256xbf16> -> tensor<128x256xf32>
      scf.yield %d : tensor<128x256xf32>
    }
    %r = arith.truncf %acc : tensor<128x256xf32> to tensor<128x256xbf16>
    %m = tkgpu.reduce <min> %acc axis 1 : tensor<128x256xf32> -> tensor<128xf32>
    tkgpu.store %r, %c[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (tensor<128x256xbf16>, !tkgpu.buffer<bf16>, tensor<128xindex>, tensor<256xindex>, index, index) -> ()
    tkgpu.store %m, %s[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<128xf32>, !tkgpu.buffer<f32>, tensor<128xindex>, index) -> ()
    tkgpu.return
  } {num_warps = 8 : i64, tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [128, 256], reduce = [64], warps = 8, per_thread = 128, vector = 16, stages = 4>>}
  tk.kernel @least_host dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">, #tk.param<"s">] results ["c"] {
  ^bb0(%M: index, %N: index, %K: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>, %s: tensor<?xf32>):
    %c1 = arith.constant 1 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%K, %N] : tensor<?x?xbf16>
    tk.bind %s[%M] : tensor<?xf32>
    %c = tkgpu.launch @least grid(%N, %c1, %c1) args(%M, %N, %K, %a, %b, %s : index, index, index, tensor<?x?xbf16>, tensor<?x?xbf16>, tensor<?xf32>) shapes(%M, %N) {names = ["c"]} : tensor<?x?xbf16>
    tk.return %c : tensor<?x?xbf16>
  }
  tkgpu.func @down args ["M", "N", "K", "a", "b", "s", "c"] facts [#tk.fact<divisor = 256>, #tk.fact<divisor = 256>, #tk.fact<divisor = 64>, #tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<>] {
  ^bb0(%M: index, %N: index, %K: index, %a: !tkgpu.buffer<bf16>, %b: !tkgpu.buffer<bf16>, %s: !tkgpu.buffer<f32>, %c: !tkgpu.buffer<bf16>):
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
    %acc = scf.for %k0 = %c0 to %K step %c64 iter_args(%sum = %acc0) -> (tensor<128x256xf32>) {
      %kb = tkgpu.broadcast %k0 dims [] : index -> tensor<64xindex>
      %k = arith.addi %kb, %ik : tensor<64xindex>
      %x = tkgpu.load %a[%i, %k] dims [array<i64: 0>, array<i64: 1>] strides(%K, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<128xindex>, tensor<64xindex>, index, index) -> tensor<128x64xbf16>
      %y = tkgpu.load %b[%k, %j] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<64xindex>, tensor<256xindex>, index, index) -> tensor<64x256xbf16>
      %d = tkgpu.dot %x, %y, %sum : tensor<128x64xbf16>, tensor<64x256xbf16> -> tensor<128x256xf32>
      scf.yield %d : tensor<128x256xf32>
    }
    %r = arith.truncf %acc : tensor<128x256xf32> to tensor<128x256xbf16>
    %m = tkgpu.reduce <max> %acc axis 0 : tensor<128x256xf32> -> tensor<256xf32>
    tkgpu.store %r, %c[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (tensor<128x256xbf16>, !tkgpu.buffer<bf16>, tensor<128xindex>, tensor<256xindex>, index, index) -> ()
    tkgpu.store %m, %s[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<256xf32>, !tkgpu.buffer<f32>, tensor<256xindex>, index) -> ()
    tkgpu.return
  } {num_warps = 8 : i64, tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [128, 256], reduce = [64], warps = 8, per_thread = 128, vector = 16, stages = 4>>}
  tk.kernel @down_host dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">, #tk.param<"s">] results ["c"] {
  ^bb0(%M: index, %N: index, %K: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>, %s: tensor<?xf32>):
    %c1 = arith.constant 1 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%K, %N] : tensor<?x?xbf16>
    tk.bind %s[%M] : tensor<?xf32>
    %c = tkgpu.launch @down grid(%N, %c1, %c1) args(%M, %N, %K, %a, %b, %s : index, index, index, tensor<?x?xbf16>, tensor<?x?xbf16>, tensor<?xf32>) shapes(%M, %N) {names = ["c"]} : tensor<?x?xbf16>
    tk.return %c : tensor<?x?xbf16>
  }
  tkgpu.func @before args ["M", "N", "K", "a", "b", "s", "c"] facts [#tk.fact<divisor = 256>, #tk.fact<divisor = 256>, #tk.fact<divisor = 64>, #tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<>] {
  ^bb0(%M: index, %N: index, %K: index, %a: !tkgpu.buffer<bf16>, %b: !tkgpu.buffer<bf16>, %s: !tkgpu.buffer<f32>, %c: !tkgpu.buffer<bf16>):
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
    %acc = scf.for %k0 = %c0 to %K step %c64 iter_args(%sum = %acc0) -> (tensor<128x256xf32>) {
      %kb = tkgpu.broadcast %k0 dims [] : index -> tensor<64xindex>
      %k = arith.addi %kb, %ik : tensor<64xindex>
      %x = tkgpu.load %a[%i, %k] dims [array<i64: 0>, array<i64: 1>] strides(%K, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<128xindex>, tensor<64xindex>, index, index) -> tensor<128x64xbf16>
      %y = tkgpu.load %b[%k, %j] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<64xindex>, tensor<256xindex>, index, index) -> tensor<64x256xbf16>
      %d = tkgpu.dot %x, %y, %sum : tensor<128x64xbf16>, tensor<64x256xbf16> -> tensor<128x256xf32>
      scf.yield %d : tensor<128x256xf32>
    }
    %r = arith.truncf %acc : tensor<128x256xf32> to tensor<128x256xbf16>
    %m = tkgpu.reduce <max> %acc axis 1 : tensor<128x256xf32> -> tensor<128xf32>
    tkgpu.store %m, %s[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<128xf32>, !tkgpu.buffer<f32>, tensor<128xindex>, index) -> ()
    tkgpu.store %r, %c[%i, %j] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks() over [] : (tensor<128x256xbf16>, !tkgpu.buffer<bf16>, tensor<128xindex>, tensor<256xindex>, index, index) -> ()
    tkgpu.return
  } {num_warps = 8 : i64, tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [128, 256], reduce = [64], warps = 8, per_thread = 128, vector = 16, stages = 4>>}
  tk.kernel @before_host dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">, #tk.param<"s">] results ["c"] {
  ^bb0(%M: index, %N: index, %K: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>, %s: tensor<?xf32>):
    %c1 = arith.constant 1 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%K, %N] : tensor<?x?xbf16>
    tk.bind %s[%M] : tensor<?xf32>
    %c = tkgpu.launch @before grid(%N, %c1, %c1) args(%M, %N, %K, %a, %b, %s : index, index, index, tensor<?x?xbf16>, tensor<?x?xbf16>, tensor<?xf32>) shapes(%M, %N) {names = ["c"]} : tensor<?x?xbf16>
    tk.return %c : tensor<?x?xbf16>
  }
}
