//===- PieceReductions.h - reductions of tiles that are cut -----*- C++ -*-===//
#ifndef TK_PASSES_LAYOUT_PIECEREDUCTIONS_H
#define TK_PASSES_LAYOUT_PIECEREDUCTIONS_H

#include "passes/layout/TilePieces.h"

#include "dialects/tkgpu/TkGpuDialect.h"

namespace tk {

/// Reductions of tiles that are computed piece by piece because a tile beside them is stored so.
/// Each piece is reduced by itself, so that its registers are free for the next.
class PieceReductions {
public:
  /// Those before `store` of tiles that are laid out as what it stores: along `axis`, along which
  /// pieces lie, and of runs across it whose results are stored. What is computed of the former
  /// before `store` moves behind it.
  PieceReductions(gpu::StoreOp store, int64_t axis);

  /// The reductions, and the tiles that they reduce.
  llvm::SmallVector<mlir::Operation *> get() const;
  llvm::SmallVector<mlir::Value> tiles() const;

  /// Takes in the piece at `offsets`.
  void add(mlir::OpBuilder &builder, TilePieces &pieces, llvm::ArrayRef<int64_t> offsets,
           llvm::ArrayRef<int64_t> shape);
  /// Stores that the pieces' own take the place of.
  llvm::SmallVector<gpu::StoreOp> replacedStores() const;
  /// Replaces the reductions by what the pieces gave.
  void finish();

private:
  void addAcross(mlir::OpBuilder &builder, TilePieces &pieces, gpu::ReduceRunsOp reduce,
                 llvm::ArrayRef<int64_t> offsets, llvm::ArrayRef<int64_t> shape);

  llvm::SmallVector<gpu::ReduceOp> reductions;
  llvm::SmallVector<mlir::Value> results;      ///< of the pieces so far, one a reduction
  llvm::SmallVector<gpu::ReduceRunsOp> across; ///< each read by a store, and nothing else
};

} // namespace tk

#endif // TK_PASSES_LAYOUT_PIECEREDUCTIONS_H
