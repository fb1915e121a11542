//===- LoopSteps.h - where loops stand --------------------------*- C++ -*-===//
#ifndef TK_PASSES_MEMORY_LOOPSTEPS_H
#define TK_PASSES_MEMORY_LOOPSTEPS_H

#include "mlir/IR/Builders.h"

#include <optional>

namespace tk {

/// Where a loop from `lower` to `end` would go on: the first step that it does not have.
mlir::Value createStepBehind(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value lower,
                             mlir::Value end, mlir::Value step);

/// At most how much `value` is beyond `from`, or beyond 0 if that is null; nothing if that is not
/// seen. Where something is subtracted that is not `from`, it is taken not to be below 0.
std::optional<int64_t> mostBeyond(mlir::Value value, mlir::Value from);

} // namespace tk

#endif // TK_PASSES_MEMORY_LOOPSTEPS_H
