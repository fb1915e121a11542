//===- FormRecurrences.h - sums whose terms decay are scans -----*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_NORMALIZE_FORMRECURRENCES_H
#define TK_PASSES_TENSOR_NORMALIZE_FORMRECURRENCES_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Turns a sum whose terms decay with their distance from an index of its compute op into a scan.
/// True if `reduce` was one; it is erased.
bool formRecurrence(ReduceOp reduce);

/// Gives a sum over pairs of indices, whose terms decay with the distance of the two, the sums over
/// one of them as its terms. True if `reduce` was one; it is erased.
bool nestRecurrence(ReduceOp reduce);

} // namespace tk

#endif // TK_PASSES_TENSOR_NORMALIZE_FORMRECURRENCES_H
