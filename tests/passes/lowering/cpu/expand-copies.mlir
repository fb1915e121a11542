// RUN: tk-opt --tk-expand-copies %s | FileCheck %s

// CHECK-LABEL: func.func @copy
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : memref<?xf32, strided<[2]>>) outs(%{{.*}} : memref<?xf32>)
// CHECK-NOT: memref.copy
func.func @copy(%a: memref<?xf32, strided<[2]>>, %b: memref<?xf32>) {
  memref.copy %a, %b : memref<?xf32, strided<[2]>> to memref<?xf32>
  return
}
