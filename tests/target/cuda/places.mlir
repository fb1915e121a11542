// RUN: tk-emit-cuda %s | FileCheck %s
// Places along an axis compared with a bound a row: one word a row, of which each element is a bit.

#t = #tkgpu.layout<register = [[0, 1], [8, 0], [0, 8], [0, 16]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#rows = #tkgpu.layout<register = [[8]], lane = [[0], [0], [1], [2], [4]], warp = [[16], [32]]>
#cols = #tkgpu.layout<register = [[1], [8], [16]], lane = [[2], [4], [0], [0], [0]], warp = [[0], [0]]>

// CHECK-LABEL: range(
// The places themselves are nowhere.
// CHECK-NOT: start + (long long)
// CHECK: tk::u32 from[2];
// CHECK: r < 2; ++r) from[r] = ~tk::places_below<2, 8, 8, long long>(n_1[r], start + [[AT:at_i32[_0-9]*]]);
// CHECK: tk::u32 below[2];
// CHECK: r < 2; ++r) below[r] = tk::places_below<2, 8, 8, long long>(upper, start + [[AT]]);
// CHECK: ((from[(r >> 1 & 1)] >> ((r & 1) + (r >> 1 & 6)) & 1) != 0)
// CHECK: ((below[(r >> 1 & 1)] >> ((r & 1) + (r >> 1 & 6)) & 1) != 0)
// CHECK-NOT: >=
tkgpu.func @range args ["x", "y", "lower_of", "upper", "start", "n"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %l: !tkgpu.buffer<i64>, %upper: index, %start: index, %n: index):
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<64x32xf32, #t>
  %r = tkgpu.iota : tensor<64xindex, #rows>
  %c = tkgpu.iota : tensor<32xindex, #cols>
  %v = tkgpu.load %x[%r, %c] dims [array<i64: 0>, array<i64: 1>] strides(%n, %c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<64xindex, #rows>, tensor<32xindex, #cols>, index, index) -> tensor<64x32xf32, #t>
  %l64 = tkgpu.load %l[%r] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.buffer<i64>, tensor<64xindex, #rows>, index) -> tensor<64xi64, #rows>
  %lower = arith.index_cast %l64 : tensor<64xi64, #rows> to tensor<64xindex, #rows>
  %begin = tkgpu.broadcast %start dims [] : index -> tensor<32xindex, #cols>
  %place = arith.addi %begin, %c : tensor<32xindex, #cols>
  %places = tkgpu.broadcast %place dims [1] : tensor<32xindex, #cols> -> tensor<64x32xindex, #t>
  %lowers = tkgpu.broadcast %lower dims [0] : tensor<64xindex, #rows> -> tensor<64x32xindex, #t>
  %uppers = tkgpu.broadcast %upper dims [] : index -> tensor<64x32xindex, #t>
  %above = arith.cmpi sge, %places, %lowers : tensor<64x32xindex, #t>
  %under = arith.cmpi slt, %places, %uppers : tensor<64x32xindex, #t>
  %in = arith.andi %above, %under : tensor<64x32xi1, #t>
  %o = arith.select %in, %v, %zero : tensor<64x32xi1, #t>, tensor<64x32xf32, #t>
  tkgpu.store %o, %y[%r, %c] dims [array<i64: 0>, array<i64: 1>] strides(%n, %c1) masks() over [] : (tensor<64x32xf32, #t>, !tkgpu.buffer<f32>, tensor<64xindex, #rows>, tensor<32xindex, #cols>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64}

// Other predicates, places that do not count, too few of them in a thread.
// CHECK-LABEL: comparisons(
// CHECK-NOT: places_below
// CHECK: <=
// CHECK-NOT: places_below
// CHECK: }
tkgpu.func @comparisons args ["x", "y", "bound", "n"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %bound: index, %n: index):
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<64x32xf32, #t>
  %r = tkgpu.iota : tensor<64xindex, #rows>
  %c = tkgpu.iota : tensor<32xindex, #cols>
  %v = tkgpu.load %x[%r, %c] dims [array<i64: 0>, array<i64: 1>] strides(%n, %c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<64xindex, #rows>, tensor<32xindex, #cols>, index, index) -> tensor<64x32xf32, #t>
  %twice = arith.muli %c, %c : tensor<32xindex, #cols>
  %columns = tkgpu.broadcast %c dims [1] : tensor<32xindex, #cols> -> tensor<64x32xindex, #t>
  %doubled = tkgpu.broadcast %twice dims [1] : tensor<32xindex, #cols> -> tensor<64x32xindex, #t>
  %lines = tkgpu.broadcast %r dims [0] : tensor<64xindex, #rows> -> tensor<64x32xindex, #t>
  %bounds = tkgpu.broadcast %bound dims [] : index -> tensor<64x32xindex, #t>
  %a = arith.cmpi sle, %columns, %bounds : tensor<64x32xindex, #t>
  %b = arith.cmpi slt, %doubled, %bounds : tensor<64x32xindex, #t>
  %d = arith.cmpi slt, %lines, %bounds : tensor<64x32xindex, #t>
  %ab = arith.andi %a, %b : tensor<64x32xi1, #t>
  %in = arith.andi %ab, %d : tensor<64x32xi1, #t>
  %o = arith.select %in, %v, %zero : tensor<64x32xi1, #t>, tensor<64x32xf32, #t>
  tkgpu.store %o, %y[%r, %c] dims [array<i64: 0>, array<i64: 1>] strides(%n, %c1) masks() over [] : (tensor<64x32xf32, #t>, !tkgpu.buffer<f32>, tensor<64xindex, #rows>, tensor<32xindex, #cols>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64}
