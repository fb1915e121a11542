//===- Simplify.h - parts of tk-simplify that other passes use --*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_NORMALIZE_SIMPLIFY_H
#define TK_PASSES_TENSOR_NORMALIZE_SIMPLIFY_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Folds and canonicalises the scalar expressions of the kernels in `root`.
void foldExpressions(mlir::Operation *root);

/// Replaces reductions and scans by an equal earlier one that dominates them; returns their number.
unsigned mergeEqualReductions(ComputeOp compute);

/// Moves the index at position `from` of a reduction to position `to`. 0 is the outermost loop.
void moveIndex(ReduceOp reduce, unsigned from, unsigned to);

/// Makes the contiguous index of all loads of a reduction the innermost one; true if it was not.
bool orderIndices(ReduceOp reduce);

/// Lets a reduction over a range of a bounded length, which begins at an expression of a result's
/// index, begin at 0; true if it did.
bool formWindow(ReduceOp reduce);

/// Writes the number of terms of a range as its length. True if `reduce` was such a count; it is
/// erased.
bool countRange(ReduceOp reduce);

/// Turns a reduction that begins or ends at an index of its compute op into a scan. True if
/// `reduce` was one; it is erased.
bool formScan(ReduceOp reduce);

/// Turns a scan at the element before an index into one at the index. True if `scan` was one; it is
/// erased.
bool shiftScan(ScanOp scan);

/// Applies the invariant factors of a sum's elements to the sum; true if there are any.
bool hoistFactors(ReduceOp reduce);

/// Writes out a reduction of a few elements whose number is known; true if `reduce` was one (it is
/// erased).
bool unrollReduction(ReduceOp reduce);

/// Writes out a reduction of at most one element, whose index is a value of the compute op. True if
/// `reduce` was one; it is erased.
bool takeOnlyTerm(ReduceOp reduce);

/// Replaces exponentials that are elements of a sum, divided by the sum, by such quotients; returns
/// their number.
unsigned reuseSummedWeights(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_TENSOR_NORMALIZE_SIMPLIFY_H
