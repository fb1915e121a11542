//===- ChainRows.h - rows that share streamed operands ----------*- C++ -*-===//
//
// A back-to-back contraction is a reduction whose elements are products with the results of inner
// contractions, such as attention's scores and the weighted sum of its values, with any weights
// between them. Each iteration reads the operands that its index selects, or computes them from
// what it reads: keys and values, which may be packed numbers. An index of the compute op that does
// not index these operands is a row that can share them. tk-split-chains and tk-pack-rows use this
// file.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TENSOR_SPLIT_CHAINROWS_H
#define TK_PASSES_TENSOR_SPLIT_CHAINROWS_H

#include "dialects/tk/TkDialect.h"

#include <optional>

namespace tk {

/// The rows of the largest tile. A loop with more rows reads its streamed operands several times
/// anyway.
constexpr int64_t mostSharingRows = 128;

struct ChainRows {
  ReduceOp reduce; ///< not inside another reduction
  /// Positions of the compute op's indices that do not index the streamed operands.
  llvm::SmallVector<unsigned> rows;
  /// An index whose quotient alone indexes the streamed operands, such as the query heads that
  /// share a head of keys. `groupSize` of its values share an operand, and there are `numGroups`
  /// groups.
  std::optional<unsigned> grouped;
  mlir::Value groupSize, numGroups;
  /// Positions of the other indices of the inner contractions. Each of their values has streamed
  /// operands of its own.
  llvm::SmallVector<unsigned> batch;

  /// Upper bounds of the number of rows that share the operands, and of the number of times that
  /// the operands are read. nullopt if sizes are unknown.
  std::optional<int64_t> countRows(KernelOp kernel, ComputeOp compute) const;
  std::optional<int64_t> countBatch(KernelOp kernel, ComputeOp compute) const;

  /// True if no index of the compute op is a row of the inner contractions, but the compute op has
  /// columns that do not index them. An example is a query head with keys of its own: every column
  /// would recompute its scores. tk-pack-rows adds a row of one value.
  bool lacksRows(KernelOp kernel, ComputeOp compute) const;
  /// Makes the grouped index part of the batch: each of its values reads the operands.
  void dissolveGroups();
};

/// Matches `compute` as a back-to-back contraction; nullopt if it is none.
std::optional<ChainRows> matchChain(KernelOp kernel, ComputeOp compute);

/// Matches one of the reductions of `compute` as a back-to-back contraction; nullopt if it is none.
std::optional<ChainRows> matchChain(KernelOp kernel, ComputeOp compute, ReduceOp reduce);

/// The reductions of `compute` that can be split into parts. If there are several, they are
/// back-to-back contractions of which none needs another's result. Otherwise it is one online
/// reduction of elements that belong to one result each, and all indices are the batch.
llvm::SmallVector<ChainRows> findChains(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_TENSOR_SPLIT_CHAINROWS_H
