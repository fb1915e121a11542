//===- KeyedTerms.h - reductions of the elements with a key -----*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_KEYS_KEYEDTERMS_H
#define TK_PASSES_TENSOR_KEYS_KEYEDTERMS_H

#include "passes/tensor/keys/RowKey.h"

namespace tk {

/// A reduction of the elements whose key is an index of the compute op.
struct KeyedReduction {
  ReduceOp reduce;
  RowKey key;              ///< its indices: those of batches, then those of the reduction
  unsigned group = 0;      ///< the position of the compute op's index
  bool readsGroup = false; ///< the element depends on it besides the comparison
  llvm::SmallVector<mlir::Value> tests; ///< the comparisons of the key with that index
  llvm::SmallVector<unsigned> columns; ///< positions of indices that the element depends on besides
  llvm::SmallVector<unsigned> rest;    ///< positions of the reduction's indices besides the key's
  /// Values that an element of another key multiplies by 0. The product is NaN if a value is
  /// infinite or NaN.
  llvm::SmallVector<mlir::Value> others;
};

/// Matches `reduce`, in the body of `compute`: its element is the identity of the reduction unless
/// a key equals an index of `compute`, of all or of `group` alone.
std::optional<KeyedReduction> matchKeyedReduction(ComputeOp compute, ReduceOp reduce,
                                                  std::optional<unsigned> group = std::nullopt);

/// The factors of the element if it is a product of two, over columns of their own each.
std::optional<std::pair<mlir::Value, mlir::Value>> getKeyedFactors(const KeyedReduction &keyed);

/// The condition under which `element` is 1, and not 0; null if it is something else.
mlir::Value getCountedCondition(mlir::Value element);

/// The positions of the columns that `value` depends on.
llvm::SmallVector<unsigned> getColumnsOf(const KeyedReduction &keyed, mlir::Value value);

} // namespace tk

#endif // TK_PASSES_TENSOR_KEYS_KEYEDTERMS_H
