// RUN: not tk-emit-cuda %s 2>&1 | FileCheck %s

// What warps exchange for a scan is known only when it is emitted.
#t = #tkgpu.layout<register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [[64], [128]]>
module attributes {tkgpu.target = #tkgpu.target<arch = 90, shared = 8, processors = 132, hopper = true>} {
// CHECK: error: {{.*}}needs {{[0-9]+}} B of shared memory, sm_90 has 8 B
tkgpu.func @scanned args ["x", "y"] {
^bb0(%x: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>):
  %c1 = arith.constant 1 : index
  %i = tkgpu.iota : tensor<256xindex, #t>
  %v = tkgpu.load %x[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, tensor<256xindex, #t>, index) -> tensor<256xf32, #t>
  %s, %all = tkgpu.scan <sum> %v axis 0 : tensor<256xf32, #t> -> f32
  tkgpu.store %s, %y[%i] dims [array<i64: 0>] strides(%c1) masks() over [] : (tensor<256xf32, #t>, !tkgpu.buffer<f32>, tensor<256xindex, #t>, index) -> ()
  tkgpu.return
} {num_warps = 4 : i64}
}
