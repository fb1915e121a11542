// RUN: tk-opt --tk-linalg-to-loops --canonicalize %s | FileCheck %s

// What is the same in all of the inner loop is read before it; what is written is not.
// CHECK-LABEL: func.func @scale_rows(
// CHECK-SAME: %[[X:[^:]*]]: memref<?xf32>, %[[Y:[^:]*]]: memref<?x?xf32>)
// CHECK: scf.for %[[I:.*]] =
// CHECK: %[[A:.*]] = memref.load %[[X]][%[[I]]]
// CHECK: scf.for %[[J:.*]] =
// CHECK: memref.load %[[Y]][%[[I]], %[[J]]]
// CHECK-NEXT: arith.mulf %{{.*}}, %[[A]]
func.func @scale_rows(%x: memref<?xf32>, %y: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<?xf32>) outs(%y : memref<?x?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.mulf %b, %a : f32
    linalg.yield %c : f32
  }
  return
}

// CHECK-LABEL: func.func @sum_rows(
// CHECK-SAME: %[[Y:[^:]*]]: memref<?x?xf32>, %[[X:[^:]*]]: memref<?xf32>)
// CHECK: scf.for %[[I:.*]] =
// CHECK-NEXT: scf.for
// CHECK: memref.load %[[X]][%[[I]]]
func.func @sum_rows(%y: memref<?x?xf32>, %x: memref<?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                  iterator_types = ["parallel", "reduction"]}
      ins(%y : memref<?x?xf32>) outs(%x : memref<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %b, %a : f32
    linalg.yield %c : f32
  }
  return
}
