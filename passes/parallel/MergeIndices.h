//===- MergeIndices.h - several indices of a contraction as one -*- C++ -*-===//
//
// A contraction over windows of a tensor, such as a convolution of images, has several indices in
// the place of its rows, and several in the place of k: pixels, and their neighbours' channels.
// Tiles are cut from one index that counts all of them. Short indices then leave no part of a tile
// empty, and one loop visits all elements.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_PARALLEL_MERGEINDICES_H
#define TK_PASSES_PARALLEL_MERGEINDICES_H

#include "passes/parallel/StatementShape.h"

namespace tk {

/// On a tk.compute: the first of the indices that are counted through as one, and the one behind
/// the last. On a tk.reduce without operands: all of its indices are. The last of them stands for
/// all, in its schedule, too.
inline constexpr llvm::StringLiteral mergedIndicesAttrName = "tkgpu.merged";

/// Marks what is merged in a statement that is a product over windows.
void mergeIndices(StatementShape &shape);

/// The indices that are counted through with `index`, which they end with; empty if there are none.
llvm::SmallVector<mlir::Value> getMergedIndices(mlir::Value index);

/// Is `index` counted through with another, which stands for both?
bool isMergedIntoOther(mlir::Value index);

} // namespace tk

#endif // TK_PASSES_PARALLEL_MERGEINDICES_H
