//===- Simplify.h - parts of tk-simplify that other passes use --*- C++ -*-===//
#ifndef TK_PASSES_FUSION_SIMPLIFY_H
#define TK_PASSES_FUSION_SIMPLIFY_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Replaces reductions and scans that equal an earlier one that dominates them; returns how many.
unsigned mergeEqualReductions(ComputeOp compute);

/// Makes the index at `from` of a reduction the one at `to`, where 0 is the outermost loop.
void moveIndex(ReduceOp reduce, unsigned from, unsigned to);

/// Makes the index that all loads of a reduction run along the innermost; true if it was not.
bool orderIndices(ReduceOp reduce);

/// Applies the factors of a sum's terms that do not vary to the sum; true if there are any.
bool hoistFactors(ReduceOp reduce);

/// Writes out a reduction of few terms whose number is known; true if `reduce` was one (it is
/// erased).
bool unrollReduction(ReduceOp reduce);

/// Replaces exponentials that are terms of a sum over that sum by such quotients; returns how many.
unsigned reuseSummedWeights(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_FUSION_SIMPLIFY_H
