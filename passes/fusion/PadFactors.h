//===- PadFactors.h - padding operands to whole memory lines ----*- C++ -*-===//
#ifndef TK_PASSES_FUSION_PADFACTORS_H
#define TK_PASSES_FUSION_PADFACTORS_H

#include "dialects/tk/TkDialect.h"

#include <optional>

namespace tk {

/// `extent` up to a multiple of `unit`.
mlir::Value createMultiple(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value extent,
                           int64_t unit);

/// `extent`, of a row of elements, up to whole lines of memory.
mlir::Value createLines(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value extent,
                        mlir::Type element);

/// Stores factors of products whose rows begin anywhere once more, in rows of whole lines, where
/// there is use in it; how many.
unsigned padFactors(KernelOp kernel, int64_t processors);

/// At most how many elements there are in a tensor of `extents`; nothing if that is not known.
std::optional<double> countElements(KernelOp kernel, mlir::ValueRange extents);

} // namespace tk

#endif // TK_PASSES_FUSION_PADFACTORS_H
