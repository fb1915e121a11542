// RUN: tk-opt %s --split-input-file --verify-diagnostics

tkgpu.func @f args ["m"] {
^bb0(%m: !tkgpu.tensor_map):
  %c0 = arith.constant 0 : index
  %s = tkgpu.alloc_shared : <[64, 32], bf16 padding = 8>
  // expected-error @below {{expected a target permuted as the hardware does}}
  tkgpu.bulk_copy %s, %m[%c0, %c0] : <[64, 32], bf16 padding = 8>
  tkgpu.return
}

// -----

tkgpu.func @f args ["m"] {
^bb0(%m: !tkgpu.tensor_map):
  %c0 = arith.constant 0 : index
  %s = tkgpu.alloc_shared : <[64, 64], bf16 chunk = 8 phases = 8>
  // expected-error @below {{expected an axis of the map, got 2}}
  tkgpu.bulk_copy %s, %m[%c0, %c0] {multicast = 2 : i64} : <[64, 64], bf16 chunk = 8 phases = 8>
  tkgpu.return
}

// -----

// expected-error @below {{expected unpadded panels that divide the contiguous axis of at least two, got panel = 48}}
func.func private @panels(!tkgpu.shared<[64, 64], bf16 panel = 48>)

// -----

tkgpu.func @f args [] {
  // expected-error @below {{expected at least one arrival, got 0}}
  %p = tkgpu.alloc_phases arrivals 0 : <4>
  tkgpu.return
}

// -----

tkgpu.func @f args [] {
  %a = tkgpu.alloc_shared : <[128, 64], bf16 chunk = 8 phases = 8>
  %b = tkgpu.alloc_shared : <[32, 64], bf16 chunk = 8 phases = 8>
  %z = arith.constant dense<0.0> : tensor<128x64xf32>
  // expected-error @below {{expected shapes that fit}}
  %d = tkgpu.warpgroup_dot %a, %b, %z : !tkgpu.shared<[128, 64], bf16 chunk = 8 phases = 8>, <[32, 64], bf16 chunk = 8 phases = 8> -> tensor<128x64xf32>
  tkgpu.return
}

// -----

tkgpu.func @f args [] {
  %a = tkgpu.alloc_shared : <[32, 64], bf16 chunk = 8 phases = 8>
  %b = tkgpu.alloc_shared : <[64, 64], bf16 chunk = 8 phases = 8>
  %z = arith.constant dense<0.0> : tensor<32x64xf32>
  // expected-error @below {{expected a multiple of 64 rows, got 32}}
  %d = tkgpu.warpgroup_dot %a, %b, %z : !tkgpu.shared<[32, 64], bf16 chunk = 8 phases = 8>, <[64, 64], bf16 chunk = 8 phases = 8> -> tensor<32x64xf32>
  tkgpu.return
}

// -----

tkgpu.func @f args [] {
  // expected-error @below {{expected a function with producer warps}}
  tkgpu.warp_roles producer {
  } consumer {
  }
  tkgpu.return
}

// -----

tkgpu.func @f args [] {
  // expected-error @below {{expected multiples of 8 from 24 to 256 registers, got 20}}
  tkgpu.warp_roles producer {
  } consumer {
  } {producer_registers = 20, consumer_registers = 240}
  tkgpu.return
} {producer_warps = 4 : i64}

// -----

tk.kernel @k dims ["M"] params [#tk.param<"a">] results [] {
^bb0(%M: index, %a: tensor<?x?xbf16>):
  tk.bind %a[%M, %M] : tensor<?x?xbf16>
  // expected-error @below {{expected a swizzle of 0, 32, 64 or 128 bytes, got 100}}
  %m = tkgpu.tensor_map %a : tensor<?x?xbf16> extents(%M, %M) strides(%M, %M) box [64, 64] swizzle 100
  tk.return
}

// -----

tk.kernel @k dims ["M"] params [#tk.param<"a">] results [] {
^bb0(%M: index, %a: tensor<?x?xbf16>):
  tk.bind %a[%M, %M] : tensor<?x?xbf16>
  // expected-error @below {{expected sides of the box from 1 to 256, got 512}}
  %m = tkgpu.tensor_map %a : tensor<?x?xbf16> extents(%M, %M) strides(%M, %M) box [512, 64] swizzle 128
  tk.return
}

// -----

tk.kernel @k dims ["M"] params [#tk.param<"a">] results [] {
^bb0(%M: index, %a: tensor<?x?xbf16>):
  tk.bind %a[%M, %M] : tensor<?x?xbf16>
  // expected-error @below {{expected a window of as many rows as the box has, got 32}}
  %m = tkgpu.tensor_map %a : tensor<?x?xbf16> extents(%M, %M, %M) strides(%M, %M, %M) box [1, 64, 64] swizzle 128 {before = 32 : i64}
  tk.return
}

// -----

// expected-error @below {{expected a cluster of 1, 2, 4, 8 or 16 blocks, got 3}}
module attributes {x = #tkgpu.schedule<tile = [64], reduce = [], cluster = 3>} {}

// -----

// expected-error @below {{expected persistent blocks for each multiprocessor, or 0, got -1}}
module attributes {x = #tkgpu.schedule<tile = [64], reduce = [], persistent = -1>} {}

// -----

tkgpu.func @f args ["m"] {
^bb0(%m: !tkgpu.tensor_map):
  %c0 = arith.constant 0 : index
  %s = tkgpu.alloc_shared : <[64, 64], bf16 chunk = 8 phases = 8>
  // expected-error @below {{expected an axis of the map, got 2}}
  tkgpu.bulk_store %s, %m[%c0, %c0] {warpgroup_axis = 2 : i64} : <[64, 64], bf16 chunk = 8 phases = 8>
  tkgpu.return
} {num_warps = 8 : i64}

// -----

tkgpu.func @f args ["m"] {
^bb0(%m: !tkgpu.tensor_map):
  %c0 = arith.constant 0 : index
  %s = tkgpu.alloc_shared : <[64, 64], bf16 chunk = 8 phases = 8>
  // expected-error @below {{expected an axis of the map, got 3}}
  tkgpu.bulk_store %s, %m[%c0, %c0] {before_axis = 3 : i64} : <[64, 64], bf16 chunk = 8 phases = 8>
  tkgpu.return
} {num_warps = 8 : i64}

// -----

tkgpu.func @f args ["m"] {
^bb0(%m: !tkgpu.tensor_map):
  %c0 = arith.constant 0 : index
  %s = tkgpu.alloc_shared : <[8, 64], bf16 chunk = 8 phases = 8>
  // expected-error @below {{expected a multiple of 8 rows for each warpgroup, got 8 for 2}}
  tkgpu.bulk_store %s, %m[%c0, %c0] {warpgroup_axis = 0 : i64} : <[8, 64], bf16 chunk = 8 phases = 8>
  tkgpu.return
} {num_warps = 8 : i64}

// -----

tkgpu.func @f args [] {
  // expected-error @below {{expected the threads of a cluster or of a warpgroup, not both}}
  tkgpu.barrier {cluster, warpgroup}
  tkgpu.return
}

// -----

// expected-error @below {{expected rows that divide into pairs for each part, got interleave = 2 for 6}}
func.func private @parts(!tkgpu.shared<[6, 64], f8E4M3FN interleave = 2>)

// -----

tkgpu.func @f args ["m"] {
^bb0(%m: !tkgpu.tensor_map):
  %c0 = arith.constant 0 : index
  %s = tkgpu.alloc_shared : <[64, 128], f8E4M3FN chunk = 16 phases = 8 interleave = 2>
  // expected-error @below {{expected axes for groups of rows, rows and columns, and no multicast, where rows are interleaved}}
  tkgpu.bulk_copy %s, %m[%c0, %c0] : <[64, 128], f8E4M3FN chunk = 16 phases = 8 interleave = 2>
  tkgpu.return
}

// -----

tkgpu.func @f args ["m"] {
^bb0(%m: !tkgpu.tensor_map):
  %c0 = arith.constant 0 : index
  %s = tkgpu.alloc_shared : <[64, 64], bf16 chunk = 8 phases = 8>
  // expected-error @below {{expected whole tiles for all blocks of a cluster, and of interleaved rows}}
  tkgpu.bulk_copy %s, %m[%c0, %c0] {first_row = 8 : i64, multicast = 0 : i64} : <[64, 64], bf16 chunk = 8 phases = 8>
  tkgpu.return
}

// -----

tkgpu.func @f args ["m"] {
^bb0(%m: !tkgpu.tensor_map):
  %c0 = arith.constant 0 : index
  %s = tkgpu.alloc_shared : <[64, 64], bf16 chunk = 8 phases = 8>
  // expected-error @below {{expected a first row from 0 to 63, got 64}}
  tkgpu.bulk_copy %s, %m[%c0, %c0] {first_row = 64 : i64} : <[64, 64], bf16 chunk = 8 phases = 8>
  tkgpu.return
}

// -----

tkgpu.func @f args [] {
  %a = tkgpu.alloc_shared : <[64, 128], f8E4M3FN chunk = 16 phases = 8 interleave = 2>
  %b = tkgpu.alloc_shared : <[128, 64], f8E4M3FN order = [0, 1] chunk = 16 phases = 8>
  %z = arith.constant dense<0.0> : tensor<64x64xf32>
  // expected-error @below {{expected interleaved rows of the right operand alone}}
  %d = tkgpu.warpgroup_dot %a, %b, %z : !tkgpu.shared<[64, 128], f8E4M3FN chunk = 16 phases = 8 interleave = 2>, <[128, 64], f8E4M3FN order = [0, 1] chunk = 16 phases = 8> -> tensor<64x64xf32>
  tkgpu.return
}

// -----

tkgpu.func @f args [] {
  %a = tkgpu.alloc_shared : <[64, 128], f8E4M3FN chunk = 16 phases = 8>
  %b = tkgpu.alloc_shared : <[128, 128], f8E4M3FN chunk = 16 phases = 8 interleave = 2>
  %z = arith.constant dense<0.0> : tensor<64x128xf32>
  // expected-error @below {{expected columns of the result as interleaved rows}}
  %d = tkgpu.warpgroup_dot %a, %b, %z : !tkgpu.shared<[64, 128], f8E4M3FN chunk = 16 phases = 8>, <[128, 128], f8E4M3FN chunk = 16 phases = 8 interleave = 2> -> tensor<64x128xf32>
  tkgpu.return
}

// -----

tkgpu.func @f args [] {
  %x = arith.constant dense<0.0> : tensor<32xf32>
  // expected-error @below {{expected a tile of f32 with a layout, got 'tensor<32xf32>'}}
  %y = tkgpu.none_negative %x : tensor<32xf32>
  tkgpu.return
}

// -----

tkgpu.func @f args [] {
  // expected-error @below {{expected a barrier before the place for notes}}
  %p = tkgpu.alloc_phases arrivals 8 {notes} : <1>
  tkgpu.return
}

// -----

tkgpu.func @f args [] {
  %p = tkgpu.alloc_phases arrivals 8 : <2>
  // expected-error @below {{expected phases with a place for notes}}
  %d = tkgpu.doubted %p : <2>
  tkgpu.return
}

// -----

tkgpu.func @f args [] {
  %p = tkgpu.alloc_phases arrivals 8 {notes} : <2>
  %true = arith.constant true
  %x = arith.constant dense<0.0> : tensor<32xf32>
  // expected-error @below {{expected a tile of f32 with a layout, got 'tensor<32xf32>'}}
  tkgpu.doubt %p if %true : <2>, %x from 0.5 to 2.0 : tensor<32xf32>
  tkgpu.return
}

// -----

tkgpu.func @f args [] {
  %p = tkgpu.alloc_phases arrivals 8 {notes} : <2>
  %true = arith.constant true
  %x = arith.constant dense<0.0> : tensor<32xf32, #tkgpu.layout<register = [], lane = [[1], [2], [4], [8], [16]], warp = []>>
  // expected-error @below {{expected a range that is not empty}}
  tkgpu.doubt %p if %true : <2>, %x from 2.0 to 0.5 : tensor<32xf32, #tkgpu.layout<register = [], lane = [[1], [2], [4], [8], [16]], warp = []>>
  tkgpu.return
}

// -----

// expected-error @below {{expected ones behind whole rows, or rows of ones, along the last axis of a tile without padding, got ones = 8}}
func.func private @ones(!tkgpu.shared<[64, 64], bf16 padding = 8 ones = 8>)

// -----

// expected-error @below {{expected ones behind whole rows, or rows of ones, along the last axis of a tile without padding, got ones = 8}}
func.func private @ones(!tkgpu.shared<[64, 64], bf16 order = [0, 1] chunk = 8 phases = 4 panel = 32 ones = 8>)

// -----

// expected-error @below {{expected ones behind whole rows, or rows of ones, along the last axis of a tile without padding, got ones = 8}}
func.func private @ones(!tkgpu.shared<[2, 32, 64], bf16 order = [1, 0, 2] ones = 8>)

// -----

tkgpu.func @f args [] {
  %a = arith.constant dense<0.0> : tensor<64x128xf8E4M3FN>
  %b = tkgpu.alloc_shared : <[128, 64], f8E4M3FN order = [0, 1] chunk = 16 phases = 8 ones = 8>
  %sums = arith.constant dense<0.0> : tensor<64x8xf32>
  // expected-error @below {{expected the product of its operands in front of it}}
  %s = tkgpu.warpgroup_sums %a, %b, %sums : tensor<64x128xf8E4M3FN>, <[128, 64], f8E4M3FN order = [0, 1] chunk = 16 phases = 8 ones = 8> -> tensor<64x8xf32>
  tkgpu.return
}

// -----

tkgpu.func @f args [] {
  %a = arith.constant dense<0.0> : tensor<64x128xf8E4M3FN>
  %b = tkgpu.alloc_shared : <[128, 64], f8E4M3FN order = [0, 1] chunk = 16 phases = 8>
  %acc = arith.constant dense<0.0> : tensor<64x64xf32>
  %sums = arith.constant dense<0.0> : tensor<64x8xf32>
  %o = tkgpu.warpgroup_dot %a, %b, %acc precision <fast> : tensor<64x128xf8E4M3FN>, <[128, 64], f8E4M3FN order = [0, 1] chunk = 16 phases = 8> -> tensor<64x64xf32>
  // expected-error @below {{expected a column for each one behind a row of b}}
  %s = tkgpu.warpgroup_sums %a, %b, %sums : tensor<64x128xf8E4M3FN>, <[128, 64], f8E4M3FN order = [0, 1] chunk = 16 phases = 8> -> tensor<64x8xf32>
  tkgpu.return
}

// -----

tkgpu.func @f args [] {
  %x = arith.constant dense<0.0> : tensor<64x8xf32>
  // expected-error @below {{expected a source with a layout}}
  %r = tkgpu.first_in_threads %x axis 1 : tensor<64x8xf32> -> tensor<64xf32>
  tkgpu.return
}

// -----

// expected-error @below {{expected rows of two axes' panels as far apart as they have rows, got pitch = 32}}
func.func private @pitch(!tkgpu.shared<[64, 128], bf16 order = [1, 0] chunk = 8 phases = 8 panel = 64 pitch = 32>)

// -----

// expected-error @below {{expected rows of two axes' panels as far apart as they have rows, got pitch = 128}}
func.func private @pitch_without_panels(!tkgpu.shared<[64, 64], bf16 order = [1, 0] chunk = 8 phases = 8 pitch = 128>)

// -----

tkgpu.func @f args [] {
  %c0 = arith.constant 0 : index
  %s = tkgpu.alloc_shared : <[2, 128, 128], bf16 order = [2, 1, 0] chunk = 8 phases = 8 panel = 64>
  // expected-error @below {{expected rows of a stage with their first one}}
  %h = tkgpu.stage %s[%c0] from %c0 : !tkgpu.shared<[2, 128, 128], bf16 order = [2, 1, 0] chunk = 8 phases = 8 panel = 64> -> !tkgpu.shared<[128, 128], bf16 order = [1, 0] chunk = 8 phases = 8 panel = 64>
  tkgpu.return
}

// -----

tkgpu.func @f args [] {
  %c0 = arith.constant 0 : index
  %s = tkgpu.alloc_shared : <[2, 128, 128], bf16 order = [2, 1, 0] chunk = 8 phases = 8 panel = 64>
  // expected-error @below {{expected rows of a stage with their first one}}
  %h = tkgpu.stage %s[%c0] : !tkgpu.shared<[2, 128, 128], bf16 order = [2, 1, 0] chunk = 8 phases = 8 panel = 64> -> !tkgpu.shared<[64, 128], bf16 order = [1, 0] chunk = 8 phases = 8 panel = 64 pitch = 128>
  tkgpu.return
}

// -----

tkgpu.func @f args [] {
  %c0 = arith.constant 0 : index
  %s = tkgpu.alloc_shared : <[2, 128, 128], bf16 order = [2, 1, 0] chunk = 8 phases = 8 panel = 64>
  // expected-error @below {{expected a stage of}}
  %h = tkgpu.stage %s[%c0] from %c0 : !tkgpu.shared<[2, 128, 128], bf16 order = [2, 1, 0] chunk = 8 phases = 8 panel = 64> -> !tkgpu.shared<[64, 128], bf16 order = [1, 0] chunk = 8 phases = 8 panel = 64 pitch = 64>
  tkgpu.return
}

// -----

tkgpu.func @f args [] {
  %x = arith.constant dense<0.0> : tensor<64x8xf32>
  // expected-error @below {{expected an axis of 'tensor<64x16xf32>', got 2}}
  %r = tkgpu.join %x, %x axis 2 : tensor<64x8xf32>, tensor<64x8xf32> -> tensor<64x16xf32>
  tkgpu.return
}

// -----

tkgpu.func @f args [] {
  %x = arith.constant dense<0.0> : tensor<64x8xf32>
  // expected-error @below {{expected 2 equal parts of 'tensor<64x16xf32>', got 'tensor<64x8xf32>'}}
  %r = tkgpu.join %x, %x : tensor<64x8xf32>, tensor<64x8xf32> -> tensor<64x16xf32>
  tkgpu.return
}

// -----

tkgpu.func @f args ["m"] {
^bb0(%m: !tkgpu.tensor_map):
  %c0 = arith.constant 0 : index
  %s = tkgpu.alloc_shared : <[64, 64], bf16 chunk = 8 phases = 8>
  // expected-error @below {{expected a distance along each axis but the first and the last one, and whole tiles, of windows}}
  tkgpu.bulk_copy %s, %m[%c0, %c0, %c0] at distances(%c0, %c0) : <[64, 64], bf16 chunk = 8 phases = 8>
  tkgpu.return
}

// -----

tk.kernel @k dims ["M"] params [#tk.param<"a">] results [] {
^bb0(%M: index, %a: tensor<?x?x?xbf16>):
  tk.bind %a[%M, %M, %M] : tensor<?x?x?xbf16>
  // expected-error @below {{expected places, and where and how far apart they are, along all of 3 axes but the first and the last one}}
  %m = tkgpu.tensor_map %a : tensor<?x?x?xbf16> extents(%M, %M, %M) strides(%M, %M, %M) box [1, 64, 64] swizzle 128 places(%M, %M) from [0, 0] by [1, 1]
  tk.return
}

// -----

tkgpu.func @f args [] {
  %x = arith.constant dense<0.0> : tensor<32xf32>
  // expected-error @below {{expected tiles of f32 with a layout, got 'tensor<32xf32>'}}
  %all = tkgpu.all_finite %x : tensor<32xf32>
  tkgpu.return
}

// -----

tkgpu.func @f args [] {
  %p = tkgpu.alloc_phases arrivals 8 : <2>
  // expected-error @below {{expected phases with a place for notes}}
  %d = tkgpu.noted %p : <2>
  tkgpu.return
}

// -----

tkgpu.func @f args [] {
  %stage = tkgpu.alloc_shared : <[32, 64], f32 order = [1, 0]>
  %p = tkgpu.alloc_phases arrivals 1 : <1>
  // expected-error @below {{expected floats of 8 or 16 bits, got 'f32'}}
  tkgpu.keep_finite %stage after %p : <[32, 64], f32 order = [1, 0]>, <1>
  tkgpu.return
}

// -----

tkgpu.func @f args [] {
  %stage = tkgpu.alloc_shared : <[32, 64], bf16 order = [1, 0]>
  %p = tkgpu.alloc_phases arrivals 1 : <1>
  // expected-error @below {{expected one mbarrier and a flag, got}}
  tkgpu.keep_finite %stage after %p : <[32, 64], bf16 order = [1, 0]>, <1>
  tkgpu.return
}

// -----

tkgpu.func @f args [] {
  %stage = tkgpu.alloc_shared : <[32, 64], bf16 order = [1, 0]>
  %p = tkgpu.alloc_phases arrivals 1 : <2>
  // expected-error @below {{expected phases with a place for notes}}
  tkgpu.keep_finite %stage after %p : <[32, 64], bf16 order = [1, 0]>, <2>
  tkgpu.return
}

// -----

#one = #tkgpu.layout<register = [], lane = [[1], [2], [4], [8], [16]], warp = []>
tkgpu.func @f args ["o", "m"] {
^bb0(%o: tensor<32xf32, #one>, %m: tensor<32x1xf32>):
  // expected-error @below {{expected a reference of the tile's type}}
  %p = tkgpu.repair %o under %m : tensor<32x1xf32> {
  ^bb0(%place: index, %reference: f32):
    tkgpu.element_end %reference : f32
  } : tensor<32xf32, #one>
  tkgpu.return
}

// -----

#one = #tkgpu.layout<register = [], lane = [[1], [2], [4], [8], [16]], warp = []>
tkgpu.func @f args ["o", "sum"] {
^bb0(%o: tensor<32xf32, #one>, %sum: f32):
  // expected-error @below {{expected a number of type 'f32' as the last argument of the body}}
  %p = tkgpu.repair %o under %o : tensor<32xf32, #one> {
  ^bb0(%place: index):
    tkgpu.element_end %sum : f32
  } : tensor<32xf32, #one>
  tkgpu.return
}

// -----

#one = #tkgpu.layout<register = [], lane = [[1], [2], [4], [8], [16]], warp = []>
tkgpu.func @f args ["o", "sum"] {
^bb0(%o: tensor<32xf32, #one>, %sum: f64):
  // expected-error @below {{expected the body to end with a value of type 'f32', got 'f64'}}
  %p = tkgpu.repair %o {
  ^bb0(%place: index):
    tkgpu.element_end %sum : f64
  } : tensor<32xf32, #one>
  tkgpu.return
}

// -----

#one = #tkgpu.layout<register = [], lane = [[1], [2], [4], [8], [16]], warp = []>
tkgpu.func @f args ["o", "sum"] {
^bb0(%o: tensor<32xf32, #one>, %sum: f32):
  // expected-error @below {{expected no uses of the result of a repair of what is stored}}
  %p = tkgpu.repair %o stored {
  ^bb0(%place: index):
    tkgpu.element_end %sum : f32
  } : tensor<32xf32, #one>
  %all = tkgpu.all_finite %p : tensor<32xf32, #one>
  tkgpu.return
}

// -----

tkgpu.func @f args ["y", "sum"] {
^bb0(%y: !tkgpu.buffer<bf16>, %sum: f32):
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected a value of the buffer's element type 'bf16', got 'f32'}}
  tkgpu.put_element %sum, %y[%c0] : f32, <bf16>
  tkgpu.return
}

// -----

// expected-error @below {{expected a reference at the end of the body exactly if a result is one}}
tkgpu.element "attention_state1" result 1 under 0 arguments [-1] {
^bb0(%i: index):
  %sum = arith.constant 0.0 : f32
  tkgpu.element_end %sum : f32
}
