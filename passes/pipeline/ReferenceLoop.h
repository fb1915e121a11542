//===- ReferenceLoop.h - what the reference of weights is for ---*- C++ -*-===//
#ifndef TK_PASSES_PIPELINE_REFERENCELOOP_H
#define TK_PASSES_PIPELINE_REFERENCELOOP_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tk {

/// Is a product waited for and nothing else done to it?
bool isPlainScore(mlir::Value score);

/// Computes the first iteration before the loop, in a branch if the loop may have none.
void takeFirstIteration(mlir::scf::ForOp loop);

/// A loop over steps of a tile, and what its reference is there for.
class ReferenceLoop {
public:
  explicit ReferenceLoop(mlir::scf::ForOp loop) : loop(loop) {}

  /// Finds the running maximum that the loop's scores are joined with, and what follows from it.
  /// Scores of a loop without masks are products as they are.
  bool analyse(bool isMasked) { return findMaximum(isMasked) && findFactor(); }
  void dropMaximum();
  mlir::OpOperand *initOfReference() { return loop.getTiedLoopInit(reference); }
  mlir::Value referenceBehind() { return loop.getTiedLoopResult(initOfReference()); }

  mlir::scf::ForOp loop;
  unsigned sum = 0; ///< which result the sum of weights is

private:
  bool findMaximum(bool isMasked);
  bool findFactor();

  mlir::arith::MaximumFOp joined;
  mlir::BlockArgument reference;
  mlir::Operation *factor = nullptr;
  llvm::SmallVector<mlir::arith::MulFOp> scalings; ///< by the factor
};

} // namespace tk

#endif // TK_PASSES_PIPELINE_REFERENCELOOP_H
