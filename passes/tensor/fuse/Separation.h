//===- Separation.h - a reduction in a compute op of its own ----*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_FUSE_SEPARATION_H
#define TK_PASSES_TENSOR_FUSE_SEPARATION_H

#include "passes/tensor/fuse/FuseProducers.h"

#include "llvm/ADT/SetVector.h"

namespace tk {

using Indices = llvm::SetVector<mlir::BlockArgument>;

/// The iteration indices that the results of `op` depend on.
Indices indicesOf(mlir::Operation *op);

/// How many values an index has: `0 .. extent`, known before the compute op; else null.
mlir::Value extentOf(mlir::BlockArgument index, ComputeOp compute);

/// The name of an index of the compute op or of a reduction in it.
mlir::StringAttr nameOf(mlir::BlockArgument index, ComputeOp compute);

/// One reduction, and what goes with it, in a copy of its compute op.
class Separation {
public:
  Separation(ReduceOp reduce, ComputeOp compute)
      : compute(compute), block(reduce->getBlock()), indices(indicesOf(reduce)) {}

  /// Makes the statement and reads it; false, and nothing is changed, if it cannot be made.
  bool run();
  /// Has `twin`, an equal reduction elsewhere in the copy, read the statement, too.
  void take(ReduceOp twin);
  /// Why one of the reads stays, or nothing.
  std::optional<std::string> whyStored(int64_t maxExtra) const;
  /// The same of sums over pairs, which have a rule of their own (ReducedPairs.cpp).
  std::optional<std::string> whyPairsStored() const;
  void eraseStatements() {
    for (ComputeOp statement : statements)
      statement.erase();
  }

private:
  bool isSeed(mlir::Operation &op);
  void collect();
  bool isUsedOutside(mlir::Operation *op) const;
  bool dropUnstorable();
  bool mayComputeApart() const;
  void create();

  ComputeOp compute;
  mlir::Block *block;
  Indices indices;
  llvm::SetVector<mlir::Operation *> taken;
  llvm::SmallVector<ComputeOp> statements; ///< more than one if twins are followed by others
  llvm::SmallVector<Read> reads;
};

} // namespace tk

#endif // TK_PASSES_TENSOR_FUSE_SEPARATION_H
