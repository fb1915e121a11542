//===- SumSegments.h - sums of the terms with a key -------------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_SPLIT_SUMSEGMENTS_H
#define TK_PASSES_TENSOR_SPLIT_SUMSEGMENTS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Sorts the terms of sums by the entry of a table that has to equal an index, if that pays.
/// Returns the number of sums whose terms are sorted.
unsigned sumSegments(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_TENSOR_SPLIT_SUMSEGMENTS_H
