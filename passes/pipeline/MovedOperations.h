//===- MovedOperations.h - what moves with an operation ---------*- C++ -*-===//
#ifndef TK_PASSES_PIPELINE_MOVEDOPERATIONS_H
#define TK_PASSES_PIPELINE_MOVEDOPERATIONS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"

namespace tk {

using MayMove = llvm::function_ref<bool(mlir::Operation *)>;

/// Adds what `op` needs of the operations from `place` on to `moved`, in their order, and itself
/// last; false where one of them has effects or regions, is a reduction, or `mayMove` says no.
bool collectMoved(mlir::Operation *op, mlir::Operation *place,
                  llvm::SetVector<mlir::Operation *> &moved, MayMove mayMove);

/// The same for what the operands of `op` need, without itself.
bool collectNeeds(mlir::Operation *op, mlir::Operation *place,
                  llvm::SetVector<mlir::Operation *> &moved, MayMove mayMove);

} // namespace tk

#endif // TK_PASSES_PIPELINE_MOVEDOPERATIONS_H
