//===- IndexSides.h - sides of comparisons as indices -----------*- C++ -*-===//
//
// A comparison of 64-bit integers bounds a reduction if its sides are sums of indices that do not
// wrap, even if indices have 32 bits.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TENSOR_RANGES_INDEXSIDES_H
#define TK_PASSES_TENSOR_RANGES_INDEXSIDES_H

#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace tk {

/// Before the reduction a load happens even where the range is empty: its indices must follow
/// enclosing iterations for that to be in bounds.
bool canComputeEarlier(mlir::Value value);

/// The sides of comparisons under `reduce`, which vary in its indices, computed by `builder`.
struct IndexSides {
  ReduceOp reduce;
  Dependence &varying;
  mlir::OpBuilder &builder;

  /// A side of a comparison, or a summand of it, as an index value, where that loses nothing even
  /// if indices have 32 bits; else null.
  mlir::Value asIndex(mlir::Value value, mlir::arith::CmpIOp cmp);

  /// A parameter of 64 bits as an index that compares with what else `cmp` has as the parameter
  /// does, even if indices have 32 bits: no farther from 0 than one more than all of that together;
  /// else null.
  mlir::Value clampToIndices(mlir::Value value, mlir::arith::CmpIOp cmp);
};

} // namespace tk

#endif // TK_PASSES_TENSOR_RANGES_INDEXSIDES_H
