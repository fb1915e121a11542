//===- ChainRows.h - rows that share streamed operands ----------*- C++ -*-===//
//
// A back-to-back contraction is a reduction whose elements are products with the results of inner
// contractions, such as attention's scores and the weighted sum of its values, with any weights
// between them. Each iteration reads the operands that its index selects: keys and values. An index
// of the compute op that does not index these operands is a row that can share them.
// tk-split-chains and tk-pack-rows use this file.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_FUSION_CHAINROWS_H
#define TK_PASSES_FUSION_CHAINROWS_H

#include "dialects/tk/TkDialect.h"

#include <optional>

namespace tk {

/// Rows of the largest tile: what has more reads its factors several times anyway.
constexpr int64_t mostSharingRows = 128;

struct ChainRows {
  ReduceOp reduce; ///< not inside another reduction
  /// Positions of the statement's indices that no streamed factor is over.
  llvm::SmallVector<unsigned> rows;
  /// An index that streamed factors are over by its quotient alone, such as the query heads that
  /// share a head of keys: `groupSize` of them do, and there are `numGroups` of such groups.
  std::optional<unsigned> grouped;
  mlir::Value groupSize, numGroups;
  /// Positions of the others that the inner products are over. Each of their values reads factors
  /// of its own.
  llvm::SmallVector<unsigned> batch;

  /// At most so many rows share the factors, and so many times they are read; nullopt where sizes
  /// are not known.
  std::optional<int64_t> countRows(KernelOp kernel, ComputeOp compute) const;
  std::optional<int64_t> countBatch(KernelOp kernel, ComputeOp compute) const;

  /// True if the inner products have no row among the statement's indices, but the statement has
  /// columns that they are not over: a query head with keys of its own, for each of which every
  /// column would compute the scores again. tk-pack-rows gives them a row of one value.
  bool lacksRows(KernelOp kernel, ComputeOp compute) const;
  /// Counts the grouped index as one of the batch: each of its values reads the factors.
  void dissolveGroups();
};

/// Reads `compute` as a chain; nullopt if it is none.
std::optional<ChainRows> matchChain(KernelOp kernel, ComputeOp compute);

/// Reads one of the reductions of `compute` as a chain of its own; nullopt if it is none.
std::optional<ChainRows> matchChain(KernelOp kernel, ComputeOp compute, ReduceOp reduce);

/// The reductions of `compute` that may be computed in parts: of several those that are chains, if
/// none needs another's result; else its one carried reduction of elements that are each result's
/// own, all indices being the batch.
llvm::SmallVector<ChainRows> findChains(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_FUSION_CHAINROWS_H
