//===- Signs.h - numbers that are not 0, or not negative --------*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_SIGNS_H
#define TK_PASSES_ANALYSIS_SIGNS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Is `value` 0, above 0 or NaN, whatever the inputs?
bool isNonNegativeOrNaN(mlir::Value value);

/// Is `value` above 0 or NaN, whatever the inputs?
bool isPositiveOrNaN(mlir::Value value);

/// Is `value`, which no index changes, neither 0 nor NaN? It is a constant, computed of a size that
/// is known, or a parameter that the kernel's assumptions bound.
bool isNeitherZeroNorNaN(mlir::Value value, KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_SIGNS_H
