// RUN: tk-opt %s --tk-keep-rows | FileCheck %s
// Two rows fit for one block, but not for all whose threads have registers.
#target = #tkgpu.target<arch = 90, shared = 232448, processors = 132, hopper = true>
#row = #tkgpu.layout<register = [[1], [2], [4], [1024], [2048], [4096]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512]]>
module attributes {tkgpu.target = #target} {

// Of x, y, their sum as f32 and the rounded one, all of which everything behind the reduction follows
// from, the last is the narrowest: it is put into shared memory, and used from there.
// CHECK-LABEL: tkgpu.func @rounded
// CHECK-NOT: tkgpu.copy_private
// CHECK: %[[SUM:.*]] = arith.truncf
// CHECK: %[[KEPT:.*]] = tkgpu.alloc_private : <1 x tensor<8192xbf16, {{.*}}>, vector = 8>
// CHECK-NEXT: tkgpu.private_store %[[SUM]], %[[KEPT]] at
// CHECK-NEXT: %[[READ:.*]] = tkgpu.private_load %[[KEPT]]
// CHECK-NEXT: %[[WIDE:.*]] = arith.extf %[[READ]]
// CHECK-NEXT: tkgpu.reduce <max> %[[WIDE]]
// CHECK: arith.subf %[[WIDE]]
// CHECK: tkgpu.store %[[READ]]
tkgpu.func @rounded args ["x", "y", "z", "s"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %z: !tkgpu.buffer<f32>, %s: !tkgpu.buffer<bf16>):
  %c1 = arith.constant 1 : index
  %C = arith.constant 8192 : index
  %r = tkgpu.program_id x
  %j = tkgpu.iota : tensor<8192xindex, #row>
  %a = tkgpu.load %x[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<8192xindex, #row>, index, index) -> tensor<8192xbf16, #row>
  %b = tkgpu.load %y[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<8192xindex, #row>, index, index) -> tensor<8192xbf16, #row>
  %af = arith.extf %a : tensor<8192xbf16, #row> to tensor<8192xf32, #row>
  %bf = arith.extf %b : tensor<8192xbf16, #row> to tensor<8192xf32, #row>
  %ab = arith.addf %af, %bf : tensor<8192xf32, #row>
  %c = arith.truncf %ab : tensor<8192xf32, #row> to tensor<8192xbf16, #row>
  %w = arith.extf %c : tensor<8192xbf16, #row> to tensor<8192xf32, #row>
  %m = tkgpu.reduce <max> %w axis 0 : tensor<8192xf32, #row> -> f32
  %mb = tkgpu.broadcast %m dims [] : f32 -> tensor<8192xf32, #row>
  %d = arith.subf %w, %mb : tensor<8192xf32, #row>
  tkgpu.store %d, %z[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 4 : i64} : (tensor<8192xf32, #row>, !tkgpu.buffer<f32>, index, tensor<8192xindex, #row>, index, index) -> ()
  tkgpu.store %c, %s[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (tensor<8192xbf16, #row>, !tkgpu.buffer<bf16>, index, tensor<8192xindex, #row>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// Behind the reduction x is needed, too: that and the rounded sum are as much as x and y, which come
// by copies.
// CHECK-LABEL: tkgpu.func @both
// CHECK-NOT: tkgpu.private_store
// CHECK-COUNT-2: tkgpu.copy_private
// CHECK-NOT: tkgpu.private_store
tkgpu.func @both args ["x", "y", "z", "s"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %z: !tkgpu.buffer<f32>, %s: !tkgpu.buffer<bf16>):
  %c1 = arith.constant 1 : index
  %C = arith.constant 8192 : index
  %r = tkgpu.program_id x
  %j = tkgpu.iota : tensor<8192xindex, #row>
  %a = tkgpu.load %x[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<8192xindex, #row>, index, index) -> tensor<8192xbf16, #row>
  %b = tkgpu.load %y[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<8192xindex, #row>, index, index) -> tensor<8192xbf16, #row>
  %af = arith.extf %a : tensor<8192xbf16, #row> to tensor<8192xf32, #row>
  %bf = arith.extf %b : tensor<8192xbf16, #row> to tensor<8192xf32, #row>
  %ab = arith.addf %af, %bf : tensor<8192xf32, #row>
  %c = arith.truncf %ab : tensor<8192xf32, #row> to tensor<8192xbf16, #row>
  %w = arith.extf %c : tensor<8192xbf16, #row> to tensor<8192xf32, #row>
  %m = tkgpu.reduce <max> %w axis 0 : tensor<8192xf32, #row> -> f32
  %mb = tkgpu.broadcast %m dims [] : f32 -> tensor<8192xf32, #row>
  %d = arith.subf %w, %mb : tensor<8192xf32, #row>
  %o = arith.mulf %d, %af : tensor<8192xf32, #row>
  tkgpu.store %o, %z[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 4 : i64} : (tensor<8192xf32, #row>, !tkgpu.buffer<f32>, index, tensor<8192xindex, #row>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// A sum that is not rounded is as wide as both.
// CHECK-LABEL: tkgpu.func @exact
// CHECK-NOT: tkgpu.private_store
// CHECK-COUNT-2: tkgpu.copy_private
tkgpu.func @exact args ["x", "y", "z", "s"] {
^bb0(%x: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<bf16>, %z: !tkgpu.buffer<f32>, %s: !tkgpu.buffer<bf16>):
  %c1 = arith.constant 1 : index
  %C = arith.constant 8192 : index
  %r = tkgpu.program_id x
  %j = tkgpu.iota : tensor<8192xindex, #row>
  %a = tkgpu.load %x[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<8192xindex, #row>, index, index) -> tensor<8192xbf16, #row>
  %b = tkgpu.load %y[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 8 : i64} : (!tkgpu.buffer<bf16>, index, tensor<8192xindex, #row>, index, index) -> tensor<8192xbf16, #row>
  %af = arith.extf %a : tensor<8192xbf16, #row> to tensor<8192xf32, #row>
  %bf = arith.extf %b : tensor<8192xbf16, #row> to tensor<8192xf32, #row>
  %ab = arith.addf %af, %bf : tensor<8192xf32, #row>
  %m = tkgpu.reduce <max> %ab axis 0 : tensor<8192xf32, #row> -> f32
  %mb = tkgpu.broadcast %m dims [] : f32 -> tensor<8192xf32, #row>
  %d = arith.subf %ab, %mb : tensor<8192xf32, #row>
  tkgpu.store %d, %z[%r, %j] dims [array<i64>, array<i64: 0>] strides(%C, %c1) masks() over [] {vector = 4 : i64} : (tensor<8192xf32, #row>, !tkgpu.buffer<f32>, index, tensor<8192xindex, #row>, index, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}
}
