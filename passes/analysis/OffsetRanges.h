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

/// Terms of a range if an axis of `limit` elements is divided among all elements of `compute`;
/// nothing if sizes are not known.
std::optional<double> meanOfRanges(ComputeOp compute, mlir::Value limit);

/// The same for a reduction from 0 to `min(hi - lo, limit)` with loaded `lo` and `hi`, as
/// tk-shift-ranges leaves it; nothing for others.
std::optional<double> meanOfShifted(ReduceOp reduce);

/// The same for a reduction over a whole axis whose terms a mask limits to such a range, as the
/// program has it before tk-restrict-ranges.
std::optional<double> meanOfMasked(ReduceOp reduce);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_OFFSETRANGES_H
