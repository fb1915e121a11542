//===- Rings.h - bulk copies that share stages ------------------*- C++ -*-===//
#ifndef TK_PASSES_PIPELINE_RINGS_H
#define TK_PASSES_PIPELINE_RINGS_H

#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/machine/Machine.h"

#include "llvm/ADT/DenseMap.h"

namespace tk {

/// Bulk copies of one block that bring parts of a tile, or whose tiles meet in an operation: they
/// fill a stage together.
struct Ring {
  llvm::SmallVector<gpu::BulkCopyOp> copies;
  /// Copies of the same bytes, to be read as the transpose of one of these copies' tiles: they are
  /// left out, and what read theirs reads that tile. Each with that copy.
  llvm::SmallVector<std::pair<gpu::BulkCopyOp, gpu::BulkCopyOp>> spared;
  /// Of the operations in the copies' block, or in what they contain: where the tiles are first
  /// needed, and after which they are no longer read.
  mlir::Operation *firstUse = nullptr, *lastUse = nullptr;
  int64_t stages = 1;
  /// By a copy's tile: the buffer that has all stages of it.
  llvm::DenseMap<mlir::Value, mlir::Value> buffers;
  mlir::Value full, empty; ///< phases
  /// Where a tile's results lie before they are stored, if that is in the stage that its rows had.
  gpu::AllocSharedOp results;
  mlir::Value resultStages; ///< those of all stages

  /// What the copies bring; several may bring parts of one tile.
  llvm::SmallVector<mlir::Value> getTiles() const;
  /// Of shared memory; and of that, what copies bring: they leave ones alone.
  int64_t getStageBytes() const;
  int64_t getCopiedBytes() const;
  /// Does a copy bring parts of its tile to other blocks of the cluster?
  bool isMulticast() const;
};

/// Bytes that barriers with phases take at most: eight a stage and a kind.
inline constexpr int64_t kPhaseRoom = 1024;
/// Bytes of notes apart from other shared memory, which begins at a multiple of swizzleAlignment
/// behind them.
inline constexpr int64_t kNoteRoom = swizzleAlignment;

/// Groups the bulk copies of a function; not `together`, each is a ring of its own. Fails where the
/// tile of one is used in a way that a ring does not allow for: outside the copy's block, or by a
/// product that nothing waits for. `inChains`: both products of a chain, too, read one copy of a
/// tile, which stays for the second one.
mlir::FailureOr<llvm::SmallVector<Ring, 0>> findRings(gpu::FuncOp function, bool together,
                                                      bool inChains);

/// Are the block's products scores, of one product or several that are added up, and a sum of
/// weights that are computed from them? The last one then moves into the next iteration
/// (tk-overlap-chains), and what it reads stays for as long.
bool isOneChain(mlir::Block *block);

// RingStages.cpp: stages, and what lies in them.

/// Finds the ring whose stages can hold the results of the tile that they were read for, where
/// warpgroups come apart: in a chain that adds to its sums as they are, each from its own first
/// step to its own last one.
void placeResults(gpu::FuncOp function, llvm::MutableArrayRef<Ring> rings);

/// Do warpgroups take turns where their loops allow for it? Not where they come apart by
/// themselves, as those do whose results lie in stages: a turn would have them wait for one
/// another.
inline bool takeTurns(gpu::FuncOp function) {
  return gpu::getPlan(function).order != gpu::WarpgroupOrder::Unordered;
}

/// Is `op` of a role, where warpgroups come apart? Then their own instructions are what a step
/// takes.
inline bool comesApart(mlir::Operation *op) {
  return op->getParentOfType<gpu::WarpRolesOp>() && !takeTurns(op->getParentOfType<gpu::FuncOp>());
}

/// Gives the innermost rings as many stages as `wanted` and the memory that is left of `limit`
/// bytes allow; those around them two, if they are in a loop and the innermost ones still have two,
/// else one. Returns the bytes that `wanted` stages would take.
int64_t chooseStages(gpu::FuncOp function, llvm::MutableArrayRef<Ring> rings, int64_t wanted,
                     int64_t limit);

/// Where warpgroups come apart and a loop sums the weights that it multiplies by a ring's tile, has
/// columns of ones stand behind that tile, for products that sum them (tk-sum-in-products), if that
/// leaves as many stages as are of use, or `wanted` ones where these are `asked` for. Chooses
/// stages again.
void placeOnes(gpu::FuncOp function, llvm::MutableArrayRef<Ring> rings, int64_t wanted,
               int64_t limit, bool asked);

} // namespace tk

#endif // TK_PASSES_PIPELINE_RINGS_H
