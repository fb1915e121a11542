//===- MergeIndices.h - several indices of a contraction as one -*- C++ -*-===//
//
// A contraction over windows of a tensor, such as a convolution of images, has several indices in
// the place of its rows, and several in the place of k: pixels, and their neighbours' channels.
// Tiles are cut from one index that counts all of them. Short indices then leave no part of a tile
// empty, and one loop visits all elements.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_PLAN_MERGEINDICES_H
#define TK_PASSES_PLAN_MERGEINDICES_H

#include "passes/plan/StatementShape.h"

namespace tk {

/// Writes to the plan of a compute op what is merged, if it is a product over windows: some of its
/// indices (`merged_rows`), all of those of its reduction (`merged_terms`). The last of them stands
/// for all, in the tiles, too.
void mergeIndices(StatementShape &shape);

/// The indices that are merged with `index`, which is the last of them; empty if there are none.
llvm::SmallVector<mlir::Value> getMergedIndices(mlir::Value index);

/// Does one counter replace all indices of `op`?
bool areTermsMerged(ReduceOp op);

/// True if `index` is merged into another index, which stands for both.
bool isMergedIntoOther(mlir::Value index);

} // namespace tk

#endif // TK_PASSES_PLAN_MERGEINDICES_H
