// RUN: tk-emit-cuda %s | FileCheck %s
// A cluster whose next number is drawn from a counter, which other clusters change: two numbers and
// their barriers lie behind what is planned, and are prepared before other blocks may send any. What
// is drawn is told when a warp has its part of what the cluster joins next.

#row = #tkgpu.layout<register = [[1], [2], [4], [16384], [32768]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512], [1024], [2048], [4096], [8192]]>

// CHECK: draws(const tk::bf16 *__restrict__ x, const int rows, int *__restrict__ counter, tk::bf16 *__restrict__ s) {
// CHECK: auto *const [[TOLD:.*]] = reinterpret_cast<tk::Told *>(shared + 0);
// CHECK-NEXT: int [[ROUND:.*]] = 0;
// CHECK: reinterpret_cast<tk::Exchange<float, 1, 16, 4> *>(shared + 32);
// CHECK: tk::prepare_told([[TOLD]]);
// CHECK: tk::phase_init_fence();
// CHECK: tk::cluster_wait();
// CHECK: int [[AT:.*]] = block_x;
// CHECK-NEXT: for (;;) {
// CHECK-NEXT: const bool [[MORE:.*]] = ([[AT]] < rows);
// CHECK-NEXT: if (![[MORE]]) break;
// CHECK-NEXT: const int [[DRAWN:.*]] = tk::draw_number<16>(counter, (int)rows);
// CHECK-NOT: cluster_wait
// CHECK: tk::reduce_lanes<
// CHECK: tk::tell_number<16, 4>([[TOLD]], (int)[[DRAWN]], [[ROUND]]);
// CHECK: tk::reduce_cluster<
// CHECK: const int [[NEXT:.*]] = tk::told_number([[TOLD]], [[ROUND]]);
// CHECK: [[AT]] = [[NEXT]];
// CHECK-NEXT: }
tkgpu.func @draws args ["x", "rows", "counter", "s"] {
^bb0(%x: !tkgpu.buffer<bf16>, %rows: index, %counter: !tkgpu.buffer<i32>, %s: !tkgpu.buffer<bf16>):
  %c1 = arith.constant 1 : index
  %C = arith.constant 65536 : index
  %j = tkgpu.iota : tensor<65536xindex, #row>
  %block = tkgpu.program_id x
  %end = scf.while (%at = %block) : (index) -> index {
    %more = arith.cmpi slt, %at, %rows : index
    scf.condition(%more) %at : index
  } do {
  ^bb0(%at: index):
    %drawn = tkgpu.draw %counter to %rows : <i32>
    %v = tkgpu.load %x[%at, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<65536xindex, #row>, index, index) -> tensor<65536xbf16, #row>
    tkgpu.tell %drawn
    %wide = arith.extf %v : tensor<65536xbf16, #row> to tensor<65536xf32, #row>
    %m = tkgpu.reduce <max> %wide axis 0 : tensor<65536xf32, #row> -> f32
    %narrow = arith.truncf %m : f32 to bf16
    tkgpu.store %narrow, %s[%at] dims [array<i64>] strides(%c1) masks() over [] : (bf16, !tkgpu.buffer<bf16>, index, index) -> ()
    %next = tkgpu.told
    scf.yield %next : index
  }
  tkgpu.return
} {num_warps = 64 : i64, cluster = 4 : i64, index_bits = 32 : i64, min_blocks = 2 : i64}
