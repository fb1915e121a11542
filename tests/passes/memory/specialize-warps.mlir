// RUN: tk-opt %s --tk-form-warpgroup-dots --tk-coalesce-accesses --tk-specialize-warps --canonicalize --cse --tk-plan-shared-memory | FileCheck %s
// RUN: tk-opt %s --tk-form-warpgroup-dots --tk-coalesce-accesses --tk-specialize-warps=one-role --canonicalize --cse --tk-plan-shared-memory | FileCheck %s --check-prefix=ONE
// RUN: tk-opt %s --tk-form-warpgroup-dots --tk-coalesce-accesses --tk-specialize-warps --tk-overlap-products --canonicalize --cse | FileCheck %s --check-prefix=OVERLAP

// CHECK-LABEL: tkgpu.func @gemm
// CHECK: %[[A:.*]] = tkgpu.alloc_shared {offset = 0 : i64} : <[4, 128, 64]
// CHECK: %[[B:.*]] = tkgpu.alloc_shared {offset = 65536 : i64} : <[4, 64, 128]
// CHECK: %[[FULL:.*]] = tkgpu.alloc_phases arrivals 1 {offset = 131072 : i64} : <4>
// CHECK: %[[EMPTY:.*]] = tkgpu.alloc_phases arrivals 8 {offset = 131104 : i64} : <4>
// CHECK: tkgpu.barrier
// The producer has the loop and the addresses, but neither accumulators nor stores.
// CHECK: tkgpu.warp_roles producer {
// CHECK-NOT: tensor<
// CHECK: scf.for {{.*}} iter_args(%[[SLOT:.*]] = %{{.*}}, %[[PARITY:.*]] = %{{.*}}) -> (index, index)
// CHECK: %[[BEFORE:.*]] = arith.subi %{{.*}}, %[[PARITY]]
// CHECK: tkgpu.phase_wait %[[EMPTY]][%[[SLOT]]] parity %[[BEFORE]]
// CHECK: tkgpu.phase_expect %[[FULL]][%[[SLOT]]] bytes 32768
// CHECK: %[[STAGE:.*]] = tkgpu.stage %[[A]][%[[SLOT]]]
// CHECK: tkgpu.bulk_copy %[[STAGE]], {{.*}} signals %[[FULL]][%[[SLOT]]]
// CHECK: tkgpu.bulk_copy {{.*}} signals %[[FULL]][%[[SLOT]]]
// CHECK: scf.yield
// CHECK: } consumer {
// CHECK: scf.for {{.*}} iter_args(%{{.*}}, %[[SLOT:.*]] = %{{.*}}, %[[PARITY:.*]] = %{{.*}}) ->
// CHECK-NOT: bulk_copy
// CHECK: tkgpu.phase_wait %[[FULL]][%[[SLOT]]] parity %[[PARITY]]
// CHECK: tkgpu.warpgroup_dot
// CHECK: tkgpu.warpgroup_wait %{{.*}} pending 0
// CHECK: tkgpu.phase_arrive %[[EMPTY]][%[[SLOT]]]
// CHECK: } {consumer_registers = 232 : i64, producer_registers = 40 : i64}
// CHECK: producer_warps = 4

// With one role a stage is filled after all have left it, by the first thread.
// ONE-LABEL: tkgpu.func @gemm
// ONE-NOT: tkgpu.warp_roles
// ONE: scf.for {{.*}} iter_args(%{{.*}}, %[[PARITY:.*]] = %{{.*}}) ->
// ONE: tkgpu.barrier
// ONE: tkgpu.phase_expect %[[FULL:.*]][%{{.*}}] bytes 16384
// ONE: tkgpu.bulk_copy
// ONE: tkgpu.phase_wait {{.*}} parity
// ONE: tkgpu.warpgroup_dot
// ONE: tkgpu.warpgroup_wait %{{.*}} pending 0
// ONE: tkgpu.return

// A product stays in flight; the stage before it is left.
// OVERLAP: } consumer {
// OVERLAP: scf.for %[[K:.*]] = %[[FIRST:.*]] to {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[SLOT:.*]] = %{{.*}}, %{{.*}} = %{{.*}}, %[[LAST:.*]] = %{{.*}}) ->
// OVERLAP: tkgpu.warpgroup_dot
// OVERLAP: tkgpu.warpgroup_wait %{{.*}} pending 1
// OVERLAP: %[[LATER:.*]] = arith.cmpi ne, %[[K]], %[[FIRST]]
// OVERLAP: scf.if %[[LATER]]
// OVERLAP-NEXT: tkgpu.phase_arrive %{{.*}}[%[[LAST]]]
// OVERLAP: scf.yield {{.*}}, %[[SLOT]] :
// OVERLAP: tkgpu.warpgroup_wait %{{.*}} pending 0
// OVERLAP: tkgpu.phase_arrive
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
module attributes {tkgpu.target = #target} {
  tkgpu.func @gemm args ["M", "N", "K", "a", "b", "c"] facts [#tk.fact<divisor = 8>, #tk.fact<divisor = 8>, #tk.fact<divisor = 8>, #tk.fact<>, #tk.fact<>, #tk.fact<>] {
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
    %c = tkgpu.launch @gemm grid(%N, %c1, %c1) args(%M, %N, %K, %a, %b : index, index, index, tensor<?x?xbf16>, tensor<?x?xbf16>) shapes(%M, %N) {names = ["c"]} : tensor<?x?xbf16>
    tk.return %c : tensor<?x?xbf16>
  }
}
