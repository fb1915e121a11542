// RUN: tk-emit-cuda %s | FileCheck %s
// Each thread brings and reads its own vectors; neighbouring threads' are neighbours, so that a warp's
// accesses fill its banks.

#row = #tkgpu.layout<register = [[1], [2], [4], [512]], lane = [[8], [16], [32], [64], [128]], warp = [[256]]>
#short = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = [[256]]>

// CHECK: tk::bf16 *const x_stages = reinterpret_cast<tk::bf16 *>(shared + 0) + tk::thread_index() * 8;
// CHECK: tk::bf16 *const x_stages_1 = reinterpret_cast<tk::bf16 *>(shared + 6144) + tk::thread_index() * 8;
// CHECK: for (int r = 0; r < 16; r += 8) tk::copy_async<16>(&x_stages[(n * 16 + r) * 64], &x[{{.*}}]);
// CHECK: tk::copy_async<16>(&x_stages_1[(0) * 64], &x[{{.*}}], {{.*}});
// CHECK: tk::async_commit();
// CHECK: tk::async_wait<0>();
// CHECK: for (int r = 0; r < 16; r += 8) tk::load<8>(&x_value[r], &x_stages[(n * 16 + r) * 64]);
// CHECK: tk::load<8>(&x_value_1[0], &x_stages_1[(0) * 64]);
// CHECK: tk::load<8>(&x_value_2[0], &x_stages[(n * 16 + 8) * 64]);
// What is stored: a stage, and a part of one.
// CHECK: for (int r = 0; r < 16; r += 8) tk::store<8>(&x_stages[(n * 16 + r) * 64], &x_value[r]);
// CHECK: tk::store<8>(&x_stages[(n * 16 + 8) * 64], &x_value_2[0]);
tkgpu.func @rows args ["x", "n", "y"] {
^bb0(%x: !tkgpu.buffer<bf16>, %n: index, %y: !tkgpu.buffer<bf16>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %in = arith.cmpi slt, %c0, %n : index
  %j = tkgpu.iota : tensor<1024xindex, #row>
  %k = tkgpu.iota : tensor<512xindex, #short>
  %rows = tkgpu.alloc_private : <3 x tensor<1024xbf16, #row>, vector = 8>
  %kept = tkgpu.alloc_private : <1 x tensor<512xbf16, #short>, vector = 8>
  tkgpu.copy_private %rows at %n, %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.private<3 x tensor<1024xbf16, #row>, vector = 8>, index, !tkgpu.buffer<bf16>, tensor<1024xindex, #row>, index) -> ()
  tkgpu.copy_private %kept at %c0, %x[%k] dims [array<i64: 0>] strides(%c1) masks(%in) over [array<i64>] : (!tkgpu.private<1 x tensor<512xbf16, #short>, vector = 8>, index, !tkgpu.buffer<bf16>, tensor<512xindex, #short>, index, i1) -> ()
  tkgpu.async_commit
  tkgpu.async_wait 0
  %v = tkgpu.private_load %rows at %n : <3 x tensor<1024xbf16, #row>, vector = 8> -> tensor<1024xbf16, #row>
  %w = tkgpu.private_load %kept at %c0 : <1 x tensor<512xbf16, #short>, vector = 8> -> tensor<512xbf16, #short>
  tkgpu.store %v, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (tensor<1024xbf16, #row>, !tkgpu.buffer<bf16>, tensor<1024xindex, #row>, index) -> ()
  tkgpu.store %w, %y[%k] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (tensor<512xbf16, #short>, !tkgpu.buffer<bf16>, tensor<512xindex, #short>, index) -> ()
  %part = tkgpu.private_load %rows at %n {offsets = array<i64: 512>} : <3 x tensor<1024xbf16, #row>, vector = 8> -> tensor<512xbf16, #short>
  tkgpu.store %part, %y[%k] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (tensor<512xbf16, #short>, !tkgpu.buffer<bf16>, tensor<512xindex, #short>, index) -> ()
  tkgpu.private_store %v, %rows at %n : tensor<1024xbf16, #row> -> <3 x tensor<1024xbf16, #row>, vector = 8>
  tkgpu.private_store %part, %rows at %n {offsets = array<i64: 512>} : tensor<512xbf16, #short> -> <3 x tensor<1024xbf16, #row>, vector = 8>
  tkgpu.return
} {num_warps = 2 : i64, index_bits = 32 : i64}
