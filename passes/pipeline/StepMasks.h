//===- StepMasks.h - masks of steps at the ends of a range ------*- C++ -*-===//
#ifndef TK_PASSES_PIPELINE_STEPMASKS_H
#define TK_PASSES_PIPELINE_STEPMASKS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tk {

/// Where a step needs no mask: from `lower` on, and if `length` places from it on end by `upper`.
struct StepBounds {
  llvm::SmallVector<mlir::Value> lower;
  llvm::SmallVector<std::pair<mlir::Value, int64_t>> upper;
  bool areBoth() const { return !lower.empty() && !upper.empty(); }
};

/// The branch between a product's beginning and its wait that masks some steps of a loop.
mlir::scf::IfOp findMask(mlir::scf::ForOp loop, StepBounds &bounds);

/// Does a branch mask what lies before one bound or behind another?
bool isMaskOfEnds(mlir::scf::IfOp branch);

} // namespace tk

#endif // TK_PASSES_PIPELINE_STEPMASKS_H
