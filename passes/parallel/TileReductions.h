//===- TileReductions.h - results that reduce what a tile holds -*- C++ -*-===//
#ifndef TK_PASSES_PARALLEL_TILEREDUCTIONS_H
#define TK_PASSES_PARALLEL_TILEREDUCTIONS_H

#include "dialects/tkgpu/TkGpuPlan.h"

namespace tk {

/// A result over the tiles of some indices, each of which another of its indices counts: its
/// element is the reduction of the yielded value, which depends on those indices, over their values
/// in one tile.
struct TileReduction {
  /// An index that is reduced, and the one that counts its tiles: positions in the statement.
  struct Axis {
    unsigned counter, index;
    int64_t size; ///< values of `index` in a tile
  };
  llvm::SmallVector<Axis, 2> axes;
  ReduceKind kind;
  /// Of the first axis not tiles are counted, but the blocks, each of which goes through tiles and
  /// carries what they are reduced to.
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

/// What a statement shall reduce of each of its tiles besides.
struct AddedReduction {
  mlir::Value value;                  ///< of the statement's body
  llvm::ArrayRef<unsigned> positions; ///< indices that the value is over
  llvm::ArrayRef<unsigned> reduced;   ///< those of them that it is reduced over
  llvm::ArrayRef<int64_t> sizes;      ///< how many values of each of these, in that order
  ReduceKind kind;
  mlir::Value blocks; ///< if blocks carry it along the first of `reduced`: how many there are
};

/// Gives a statement with a schedule one more result, `added` in each of its tiles. Returns the new
/// statement, of which that is the last result, and whose last indices count tiles, in the order in
/// which they stand in that result; the old one is gone.
ComputeOp addTileReduction(ComputeOp compute, const AddedReduction &added, llvm::StringRef name);

/// Lets a statement no longer store the results that nobody reads now that their reductions begin
/// in its tiles.
void dropUnusedResults(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_PARALLEL_TILEREDUCTIONS_H
