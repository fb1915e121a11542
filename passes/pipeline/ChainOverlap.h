//===- ChainOverlap.h - a chain whose products run under others -*- C++ -*-===//
#ifndef TK_PASSES_PIPELINE_CHAINOVERLAP_H
#define TK_PASSES_PIPELINE_CHAINOVERLAP_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace tk {

/// One loop with a back-to-back contraction (tk-overlap-chains).
class ChainOverlap {
public:
  explicit ChainOverlap(mlir::scf::ForOp loop) : loop(loop), builder(loop) {}

  bool analyse();
  /// Moves the second product into the next iteration (RotateChain.cpp).
  void apply();

  /// Scores of several products are begun together where the chain stays as it is, because both
  /// products read one tile.
  bool beginScores();

private:
  // OverlapChains.cpp: what the loop consists of.
  bool findDots();
  void beginTogether();
  bool collectSecond();
  bool collectPositions();
  void collectConversions();

  // RotateChain.cpp: the loop with the second product an iteration later.
  /// The values that an iteration leaves for the second product, then those that the loop carries.
  struct State {
    llvm::SmallVector<mlir::Value> carried; ///< one an iteration argument
    mlir::Value weights;
  };
  gpu::PhaseArriveOp leavesFirst();
  llvm::SmallVector<mlir::Operation *> leavesBefore();
  State firstPart(mlir::IRMapping &mapping, bool withSecond, const State &before);
  mlir::Value secondPart(const State &state, llvm::SmallVectorImpl<mlir::Value> &carried);

  mlir::scf::ForOp loop;
  mlir::OpBuilder builder;
  llvm::SmallVector<gpu::WarpgroupWaitOp> between; ///< the scores' products
  gpu::WarpgroupDotOp first, second; ///< the last one of the scores, the one of the weights
  gpu::WarpgroupWaitOp firstWait, secondWait;
  llvm::SetVector<mlir::Operation *> secondOps;     ///< what moves, in order
  llvm::SmallVector<unsigned> positions;            ///< arguments that only what moves depends on
  llvm::SmallVector<mlir::Operation *> conversions; ///< of the weights, the last one first
  unsigned sum = 0; ///< the argument that the second product adds to
};

} // namespace tk

#endif // TK_PASSES_PIPELINE_CHAINOVERLAP_H
