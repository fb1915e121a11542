//===- TileReductions.h - results that reduce what a tile holds -*- C++ -*-===//
#ifndef TK_PASSES_PARALLEL_TILEREDUCTIONS_H
#define TK_PASSES_PARALLEL_TILEREDUCTIONS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// On a tk.compute with a schedule: an array with an entry for each result, a unit where it is
/// nothing but a result.
inline constexpr llvm::StringLiteral tileReductionsAttrName = "tkgpu.tile_reductions";

/// A result over the tiles of `index`, which its last index `counter` counts: its element is the
/// reduction of the yielded value, which depends on `index`, over the values in one tile.
struct TileReduction {
  unsigned counter, index; ///< positions of indices of the statement
  int64_t size;            ///< values of `index` in a tile
  ReduceKind kind;
};

inline std::optional<TileReduction> getTileReduction(ComputeOp compute, unsigned result) {
  auto entries = compute->getAttrOfType<mlir::ArrayAttr>(tileReductionsAttrName);
  auto entry =
      entries ? llvm::dyn_cast<mlir::DictionaryAttr>(entries[result]) : mlir::DictionaryAttr();
  if (!entry)
    return std::nullopt;
  return TileReduction{compute.getIndicesOf(result).back(),
                       static_cast<unsigned>(entry.getAs<mlir::IntegerAttr>("index").getInt()),
                       entry.getAs<mlir::IntegerAttr>("size").getInt(),
                       entry.getAs<ReduceKindAttr>("kind").getValue()};
}

} // namespace tk

#endif // TK_PASSES_PARALLEL_TILEREDUCTIONS_H
