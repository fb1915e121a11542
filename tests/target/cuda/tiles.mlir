// RUN: tk-emit-cuda %s | FileCheck %s
// What remains: scans, first extrema, exchanges of layouts, products on FMA units, branches.

#t = #tkgpu.layout<register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[0, 16], [8, 0]]>
#u = #tkgpu.layout<register = [[1, 0], [2, 0]], lane = [[4, 0], [8, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 8], [0, 16]]>
#rows = #tkgpu.layout<register = [], lane = [[0], [0], [1], [2], [4]], warp = [[0], [8]]>
#cols = #tkgpu.layout<register = [[1], [2]], lane = [[4], [8], [0], [0], [0]], warp = [[16], [0]]>

// CHECK-LABEL: pieces(
// CHECK-SAME: const long long n)
// CHECK: tk::scan_registers<tk::Sum, 1>
// CHECK: tk::scan_registers<tk::Sum, 2>
// CHECK: tk::scan_lanes<tk::Sum, 1, 3>
// CHECK: tk::scan_lanes<tk::Sum, 2, 3>
// CHECK: tk::scan_warps<tk::Sum, 1, 4, 3>
// CHECK: tk::reduce_lanes<tk::Maximum, 3>
// CHECK: tk::reduce_warps<tk::Maximum, 1, 4>
// CHECK: tk::find_first<3>
// CHECK: tk::reduce_lanes<tk::Minimum, 3>
// CHECK: tk::reduce_warps<tk::Minimum, 1, 4>
// CHECK: exchange
// CHECK: tk::barrier();
// CHECK: tk::store<4>(&exchange
// CHECK-NOT: tk::load
// CHECK: tk::barrier();
// CHECK: tk::load<1>(
// CHECK: if ({{.*}}) {
// CHECK: } else {
// CHECK: if ((lane & 3) == 0 && (warp & 1) == 0) tk::put(&i[
tkgpu.func @pieces args ["x", "y", "i", "n"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %i: !tkgpu.buffer<i64>, %n: index):
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %r = tkgpu.iota : tensor<16xindex, #rows>
  %c = tkgpu.iota : tensor<32xindex, #cols>
  %v = tkgpu.load %x[%r, %c] dims [array<i64: 0>, array<i64: 1>] strides(%n, %c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<16xindex, #rows>, tensor<32xindex, #cols>, index, index) -> tensor<16x32xf32, #t>
  %s, %all = tkgpu.scan <sum> %v axis 1 : tensor<16x32xf32, #t> -> tensor<16xf32, #rows>
  %j = tkgpu.broadcast %c dims [1] : tensor<32xindex, #cols> -> tensor<16x32xindex, #t>
  %best, %where = tkgpu.arg_reduce <argmax> %s, %j axis 1 : tensor<16x32xf32, #t>, tensor<16x32xindex, #t> -> tensor<16xf32, #rows>, tensor<16xindex, #rows>
  %o = tkgpu.convert_layout %s : tensor<16x32xf32, #t> -> tensor<16x32xf32, #u>
  %w = tkgpu.convert_layout %o : tensor<16x32xf32, #u> -> tensor<16x32xf32, #t>
  %big = arith.cmpi sgt, %n, %c7 : index
  %z = scf.if %big -> (tensor<16x32xf32, #t>) {
    %twice = arith.addf %w, %w : tensor<16x32xf32, #t>
    scf.yield %twice : tensor<16x32xf32, #t>
  } else {
    %b = tkgpu.broadcast %best dims [0] : tensor<16xf32, #rows> -> tensor<16x32xf32, #t>
    scf.yield %b : tensor<16x32xf32, #t>
  }
  tkgpu.store %z, %y[%r, %c] dims [array<i64: 0>, array<i64: 1>] strides(%n, %c1) masks() over [] {vector = 4 : i64} : (tensor<16x32xf32, #t>, !tkgpu.buffer<f32>, tensor<16xindex, #rows>, tensor<32xindex, #cols>, index, index) -> ()
  %w64 = arith.index_cast %where : tensor<16xindex, #rows> to tensor<16xi64, #rows>
  tkgpu.store %w64, %i[%r] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<16xi64, #rows>, !tkgpu.buffer<i64>, tensor<16xindex, #rows>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64}
