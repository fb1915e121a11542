// RUN: tk-emit-cuda %s | FileCheck %s
// Rows of 1024 over 4 warps: one vector access each, reductions through registers, lanes, warps.

#row = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512]]>

// CHECK: #include "tk_device.cuh"
// CHECK: extern "C" __global__ void __launch_bounds__(128)
// CHECK-NEXT: softmax(const tk::bf16 *__restrict__ x, tk::bf16 *__restrict__ y, const int C) {
// CHECK: const int [[AT:at_i1024]] = (lane & 31) * 8 + (warp & 3) * 256;
// CHECK: const int block_x = tk::block_x();
// CHECK: tk::load<8>(&[[X:[a-z_0-9]+]][0], &x[{{.*}}], {{.*}}, tk::bf16{0xff80});
// CHECK: tk::reduce_registers<tk::Maximum, 7>
// CHECK: tk::reduce_lanes<tk::Maximum, 31>
// CHECK: tk::reduce_uniform_warps<tk::Maximum, 3, 4>({{.*}}, reinterpret_cast<float *>(shared + 0));
// CHECK: const float [[M:max_of_tile[a-z0-9_]*]] = {{.*}}[0];
// CHECK: TK_UNROLL for (int r = 0; r < 8; ++r)
// CHECK: tk::exp_diff({{.*}}, [[M]])
// CHECK: tk::narrow(
// CHECK: tk::store<8>(&y[
tkgpu.func @softmax args ["x", "y", "C"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %C: index):
  %c1 = arith.constant 1 : index
  %low = arith.constant 0xFF80 : bf16
  %row = tkgpu.program_id x
  %j = tkgpu.iota : tensor<1024xindex, #row>
  %Cs = tkgpu.broadcast %C dims [] : index -> tensor<1024xindex, #row>
  %in = arith.cmpi slt, %j, %Cs : tensor<1024xindex, #row>
  %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] other(%low) {vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<1024xindex, #row>, index, index, tensor<1024xi1, #row>, bf16) -> tensor<1024xbf16, #row>
  %f = arith.extf %v : tensor<1024xbf16, #row> to tensor<1024xf32, #row>
  %m = tkgpu.reduce <max> %f axis 0 : tensor<1024xf32, #row> -> f32
  %ms = tkgpu.broadcast %m dims [] : f32 -> tensor<1024xf32, #row>
  %e = tk.exp_diff %f, %ms : tensor<1024xf32, #row>
  %s = tkgpu.reduce <sum> %e axis 0 : tensor<1024xf32, #row> -> f32
  %ss = tkgpu.broadcast %s dims [] : f32 -> tensor<1024xf32, #row>
  %p = tk.div_or_zero %e, %ss : tensor<1024xf32, #row>
  %r = arith.truncf %p : tensor<1024xf32, #row> to tensor<1024xbf16, #row>
  tkgpu.store %r, %y[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] {vector = 8 : i64} : (tensor<1024xbf16, #row>, !tkgpu.buffer<bf16>, index, tensor<1024xindex, #row>, index, index, tensor<1024xi1, #row>) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// Elements with a mask each, and a tile that is kept as it is.
// CHECK: __launch_bounds__(128, 6)
// CHECK-NEXT: odd(
// CHECK: int [[AT:at[_0-9]*]][8];
// CHECK: bool [[IN:in[_0-9]*]][8];
// CHECK: [[AT]][r] = {{.*}}, [[IN]][r] = {{.*}};
// CHECK: tk::load_runs<8>([[X:[a-z_0-9]+]], x, [[AT]], [[IN]], tk::bf16{0x0});
// CHECK: tk::reduce_uniform_warps
// CHECK: tk::hold([[X]]);
// CHECK: bool [[OUT:in[_0-9]*]][8];
// CHECK: tk::store_runs<8>(y, [[X]], [[TO:at[_0-9]*]], [[OUT]]);
tkgpu.func @odd args ["x", "y", "s", "C"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %s: !tkgpu.buffer<f32>, %C: index):
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : bf16
  %row = tkgpu.program_id x
  %j = tkgpu.iota : tensor<1024xindex, #row>
  %Cs = tkgpu.broadcast %C dims [] : index -> tensor<1024xindex, #row>
  %in = arith.cmpi slt, %j, %Cs : tensor<1024xindex, #row>
  %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] other(%zero) {run = 8 : i64, vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<1024xindex, #row>, index, index, tensor<1024xi1, #row>, bf16) -> tensor<1024xbf16, #row>
  %f = arith.extf %v : tensor<1024xbf16, #row> to tensor<1024xf32, #row>
  %m = tkgpu.reduce <sum> %f axis 0 : tensor<1024xf32, #row> -> f32
  %h = tkgpu.hold %v : tensor<1024xbf16, #row>
  tkgpu.store %m, %s[%row] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
  tkgpu.store %h, %y[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] {run = 8 : i64, vector = 8 : i64} : (tensor<1024xbf16, #row>, !tkgpu.buffer<bf16>, index, tensor<1024xindex, #row>, index, index, tensor<1024xi1, #row>) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64, min_blocks = 6 : i64}

// A row that begins anywhere: its numbers rotated, and what is aligned otherwise moved to them.
// CHECK: rotated(
// CHECK: const int [[SHIFT:n[_0-9]*]] = (block_x * C) & 7;
// CHECK: tk::rotated<1024, 8, int>([[AT:at_[a-z0-9]+]], r, [[SHIFT]])
// CHECK: tk::load_runs<8>([[X:[a-z_0-9]+]], x, {{.*}}, {{.*}}, tk::bf16{0x0});
// CHECK: tk::load<8>(&[[BEFORE:[a-z_0-9]+]][0], &g[{{.*}}]);
// CHECK: tk::load<8>(&[[HERE:[a-z_0-9]+]][0], &g[{{.*}}]);
// CHECK: tk::funnel<8>([[G:[a-z_0-9]+]], [[BEFORE]], [[HERE]], (int)[[SHIFT]]);
tkgpu.func @rotated args ["x", "y", "g", "C"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %g: !tkgpu.buffer<bf16>, %C: index):
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : bf16
  %behind = arith.constant dense<1016> : tensor<1024xindex, #row>
  %last = arith.constant dense<1023> : tensor<1024xindex, #row>
  %row = tkgpu.program_id x
  %s = tkgpu.misalignment[%row] strides(%C) of 8
  %j = tkgpu.rotated_iota %s : tensor<1024xindex, #row>
  %i = tkgpu.iota : tensor<1024xindex, #row>
  %b = arith.addi %i, %behind : tensor<1024xindex, #row>
  %before = arith.andi %b, %last : tensor<1024xindex, #row>
  %Cs = tkgpu.broadcast %C dims [] : index -> tensor<1024xindex, #row>
  %in = arith.cmpi slt, %j, %Cs : tensor<1024xindex, #row>
  %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] other(%zero) {run = 8 : i64, vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<1024xindex, #row>, index, index, tensor<1024xi1, #row>, bf16) -> tensor<1024xbf16, #row>
  %g0 = tkgpu.load %g[%before] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<1024xindex, #row>, index) -> tensor<1024xbf16, #row>
  %g1 = tkgpu.load %g[%i] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<1024xindex, #row>, index) -> tensor<1024xbf16, #row>
  %gj = tkgpu.funnel %g0, %g1 by %s in 8 : tensor<1024xbf16, #row>
  %a = arith.extf %v : tensor<1024xbf16, #row> to tensor<1024xf32, #row>
  %c = arith.extf %gj : tensor<1024xbf16, #row> to tensor<1024xf32, #row>
  %p = arith.mulf %a, %c : tensor<1024xf32, #row>
  %r = arith.truncf %p : tensor<1024xf32, #row> to tensor<1024xbf16, #row>
  tkgpu.store %r, %y[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] {run = 8 : i64, vector = 8 : i64} : (tensor<1024xbf16, #row>, !tkgpu.buffer<bf16>, index, tensor<1024xindex, #row>, index, index, tensor<1024xi1, #row>) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// Rows that end before their tile go around an end of their own. Elements behind that, where threads
// have any, stay where they are.
// CHECK: part(
// CHECK: tk::rotated<768, 8, int>(at_i1024, {{.*}}, n_1)
// CHECK: whole(
// CHECK: tk::rotated<768, 8, int, true>(at_i1024, {{.*}}, n_1)
#part = #tkgpu.layout<register = [[1], [2], [4], [256], [512]], lane = [[8], [16], [32], [64], [128]], warp = [], held = 24>
#whole = #tkgpu.layout<register = [[1], [2], [4], [256], [512]], lane = [[8], [16], [32], [64], [128]], warp = []>
tkgpu.func @part args ["x", "y", "C"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %C: index):
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : bf16
  %row = tkgpu.program_id x
  %s = tkgpu.misalignment[%row] strides(%C) of 8
  %j = tkgpu.rotated_iota %s around 768 : tensor<1024xindex, #part>
  %Cs = tkgpu.broadcast %C dims [] : index -> tensor<1024xindex, #part>
  %in = arith.cmpi slt, %j, %Cs : tensor<1024xindex, #part>
  %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] other(%zero) {run = 8 : i64, vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<1024xindex, #part>, index, index, tensor<1024xi1, #part>, bf16) -> tensor<1024xbf16, #part>
  tkgpu.store %v, %y[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] {run = 8 : i64, vector = 8 : i64} : (tensor<1024xbf16, #part>, !tkgpu.buffer<bf16>, index, tensor<1024xindex, #part>, index, index, tensor<1024xi1, #part>) -> ()
  tkgpu.return
} {num_warps = 1 : i64, index_bits = 32 : i64}
tkgpu.func @whole args ["x", "y", "C"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %C: index):
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : bf16
  %row = tkgpu.program_id x
  %s = tkgpu.misalignment[%row] strides(%C) of 8
  %j = tkgpu.rotated_iota %s around 768 : tensor<1024xindex, #whole>
  %Cs = tkgpu.broadcast %C dims [] : index -> tensor<1024xindex, #whole>
  %in = arith.cmpi slt, %j, %Cs : tensor<1024xindex, #whole>
  %v = tkgpu.load %x[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] other(%zero) {run = 8 : i64, vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<1024xindex, #whole>, index, index, tensor<1024xi1, #whole>, bf16) -> tensor<1024xbf16, #whole>
  tkgpu.store %v, %y[%row, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks(%in) over [array<i64: 0>] {run = 8 : i64, vector = 8 : i64} : (tensor<1024xbf16, #whole>, !tkgpu.buffer<bf16>, index, tensor<1024xindex, #whole>, index, index, tensor<1024xi1, #whole>) -> ()
  tkgpu.return
} {num_warps = 1 : i64, index_bits = 32 : i64}
