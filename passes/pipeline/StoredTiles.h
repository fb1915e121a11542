//===- StoredTiles.h - tiles that are stored to a result --------*- C++ -*-===//
#ifndef TK_PASSES_PIPELINE_STOREDTILES_H
#define TK_PASSES_PIPELINE_STOREDTILES_H

#include "dialects/tkgpu/TkGpuDialect.h"

namespace tk {

/// A tile that is stored to a result, and where its elements are in the result.
struct StoredTile {
  mlir::Operation *store = nullptr;    ///< a tkgpu.store or tkgpu.bulk_store
  mlir::Operation *rounding = nullptr; ///< takes the tile, or stores it
  mlir::Value tile;                    ///< of f32 or f64
  llvm::SmallVector<mlir::Value>
      indices;                        ///< by axis of the result: a scalar, or a tile of one axis
  llvm::SmallVector<int64_t> axes;    ///< by axis of the result: along which the tile has it; or -1
  bool areBegins = false;             ///< the indices are those of the first element that is stored
  llvm::SmallVector<int64_t> offsets; ///< by axis of the tile: where that begins in it; empty: 0
};

/// The tiles that `function` stores to result `number` of its launch; nothing if some are not
/// found.
std::optional<llvm::SmallVector<StoredTile>> findTiles(gpu::FuncOp function, gpu::LaunchOp launch,
                                                       unsigned number);

/// Parts of one tile that are stored one after the other share what computes its elements: takes
/// the whole tile.
void joinParts(StoredTile &stored);

} // namespace tk

#endif // TK_PASSES_PIPELINE_STOREDTILES_H
