// RUN: tk-opt %s --tk-keep-weights | FileCheck %s
#row = #tkgpu.layout<register = [[1], [2], [4], [1024], [2048]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512]]>

// What rows share was joined before the loop over them: it lies in shared memory, as narrow as it
// was loaded.
// CHECK-LABEL: tkgpu.func @rows
// CHECK: %[[G:.*]] = tkgpu.funnel
// CHECK: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: %[[KEPT:.*]] = tkgpu.alloc_private : <1 x tensor<4096xbf16, {{.*}}>, vector = 8>
// CHECK: tkgpu.private_store %[[G]], %[[KEPT]] at %[[ZERO]]
// CHECK-NOT: arith.extf
// CHECK: scf.for
// CHECK: tkgpu.reduce
// CHECK: %[[READ:.*]] = tkgpu.private_load %[[KEPT]] at %[[ZERO]]
// CHECK: %[[WIDE:.*]] = arith.extf %[[READ]]
// CHECK: arith.mulf %{{.*}}, %[[WIDE]]
tkgpu.func @rows args ["x", "g", "y", "tiles"] {
^bb0(%x: !tkgpu.buffer<f32>, %g: !tkgpu.buffer<bf16>, %y: !tkgpu.buffer<f32>, %tiles: index):
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %first = tkgpu.program_id x
  %shift = tkgpu.misalignment[%first] strides(%c1) of 8
  %j = tkgpu.iota : tensor<4096xindex, #row>
  %a = tkgpu.load %g[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<4096xindex, #row>, index) -> tensor<4096xbf16, #row>
  %b = tkgpu.load %g[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.buffer<bf16>, tensor<4096xindex, #row>, index) -> tensor<4096xbf16, #row>
  %ab = tkgpu.funnel %a, %b by %shift in 8 : tensor<4096xbf16, #row>
  %wide = arith.extf %ab : tensor<4096xbf16, #row> to tensor<4096xf32, #row>
  scf.for %r = %first to %tiles step %c8 {
    %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<4096xindex, #row>, index) -> tensor<4096xf32, #row>
    %s = tkgpu.reduce <sum> %v axis 0 : tensor<4096xf32, #row> -> f32
    %ss = tkgpu.broadcast %s dims [] : f32 -> tensor<4096xf32, #row>
    %p = arith.mulf %ss, %wide : tensor<4096xf32, #row>
    tkgpu.store %p, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<4096xf32, #row>, !tkgpu.buffer<f32>, tensor<4096xindex, #row>, index) -> ()
  }
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}

// What is read behind the loop, too, and what a loop without reductions reads, stays.
// CHECK-LABEL: tkgpu.func @behind
// CHECK-NOT: tkgpu.alloc_private
tkgpu.func @behind args ["x", "g", "y", "tiles"] {
^bb0(%x: !tkgpu.buffer<f32>, %g: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>, %tiles: index):
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %first = tkgpu.program_id x
  %shift = tkgpu.misalignment[%first] strides(%c1) of 4
  %j = tkgpu.iota : tensor<4096xindex, #row>
  %a = tkgpu.load %g[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<4096xindex, #row>, index) -> tensor<4096xf32, #row>
  %ab = tkgpu.funnel %a, %a by %shift in 4 : tensor<4096xf32, #row>
  %cd = tkgpu.funnel %ab, %a by %shift in 4 : tensor<4096xf32, #row>
  scf.for %r = %first to %tiles step %c4 {
    %v = tkgpu.load %x[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<4096xindex, #row>, index) -> tensor<4096xf32, #row>
    %s = tkgpu.reduce <sum> %v axis 0 : tensor<4096xf32, #row> -> f32
    %ss = tkgpu.broadcast %s dims [] : f32 -> tensor<4096xf32, #row>
    %p = arith.mulf %ss, %ab : tensor<4096xf32, #row>
    tkgpu.store %p, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<4096xf32, #row>, !tkgpu.buffer<f32>, tensor<4096xindex, #row>, index) -> ()
  }
  scf.for %r = %first to %tiles step %c4 {
    tkgpu.store %cd, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<4096xf32, #row>, !tkgpu.buffer<f32>, tensor<4096xindex, #row>, index) -> ()
  }
  tkgpu.store %ab, %y[%j] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<4096xf32, #row>, !tkgpu.buffer<f32>, tensor<4096xindex, #row>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64, index_bits = 32 : i64}
