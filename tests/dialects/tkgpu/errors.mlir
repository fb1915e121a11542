// RUN: tk-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{expected tiles that are powers of two, got 24}}
module attributes {x = #tkgpu.schedule<tile = [24], reduce = []>} {}

// -----

// expected-error @below {{expected a step for each of 1 tiles, got 2}}
module attributes {x = #tkgpu.schedule<tile = [256], reduce = [], step = [192, 1], warps = 16>} {}

// -----

// expected-error @below {{expected a step that leaves whole warps, or groups of 8 columns, of a tile of 256 to the next one, got 201}}
module attributes {x = #tkgpu.schedule<tile = [256], reduce = [], step = [201], warps = 16>} {}

// -----

// expected-error @below {{expected one step shorter than its tile, got 2}}
module attributes {x = #tkgpu.schedule<tile = [16, 16], reduce = [], step = [8, 8], warps = 16>} {}

// -----

// expected-error @below {{expected teams that have tiles of their own and 32 warps together, got 5 of 8 warps}}
module attributes {x = #tkgpu.schedule<tile = [16], reduce = [], warps = 8, teams = 5>} {}

// -----

// expected-error @below {{expected teams of one warpgroup, got 2 of 8 warps}}
tkgpu.func @f args [] {
  tkgpu.return
} {num_warps = 8 : i64, teams = 2 : i64}

// -----

// expected-error @below {{expected spare warps to be some of 4 in one block, got 4}}
tkgpu.func @f args [] {
  tkgpu.return
} {num_warps = 4 : i64, spare_warps = 4 : i64}

// -----

tkgpu.func @f args ["x"] {
^bb0(%x: !tkgpu.buffer<f32>):
  %i = tkgpu.iota : tensor<32xindex>
  %c1 = arith.constant 1 : index
  // expected-error @below {{expected extent 64 of index 0 on axis 0, got 32}}
  %v = tkgpu.load %x[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<32xindex>, index) -> tensor<64xf32>
  tkgpu.return
}

// -----

tkgpu.func @f args ["a", "b"] {
^bb0(%x: f32, %y: f32):
  %a = tkgpu.broadcast %x dims [] : f32 -> tensor<16x8xf32>
  %b = tkgpu.broadcast %x dims [] : f32 -> tensor<16x8xf32>
  %c = tkgpu.broadcast %x dims [] : f32 -> tensor<16x8xf32>
  // expected-error @below {{expected equal inner extents, got 'tensor<16x8xf32>' and 'tensor<16x8xf32>'}}
  %d = tkgpu.dot %a, %b, %c : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
  tkgpu.return
}

// -----

// expected-error @below {{expected 2 arguments, got 1}}
tkgpu.func @f args ["a", "b"] {
^bb0(%x: f32):
  tkgpu.return
}

// -----

tkgpu.func @f args ["a"] {
^bb0(%x: f64):
  %a = tkgpu.broadcast %x dims [] : f64 -> tensor<64xf64>
  // expected-error @below {{expected elements of 8, 16 or 32 bits, got 'tensor<64xf64>'}}
  %h = tkgpu.hold %a : tensor<64xf64>
  tkgpu.return
}

// -----

#one = #tkgpu.layout<register = [], lane = [[1], [2], [4], [8], [16]], warp = []>
tkgpu.func @f args ["a"] {
^bb0(%x: bf16):
  %a = tkgpu.broadcast %x dims [] : bf16 -> tensor<32xbf16, #one>
  // expected-error @below {{expected the elements of a thread to fill words}}
  %h = tkgpu.hold %a : tensor<32xbf16, #one>
  tkgpu.return
}

// -----

tkgpu.func @f args ["i"] {
^bb0(%i: index):
  // expected-error @below {{expected a power of two, got 6}}
  %s = tkgpu.misalignment[%i] strides(%i) of 6
  tkgpu.return
}

// -----

tkgpu.func @f args ["i"] {
^bb0(%i: index):
  // expected-error @below {{expected a result of one axis and element type index, got 'tensor<8x8xindex>'}}
  %r = tkgpu.rotated_iota %i : tensor<8x8xindex>
  tkgpu.return
}

// -----

tkgpu.func @f args ["i"] {
^bb0(%i: index):
  // expected-error @below {{expected an end before that of the tile, got 8}}
  %r = tkgpu.rotated_iota %i around 8 : tensor<8xindex>
  tkgpu.return
}

// -----

tkgpu.func @f args ["i"] {
^bb0(%i: index):
  %x = arith.constant dense<0.0> : tensor<4xbf16>
  // expected-error @below {{expected a tile of one axis and groups that divide it, got 'tensor<4xbf16>' and groups of 8}}
  %r = tkgpu.funnel %x, %x by %i in 8 : tensor<4xbf16>
  tkgpu.return
}

// -----

#pairs = #tkgpu.layout<register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = []>
tkgpu.func @f args ["i"] {
^bb0(%i: index):
  %x = arith.constant dense<0.0> : tensor<64xbf16, #pairs>
  // expected-error @below {{expected a thread to have a whole group of 8 elements, got 2 neighbours}}
  %r = tkgpu.funnel %x, %x by %i in 8 : tensor<64xbf16, #pairs>
  tkgpu.return
}

// -----

tkgpu.func @f args [] {
  // expected-error @below {{expected a result of one axis and element type index or f32, got 'tensor<8xbf16>'}}
  %r = tkgpu.iota : tensor<8xbf16>
  tkgpu.return
}

// -----

tkgpu.func @f args ["x"] {
^bb0(%x: f32):
  // expected-error @below {{expected an end before that of the tile, got 32}}
  %i = tkgpu.iota to 32 : tensor<32xindex>
  tkgpu.return
}

// -----

// expected-error @below {{expected to hold fewer than 4 registers, got 4}}
#all = #tkgpu.layout<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [], held = 4>

// -----

// expected-error @below {{expected registers along one axis where only 3 of them are held}}
#wide = #tkgpu.layout<register = [[0, 1], [32, 0]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [], held = 3>

// -----

tkgpu.func @f args ["a"] {
^bb0(%x: bf16):
  %a = tkgpu.broadcast %x dims [] : bf16 -> tensor<64xbf16>
  // expected-error @below {{expected a tile of f32 with one axis, got 'tensor<64xbf16>'}}
  %m, %q = tkgpu.moments %a : tensor<64xbf16>
  tkgpu.return
}

// -----

tkgpu.func @f args ["a"] {
^bb0(%x: f32):
  %a = tkgpu.broadcast %x dims [] : f32 -> tensor<64x2xf32>
  // expected-error @below {{expected a tile of f32 with one axis, got 'tensor<64x2xf32>'}}
  %m, %s, %w, %g = tkgpu.weights %a : tensor<64x2xf32>
  tkgpu.return
}

// -----

tkgpu.func @f args ["a", "n"] {
^bb0(%x: f32, %n: index):
  %a = tkgpu.broadcast %x dims [] : f32 -> tensor<64x2xf32>
  // expected-error @below {{expected tiles with one axis, got 'tensor<64x2xf32>'}}
  %r = tkgpu.select_at %a at %n else %a : tensor<64x2xf32>
  tkgpu.return
}

// -----

tkgpu.func @runs_of_different_lengths args [] {
  %x = arith.constant dense<0.0> : tensor<32x8xf32>
  // expected-error @below {{expected a result like 'tensor<32x8xf32>', with runs of a power of two on axis 0, got 'tensor<5x8xf32>'}}
  %y = tkgpu.reduce_runs <sum> %x axis 0 : tensor<32x8xf32> -> tensor<5x8xf32>
  tkgpu.return
}

// -----

#fragment = #tkgpu.layout<register = [[0, 1]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>
tkgpu.func @runs_of_other_threads args [] {
  %x = arith.constant dense<0.0> : tensor<8x8xf32, #fragment>
  // expected-error @below {{expected layout #tkgpu.layout<register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 0], [0, 0], [1, 0]], warp = []> of the result}}
  %y = tkgpu.reduce_runs <sum> %x axis 0 : tensor<8x8xf32, #fragment> -> tensor<2x8xf32, #tkgpu.layout<register = [[0, 1]], lane = [[0, 2], [0, 4], [1, 0], [0, 0], [0, 0]], warp = []>>
  tkgpu.return
}

// -----

tkgpu.func @runs_of_places args [] {
  %x = arith.constant dense<0.0> : tensor<32x8xf32>
  // expected-error @below {{expected kind sum, prod, max, min, any or all, got argmax}}
  %y = tkgpu.reduce_runs <argmax> %x axis 0 : tensor<32x8xf32> -> tensor<4x8xf32>
  tkgpu.return
}

// -----

tkgpu.func @parts_without_layout args [] {
  %x = arith.constant dense<0.0> : tensor<32x8xf32>
  // expected-error @below {{expected a source with a layout, got 'tensor<32x8xf32>'}}
  %y = tkgpu.reduce_in_threads <sum> %x axis 1 : tensor<32x8xf32> -> tensor<32x4xf32>
  tkgpu.return
}

// -----

#wide = #tkgpu.layout<register = [[0, 1]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>
tkgpu.func @parts_of_other_threads args [] {
  %x = arith.constant dense<0.0> : tensor<8x8xf32, #wide>
  // expected-error @below {{expected 'tensor<8x4xf32, #tkgpu.layout<register = [], lane = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], warp = []>>', got 'tensor<8x8xf32}}
  %y = tkgpu.reduce_in_threads <sum> %x axis 1 : tensor<8x8xf32, #wide> -> tensor<8x8xf32, #wide>
  tkgpu.return
}

// -----

tkgpu.func @copies_without_layout args [] {
  %x = arith.constant dense<0.0> : tensor<32x4xf32>
  // expected-error @below {{expected a result with a layout, got 'tensor<32x8xf32>'}}
  %y = tkgpu.spread_in_threads %x axis 1 : tensor<32x4xf32> -> tensor<32x8xf32>
  tkgpu.return
}

// -----

#wide = #tkgpu.layout<register = [[0, 1]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>
tkgpu.func @copies_of_other_threads args [] {
  %x = arith.constant dense<0.0> : tensor<8x8xf32, #wide>
  // expected-error @below {{expected 'tensor<8x4xf32, #tkgpu.layout<register = [], lane = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], warp = []>>', got 'tensor<8x8xf32}}
  %y = tkgpu.spread_in_threads %x axis 1 : tensor<8x8xf32, #wide> -> tensor<8x8xf32, #wide>
  tkgpu.return
}

// -----

tkgpu.func @f args ["n"] {
^bb0(%n: index):
  %s = tkgpu.alloc_shared : !tkgpu.shared<[64, 32], f32>
  // expected-error @below {{expected 'axis' and 'span' with where a part begins, and only there}}
  %x = tkgpu.local_load %s {axis = 1 : i64} : !tkgpu.shared<[64, 32], f32> -> tensor<64x4xf32>
  tkgpu.return
}

// -----

tkgpu.func @f args ["n"] {
^bb0(%n: index):
  %s = tkgpu.alloc_shared : !tkgpu.shared<[64, 32], f32>
  // expected-error @below {{expected an axis below 2, got 2}}
  %x = tkgpu.local_load %s from %n axis 2 span 16 : !tkgpu.shared<[64, 32], f32> -> tensor<64x4xf32>
  tkgpu.return
}

// -----

tkgpu.func @f args ["n"] {
^bb0(%n: index):
  %s = tkgpu.alloc_shared : !tkgpu.shared<[64, 32], f32>
  // expected-error @below {{expected a power of two, at least 12, got a span of 8}}
  %x = tkgpu.local_load %s from %n axis 1 span 8 {offsets = array<i64: 0, 8>} : !tkgpu.shared<[64, 32], f32> -> tensor<64x4xf32>
  tkgpu.return
}

// -----

tkgpu.func @sums_as_integers args [] {
  %x = arith.constant dense<0.0> : tensor<32x8xf32>
  // expected-error @below {{expected a maximum of f32 as integers, got sum of 'f32'}}
  %y = tkgpu.reduce <sum> %x axis 1 {as_integers} : tensor<32x8xf32> -> tensor<32xf32>
  tkgpu.return
}

// -----

tkgpu.func @sum_as_reference args [] {
  %x = arith.constant dense<0.0> : tensor<32x8xf32>
  // expected-error @below {{expected a maximum as reference of weights, got sum}}
  %y = tkgpu.reduce <sum> %x axis 1 {free_reference} : tensor<32x8xf32> -> tensor<32xf32>
  tkgpu.return
}

// -----

tkgpu.func @wide_bins args [] {
  %bins = arith.constant dense<1> : tensor<64xi64>
  %weights = arith.constant dense<1> : tensor<64xi32>
  // expected-error @below {{expected bins of i32, got 'tensor<64xi64>'}}
  %sums = tkgpu.histogram %bins, %weights : tensor<64xi64>, tensor<64xi32> -> tensor<32xi32>
  tkgpu.return
}

// -----

tkgpu.func @wide_sums args [] {
  %bins = arith.constant dense<1> : tensor<64xi32>
  %weights = arith.constant dense<1.0> : tensor<64xf64>
  // expected-error @below {{expected sums of i32 or f32, got 'tensor<32xf64>'}}
  %sums = tkgpu.histogram %bins, %weights : tensor<64xi32>, tensor<64xf64> -> tensor<32xf64>
  tkgpu.return
}

// -----

tkgpu.func @bins_of_two_axes args [] {
  %bins = arith.constant dense<1> : tensor<64xi32>
  // expected-error @below {{expected a result with one axis, got 'tensor<8x4xi32>'}}
  %sums = tkgpu.histogram %bins, %bins : tensor<64xi32>, tensor<64xi32> -> tensor<8x4xi32>
  tkgpu.return
}

// -----

tkgpu.func @recurrence_of_integers args [] {
  %x = arith.constant dense<1> : tensor<16x32xi32>
  // expected-error @below {{expected elements of f32 or f64, got 'tensor<16x32xi32>'}}
  %y, %last = tkgpu.recurrence %x, %x axis 1 : tensor<16x32xi32> -> tensor<16xi32>
  tkgpu.return
}

// -----

tkgpu.func @sort_of_two_axes args [] {
  %keys = arith.constant dense<1> : tensor<256x2xi64>
  // expected-error @below {{expected i64 along one axis, got 'tensor<256x2xi64>'}}
  %sorted = tkgpu.sort %keys : tensor<256x2xi64> -> tensor<256x2xi64>
  tkgpu.return
}

// -----

tkgpu.func @short_sort args [] {
  %keys = arith.constant dense<1> : tensor<64xi64>
  // expected-error @below {{expected a power of two from 256 to 16384 elements, got 64}}
  %sorted = tkgpu.sort %keys : tensor<64xi64> -> tensor<64xi64>
  tkgpu.return
}
