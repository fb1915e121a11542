//===- TileReductions.h - results that reduce what a tile holds -*- C++ -*-===//
#ifndef TK_PASSES_PARALLEL_TILEREDUCTIONS_H
#define TK_PASSES_PARALLEL_TILEREDUCTIONS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// On a tk.compute with a schedule: an array with an entry for each result, a unit where it is
/// nothing but a result.
inline constexpr llvm::StringLiteral tileReductionsAttrName = "tkgpu.tile_reductions";

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
};

inline std::optional<TileReduction> getTileReduction(ComputeOp compute, unsigned result) {
  auto entries = compute->getAttrOfType<mlir::ArrayAttr>(tileReductionsAttrName);
  auto entry =
      entries ? llvm::dyn_cast<mlir::DictionaryAttr>(entries[result]) : mlir::DictionaryAttr();
  if (!entry)
    return std::nullopt;
  auto listOf = [&](llvm::StringRef name) {
    return entry.getAs<mlir::DenseI64ArrayAttr>(name).asArrayRef();
  };
  TileReduction reduction{{}, entry.getAs<ReduceKindAttr>("kind").getValue()};
  for (auto [counter, index, size] :
       llvm::zip_equal(listOf("counters"), listOf("indices"), listOf("sizes")))
    reduction.axes.push_back({static_cast<unsigned>(counter), static_cast<unsigned>(index), size});
  return reduction;
}

} // namespace tk

#endif // TK_PASSES_PARALLEL_TILEREDUCTIONS_H
