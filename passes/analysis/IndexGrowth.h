//===- IndexGrowth.h - how an axis of an access grows with an index -*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_INDEXGROWTH_H
#define TK_PASSES_ANALYSIS_INDEXGROWTH_H

#include "mlir/IR/Value.h"

#include <optional>

namespace tk {

/// The coefficient of `index` in `value`, a sum of multiples of indices. Without an index: the
/// value at which all indices are 0, if it is a constant. Nothing if `value` is no such sum.
std::optional<int64_t> growth(mlir::Value value, mlir::Value index);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_INDEXGROWTH_H
