// RUN: tk-emit-cuda %s | FileCheck %s
// Lane 0 arrives for its warp. The warp is synchronised where another lane may still wait for the stage: where no product
// of the warpgroup stands between, on some path.

#acc = #tkgpu.layout<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#rowc = #tkgpu.layout<register = [[8]], lane = [[0], [0], [1], [2], [4]], warp = [[16], [32]]>
#colc = #tkgpu.layout<register = [[1], [8], [16], [32]], lane = [[2], [4], [0], [0], [0]], warp = [[0], [0]]>

// CHECK-LABEL: rings(
// CHECK: tk::PhaseBarrier *const full = {{.*}}
// CHECK: tk::PhaseBarrier *const empty = {{.*}}
tkgpu.func @rings args ["n", "y"] {
^bb0(%n: index, %y: !tkgpu.buffer<f32>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %a = tkgpu.alloc_shared : <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>
  %full = tkgpu.alloc_phases arrivals 1 : <2>
  %empty = tkgpu.alloc_phases arrivals 4 : <2>
  %other = tkgpu.alloc_phases arrivals 4 : <2>
  tkgpu.barrier
  tkgpu.warp_roles producer {
    tkgpu.phase_wait %empty[%c0] parity %c1 : <2>
    tkgpu.phase_expect %full[%c0] bytes 8192 : <2>
    tkgpu.role_end
  } consumer {
    // A product follows the wait.
    // CHECK: tk::phase_wait(&full[0], 0);
    // CHECK: tk::warpgroup_wait<0>();
    // CHECK-NOT: sync_warp
    // CHECK: tk::phase_arrive(&empty[0]);
    tkgpu.phase_wait %full[%c0] parity %c0 : <2>
    %d = tkgpu.warpgroup_dot %a, %a, %zero : !tkgpu.shared<[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>, <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8> -> tensor<64x64xf32, #acc>
    %w = tkgpu.warpgroup_wait %d pending 0 : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>
    tkgpu.phase_arrive %empty[%c0] : <2>
    // The product is in a loop that may have no iteration.
    // CHECK: tk::phase_wait(&full[1], 0);
    // CHECK: tk::warpgroup_wait<0>();
    // CHECK: tk::sync_warp();
    // CHECK-NEXT: tk::phase_arrive(&empty[1]);
    tkgpu.phase_wait %full[%c1] parity %c0 : <2>
    %s = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %w) -> (tensor<64x64xf32, #acc>) {
      %e = tkgpu.warpgroup_dot %a, %a, %sum : !tkgpu.shared<[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>, <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8> -> tensor<64x64xf32, #acc>
      %v = tkgpu.warpgroup_wait %e pending 0 : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>
      scf.yield %v : tensor<64x64xf32, #acc>
    }
    tkgpu.phase_arrive %empty[%c1] : <2>
    // The loop is known to have one; a wait of another ring does not count.
    // CHECK: tk::phase_wait(&full[0], 1);
    // CHECK: tk::phase_wait(&empty_1[0], 0);
    // CHECK-NOT: sync_warp
    // CHECK: tk::phase_arrive(&empty[0]);
    tkgpu.phase_wait %full[%c0] parity %c1 : <2>
    %t = scf.for %i = %c0 to %c4 step %c1 iter_args(%sum = %s) -> (tensor<64x64xf32, #acc>) {
      %e = tkgpu.warpgroup_dot %a, %a, %sum : !tkgpu.shared<[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>, <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8> -> tensor<64x64xf32, #acc>
      %v = tkgpu.warpgroup_wait %e pending 0 : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>
      scf.yield %v : tensor<64x64xf32, #acc>
    }
    tkgpu.phase_wait %other[%c0] parity %c0 : <2>
    tkgpu.phase_arrive %empty[%c0] : <2>
    // One branch has no product.
    // CHECK: tk::phase_wait(&full[1], 1);
    // CHECK: tk::sync_warp();
    // CHECK-NEXT: tk::phase_arrive(&empty[1]);
    tkgpu.phase_wait %full[%c1] parity %c1 : <2>
    %some = arith.cmpi slt, %c0, %n : index
    %u = scf.if %some -> (tensor<64x64xf32, #acc>) {
      %e = tkgpu.warpgroup_dot %a, %a, %t : !tkgpu.shared<[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8>, <[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8> -> tensor<64x64xf32, #acc>
      %v = tkgpu.warpgroup_wait %e pending 0 : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>
      scf.yield %v : tensor<64x64xf32, #acc>
    } else {
      scf.yield %t : tensor<64x64xf32, #acc>
    }
    tkgpu.phase_arrive %empty[%c1] : <2>
    // The stages of steps that another warpgroup has: the wait of the iteration before counts, too.
    // CHECK: for (
    // CHECK: tk::phase_wait(&full[0],
    // CHECK: tk::sync_warp();
    // CHECK-NEXT: tk::phase_arrive(&empty[0]);
    scf.for %i = %c0 to %n step %c1 {
      tkgpu.phase_wait %full[%c0] parity %c0 : <2>
      tkgpu.phase_arrive %empty[%c0] : <2>
    }
    %row = tkgpu.iota : tensor<64xindex, #rowc>
    %column = tkgpu.iota : tensor<64xindex, #colc>
    %c64 = arith.constant 64 : index
    tkgpu.store %u, %y[%row, %column] dims [array<i64: 0>, array<i64: 1>] strides(%c64, %c1) masks() over [] : (tensor<64x64xf32, #acc>, !tkgpu.buffer<f32>, tensor<64xindex, #rowc>, tensor<64xindex, #colc>, index, index) -> ()
    tkgpu.role_end
  }
  tkgpu.return
} {num_warps = 4 : i64, producer_warps = 4 : i64, index_bits = 32 : i64}
