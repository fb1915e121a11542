//===- PadFactors.h - padding operands to whole memory lines ----*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_OPERANDS_PADFACTORS_H
#define TK_PASSES_TENSOR_OPERANDS_PADFACTORS_H

#include "dialects/tk/TkDialect.h"

#include <optional>

namespace tk {

/// `extent`, rounded up to a multiple of `unit`.
mlir::Value createMultiple(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value extent,
                           int64_t unit);

/// `extent` elements of a row, rounded up to whole memory lines.
mlir::Value createLines(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value extent,
                        mlir::Type element);

/// Stores operands of contractions with unaligned rows in rows of whole memory lines, if that pays.
/// Returns the number of operands.
unsigned padFactors(KernelOp kernel, int64_t processors);

/// An upper bound of the number of elements of a tensor of `extents`; nothing if it is unknown.
std::optional<double> countElements(KernelOp kernel, mlir::ValueRange extents);

} // namespace tk

#endif // TK_PASSES_TENSOR_OPERANDS_PADFACTORS_H
