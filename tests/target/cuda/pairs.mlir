// RUN: tk-emit-cuda %s | FileCheck %s
// Two reductions in one exchange, in a loop too, and one element that differs.

#row = #tkgpu.layout<register = [[1], [2], [4], [1024]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512]]>

// CHECK-LABEL: rows(
// CHECK-DAG: int [[R1:round[_0-9]*]] = 0;
// CHECK-DAG: int [[R2:round[_0-9]*]] = 0;
// CHECK: for (int
// CHECK: tk::Moments [[M:moments[_0-9]*]] = tk::moments_of_warp([[X:[a-z_0-9]+]]);
// CHECK: tk::join_warps<4>([[M]], 512, reinterpret_cast<float *>(shared + 0), [[R1]]);
// CHECK: = [[M]].first;
// CHECK: = [[M]].second;
// CHECK: tk::Weighed [[W:weighed[_0-9]*]] = tk::weigh_warp([[E:[a-z_0-9]+]], [[X]]);
// CHECK: const float [[OWN:most[_0-9]*]] = [[W]].first;
// CHECK: tk::join_warps<4>([[W]], 512, reinterpret_cast<float *>(shared + 64), [[R2]]);
// CHECK: = [[W]].first;
// CHECK: = [[W]].second;
// CHECK: const float [[S:scale[_0-9]*]] = tk::exp_scale_approx([[OWN]], [[W]].first);
// CHECK: [[G:[a-z_0-9]+]][r] = [[S]];
// CHECK: tk::Weighed [[LAST:weighed[_0-9]*]] = tk::weigh_warp([[X]]);
// CHECK: tk::join_warps<4>([[LAST]], 512,
// CHECK: if ((n & ~1031) == at_i2048) TK_UNROLL for (int r = 0; r < 16; ++r) if ((n & 1031) == ((r & 7) + (r & 8) * 128)) [[Y:[a-z_0-9]+]][r] = {{[a-z_0-9]+}}[r];
tkgpu.func @rows args ["x", "y", "q", "n", "tiles"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %out: !tkgpu.buffer<f32>, %n: index, %tiles: index):
  %c1 = arith.constant 1 : index
  %c2048 = arith.constant 2048 : index
  %one = arith.constant dense<1.0> : tensor<2048xf32, #row>
  %first = tkgpu.program_id x
  %step = tkgpu.num_programs x
  %j = tkgpu.iota : tensor<2048xindex, #row>
  scf.for %at = %first to %tiles step %step {
    %f = tkgpu.load %x[%at, %j] dims [array<i64>, array<i64: 0>] strides(%c2048, %c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, index, tensor<2048xindex, #row>, index, index) -> tensor<2048xf32, #row>
    %mean, %squares = tkgpu.moments %f : tensor<2048xf32, #row>
    %max, %sum, %w, %g = tkgpu.weights %f : tensor<2048xf32, #row>
    %most, %whole, %unread, %alike = tkgpu.weights %f : tensor<2048xf32, #row>
    %mostly = arith.addf %most, %whole : f32
    tkgpu.store %mostly, %out[%c2048] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
    %a = arith.addf %mean, %squares : f32
    %b = arith.addf %max, %sum : f32
    %ab = arith.addf %a, %b : f32
    tkgpu.store %ab, %out[%at] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
    %wg = arith.mulf %w, %g : tensor<2048xf32, #row>
    %less = arith.subf %wg, %one : tensor<2048xf32, #row>
    %r = tkgpu.select_at %less at %n else %wg : tensor<2048xf32, #row>
    tkgpu.store %r, %y[%at, %j] dims [array<i64>, array<i64: 0>] strides(%c2048, %c1) masks() over [] {vector = 4 : i64} : (tensor<2048xf32, #row>, !tkgpu.buffer<f32>, index, tensor<2048xindex, #row>, index, index) -> ()
  }
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}
