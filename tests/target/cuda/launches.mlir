// RUN: tk-emit-cuda %s | FileCheck %s
// A function that earlier launches go on beside. What they write is no argument that the compiler
// may take for unchanging, and read before the wait; all others are.

// CHECK: consume(const float *__restrict__ x, const float *p, float *__restrict__ y) {
// CHECK: tk::release_launch();
// CHECK: tk::await_launch();
// CHECK: tk::get(&
tkgpu.func @consume args ["x", "p", "y"] {
^bb0(%x: !tkgpu.buffer<f32>, %p: !tkgpu.buffer<f32>, %y: !tkgpu.buffer<f32>):
  tkgpu.launch_release
  tkgpu.launch_wait %p : !tkgpu.buffer<f32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = tkgpu.load %x[%c0] dims [array<i64>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, index, index) -> f32
  %w = tkgpu.load %p[%c0] dims [array<i64>] strides(%c1) masks() over [] : (!tkgpu.buffer<f32>, index, index) -> f32
  %s = arith.addf %v, %w : f32
  tkgpu.store %s, %y[%c0] dims [array<i64>] strides(%c1) masks() over [] : (f32, !tkgpu.buffer<f32>, index, index) -> ()
  tkgpu.return
}
