//===- SplitContractions.h - contractions that can be split along k -*- C++ -*-===//
#ifndef TK_PASSES_FUSION_SPLITCONTRACTIONS_H
#define TK_PASSES_FUSION_SPLITCONTRACTIONS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Is `reduce` the only reduction of `compute` and a product that tk-split-contractions can cut
/// into parts on the module's target? Whether that pays is another matter.
bool canSplitContraction(ComputeOp compute, ReduceOp reduce);

/// Into how many parts tk-split-contractions will cut the product of `compute`, by the sizes known
/// or as its schedule block asks; 1 where it stays whole.
int64_t countContractionParts(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_FUSION_SPLITCONTRACTIONS_H
