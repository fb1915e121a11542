// RUN: tk-opt %s --tk-form-warpgroup-dots | FileCheck %s
// Rows that a table gathers in groups of 32, of which the loop's end may cut one: the rows behind it are no
// terms, and are brought with the others of their group.
// CHECK-LABEL: tkgpu.func @ends args
// CHECK: tkgpu.bulk_copy %{{.*}} {first_row = 32 : i64}
// CHECK: tkgpu.warpgroup_dot
// A number that 8 divides and the loop does not end at cuts groups of 32, none of 8.
// CHECK-LABEL: tkgpu.func @cut args
// CHECK: tkgpu.bulk_copy %{{.*}} {first_row = 8 : i64}
// CHECK: tkgpu.warpgroup_dot
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tkgpu.func @ends args ["M", "N", "K", "a", "b", "t", "L", "P", "c"] facts [#tk.fact<divisor = 8>, #tk.fact<divisor = 8>, #tk.fact<divisor = 8>, #tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<>] {
  ^bb0(%M: index, %N: index, %K: index, %a: !tkgpu.buffer<bf16>, %b: !tkgpu.buffer<bf16>, %t: !tkgpu.buffer<i32>, %L: index, %P: index, %c: !tkgpu.buffer<bf16>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %page = arith.muli %N, %c32 : index
    %zero = arith.constant 0.0 : bf16
    %first = arith.constant 0 : i32
    %least = arith.constant dense<0> : tensor<64xindex>
    %size = arith.constant dense<32> : tensor<64xindex>
    %acc0 = arith.constant dense<0.0> : tensor<128x128xf32>
    %i = tkgpu.iota : tensor<128xindex>
    %ik = tkgpu.iota : tensor<64xindex>
    %Mb = tkgpu.broadcast %M dims [] : index -> tensor<128xindex>
    %mi = arith.cmpi slt, %i, %Mb : tensor<128xindex>
    %Nb = tkgpu.broadcast %N dims [] : index -> tensor<128xindex>
    %mj = arith.cmpi slt, %i, %Nb : tensor<128xindex>
    %Pb = tkgpu.broadcast %P dims [] : index -> tensor<64xindex>
    %acc = scf.for %k0 = %c0 to %L step %c64 iter_args(%s = %acc0) -> (tensor<128x128xf32>) {
      %kb = tkgpu.broadcast %k0 dims [] : index -> tensor<64xindex>
      %k = arith.addi %kb, %ik : tensor<64xindex>
      %Lb = tkgpu.broadcast %L dims [] : index -> tensor<64xindex>
      %mk = arith.cmpi slt, %k, %Lb : tensor<64xindex>
      %Kb = tkgpu.broadcast %K dims [] : index -> tensor<64xindex>
      %inside = arith.cmpi slt, %k, %Kb : tensor<64xindex>
      %pages = tk.floor_div %k, %size : tensor<64xindex>
      %rows = tk.floor_mod %k, %size : tensor<64xindex>
      %numbers = tkgpu.load %t[%pages] dims [array<i64: 0>] strides(%c1) masks(%mk) over [array<i64: 0>] other(%first) : (!tkgpu.buffer<i32>, tensor<64xindex>, index, tensor<64xi1>, i32) -> tensor<64xi32>
      %places = arith.index_cast %numbers : tensor<64xi32> to tensor<64xindex>
      %above = arith.cmpi sge, %places, %least : tensor<64xindex>
      %below = arith.cmpi slt, %places, %Pb : tensor<64xindex>
      %x = tkgpu.load %a[%i, %k] dims [array<i64: 0>, array<i64: 1>] strides(%K, %c1) masks(%mi, %inside) over [array<i64: 0>, array<i64: 1>] other(%zero) : (!tkgpu.buffer<bf16>, tensor<128xindex>, tensor<64xindex>, index, index, tensor<128xi1>, tensor<64xi1>, bf16) -> tensor<128x64xbf16>
      %y = tkgpu.load %b[%places, %rows, %i] dims [array<i64: 0>, array<i64: 0>, array<i64: 1>] strides(%page, %N, %c1) masks(%above, %below, %mj) over [array<i64: 0>, array<i64: 0>, array<i64: 1>] other(%zero) : (!tkgpu.buffer<bf16>, tensor<64xindex>, tensor<64xindex>, tensor<128xindex>, index, index, index, tensor<64xi1>, tensor<64xi1>, tensor<128xi1>, bf16) -> tensor<64x128xbf16>
      %d = tkgpu.dot %x, %y, %s : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    %r = arith.truncf %acc : tensor<128x128xf32> to tensor<128x128xbf16>
    tkgpu.store %r, %c[%i, %i] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks(%mi, %mj) over [array<i64: 0>, array<i64: 1>] : (tensor<128x128xbf16>, !tkgpu.buffer<bf16>, tensor<128xindex>, tensor<128xindex>, index, index, tensor<128xi1>, tensor<128xi1>) -> ()
    tkgpu.return
  } {num_warps = 8 : i64, tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [128, 128], reduce = [64], warps = 8, per_thread = 64, vector = 16, stages = 4, persistent = 1>>}
  tkgpu.func @cut args ["M", "N", "K", "a", "b", "t", "L", "P", "c"] facts [#tk.fact<divisor = 8>, #tk.fact<divisor = 8>, #tk.fact<divisor = 8>, #tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<>, #tk.fact<>] {
  ^bb0(%M: index, %N: index, %K: index, %a: !tkgpu.buffer<bf16>, %b: !tkgpu.buffer<bf16>, %t: !tkgpu.buffer<i32>, %L: index, %P: index, %c: !tkgpu.buffer<bf16>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %page = arith.muli %N, %c32 : index
    %zero = arith.constant 0.0 : bf16
    %first = arith.constant 0 : i32
    %least = arith.constant dense<0> : tensor<64xindex>
    %size = arith.constant dense<32> : tensor<64xindex>
    %acc0 = arith.constant dense<0.0> : tensor<128x128xf32>
    %i = tkgpu.iota : tensor<128xindex>
    %ik = tkgpu.iota : tensor<64xindex>
    %Mb = tkgpu.broadcast %M dims [] : index -> tensor<128xindex>
    %mi = arith.cmpi slt, %i, %Mb : tensor<128xindex>
    %Nb = tkgpu.broadcast %N dims [] : index -> tensor<128xindex>
    %mj = arith.cmpi slt, %i, %Nb : tensor<128xindex>
    %Pb = tkgpu.broadcast %P dims [] : index -> tensor<64xindex>
    %acc = scf.for %k0 = %c0 to %L step %c64 iter_args(%s = %acc0) -> (tensor<128x128xf32>) {
      %kb = tkgpu.broadcast %k0 dims [] : index -> tensor<64xindex>
      %k = arith.addi %kb, %ik : tensor<64xindex>
      %Lb = tkgpu.broadcast %M dims [] : index -> tensor<64xindex>
      %mk = arith.cmpi slt, %k, %Lb : tensor<64xindex>
      %Kb = tkgpu.broadcast %K dims [] : index -> tensor<64xindex>
      %inside = arith.cmpi slt, %k, %Kb : tensor<64xindex>
      %pages = tk.floor_div %k, %size : tensor<64xindex>
      %rows = tk.floor_mod %k, %size : tensor<64xindex>
      %numbers = tkgpu.load %t[%pages] dims [array<i64: 0>] strides(%c1) masks(%mk) over [array<i64: 0>] other(%first) : (!tkgpu.buffer<i32>, tensor<64xindex>, index, tensor<64xi1>, i32) -> tensor<64xi32>
      %places = arith.index_cast %numbers : tensor<64xi32> to tensor<64xindex>
      %above = arith.cmpi sge, %places, %least : tensor<64xindex>
      %below = arith.cmpi slt, %places, %Pb : tensor<64xindex>
      %x = tkgpu.load %a[%i, %k] dims [array<i64: 0>, array<i64: 1>] strides(%K, %c1) masks(%mi, %inside) over [array<i64: 0>, array<i64: 1>] other(%zero) : (!tkgpu.buffer<bf16>, tensor<128xindex>, tensor<64xindex>, index, index, tensor<128xi1>, tensor<64xi1>, bf16) -> tensor<128x64xbf16>
      %y = tkgpu.load %b[%places, %rows, %i] dims [array<i64: 0>, array<i64: 0>, array<i64: 1>] strides(%page, %N, %c1) masks(%above, %below, %mj) over [array<i64: 0>, array<i64: 0>, array<i64: 1>] other(%zero) : (!tkgpu.buffer<bf16>, tensor<64xindex>, tensor<64xindex>, tensor<128xindex>, index, index, index, tensor<64xi1>, tensor<64xi1>, tensor<128xi1>, bf16) -> tensor<64x128xbf16>
      %d = tkgpu.dot %x, %y, %s : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    %r = arith.truncf %acc : tensor<128x128xf32> to tensor<128x128xbf16>
    tkgpu.store %r, %c[%i, %i] dims [array<i64: 0>, array<i64: 1>] strides(%N, %c1) masks(%mi, %mj) over [array<i64: 0>, array<i64: 1>] : (tensor<128x128xbf16>, !tkgpu.buffer<bf16>, tensor<128xindex>, tensor<128xindex>, index, index, tensor<128xi1>, tensor<128xi1>) -> ()
    tkgpu.return
  } {num_warps = 8 : i64, tkgpu.plan = #tkgpu.plan<tiles = #tkgpu.schedule<tile = [128, 128], reduce = [64], warps = 8, per_thread = 64, vector = 16, stages = 4, persistent = 1>>}
  tk.kernel @f dims ["M", "N", "K", "P", "T"] params [#tk.param<"a">, #tk.param<"b">, #tk.param<"t">, #tk.param<"n">] results ["c"] {
  ^bb0(%M: index, %N: index, %K: index, %P: index, %T: index, %a: tensor<?x?xbf16>, %b: tensor<?x?x?xbf16>, %t: tensor<?xi32>, %n: index):
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%P, %c32, %N] : tensor<?x?x?xbf16>
    tk.bind %t[%T] : tensor<?xi32>
    %c = tkgpu.launch @ends grid(%c1, %c1, %c1) args(%M, %N, %K, %a, %b, %t, %n, %P : index, index, index, tensor<?x?xbf16>, tensor<?x?x?xbf16>, tensor<?xi32>, index, index) shapes(%M, %N) {names = ["c"]} : tensor<?x?xbf16>
    tk.return %c : tensor<?x?xbf16>
  }
  tk.kernel @g dims ["M", "N", "K", "P", "T"] params [#tk.param<"a">, #tk.param<"b">, #tk.param<"t">, #tk.param<"n">] results ["c"] {
  ^bb0(%M: index, %N: index, %K: index, %P: index, %T: index, %a: tensor<?x?xbf16>, %b: tensor<?x?x?xbf16>, %t: tensor<?xi32>, %n: index):
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    tk.bind %a[%M, %K] : tensor<?x?xbf16>
    tk.bind %b[%P, %c32, %N] : tensor<?x?x?xbf16>
    tk.bind %t[%T] : tensor<?xi32>
    %c = tkgpu.launch @cut grid(%c1, %c1, %c1) args(%M, %N, %K, %a, %b, %t, %n, %P : index, index, index, tensor<?x?xbf16>, tensor<?x?x?xbf16>, tensor<?xi32>, index, index) shapes(%M, %N) {names = ["c"]} : tensor<?x?xbf16>
    tk.return %c : tensor<?x?xbf16>
  }
}
