//===- TableProducts.h - products whose operand a table selects -*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_KEYS_TABLEPRODUCTS_H
#define TK_PASSES_TENSOR_KEYS_TABLEPRODUCTS_H

#include "passes/tensor/keys/RowKey.h"

namespace tk {

/// A contraction whose right operand lies at a place that a table gives each row.
struct TableProduct {
  ReduceOp reduce;
  /// The outermost sum whose indices both operands have: that of blocks with scales.
  ReduceOp whole;
  llvm::SmallVector<mlir::Value> summed; ///< the indices of all sums, less those of the row
  RowKey key;
  llvm::SmallVector<mlir::Value> columns; ///< the indices of the results besides those of the row
  bool liesAlongSum = false;              ///< the selected matrices do, in memory
  unsigned operandBits = 0;               ///< of the wider operand, as it is stored
};

/// Matches `reduce`, in the body of `compute`.
std::optional<TableProduct> matchTableProduct(KernelOp kernel, ComputeOp compute, ReduceOp reduce);

/// True if `product` is a reduction of its compute op over indices of a sum alone. Otherwise it is
/// in another reduction, or sums over an index of its rows.
bool isOfCompute(const TableProduct &product);

/// Moves `product` into a compute op of its own in front of its compute op. Returns the new one.
ComputeOp separateProduct(const TableProduct &product);

} // namespace tk

#endif // TK_PASSES_TENSOR_KEYS_TABLEPRODUCTS_H
