//===- PackedFactors.h - operands computed from packed numbers --*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_PACKEDFACTORS_H
#define TK_PASSES_ANALYSIS_PACKEDFACTORS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// True if `factor`, an operand of `reduce`, is computed from numbers that its elements select: by
/// the remainder of an index (bits of a word), or by a value that is loaded (a table).
bool isUnpacked(mlir::Value factor, ReduceOp reduce);

/// The operand of `reduce`, a sum of products in 16 bits, that is computed from packed numbers;
/// null if it has none, or two.
mlir::Value findPackedFactor(ReduceOp reduce);

/// The operand of `reduce`, a sum of products of integers, that is computed from packed numbers and
/// fits 8 bits beside one that is loaded in 8 bits; null if it has none.
mlir::Value findPackedInteger(ReduceOp reduce);

/// Is `factor` computed from packed numbers that parts of the sum, of a multiple of `unit` terms,
/// can read? All that is loaded for it along the sum lies in words and groups, which no part cuts,
/// and no part reads beyond the end.
bool isUnpackedInParts(KernelOp kernel, ReduceOp reduce, mlir::Value factor, int64_t unit);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_PACKEDFACTORS_H
