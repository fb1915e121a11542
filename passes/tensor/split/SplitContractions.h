//===- SplitContractions.h - contractions that can be split along k -*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_SPLIT_SPLITCONTRACTIONS_H
#define TK_PASSES_TENSOR_SPLIT_SPLITCONTRACTIONS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// True if `reduce` is the only reduction of `compute` and a contraction that tk-split-contractions
/// can split along k on the module's target. Whether a split pays is a separate decision.
bool canSplitContraction(ComputeOp compute, ReduceOp reduce);

/// The number of parts into which tk-split-contractions will split the contraction of `compute`, by
/// the known sizes or by its schedule block; 1 if it stays whole.
int64_t countContractionParts(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_TENSOR_SPLIT_SPLITCONTRACTIONS_H
