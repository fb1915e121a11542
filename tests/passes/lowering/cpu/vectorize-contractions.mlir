// RUN: tk-opt --tk-vectorize-contractions %s | FileCheck %s

// The sum is read before the loop over the terms and written behind it.
// CHECK-LABEL: func.func @product
// CHECK: %[[SUM:.*]] = vector.transfer_read {{.*}} vector<8x32xf32>
// CHECK: %[[LOOP:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[C:.*]] = %[[SUM]])
// CHECK: %[[A:.*]] = vector.transfer_read {{.*}} vector<8x1xf32>
// CHECK: %[[B:.*]] = vector.transfer_read {{.*}} vector<1x32xf32>
// CHECK: vector.contract {{.*}} %[[A]], %[[B]], %[[C]]
// CHECK: vector.transfer_write %[[LOOP]]#1
func.func @product(%a: tensor<8x?xf32>, %b: tensor<?x32xf32>, %c: tensor<8x32xf32>)
    -> tensor<8x32xf32> {
  %d = linalg.matmul ins(%a, %b : tensor<8x?xf32>, tensor<?x32xf32>)
                     outs(%c : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %d : tensor<8x32xf32>
}

// Too large for registers.
// CHECK-LABEL: func.func @large
// CHECK: linalg.matmul
// CHECK-NOT: vector.contract
func.func @large(%a: tensor<64x?xf32>, %b: tensor<?x64xf32>, %c: tensor<64x64xf32>)
    -> tensor<64x64xf32> {
  %d = linalg.matmul ins(%a, %b : tensor<64x?xf32>, tensor<?x64xf32>)
                     outs(%c : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %d : tensor<64x64xf32>
}

// Of a dimension that is neither static nor reduced, nothing is known.
// CHECK-LABEL: func.func @dynamic
// CHECK: linalg.matmul
// CHECK-NOT: vector.contract
func.func @dynamic(%a: tensor<?x?xf32>, %b: tensor<?x32xf32>, %c: tensor<?x32xf32>)
    -> tensor<?x32xf32> {
  %d = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x32xf32>)
                     outs(%c : tensor<?x32xf32>) -> tensor<?x32xf32>
  return %d : tensor<?x32xf32>
}

// A product of vectors is no matrix product: its sum is one number.
// CHECK-LABEL: func.func @dot
// CHECK: linalg.dot
// CHECK-NOT: vector.contract
func.func @dot(%a: tensor<?xf32>, %b: tensor<?xf32>, %c: tensor<f32>) -> tensor<f32> {
  %d = linalg.dot ins(%a, %b : tensor<?xf32>, tensor<?xf32>) outs(%c : tensor<f32>) -> tensor<f32>
  return %d : tensor<f32>
}
