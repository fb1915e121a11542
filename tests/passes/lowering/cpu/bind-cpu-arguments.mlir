// RUN: tk-opt --tk-bind-cpu-arguments %s | FileCheck %s

// A strided parameter has its strides from the integers behind the dimensions (2: M and N), a dense
// one from its extents; the result is written where it belongs.
// CHECK-LABEL: func.func @tk_entry_scale(%{{.*}}: !llvm.ptr) -> i32
// CHECK: llvm.getelementptr %{{.*}}[2]
// CHECK: bufferization.to_tensor %{{.*}} restrict : memref<?x?xf32, strided<[?, 1]>>
// CHECK: %[[OUT:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<?x?xf32, strided<[?, 1]>>
// CHECK: bufferization.to_tensor %[[OUT]] restrict writable
// CHECK: bufferization.materialize_in_destination %{{.*}} in restrict writable %[[OUT]]
// CHECK: return %{{.*}} : i32
func.func @scale(%m: index {tk.dim = "M"}, %n: index {tk.dim = "N"},
                 %x: tensor<?x?xf32> {tk.param = "x", tk.strided = array<i64: 0, -1>}, %alpha: f32 {tk.param = "alpha"},
                 %y: tensor<?x?xf32> {tk.result = "y"}) -> tensor<?x?xf32> {
  tk.bind %x[%m, %n] : tensor<?x?xf32>
  tk.bind %y[%m, %n] : tensor<?x?xf32>
  %c0 = arith.constant 0 : index
  %e = tensor.extract %x[%c0, %c0] : tensor<?x?xf32>
  %p = arith.mulf %e, %alpha : f32
  %r = tensor.insert %p into %y[%c0, %c0] : tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// An inout parameter is read and written in one place.
// CHECK-LABEL: func.func @tk_entry_bump
// CHECK: %[[X:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<?xf32, strided<[1]>>
// CHECK: bufferization.to_tensor %[[X]] restrict writable
// CHECK: bufferization.materialize_in_destination %{{.*}} in restrict writable %[[X]]
func.func @bump(%n: index {tk.dim = "N"}, %x: tensor<?xf32> {tk.param = "x", tk.inout})
    -> tensor<?xf32> {
  tk.bind %x[%n] : tensor<?xf32>
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %r = tensor.insert %one into %x[%c0] : tensor<?xf32>
  return %r : tensor<?xf32>
}
