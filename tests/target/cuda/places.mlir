// RUN: tk-emit-cuda %s | FileCheck %s
// Places along an axis compared with a bound a row: one word a row, of which each element is a bit.

#t = #tkgpu.layout<register = [[0, 1], [8, 0], [0, 8], [0, 16]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#rows = #tkgpu.layout<register = [[8]], lane = [[0], [0], [1], [2], [4]], warp = [[16], [32]]>
#cols = #tkgpu.layout<register = [[1], [8], [16]], lane = [[2], [4], [0], [0], [0]], warp = [[0], [0]]>

// CHECK-LABEL: range(
// The places themselves are nowhere.
// CHECK-NOT: start + (long long)
// CHECK: tk::u32 from[2];
// CHECK: r < 2; ++r) from[r] = ~tk::places_below<2, 8, 8, long long>({{[a-z_0-9]+}}[r], start + [[AT:at_i32[_0-9]*]]);
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

// Choices of 16 bits against zeros take neighbours at once, those below, and those from the bound on.
// CHECK-LABEL: pairs(
// CHECK: tk::u32 below[2];
// CHECK: r < 16; r += 2) tk::keep_pair(&v[r], &x_value[r], tk::pair_mask(below[(r >> 1 & 1)], (r & 1) + (r >> 1 & 6)));
// CHECK: r < 16; r += 2) tk::keep_pair(&v_1[r], &x_value[r], ~tk::pair_mask(below[(r >> 1 & 1)], (r & 1) + (r >> 1 & 6)));
// Half a tile, whose registers are not the first ones. Other numbers, and -0, are chosen one by one.
// CHECK: tk::u32 below_1[2];
// CHECK: r < 16; r += 2) tk::keep_pair(&v_2[r], &z_value[r + 16], tk::pair_mask(below_1[(r >> 1 & 1)], (r & 1) + (r >> 1 & 6)));
// CHECK-NOT: keep_pair
// CHECK: != 0) ? z_value[r + 16] : tk::bf16{0x8000});
#wide = #tkgpu.layout<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#wide_cols = #tkgpu.layout<register = [[1], [8], [16], [32]], lane = [[2], [4], [0], [0], [0]], warp = [[0], [0]]>
tkgpu.func @pairs args ["x", "y", "z", "bound", "n"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %z: !tkgpu.buffer<bf16>, %bound: index, %n: index):
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<64x32xbf16, #t>
  %one = arith.constant dense<-0.0> : tensor<64x32xbf16, #t>
  %r = tkgpu.iota : tensor<64xindex, #rows>
  %c = tkgpu.iota : tensor<32xindex, #cols>
  %wide_c = tkgpu.iota : tensor<64xindex, #wide_cols>
  %v = tkgpu.load %x[%r, %c] dims [array<i64: 0>, array<i64: 1>] strides(%n, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<64xindex, #rows>, tensor<32xindex, #cols>, index, index) -> tensor<64x32xbf16, #t>
  %w = tkgpu.load %z[%r, %wide_c] dims [array<i64: 0>, array<i64: 1>] strides(%n, %c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<64xindex, #rows>, tensor<64xindex, #wide_cols>, index, index) -> tensor<64x64xbf16, #wide>
  %half = tkgpu.extract %w at [0, 32] : tensor<64x64xbf16, #wide> -> tensor<64x32xbf16, #t>
  %places = tkgpu.broadcast %c dims [1] : tensor<32xindex, #cols> -> tensor<64x32xindex, #t>
  %bounds = tkgpu.broadcast %bound dims [] : index -> tensor<64x32xindex, #t>
  %below = arith.cmpi slt, %places, %bounds : tensor<64x32xindex, #t>
  %kept = arith.select %below, %v, %zero : tensor<64x32xi1, #t>, tensor<64x32xbf16, #t>
  %rest = arith.select %below, %zero, %v : tensor<64x32xi1, #t>, tensor<64x32xbf16, #t>
  tkgpu.store %kept, %y[%r, %c] dims [array<i64: 0>, array<i64: 1>] strides(%n, %c1) masks() over [] : (tensor<64x32xbf16, #t>, !tkgpu.buffer<bf16>, tensor<64xindex, #rows>, tensor<32xindex, #cols>, index, index) -> ()
  tkgpu.store %rest, %y[%r, %c] dims [array<i64: 0>, array<i64: 1>] strides(%n, %c1) masks() over [] : (tensor<64x32xbf16, #t>, !tkgpu.buffer<bf16>, tensor<64xindex, #rows>, tensor<32xindex, #cols>, index, index) -> ()
  %again = arith.cmpi slt, %places, %bounds : tensor<64x32xindex, #t>
  %part = arith.select %again, %half, %zero : tensor<64x32xi1, #t>, tensor<64x32xbf16, #t>
  %ones = arith.select %again, %half, %one : tensor<64x32xi1, #t>, tensor<64x32xbf16, #t>
  tkgpu.store %part, %y[%r, %c] dims [array<i64: 0>, array<i64: 1>] strides(%n, %c1) masks() over [] : (tensor<64x32xbf16, #t>, !tkgpu.buffer<bf16>, tensor<64xindex, #rows>, tensor<32xindex, #cols>, index, index) -> ()
  tkgpu.store %ones, %y[%r, %c] dims [array<i64: 0>, array<i64: 1>] strides(%n, %c1) masks() over [] : (tensor<64x32xbf16, #t>, !tkgpu.buffer<bf16>, tensor<64xindex, #rows>, tensor<32xindex, #cols>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64}
