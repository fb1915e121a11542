//===- TileReductions.h - compute ops that reduce a tile's results -*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_TILEREDUCTIONS_H
#define TK_PASSES_ANALYSIS_TILEREDUCTIONS_H

#include "dialects/tkgpu/TkGpuPlan.h"

namespace tk {

/// A result over the tiles of some indices; another of its indices counts these tiles. Its element
/// is the reduction of the yielded value over the values of those indices in one tile. The yielded
/// value depends on those indices.
struct TileReduction {
  /// A reduced index and the index that counts its tiles: positions in the compute op.
  struct Axis {
    unsigned counter, index;
    int64_t size; ///< values of `index` in a tile
  };
  llvm::SmallVector<Axis, 2> axes;
  ReduceKind kind;
  /// The counter of the first axis counts persistent blocks instead of tiles. Each block carries
  /// the reduction of its tiles.
  bool isCarried = false;
};

inline std::optional<TileReduction> getTileReduction(ComputeOp compute, unsigned result) {
  mlir::ArrayAttr entries = gpu::getPlan(compute).tileReductions;
  auto entry =
      entries ? llvm::dyn_cast<gpu::TileReductionAttr>(entries[result]) : gpu::TileReductionAttr();
  if (!entry)
    return std::nullopt;
  TileReduction reduction{{}, entry.getKind().getValue(), entry.getCarried()};
  for (auto [counter, index, size] :
       llvm::zip_equal(entry.getCounters().asArrayRef(), entry.getIndices().asArrayRef(),
                       entry.getSizes().asArrayRef()))
    reduction.axes.push_back({static_cast<unsigned>(counter), static_cast<unsigned>(index), size});
  return reduction;
}

/// A further reduction of each tile of a compute op.
struct AddedReduction {
  mlir::Value value;                  ///< of the compute op's body
  llvm::ArrayRef<unsigned> positions; ///< indices that the value is over
  llvm::ArrayRef<unsigned> reduced;   ///< those of them that it is reduced over
  llvm::ArrayRef<int64_t> sizes;      ///< values of each of these in a tile, in that order
  ReduceKind kind;
  mlir::Value blocks; ///< the number of blocks, if blocks carry it along the first of `reduced`
};

/// Adds the result `added` of each tile to a compute op with a schedule. Returns the new compute
/// op. `added` is its last result, and its last indices count tiles, in the order in which they
/// stand in that result. The old compute op is erased.
ComputeOp addTileReduction(ComputeOp compute, const AddedReduction &added, llvm::StringRef name);

/// Drops the results of a compute op that have no reader because their reductions begin in its
/// tiles.
void dropUnusedResults(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_TILEREDUCTIONS_H
