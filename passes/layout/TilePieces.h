//===- TilePieces.h - computing a tile piece by piece -----------*- C++ -*-===//
#ifndef TK_PASSES_LAYOUT_TILEPIECES_H
#define TK_PASSES_LAYOUT_TILEPIECES_H

#include "dialects/tkgpu/TkGpuLayout.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace tk {

/// Computes parts of tiles as late as they are needed: elementwise operations, broadcasts and loads
/// that lead to nothing but the users are done for a part at a time, so that only what they come
/// from occupies registers as a whole.
class TilePieces {
public:
  TilePieces(llvm::ArrayRef<mlir::Value> tiles, llvm::ArrayRef<mlir::Operation *> users);

  /// The part of shape `shape` at `offsets` of one of the tiles, at the builder's position.
  mlir::Value build(mlir::OpBuilder &builder, mlir::Value tile, llvm::ArrayRef<int64_t> offsets,
                    llvm::ArrayRef<int64_t> shape) {
    return pieceOf(builder, tile, offsets, shape);
  }
  /// Stores `piece`, the part of what `store` stores that begins at `offsets`, to its place.
  void storePiece(mlir::OpBuilder &builder, gpu::StoreOp store, mlir::Value piece,
                  llvm::ArrayRef<int64_t> offsets);
  /// Lets go of what was built so far, so that it need not stay in registers.
  void clear() { pieces.clear(); }

private:
  bool leadsToUsers(mlir::Operation *op);
  void collect(mlir::Value value);
  mlir::Value pieceOf(mlir::OpBuilder &builder, mlir::Value value, llvm::ArrayRef<int64_t> offsets,
                      llvm::ArrayRef<int64_t> shape);
  mlir::Value extract(mlir::OpBuilder &builder, mlir::Value value, llvm::ArrayRef<int64_t> offsets,
                      llvm::ArrayRef<int64_t> shape);
  mlir::Value pieceAlong(mlir::OpBuilder &builder, mlir::Value value, llvm::ArrayRef<int64_t> axes,
                         llvm::ArrayRef<int64_t> offsets, llvm::ArrayRef<int64_t> shape);

  llvm::SmallPtrSet<mlir::Operation *, 4> users;
  llvm::SmallPtrSet<mlir::Operation *, 16> chain; ///< computed for each piece
  /// By tile: the pieces that have been built, with their offsets.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<std::pair<llvm::SmallVector<int64_t>, mlir::Value>>>
      pieces;
};

} // namespace tk

#endif // TK_PASSES_LAYOUT_TILEPIECES_H
