// RUN: tk-opt %s --tk-join-reductions | FileCheck %s

#row = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512], [1024]]>
#short = #tkgpu.layout<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512]]>
#long = #tkgpu.layout<register = [[1], [2], [4], [2048], [4096], [8192]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512], [1024]]>

// The squares about a scalar that follows from the sum, whatever it is.
// CHECK-LABEL: tkgpu.func @variance
// CHECK: %[[MEAN:.*]], %[[SQUARES:.*]] = tkgpu.moments %[[X:.*]] : tensor<2048xf32
// CHECK: %[[N:.*]] = arith.constant 2.048000e+03 : f32
// CHECK: %[[SUM:.*]] = arith.mulf %[[MEAN]], %[[N]] : f32
// CHECK: %[[C:.*]] = arith.divf %[[SUM]], %{{.*}} : f32
// CHECK-NOT: tkgpu.reduce
// CHECK: %[[SHIFT:.*]] = arith.subf %[[MEAN]], %[[C]] : f32
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[SHIFT]], %[[SHIFT]] : f32
// CHECK: %[[ALL:.*]] = arith.mulf %[[SQUARE]], %[[N]] : f32
// CHECK: %[[Q:.*]] = arith.addf %[[SQUARES]], %[[ALL]] : f32
// CHECK: tkgpu.store %[[Q]]
tkgpu.func @variance args ["x", "q", "n"] {
^bb0(%x: !tkgpu.buffer<bf16>, %out: !tkgpu.buffer<f32>, %n: f32):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<2048xindex, #row>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<2048xindex, #row>, index) -> tensor<2048xbf16, #row>
  %f = arith.extf %v : tensor<2048xbf16, #row> to tensor<2048xf32, #row>
  %s = tkgpu.reduce <sum> %f axis 0 : tensor<2048xf32, #row> -> f32
  %m = arith.divf %s, %n : f32
  %ms = tkgpu.broadcast %m dims [] : f32 -> tensor<2048xf32, #row>
  %d = arith.subf %f, %ms : tensor<2048xf32, #row>
  %dd = arith.mulf %d, %d : tensor<2048xf32, #row>
  %q = tkgpu.reduce <sum> %dd axis 0 : tensor<2048xf32, #row> -> f32
  tkgpu.store %q, %out[%c0] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
  tkgpu.return
} {num_warps = 8 : i64, index_bits = 32 : i64}

// Exponentials that are multiplied or divided by a scalar, and others.
// CHECK-LABEL: tkgpu.func @softmax
// CHECK: %[[MAX:.*]], %[[SUM:.*]], %[[W:.*]], %[[G:.*]] = tkgpu.weights %[[X:.*]] : tensor<2048xf32
// CHECK-NOT: tk.exp_diff
// CHECK: %[[E:.*]] = arith.mulf %[[W]], %[[G]] : tensor<2048xf32
// CHECK: %[[R:.*]] = tk.div_or_zero %{{.*}}, %[[SUM]] {tkgpu.math = #tkgpu.math<approx>} : f32
// CHECK: %[[RS:.*]] = tkgpu.broadcast %[[R]]
// CHECK: %[[GR:.*]] = arith.mulf %[[G]], %[[RS]]
// CHECK: %[[P:.*]] = arith.mulf %[[W]], %[[GR]]
// CHECK: %[[GF:.*]] = arith.mulf %[[G]], %[[FS:.*]] : tensor<2048xf32
// CHECK: %[[Q:.*]] = arith.mulf %[[W]], %[[GF]]
// CHECK: %[[PQ:.*]] = arith.addf %[[P]], %[[Q]]
// CHECK: arith.addf %[[PQ]], %[[E]]
tkgpu.func @softmax args ["x", "y", "f"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %factor: f32):
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<2048xindex, #row>
  %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, tensor<2048xindex, #row>, index) -> tensor<2048xbf16, #row>
  %f = arith.extf %v : tensor<2048xbf16, #row> to tensor<2048xf32, #row>
  %m = tkgpu.reduce <max> %f axis 0 : tensor<2048xf32, #row> -> f32
  %ms = tkgpu.broadcast %m dims [] : f32 -> tensor<2048xf32, #row>
  %e = tk.exp_diff %f, %ms {tkgpu.math = #tkgpu.math<approx>} : tensor<2048xf32, #row>
  %s = tkgpu.reduce <sum> %e axis 0 : tensor<2048xf32, #row> -> f32
  %ss = tkgpu.broadcast %s dims [] : f32 -> tensor<2048xf32, #row>
  %p = tk.div_or_zero %e, %ss {tkgpu.math = #tkgpu.math<approx>} : tensor<2048xf32, #row>
  %fs = tkgpu.broadcast %factor dims [] : f32 -> tensor<2048xf32, #row>
  %q = arith.mulf %fs, %e : tensor<2048xf32, #row>
  %pq = arith.addf %p, %q : tensor<2048xf32, #row>
  %pqe = arith.addf %pq, %e : tensor<2048xf32, #row>
  %r = arith.truncf %pqe : tensor<2048xf32, #row> to tensor<2048xbf16, #row>
  tkgpu.store %r, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (tensor<2048xbf16, #row>, !tkgpu.buffer<bf16>, tensor<2048xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 8 : i64, index_bits = 32 : i64}

// Exponentials that f32 results follow from are not approximate, and a maximum of something else is
// none to them.
// CHECK-LABEL: tkgpu.func @exact
// CHECK: tkgpu.reduce <max>
// CHECK: tkgpu.reduce <sum>
// CHECK: tkgpu.reduce <sum>
tkgpu.func @exact args ["x", "s", "m"] {
^bb0(%x: !tkgpu.buffer<f32>, %out: !tkgpu.buffer<f32>, %other: f32):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<2048xindex, #row>
  %f = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<2048xindex, #row>, index) -> tensor<2048xf32, #row>
  %m = tkgpu.reduce <max> %f axis 0 : tensor<2048xf32, #row> -> f32
  %ms = tkgpu.broadcast %m dims [] : f32 -> tensor<2048xf32, #row>
  %e = tk.exp_diff %f, %ms : tensor<2048xf32, #row>
  %s = tkgpu.reduce <sum> %e axis 0 : tensor<2048xf32, #row> -> f32
  %os = tkgpu.broadcast %other dims [] : f32 -> tensor<2048xf32, #row>
  %a = tk.exp_diff %f, %os {tkgpu.math = #tkgpu.math<approx>} : tensor<2048xf32, #row>
  %t = tkgpu.reduce <sum> %a axis 0 : tensor<2048xf32, #row> -> f32
  %st = arith.addf %s, %t : f32
  tkgpu.store %st, %out[%c0] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
  tkgpu.return
} {num_warps = 8 : i64, index_bits = 32 : i64}

// Few warps meet soon, and more elements than registers hold are not kept.
// CHECK-LABEL: tkgpu.func @few
// CHECK-NOT: tkgpu.moments
// CHECK-LABEL: tkgpu.func @many
// CHECK-NOT: tkgpu.moments
tkgpu.func @few args ["x", "q"] {
^bb0(%x: !tkgpu.buffer<f32>, %out: !tkgpu.buffer<f32>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<1024xindex, #short>
  %f = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<1024xindex, #short>, index) -> tensor<1024xf32, #short>
  %s = tkgpu.reduce <sum> %f axis 0 : tensor<1024xf32, #short> -> f32
  %ss = tkgpu.broadcast %s dims [] : f32 -> tensor<1024xf32, #short>
  %d = arith.subf %f, %ss : tensor<1024xf32, #short>
  %dd = arith.mulf %d, %d : tensor<1024xf32, #short>
  %q = tkgpu.reduce <sum> %dd axis 0 : tensor<1024xf32, #short> -> f32
  tkgpu.store %q, %out[%c0] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}
tkgpu.func @many args ["x", "q"] {
^bb0(%x: !tkgpu.buffer<f32>, %out: !tkgpu.buffer<f32>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<16384xindex, #long>
  %f = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 4 : i64} : (!tkgpu.buffer<f32>, tensor<16384xindex, #long>, index) -> tensor<16384xf32, #long>
  %s = tkgpu.reduce <sum> %f axis 0 : tensor<16384xf32, #long> -> f32
  %ss = tkgpu.broadcast %s dims [] : f32 -> tensor<16384xf32, #long>
  %d = arith.subf %f, %ss : tensor<16384xf32, #long>
  %dd = arith.mulf %d, %d : tensor<16384xf32, #long>
  %q = tkgpu.reduce <sum> %dd axis 0 : tensor<16384xf32, #long> -> f32
  tkgpu.store %q, %out[%c0] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
  tkgpu.return
} {num_warps = 8 : i64, index_bits = 32 : i64}

// But where a thread reads its part from memory of its own, a part at a time, few warps or many; then
// again for what is stored.
// CHECK-LABEL: tkgpu.func @kept_moments
// CHECK: tkgpu.moments
// CHECK-NOT: tkgpu.reduce
// CHECK-LABEL: tkgpu.func @kept_weights
// CHECK: %[[MAX:.*]], %[[SUM:.*]], %{{.*}}, %{{.*}} = tkgpu.weights %[[X:.*]] : tensor<8192xf32
// CHECK-NOT: tkgpu.reduce
// CHECK: %[[MS:.*]] = tkgpu.broadcast %[[MAX]]
// CHECK: %[[E:.*]] = tk.exp_diff %[[X]], %[[MS]]
// CHECK: tk.div_or_zero %[[E]]
#part = #tkgpu.layout<register = [[1], [2], [4], [1024], [2048], [4096]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512]]>
tkgpu.func @kept_moments args ["x", "q"] {
^bb0(%x: !tkgpu.buffer<bf16>, %out: !tkgpu.buffer<f32>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kept = tkgpu.alloc_private : !tkgpu.private<1 x tensor<8192xbf16, #part>, vector = 8>
  %v = tkgpu.private_load %kept at %c0 : !tkgpu.private<1 x tensor<8192xbf16, #part>, vector = 8> -> tensor<8192xbf16, #part>
  %f = arith.extf %v : tensor<8192xbf16, #part> to tensor<8192xf32, #part>
  %s = tkgpu.reduce <sum> %f axis 0 : tensor<8192xf32, #part> -> f32
  %ss = tkgpu.broadcast %s dims [] : f32 -> tensor<8192xf32, #part>
  %d = arith.subf %f, %ss : tensor<8192xf32, #part>
  %dd = arith.mulf %d, %d : tensor<8192xf32, #part>
  %q = tkgpu.reduce <sum> %dd axis 0 : tensor<8192xf32, #part> -> f32
  tkgpu.store %q, %out[%c0] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}
tkgpu.func @kept_weights args ["x", "y"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %j = tkgpu.iota : tensor<8192xindex, #part>
  %kept = tkgpu.alloc_private : !tkgpu.private<1 x tensor<8192xbf16, #part>, vector = 8>
  %v = tkgpu.private_load %kept at %c0 : !tkgpu.private<1 x tensor<8192xbf16, #part>, vector = 8> -> tensor<8192xbf16, #part>
  %f = arith.extf %v : tensor<8192xbf16, #part> to tensor<8192xf32, #part>
  %m = tkgpu.reduce <max> %f axis 0 : tensor<8192xf32, #part> -> f32
  %ms = tkgpu.broadcast %m dims [] : f32 -> tensor<8192xf32, #part>
  %e = tk.exp_diff %f, %ms {tkgpu.math = #tkgpu.math<approx>} : tensor<8192xf32, #part>
  %s = tkgpu.reduce <sum> %e axis 0 : tensor<8192xf32, #part> -> f32
  %ss = tkgpu.broadcast %s dims [] : f32 -> tensor<8192xf32, #part>
  %p = tk.div_or_zero %e, %ss {tkgpu.math = #tkgpu.math<approx>} : tensor<8192xf32, #part>
  %r = arith.truncf %p : tensor<8192xf32, #part> to tensor<8192xbf16, #part>
  tkgpu.store %r, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] {vector = 8 : i64} : (tensor<8192xbf16, #part>, !tkgpu.buffer<bf16>, tensor<8192xindex, #part>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}
