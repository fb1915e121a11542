//===- LoopSteps.h - where loops stand --------------------------*- C++ -*-===//
#ifndef TK_PASSES_PIPELINE_LOOPSTEPS_H
#define TK_PASSES_PIPELINE_LOOPSTEPS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

#include <optional>

namespace tk {

/// Where a loop from `lower` to `end` would go on: the first step that it does not have.
mlir::Value createStepBehind(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value lower,
                             mlir::Value end, mlir::Value step);

/// At most how much `value` is beyond `from`, or beyond 0 if that is null; nothing if that is not
/// seen. Where something is subtracted that is not `from`, it is taken not to be below 0.
std::optional<int64_t> mostBeyond(mlir::Value value, mlir::Value from);

/// Is `a` never beyond `b`, as far as is seen from how they are computed: alike, but for where one
/// is the least or greatest of several? Where something is divided it is taken not to be below 0.
bool isAtMost(mlir::Value a, mlir::Value b);

/// Has `earlier` no iteration but the first one of `later`, if that has one?
bool hasFirstStepAlone(mlir::scf::ForOp earlier, mlir::scf::ForOp later);

/// Are a value in one loop and a value in another the same where both loops are at the same place?
bool isSameAt(mlir::scf::ForOp earlier, mlir::Value a, mlir::scf::ForOp later, mlir::Value b);

} // namespace tk

#endif // TK_PASSES_PIPELINE_LOOPSTEPS_H
