//===- PieceReductions.h - reductions of tiles that are cut -----*- C++ -*-===//
#ifndef TK_PASSES_MEMORY_PIECEREDUCTIONS_H
#define TK_PASSES_MEMORY_PIECEREDUCTIONS_H

#include "passes/memory/TilePieces.h"

#include "dialects/tkgpu/TkGpuDialect.h"

namespace tk {

/// Reductions of tiles that are computed piece by piece because a tile beside them is stored so.
/// Each piece is reduced by itself, so that its registers are free for the next.
class PieceReductions {
public:
  /// Those before `store`, along `axis`, of tiles that are laid out as what it stores.
  PieceReductions(gpu::StoreOp store, int64_t axis);

  llvm::ArrayRef<gpu::ReduceOp> get() const { return reductions; }
  /// The tiles that they reduce.
  llvm::SmallVector<mlir::Value> tiles() const;

  /// Takes in the piece at `offsets`.
  void add(mlir::OpBuilder &builder, TilePieces &pieces, llvm::ArrayRef<int64_t> offsets,
           llvm::ArrayRef<int64_t> shape);
  /// Replaces the reductions by what the pieces gave.
  void finish();

private:
  llvm::SmallVector<gpu::ReduceOp> reductions;
  llvm::SmallVector<mlir::Value> results; ///< of the pieces so far, one a reduction
};

} // namespace tk

#endif // TK_PASSES_MEMORY_PIECEREDUCTIONS_H
