//===- SplitContractions.h - contractions that can be split along k -*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_SPLIT_SPLITCONTRACTIONS_H
#define TK_PASSES_TENSOR_SPLIT_SPLITCONTRACTIONS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// True if `reduce` is a contraction that tk-split-contractions can split along k on the module's
/// target, and no other reduction of `compute` has more than a few terms beside it. Whether a split
/// pays is a separate decision.
bool canSplitContraction(ComputeOp compute, ReduceOp reduce);

/// The contraction of `compute` that can be split; null if there is none.
ReduceOp getSplitContraction(ComputeOp compute);

/// The number of parts into which tk-split-contractions will split the contraction of `compute`, by
/// the known sizes or by its schedule block; 1 if it stays whole.
int64_t countContractionParts(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_TENSOR_SPLIT_SPLITCONTRACTIONS_H
