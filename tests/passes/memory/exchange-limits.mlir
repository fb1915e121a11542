// What operations exchange lies behind what the function allocates, and has to fit, too.
// RUN: tk-opt %s --tk-plan-shared-memory --verify-diagnostics --split-input-file

// Each lane's sum, of four warps.
#t = #tkgpu.layout<register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[0, 16], [8, 0]]>
#rows = #tkgpu.layout<register = [], lane = [[0], [0], [1], [2], [4]], warp = [[0], [8]]>
module attributes {tkgpu.target = #tkgpu.target<arch = 90, shared = 511>} {
// expected-error@+1 {{needs 512 B of shared memory, sm_90 has 511 B}}
tkgpu.func @f args [] {
  %x = arith.constant dense<0.0> : tensor<16x32xf32, #t>
  %s = tkgpu.reduce <sum> %x axis 1 : tensor<16x32xf32, #t> -> tensor<16xf32, #rows>
  tkgpu.return
} {num_warps = 4 : i64}
}

// -----

// One sum a warp, in memory that each reduction has for itself.
#row = #tkgpu.layout<register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]]>
module attributes {tkgpu.target = #tkgpu.target<arch = 90, shared = 31>} {
// expected-error@+1 {{needs 32 B of shared memory, sm_90 has 31 B}}
tkgpu.func @f args [] {
  %x = arith.constant dense<0.0> : tensor<128xf32, #row>
  %s = tkgpu.reduce <sum> %x axis 0 : tensor<128xf32, #row> -> f32
  %m = tkgpu.reduce <max> %x axis 0 : tensor<128xf32, #row> -> f32
  tkgpu.return
} {num_warps = 4 : i64}
}

// -----

// Two floats a warp, for this round and the next.
#row = #tkgpu.layout<register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]]>
module attributes {tkgpu.target = #tkgpu.target<arch = 90, shared = 63>} {
// expected-error@+1 {{needs 64 B of shared memory, sm_90 has 63 B}}
tkgpu.func @f args [] {
  %x = arith.constant dense<0.0> : tensor<128xf32, #row>
  %mean, %squares = tkgpu.moments %x : tensor<128xf32, #row>
  tkgpu.return
} {num_warps = 4 : i64}
}

// -----

// Of registers that a scan has joined before the warps it sends one; a sum uses the same memory after
// it.
#t = #tkgpu.layout<register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[0, 16], [8, 0]]>
#rows = #tkgpu.layout<register = [], lane = [[0], [0], [1], [2], [4]], warp = [[0], [8]]>
module attributes {tkgpu.target = #tkgpu.target<arch = 90, shared = 511>} {
// expected-error@+1 {{needs 512 B of shared memory, sm_90 has 511 B}}
tkgpu.func @f args [] {
  %x = arith.constant dense<0.0> : tensor<16x32xf32, #t>
  %p, %all = tkgpu.scan <sum> %x axis 1 : tensor<16x32xf32, #t> -> tensor<16xf32, #rows>
  %s = tkgpu.reduce <sum> %p axis 1 : tensor<16x32xf32, #t> -> tensor<16xf32, #rows>
  tkgpu.return
} {num_warps = 4 : i64}
}

// -----

// Those that lie along another axis, or behind the warps, go through memory.
#t = #tkgpu.layout<register = [[0, 1], [16, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[8, 0]]>
#columns = #tkgpu.layout<register = [[1]], lane = [[2], [4], [0], [0], [0]], warp = [[0]]>
module attributes {tkgpu.target = #tkgpu.target<arch = 90, shared = 1023>} {
// expected-error@+1 {{needs 1024 B of shared memory, sm_90 has 1023 B}}
tkgpu.func @f args [] {
  %x = arith.constant dense<0.0> : tensor<32x8xf32, #t>
  %p, %all = tkgpu.scan <sum> %x axis 0 : tensor<32x8xf32, #t> -> tensor<8xf32, #columns>
  tkgpu.return
} {num_warps = 2 : i64}
}

// -----

// Places are wider than values.
#t = #tkgpu.layout<register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[0, 16], [8, 0]]>
#rows = #tkgpu.layout<register = [], lane = [[0], [0], [1], [2], [4]], warp = [[0], [8]]>
module attributes {tkgpu.target = #tkgpu.target<arch = 90, shared = 1023>} {
// expected-error@+1 {{needs 1024 B of shared memory, sm_90 has 1023 B}}
tkgpu.func @f args [] {
  %x = arith.constant dense<0.0> : tensor<16x32xf32, #t>
  %j = arith.constant dense<0> : tensor<16x32xi64, #t>
  %best, %place = tkgpu.arg_reduce <argmax> %x, %j axis 1 : tensor<16x32xf32, #t>, tensor<16x32xi64, #t> -> tensor<16xf32, #rows>, tensor<16xi64, #rows>
  tkgpu.return
} {num_warps = 4 : i64}
}

// -----

// A tile that changes hands.
#t = #tkgpu.layout<register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[0, 16], [8, 0]]>
#u = #tkgpu.layout<register = [[1, 0], [2, 0]], lane = [[4, 0], [8, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 8], [0, 16]]>
module attributes {tkgpu.target = #tkgpu.target<arch = 90, shared = 2047>} {
// expected-error@+1 {{needs 2048 B of shared memory, sm_90 has 2047 B}}
tkgpu.func @f args [] {
  %x = arith.constant dense<0.0> : tensor<16x32xf32, #t>
  %c = tkgpu.convert_layout %x : tensor<16x32xf32, #t> -> tensor<16x32xf32, #u>
  tkgpu.return
} {num_warps = 4 : i64}
}

// -----

// Padded rows.
#t = #tkgpu.layout<register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[0, 16], [8, 0]]>
#u = #tkgpu.layout<register = [[1, 0], [2, 0]], lane = [[4, 0], [8, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 8], [0, 16]]>
module attributes {tkgpu.target = #tkgpu.target<arch = 90, shared = 2303>} {
// expected-error@+1 {{needs 2304 B of shared memory, sm_90 has 2303 B}}
tkgpu.func @f args [] {
  %x = arith.constant dense<0.0> : tensor<16x32xf32, #t>
  %c = tkgpu.convert_layout %x {padding = 4 : i64} : tensor<16x32xf32, #t> -> tensor<16x32xf32, #u>
  tkgpu.return
} {num_warps = 4 : i64}
}

// -----

// Elements that change registers only need none.
#t = #tkgpu.layout<register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[0, 16], [8, 0]]>
#v = #tkgpu.layout<register = [[0, 2], [0, 1]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[0, 16], [8, 0]]>
module attributes {tkgpu.target = #tkgpu.target<arch = 90, shared = 0>} {
tkgpu.func @f args [] {
  %x = arith.constant dense<0.0> : tensor<16x32xf32, #t>
  %c = tkgpu.convert_layout %x : tensor<16x32xf32, #t> -> tensor<16x32xf32, #v>
  tkgpu.return
} {num_warps = 4 : i64}
}
