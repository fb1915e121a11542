//===- IndexGrowth.h - how an axis of an access grows with an index -*- C++ -*-===//
#ifndef TK_PASSES_PARALLEL_INDEXGROWTH_H
#define TK_PASSES_PARALLEL_INDEXGROWTH_H

#include "mlir/IR/Value.h"

#include <optional>

namespace tk {

/// By how much `value`, a sum of multiples of indices, grows with `index`; without an index: what
/// it is where all indices are 0, if that is a constant. Nothing if it is no such sum.
std::optional<int64_t> growth(mlir::Value value, mlir::Value index);

} // namespace tk

#endif // TK_PASSES_PARALLEL_INDEXGROWTH_H
