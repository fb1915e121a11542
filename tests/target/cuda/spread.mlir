// RUN: tk-emit-cuda %s | FileCheck %s
// A row over the 64 warps of a cluster of 4 blocks, which run the program as one. One block a
// multiprocessor is enough: where that is not said ptxas aims at three and spills.

#row = #tkgpu.layout<register = [[1], [2], [4], [16384], [32768]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512], [1024], [2048], [4096], [8192]]>

// CHECK: #include "tk_device.cuh"
// CHECK-NEXT: #include "cluster.cuh"
// CHECK: __launch_bounds__(512, 1)
// CHECK: const int warp = tk::cluster_rank() * 16 + tk::warp_index();
// CHECK: auto *const [[MAX:.*]] = reinterpret_cast<tk::Exchange<float, 1, 16, 4> *>(shared + 0);
// CHECK-NEXT: int [[FIRST:.*]] = 0;
// CHECK: auto *const [[SUM:.*]] = reinterpret_cast<tk::Exchange<float, 1, 16, 4> *>(shared + 192);
// CHECK-NEXT: int [[SECOND:.*]] = 0;
// CHECK-NEXT: if (tk::thread_index() == 0) {
// CHECK-NEXT: tk::prepare_exchange([[MAX]]);
// CHECK-NEXT: tk::prepare_exchange([[SUM]]);
// CHECK-NEXT: tk::phase_init_fence();
// CHECK-NEXT: }
// CHECK-NEXT: tk::cluster_arrive_relaxed();
// CHECK: tk::reduce_lanes<tk::Maximum, 31>
// CHECK: tk::cluster_wait();
// CHECK: tk::reduce_cluster<tk::Maximum>({{.*}}, [[MAX]], [[FIRST]]);
// CHECK-NOT: cluster_wait
// CHECK: tk::reduce_cluster<tk::Sum>({{.*}}, [[SUM]], [[SECOND]]);
// CHECK: if (tk::thread_index() == 0 && tk::cluster_rank() == 0) tk::put(&s[
tkgpu.func @spread args ["x", "s"] {
^bb0(%x: !tkgpu.buffer<bf16>, %s: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %C = arith.constant 65536 : index
  %block = tkgpu.program_id x
  %row = arith.divsi %block, %c4 : index
  %j = tkgpu.iota : tensor<65536xindex, #row>
  %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<65536xindex, #row>, index, index) -> tensor<65536xbf16, #row>
  %f = arith.extf %v : tensor<65536xbf16, #row> to tensor<65536xf32, #row>
  %m = tkgpu.reduce <max> %f axis 0 : tensor<65536xf32, #row> -> f32
  %ms = tkgpu.broadcast %m dims [] : f32 -> tensor<65536xf32, #row>
  %d = arith.subf %f, %ms : tensor<65536xf32, #row>
  %t = tkgpu.reduce <sum> %d axis 0 : tensor<65536xf32, #row> -> f32
  tkgpu.store %t, %s[%row] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
  tkgpu.return
} {num_warps = 64 : i64, cluster = 4 : i64, index_bits = 32 : i64, min_blocks = 1 : i64}

// Blocks go through the loop in step. They wait for each other before it, and send bits as words.

// CHECK: reinterpret_cast<tk::Exchange<int, 1, 16, 4> *>(shared + 0);
// CHECK: tk::cluster_wait();
// CHECK: for (
// CHECK-NOT: cluster_wait
// CHECK: int [[WIDE:.*]][1]; {{.*}} [[WIDE]][r] = [[BITS:.*]][r];
// CHECK: tk::reduce_cluster<tk::Any>([[WIDE]],
// CHECK: [[BITS]][r] = (bool)[[WIDE]][r];
// CHECK: }
tkgpu.func @rows args ["x", "s", "rows"] {
^bb0(%x: !tkgpu.buffer<i1>, %s: !tkgpu.buffer<i1>, %rows: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %C = arith.constant 65536 : index
  %j = tkgpu.iota : tensor<65536xindex, #row>
  scf.for %row = %c0 to %rows step %c1 {
    %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<i1>, index, tensor<65536xindex, #row>, index, index) -> tensor<65536xi1, #row>
    %a = tkgpu.reduce <any> %v axis 0 : tensor<65536xi1, #row> -> i1
    tkgpu.store %a, %s[%row] dims [array<i64>] strides(%c1) masks() over [] : (i1, !tkgpu.buffer<i1>, index, index) -> ()
  }
  tkgpu.return
} {num_warps = 64 : i64, cluster = 4 : i64, index_bits = 32 : i64}
