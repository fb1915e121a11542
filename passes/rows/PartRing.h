//===- PartRing.h - a ring of the parts of rows -----------------*- C++ -*-===//
#ifndef TK_PASSES_ROWS_PARTRING_H
#define TK_PASSES_ROWS_PARTRING_H

#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/pipeline/LoopSlice.h"

namespace tk {

/// The private memory of rows, which a loop reads as a whole and then by parts, as one of parts
/// that need not be those of whole rows.
class PartRing {
public:
  /// `copy` brings what `parts` are read from for the next iteration.
  PartRing(gpu::CopyPrivateOp copy, llvm::MutableArrayRef<gpu::PrivateLoadOp> parts)
      : copy(copy), parts(parts), loop(mlir::cast<mlir::scf::ForOp>(copy->getParentOp())),
        slice(loop), builder(copy.getContext()),
        part(mlir::cast<mlir::RankedTensorType>(parts.front()->getResult(0).getType())) {}

  /// Is nothing else brought or read in the loop, and are addresses known before their iteration?
  bool analyse();
  /// Brings `beside` parts, fewer than a row has, before the iteration in which the row's first
  /// ones take their places.
  void apply(int64_t numBeside);

private:
  int64_t numParts() const { return int64_t(parts.size()); }
  int64_t numRows() { return copy.getTarget().getType().getStages(); }
  void copyPart(gpu::CopyPrivateOp whole, mlir::ValueRange operands, int64_t number,
                mlir::Value slot);
  mlir::SmallVector<mlir::Value> operandsAt(mlir::Value iteration);
  void fill();
  void addSlots();
  void readWhole(gpu::PrivateLoadOp load, bool isFirst);
  void refill();

  gpu::CopyPrivateOp copy;
  llvm::MutableArrayRef<gpu::PrivateLoadOp> parts;
  mlir::scf::ForOp loop;
  LoopSlice slice;
  mlir::OpBuilder builder;
  mlir::RankedTensorType part;                        ///< the type of one
  mlir::SmallVector<gpu::CopyPrivateOp> first;        ///< bring the first rows, before the loop
  mlir::SmallVector<gpu::AsyncCommitOp> firstCommits; ///< of each of them
  gpu::AsyncCommitOp commit;                          ///< of `copy`
  gpu::AsyncWaitOp wait;                              ///< for `copy`
  mlir::SmallVector<gpu::PrivateLoadOp> wholes;       ///< in their order, before the parts
  int64_t stages = 0, beside = 0;
  mlir::Value ring;
  mlir::SmallVector<mlir::Value> slots; ///< of the parts of an iteration's row
};

} // namespace tk

#endif // TK_PASSES_ROWS_PARTRING_H
