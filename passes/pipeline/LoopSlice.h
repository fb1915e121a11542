//===- LoopSlice.h - what a loop computes early -----------------*- C++ -*-===//
#ifndef TK_PASSES_PIPELINE_LOOPSLICE_H
#define TK_PASSES_PIPELINE_LOOPSLICE_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace tk {

/// The operations of a loop's body that follow from the induction variable and from what is before
/// the loop: they can be computed for a later iteration.
class LoopSlice {
public:
  explicit LoopSlice(mlir::scf::ForOp loop) : loop(loop) {}

  /// Adds what `value` depends on; false if it cannot be known before its iteration.
  bool add(mlir::Value value);
  /// Computes the slice with `iteration` in place of `inductionVar`, the loop's: it may have been
  /// replaced by another around the same operations.
  mlir::IRMapping cloneFor(mlir::OpBuilder &builder, mlir::Value inductionVar,
                           mlir::Value iteration) const;

private:
  mlir::scf::ForOp loop;
  llvm::SetVector<mlir::Operation *> ops;
};

/// The stage after `slot` of a ring of `stages`.
mlir::Value nextSlot(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value slot,
                     int64_t stages);

} // namespace tk

#endif // TK_PASSES_PIPELINE_LOOPSLICE_H
