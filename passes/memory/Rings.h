//===- Rings.h - bulk copies that share stages ------------------*- C++ -*-===//
#ifndef TK_PASSES_MEMORY_RINGS_H
#define TK_PASSES_MEMORY_RINGS_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include "llvm/ADT/DenseMap.h"

namespace tk {

/// Bulk copies of one block that bring parts of a tile, or whose tiles meet in an operation: they
/// fill a stage together.
struct Ring {
  llvm::SmallVector<gpu::BulkCopyOp> copies;
  /// Of the operations in the copies' block, or in what they contain: where the tiles are first
  /// needed, and after which they are no longer read.
  mlir::Operation *firstUse = nullptr, *lastUse = nullptr;
  int64_t stages = 1;
  /// By a copy's tile: the buffer that has all stages of it.
  llvm::DenseMap<mlir::Value, mlir::Value> buffers;
  mlir::Value full, empty; ///< phases

  /// What the copies bring; several may bring parts of one tile.
  llvm::SmallVector<mlir::Value> getTiles() const;
  int64_t getStageBytes() const;
  /// Does a copy bring parts of its tile to other blocks of the cluster?
  bool isMulticast() const;
};

/// Groups the bulk copies of a function; not `together`, each is a ring of its own. Fails where the
/// tile of one is used in a way that a ring does not allow for: outside the copy's block, or by a
/// product that nothing waits for.
mlir::FailureOr<llvm::SmallVector<Ring, 0>> findRings(gpu::FuncOp function, bool together);

/// Gives the innermost rings as many stages as `wanted` and the memory that is left of `limit`
/// bytes allow; those around them two, if they are in a loop and the innermost ones still have two,
/// else one. Returns the bytes that `wanted` stages would take.
int64_t chooseStages(gpu::FuncOp function, llvm::MutableArrayRef<Ring> rings, int64_t wanted,
                     int64_t limit);

} // namespace tk

#endif // TK_PASSES_MEMORY_RINGS_H
