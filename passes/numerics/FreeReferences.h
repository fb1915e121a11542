//===- FreeReferences.h - maxima that cancel from results -------*- C++ -*-===//
#ifndef TK_PASSES_NUMERICS_FREEREFERENCES_H
#define TK_PASSES_NUMERICS_FREEREFERENCES_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// The unit attribute of an online tk.reduce whose maximum, its first accumulator, is of use as the
/// reference of weights, which any other one would be, too, and beside logarithms of their sums.
inline constexpr llvm::StringRef freeReferenceAttrName = "tk.free_reference";

/// Is each use of a sum of `reduction`'s a quotient of it and another one, and is there one?
bool isInQuotients(mlir::Value sum, ReduceOp reduction);

/// Are sums of `reduction`'s but the first accumulator only divided by one another, to what is
/// rounded to 16 bits?
bool areQuotientsNarrow(ReduceOp reduction);

/// Will `reduction` be one, of scores that are plain products, so that its first terms tell how
/// large the others are about? Before weights are marked as ones that may be approximate.
bool mayReferenceStay(ReduceOp reduction);

/// Marks such reductions. To be called once scales are folded.
void markFreeReferences(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_NUMERICS_FREEREFERENCES_H
