// RUN: tk-emit-cuda %s | FileCheck %s
// A row over the 64 warps of a cluster of 4 blocks, which run the program as one.

#row = #tkgpu.layout<register = [[1], [2], [4], [16384], [32768]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512], [1024], [2048], [4096], [8192]]>

// CHECK: #include "tk_device.cuh"
// CHECK-NEXT: #include "cluster.cuh"
// CHECK: __launch_bounds__(512)
// CHECK: const int warp = tk::cluster_rank() * 16 + tk::warp_index();
// CHECK: tk::cluster_arrive();
// CHECK: tk::reduce_lanes<tk::Maximum, 31>
// CHECK: tk::cluster_wait();
// CHECK: tk::reduce_cluster<tk::Maximum, 64, 4>({{.*}}, reinterpret_cast<float *>(shared + 0));
// CHECK-NOT: cluster_wait
// CHECK: tk::reduce_cluster<tk::Sum, 64, 4>({{.*}}, reinterpret_cast<float *>(shared + 256));
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
} {num_warps = 64 : i64, cluster = 4 : i64, index_bits = 32 : i64}
