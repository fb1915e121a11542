//===- ChainTile.h - a tile of chained products -----------------*- C++ -*-===//
#ifndef TK_PASSES_PIPELINE_CHAINTILE_H
#define TK_PASSES_PIPELINE_CHAINTILE_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

namespace tk {

/// What the body of a loop over tiles consists of whose chains of products overlap
/// (tk-overlap-chains): a head that computes where the tile is, a branch with its steps, and what
/// happens to their results. The first step comes before the loop over the others, the last
/// product behind it.
struct ChainTile {
  explicit ChainTile(mlir::scf::ForOp tiles) : tiles(tiles) {}

  /// False if the body is anything else, or if its first step cannot be computed in another
  /// iteration.
  bool analyse();

  /// A ring's position, which goes on within `opening`.
  struct Position {
    unsigned init;   ///< of the steps' arguments
    unsigned tile;   ///< of the arguments of the loop over tiles
    unsigned result; ///< of the branch
  };

  /// Is what the loop over tiles yields known before the last product?
  bool canAdvance(mlir::Value value);
  /// Does `op` help to say where the tile is?
  bool isHead(mlir::Operation *op) {
    return op->getBlock() == tiles.getBody() && op->isBeforeInBlock(branch);
  }
  bool isOpening(mlir::Operation *op) { return llvm::is_contained(opening, op); }
  mlir::scf::YieldOp thenYield() { return branch.thenYield(); }

  mlir::scf::ForOp tiles;
  mlir::scf::IfOp branch; ///< whether the tile has steps
  mlir::scf::ForOp steps; ///< but the first
  gpu::WarpgroupDotOp first, last;
  gpu::WarpgroupWaitOp firstWait, lastWait;
  llvm::SmallVector<mlir::Operation *> opening; ///< the first step
  llvm::SmallVector<mlir::Operation *> closing; ///< the last product, with its stage
  llvm::SmallVector<mlir::Operation *>
      conversions;                                ///< of the opening's weights, the last one first
  llvm::SmallVector<Position> positions;          ///< that the opening moves
  llvm::SetVector<mlir::Value> state;             ///< tiles that the opening leaves
  llvm::SmallPtrSet<mlir::Operation *, 8> remade; ///< what it leaves that is computed again

private:
  bool findSteps();
  bool collectParts();
  bool collectPositions();
  bool collectState();
  bool isRemade(mlir::Value value, int64_t elements);
  bool need(mlir::Value value);
};

/// Calls `visit` for all values that `op` and what it contains read.
void visitOperands(mlir::Operation *op, llvm::function_ref<void(mlir::Value)> visit);

} // namespace tk

#endif // TK_PASSES_PIPELINE_CHAINTILE_H
