//===- DivideIndices.h - splitting an index into group and position -*- C++ -*-===//
//
// DivideIndices.cpp uses it for groups that are reduced, GroupRows.cpp for groups that read the
// same element of a table.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TENSOR_RANGES_DIVIDEINDICES_H
#define TK_PASSES_TENSOR_RANGES_DIVIDEINDICES_H

#include "dialects/tk/TkDialect.h"
#include "passes/analysis/IndexSum.h"

namespace tk {

/// An index of `whole` values in groups of `size`, of which there are `count`.
struct Groups {
  mlir::Value whole, count;
  int64_t size;
};

/// Splits the index at `position` of `compute` into group and position. `compute` is replaced, and
/// loads of its results are rewritten.
void divideIndex(ComputeOp compute, unsigned position, const Groups &groups);

} // namespace tk

#endif // TK_PASSES_TENSOR_RANGES_DIVIDEINDICES_H
