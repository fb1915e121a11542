//===- LongFunctions.h - functions of many instructions ---------*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_LONGFUNCTIONS_H
#define TK_PASSES_ANALYSIS_LONGFUNCTIONS_H

#include "dialects/tk/TkDialect.h"

#include "mlir/Dialect/Math/IR/Math.h"

namespace tk {

/// Is `op` a function whose polynomial, or rounds of a generator, take registers, and tens of
/// instructions, an element?
inline bool isLongFunction(mlir::Operation *op) {
  return mlir::isa<mlir::math::TanhOp, mlir::math::ErfOp, mlir::math::SinOp, mlir::math::CosOp,
                   RandOp>(op);
}

} // namespace tk

#endif // TK_PASSES_ANALYSIS_LONGFUNCTIONS_H
