// RUN: tk-opt --tk-vectorize-contractions %s | FileCheck %s

// The sum is read before the loops over the terms and written behind them. The loops over blocks of
// terms, and over the terms of a block, begin with 0, and what they come to is added behind them.
// CHECK-LABEL: func.func @product
// CHECK-DAG: %[[SUM:.*]] = vector.transfer_read {{.*}} vector<8x32xf32>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<8x32xf32>
// CHECK: %[[LOOP:.*]]:2 = scf.for {{.*}} step %c32 iter_args(%{{.*}} = %{{.*}}, %[[D:.*]] = %[[ZERO]])
// CHECK: %[[NONE:.*]] = arith.constant dense<0.000000e+00> : vector<8x32xf32>
// CHECK: %[[BLOCK:.*]]:2 = scf.for {{.*}} step %c1 iter_args(%{{.*}} = %{{.*}}, %[[C:.*]] = %[[NONE]])
// CHECK: %[[A:.*]] = vector.transfer_read {{.*}} vector<8x1xf32>
// CHECK: %[[B:.*]] = vector.transfer_read {{.*}} vector<1x32xf32>
// CHECK: vector.contract {{.*}} %[[A]], %[[B]], %[[C]]
// CHECK: arith.addf %[[D]], %[[BLOCK]]#1
// CHECK: %[[ALL:.*]] = arith.addf %[[SUM]], %[[LOOP]]#1
// CHECK: vector.transfer_write %[[ALL]]
func.func @product(%a: tensor<8x?xf32>, %b: tensor<?x32xf32>, %c: tensor<8x32xf32>)
    -> tensor<8x32xf32> {
  %d = linalg.matmul ins(%a, %b : tensor<8x?xf32>, tensor<?x32xf32>)
                     outs(%c : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %d : tensor<8x32xf32>
}

// Integers have no roundings.
// CHECK-LABEL: func.func @integers
// CHECK: %[[SUM:.*]] = vector.transfer_read {{.*}} vector<8x32xi32>
// CHECK: %[[LOOP:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %[[SUM]])
// CHECK: vector.transfer_write %[[LOOP]]#1
func.func @integers(%a: tensor<8x?xi32>, %b: tensor<?x32xi32>, %c: tensor<8x32xi32>)
    -> tensor<8x32xi32> {
  %d = linalg.matmul ins(%a, %b : tensor<8x?xi32>, tensor<?x32xi32>)
                     outs(%c : tensor<8x32xi32>) -> tensor<8x32xi32>
  return %d : tensor<8x32xi32>
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
