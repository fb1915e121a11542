// RUN: tk-opt --tk-keep-empty-reductions %s | FileCheck %s

#all = affine_map<(i, k) -> (i, k)>
#rows = affine_map<(i, k) -> (i)>

// CHECK-LABEL: func.func @any(
// CHECK-SAME: %[[X:[^:]*]]: tensor<?x?xi8>, %[[START:[^:]*]]: tensor<?xi8>)
// CHECK: %[[K:.*]] = tensor.dim %[[X]], %c1
// CHECK: %[[HAS:.*]] = arith.cmpi sgt, %[[K]], %c0
// CHECK: scf.if %[[HAS]] -> (tensor<?xi8>)
// CHECK: linalg.generic
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[START]]
func.func @any(%x: tensor<?x?xi8>, %start: tensor<?xi8>) -> tensor<?xi8> {
  %true = arith.constant 1 : i8
  %y = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xi8>) outs(%start : tensor<?xi8>) {
  ^bb0(%a: i8, %old: i8):
    linalg.yield %true : i8
  } -> tensor<?xi8>
  return %y : tensor<?xi8>
}

// There are terms, or what they are added to is used.
// CHECK-LABEL: func.func @unconditional(
// CHECK-NOT: scf.if
func.func @unconditional(%x: tensor<?x8xi8>, %z: tensor<?x?xi8>, %start: tensor<?xi8>)
    -> (tensor<?xi8>, tensor<?xi8>) {
  %true = arith.constant 1 : i8
  %y = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x8xi8>) outs(%start : tensor<?xi8>) {
  ^bb0(%a: i8, %old: i8):
    linalg.yield %true : i8
  } -> tensor<?xi8>
  %w = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%z : tensor<?x?xi8>) outs(%y : tensor<?xi8>) {
  ^bb0(%a: i8, %old: i8):
    %or = arith.ori %a, %old : i8
    linalg.yield %or : i8
  } -> tensor<?xi8>
  return %y, %w : tensor<?xi8>, tensor<?xi8>
}
