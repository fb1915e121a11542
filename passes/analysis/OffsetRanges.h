//===- OffsetRanges.h - ranges between offsets that tensors hold -*- C++ -*-===//
//
// A tensor of offsets divides an axis into ranges, one for each row: `ptr[r]..ptr[r + 1]`. How long
// each is, data say; how long they are on average follows from sizes.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_ANALYSIS_OFFSETRANGES_H
#define TK_PASSES_ANALYSIS_OFFSETRANGES_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Does a bound follow from a loaded integer that varies with an index of its compute op?
bool isLoadedBound(mlir::Value bound);

/// Terms of a range that begins at `lower` if an axis of `limit` elements is divided among all
/// values of the indices of `compute` that `lower` depends on; nothing if sizes are not known.
std::optional<double> meanOfRanges(ComputeOp compute, mlir::Value lower, mlir::Value limit);

/// Does `reduce` run between two neighbours of a table of offsets, `ptr[r]..ptr[r + 1]`, which
/// depend on `index`? Each term then belongs to one value of the index alone.
bool dividesTerms(ReduceOp reduce, mlir::Value index);

/// The first of the two neighbours that `reduce` runs between; null if it does not.
LoadOp offsetOfRange(ReduceOp reduce);

/// The index `r` of a mask that is true between two neighbours of a table of offsets, `ptr[r] <= t`
/// and `t < ptr[r + 1]`: each `t` belongs to one value of it alone. Null for other masks.
mlir::BlockArgument rowOfMask(mlir::Value condition);

/// Terms of a range, likewise, of a reduction from 0 to `min(hi - lo, limit)` with loaded `lo` and
/// `hi`, as tk-shift-ranges leaves it; nothing for others.
std::optional<double> meanOfShifted(ReduceOp reduce);

/// The same for a reduction over a whole axis whose terms a mask limits to such a range, as the
/// program has it before tk-restrict-ranges.
std::optional<double> meanOfMasked(ReduceOp reduce);

/// Does a table of offsets divide the terms of `reduce` among the values of `row`, or those of a
/// reduction over `term` around it, before tk-shift-ranges or after it?
bool dividesTermsOrAround(ReduceOp reduce, mlir::Value row, mlir::Value term);

/// Does `reduce` stand in the terms of one other reduction, of one index, and sum over an axis of
/// at most `longest` elements, as the product of two rows does?
bool isSumOfShortRow(ReduceOp reduce, int64_t longest);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_OFFSETRANGES_H
