//===- SortedRow.h - rows in ascending order --------------------*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_SORTEDROW_H
#define TK_PASSES_ANALYSIS_SORTEDROW_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// An element of a sorted row: the smallest key that more keys than `rank` do not exceed.
///
///   tk.reduce [min] ["j"] {(tk.reduce [sum] ["i"] {key(i) <= key(j)}) > rank ? key(j) : the
///   largest}
struct SortedRow {
  mlir::Value key;     ///< in the body of the reduction, an i64
  ReduceOp count;      ///< of the keys that do not exceed it
  int64_t numKeys = 0; ///< the extent of the index
};

/// Matches `reduce` if the rank is the last index of `compute`, of the same extent.
std::optional<SortedRow> matchSortedRow(ComputeOp compute, ReduceOp reduce);

/// Writes the element of rank `rank` among `numKeys` keys.
mlir::Value createSortedRow(mlir::OpBuilder &at, mlir::Location loc, int64_t numKeys,
                            mlir::Value rank,
                            llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value)> keyOf);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_SORTEDROW_H
