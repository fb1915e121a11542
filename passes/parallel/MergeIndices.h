//===- MergeIndices.h - several indices of a product as one -----*- C++ -*-===//
//
// A product over windows of a tensor, such as a convolution over images, has several indices where
// a plain one has rows, and several where that has terms: pixels and their neighbours' channels.
// Tiles are cut from all of them counted through, so that short ones leave nothing of a tile empty,
// and one loop goes through all terms.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_PARALLEL_MERGEINDICES_H
#define TK_PASSES_PARALLEL_MERGEINDICES_H

#include "passes/parallel/StatementShape.h"

namespace tk {

/// Writes to the plan of a compute op what is merged, if it is a product over windows: some of its
/// indices (`merged_rows`), all of those of its reduction (`merged_terms`). The last of them stands
/// for all, in the tiles, too.
void mergeIndices(StatementShape &shape);

/// The indices that are counted through with `index`, which they end with; empty if there are none.
llvm::SmallVector<mlir::Value> getMergedIndices(mlir::Value index);

/// Are all indices of `op` counted through as one?
bool areTermsMerged(ReduceOp op);

/// Is `index` counted through with another, which stands for both?
bool isMergedIntoOther(mlir::Value index);

} // namespace tk

#endif // TK_PASSES_PARALLEL_MERGEINDICES_H
