//===- LoopSteps.h - where loops stand --------------------------*- C++ -*-===//
#ifndef TK_PASSES_MEMORY_LOOPSTEPS_H
#define TK_PASSES_MEMORY_LOOPSTEPS_H

#include "mlir/IR/Builders.h"

namespace tk {

/// Where a loop from `lower` to `end` would go on: the first step that it does not have.
mlir::Value createStepBehind(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value lower,
                             mlir::Value end, mlir::Value step);

} // namespace tk

#endif // TK_PASSES_MEMORY_LOOPSTEPS_H
