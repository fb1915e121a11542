// RUN: tk-opt %s --tk-select-schedule | FileCheck %s --check-prefix=BASE
// RUN: tk-opt %s --tk-select-schedule --tk-coarsen-threads | FileCheck %s --check-prefix=COARSE
// RUN: tk-opt %s --tk-select-schedule --tk-coarsen-threads --tk-widen-vectors | FileCheck %s --check-prefix=WIDE

module attributes {tkgpu.target = #tkgpu.target<arch = 90>} {
// BASE-LABEL: tk.kernel @product
// BASE: #tkgpu.schedule<tile = [16, 16], reduce = [16], warps = 8, per_thread = 1, vector = 4,
// COARSE-LABEL: tk.kernel @product
// COARSE: #tkgpu.schedule<tile = [256, 128], reduce = [32], warps = 8, per_thread = 128, vector = 4,
// WIDE-LABEL: tk.kernel @product
// WIDE: #tkgpu.schedule<tile = [256, 128], {{.*}} vector = 16,
tk.kernel @product dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] {
^bb0(%M: index, %N: index, %K: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
  tk.bind %a[%M, %K] : tensor<?x?xf32>
  tk.bind %b[%K, %N] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %c = tk.compute ["i", "j"] in (%M, %N) {
  ^bb0(%i: index, %j: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%K) {
    ^bb0(%k: index):
      %x = tk.load %a[%i, %k] : tensor<?x?xf32>
      %y = tk.load %b[%k, %j] : tensor<?x?xf32>
      %p = arith.mulf %x, %y : f32
      tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["c"] : tensor<?x?xf32>
  tk.return %c : tensor<?x?xf32>
}

// The kernel's own block comes first; a block for another machine does not apply.
// COARSE-LABEL: tk.kernel @own
// COARSE: #tkgpu.schedule<tile = [64, 256], reduce = [8], warps = 8, per_thread = 64, {{.*}} stages = 4
tk.kernel @own dims ["M", "N", "K"] params [#tk.param<"a">, #tk.param<"b">] results ["c"] {
^bb0(%M: index, %N: index, %K: index, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
  tk.bind %a[%M, %K] : tensor<?x?xf32>
  tk.bind %b[%K, %N] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %c = tk.compute ["i", "j"] in (%M, %N) {
  ^bb0(%i: index, %j: index):
    %s = tk.reduce [#tk.kind<sum>] ["k"] from (%zero) to (%K) {
    ^bb0(%k: index):
      %x = tk.load %a[%i, %k] : tensor<?x?xf32>
      %y = tk.load %b[%k, %j] : tensor<?x?xf32>
      %p = arith.mulf %x, %y : f32
      tk.yield %p : f32
    } : f32
    tk.yield %s : f32
  } names ["c"] : tensor<?x?xf32>
  tk.return %c : tensor<?x?xf32>
} {tk.schedules = [{arch = "sm_80", stages = 2}, {arch = "sm_90a", stages = 4, tile = {i = 64, j = 256, k = 8}}]}

// BASE-LABEL: tk.kernel @pointwise
// BASE: #tkgpu.schedule<tile = [256], reduce = [], warps = 8, per_thread = 1,
// COARSE-LABEL: tk.kernel @pointwise
// COARSE: #tkgpu.schedule<tile = [1024], reduce = [], warps = 4, per_thread = 8,
tk.kernel @pointwise dims ["N"] params [#tk.param<"x">] results ["y"] {
^bb0(%N: index, %x: tensor<?xbf16>):
  tk.bind %x[%N] : tensor<?xbf16>
  %y = tk.compute ["i"] in (%N) {
  ^bb0(%i: index):
    %v = tk.load %x[%i] : tensor<?xbf16>
    tk.yield %v : bf16
  } names ["y"] : tensor<?xbf16>
  tk.return %y : tensor<?xbf16>
}

// Sums of columns: threads along the columns.
// BASE-LABEL: tk.kernel @columns
// BASE: #tkgpu.schedule<tile = [32], reduce = [8],
tk.kernel @columns dims ["R", "C"] params [#tk.param<"x">] results ["y"] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["c"] in (%C) {
  ^bb0(%c: index):
    %s = tk.reduce [#tk.kind<sum>] ["r"] from (%zero) to (%R) {
    ^bb0(%r: index):
      %v = tk.load %x[%r, %c] : tensor<?x?xf32>
      tk.yield %v : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// Few terms of columns, such as parts of longer sums: all at once.
// COARSE-LABEL: tk.kernel @parts
// COARSE: #tkgpu.schedule<tile = [64], reduce = [16], warps = 4,
tk.kernel @parts dims ["R", "C"] params [#tk.param<"x">] results ["y"] facts [#tk.fact<upper = 16>, #tk.fact<divisor = 4096, upper = 4096>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["c"] in (%C) {
  ^bb0(%c: index):
    %s = tk.reduce [#tk.kind<sum>] ["r"] from (%zero) to (%R) {
    ^bb0(%r: index):
      %v = tk.load %x[%r, %c] : tensor<?x?xf32>
      tk.yield %v : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// Scans down columns: blocks of one line side by side or several, as long as there are enough
// blocks. Of columns that accesses of 16 bytes do not fill, more rows at a time: the next do not come
// early.
// COARSE-LABEL: tk.kernel @column_scan
// COARSE: #tkgpu.schedule<tile = [128, 32], reduce = [128], loop = 0, warps = 4,
// COARSE-LABEL: tk.kernel @few_columns
// COARSE: #tkgpu.schedule<tile = [512, 8], reduce = [512], loop = 0, warps = 4,
// COARSE-LABEL: tk.kernel @many_columns
// COARSE: #tkgpu.schedule<tile = [32, 128], reduce = [32], loop = 0, warps = 4,
// COARSE-LABEL: tk.kernel @odd_columns
// COARSE: #tkgpu.schedule<tile = [1024, 32], reduce = [1024], loop = 0, warps = 16,
tk.kernel @column_scan dims ["R", "C"] params [#tk.param<"x">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 4096, upper = 4096>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %s = tk.scan <sum> "k" from %zero to %R at %r {
    ^bb0(%k: index):
      %v = tk.load %x[%k, %c] : tensor<?x?xf32>
      tk.yield %v : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}
tk.kernel @few_columns dims ["R", "C"] params [#tk.param<"x">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 512, upper = 512>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %s = tk.scan <sum> "k" from %zero to %R at %r {
    ^bb0(%k: index):
      %v = tk.load %x[%k, %c] : tensor<?x?xf32>
      tk.yield %v : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}
tk.kernel @many_columns dims ["R", "C"] params [#tk.param<"x">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 16384, upper = 16384>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %s = tk.scan <sum> "k" from %zero to %R at %r {
    ^bb0(%k: index):
      %v = tk.load %x[%k, %c] : tensor<?x?xf32>
      tk.yield %v : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}
tk.kernel @odd_columns dims ["R", "C"] params [#tk.param<"x">] results ["y"] facts [#tk.fact<>, #tk.fact<upper = 4096>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xf32>):
  tk.bind %x[%R, %C] : tensor<?x?xf32>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r", "c"] in (%R, %C) {
  ^bb0(%r: index, %c: index):
    %s = tk.scan <sum> "k" from %zero to %R at %r {
    ^bb0(%k: index):
      %v = tk.load %x[%k, %c] : tensor<?x?xf32>
      tk.yield %v : f32
    } : f32
    tk.yield %s : f32
  } names ["y"] : tensor<?x?xf32>
  tk.return %y : tensor<?x?xf32>
}

// Rows of one access a thread: two a warp.
// COARSE-LABEL: tk.kernel @shorter_rows
// COARSE: #tkgpu.schedule<tile = [8], reduce = [256], warps = 4, per_thread = 16,
tk.kernel @shorter_rows dims ["R", "C"] params [#tk.param<"x">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 256, upper = 256>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>):
  tk.bind %x[%R, %C] : tensor<?x?xbf16>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<max>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
      %v = tk.load %x[%r, %c] : tensor<?x?xbf16>
      tk.yield %v : bf16
    } : bf16
    tk.yield %s : bf16
  } names ["y"] : tensor<?xbf16>
  tk.return %y : tensor<?xbf16>
}

// A row that one block holds in registers; two in a block where they are short.
// COARSE-LABEL: tk.kernel @rows
// COARSE: #tkgpu.schedule<tile = [1], reduce = [4096], warps = 4, per_thread = 32,
tk.kernel @rows dims ["R", "C"] params [#tk.param<"x">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 4096, upper = 4096>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>):
  tk.bind %x[%R, %C] : tensor<?x?xbf16>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<max>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
      %v = tk.load %x[%r, %c] : tensor<?x?xbf16>
      tk.yield %v : bf16
    } : bf16
    tk.yield %s : bf16
  } names ["y"] : tensor<?xbf16>
  tk.return %y : tensor<?xbf16>
}
// Rows that would leave half of the threads without one of their vectors have half of the threads.
// COARSE-LABEL: tk.kernel @short_of_tile
// COARSE: #tkgpu.schedule<tile = [1], reduce = [8192], warps = 4, per_thread = 64,
tk.kernel @short_of_tile dims ["R", "C"] params [#tk.param<"x">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 1024, upper = 5120>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>):
  tk.bind %x[%R, %C] : tensor<?x?xbf16>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<max>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
      %v = tk.load %x[%r, %c] : tensor<?x?xbf16>
      tk.yield %v : bf16
    } : bf16
    tk.yield %s : bf16
  } names ["y"] : tensor<?xbf16>
  tk.return %y : tensor<?xbf16>
}
// COARSE-LABEL: tk.kernel @short_rows
// COARSE: #tkgpu.schedule<tile = [4], reduce = [1024], warps = 4, per_thread = 32,
tk.kernel @short_rows dims ["R", "C"] params [#tk.param<"x">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 1024, upper = 1024>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>):
  tk.bind %x[%R, %C] : tensor<?x?xbf16>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<max>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
      %v = tk.load %x[%r, %c] : tensor<?x?xbf16>
      tk.yield %v : bf16
    } : bf16
    tk.yield %s : bf16
  } names ["y"] : tensor<?xbf16>
  tk.return %y : tensor<?xbf16>
}

// A row that takes the blocks of a cluster.
// BASE-LABEL: tk.kernel @long_rows
// BASE-NOT: cluster
// COARSE-LABEL: tk.kernel @long_rows
// COARSE: #tkgpu.schedule<tile = [1], reduce = [131072], warps = 128, per_thread = 32, {{.*}} cluster = 8>
tk.kernel @long_rows dims ["R", "C"] params [#tk.param<"x">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 8, upper = 131072>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>):
  tk.bind %x[%R, %C] : tensor<?x?xbf16>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<max>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
      %v = tk.load %x[%r, %c] : tensor<?x?xbf16>
      tk.yield %v : bf16
    } : bf16
    tk.yield %s : bf16
  } names ["y"] : tensor<?xbf16>
  tk.return %y : tensor<?xbf16>
}

// A longer one, slice by slice, unless what is read of a few of them exceeds the cache.
// COARSE-LABEL: tk.kernel @longer_rows
// COARSE: #tkgpu.schedule<tile = [1], reduce = [131072], warps = 128, per_thread = 32, {{.*}} cluster = 8>
tk.kernel @longer_rows dims ["R", "C"] params [#tk.param<"x">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 8, upper = 524288>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>):
  tk.bind %x[%R, %C] : tensor<?x?xbf16>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<max>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
      %v = tk.load %x[%r, %c] : tensor<?x?xbf16>
      tk.yield %v : bf16
    } : bf16
    tk.yield %s : bf16
  } names ["y"] : tensor<?xbf16>
  tk.return %y : tensor<?xbf16>
}

// COARSE-LABEL: tk.kernel @longer_rows_of_two
// COARSE-NOT: cluster
// COARSE: tk.return
tk.kernel @longer_rows_of_two dims ["R", "C"] params [#tk.param<"a">, #tk.param<"b">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 8, upper = 524288>] {
^bb0(%R: index, %C: index, %a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>):
  tk.bind %a[%R, %C] : tensor<?x?xbf16>
  tk.bind %b[%R, %C] : tensor<?x?xbf16>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<max>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
      %v = tk.load %a[%r, %c] : tensor<?x?xbf16>
      %w = tk.load %b[%r, %c] : tensor<?x?xbf16>
      %p = arith.addf %v, %w : bf16
      tk.yield %p : bf16
    } : bf16
    tk.yield %s : bf16
  } names ["y"] : tensor<?xbf16>
  tk.return %y : tensor<?xbf16>
}

// An online reduction joins the blocks for each slice: whole ones alone are worth it.
// COARSE-LABEL: tk.kernel @whole_slices
// COARSE: #tkgpu.schedule<{{.*}} cluster = 8>
tk.kernel @whole_slices dims ["R", "C"] params [#tk.param<"x">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 131072, upper = 524288>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>):
  tk.bind %x[%R, %C] : tensor<?x?xbf16>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %m, %s = tk.reduce [#tk.kind<max>, #tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index, %running: f32):
      %b = tk.load %x[%r, %c] : tensor<?x?xbf16>
      %v = arith.extf %b : bf16 to f32
      %e = tk.exp_diff %v, %running : f32
      tk.yield %v, %e : f32, f32
    } rescale {
    ^bb0(%old: f32, %new: f32):
      %f = tk.exp_diff %old, %new : f32
      tk.yield %f : f32
    } : f32, f32
    tk.yield %s : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// COARSE-LABEL: tk.kernel @ragged_slices
// COARSE-NOT: cluster
// COARSE: tk.return
tk.kernel @ragged_slices dims ["R", "C"] params [#tk.param<"x">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 65536, upper = 524288>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>):
  tk.bind %x[%R, %C] : tensor<?x?xbf16>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %m, %s = tk.reduce [#tk.kind<max>, #tk.kind<sum>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index, %running: f32):
      %b = tk.load %x[%r, %c] : tensor<?x?xbf16>
      %v = arith.extf %b : bf16 to f32
      %e = tk.exp_diff %v, %running : f32
      tk.yield %v, %e : f32, f32
    } rescale {
    ^bb0(%old: f32, %new: f32):
      %f = tk.exp_diff %old, %new : f32
      tk.yield %f : f32
    } : f32, f32
    tk.yield %s : f32
  } names ["y"] : tensor<?xf32>
  tk.return %y : tensor<?xf32>
}

// Its transpose does not lie along memory, and is stepped through.
// COARSE-LABEL: tk.kernel @transposed_rows
// COARSE-NOT: cluster
// COARSE: tk.return
tk.kernel @transposed_rows dims ["R", "C"] params [#tk.param<"x">] results ["y"] facts [#tk.fact<>, #tk.fact<divisor = 8, upper = 131072>] {
^bb0(%R: index, %C: index, %x: tensor<?x?xbf16>):
  tk.bind %x[%C, %R] : tensor<?x?xbf16>
  %zero = arith.constant 0 : index
  %y = tk.compute ["r"] in (%R) {
  ^bb0(%r: index):
    %s = tk.reduce [#tk.kind<max>] ["c"] from (%zero) to (%C) {
    ^bb0(%c: index):
      %v = tk.load %x[%c, %r] : tensor<?x?xbf16>
      tk.yield %v : bf16
    } : bf16
    tk.yield %s : bf16
  } names ["y"] : tensor<?xbf16>
  tk.return %y : tensor<?xbf16>
}
}
