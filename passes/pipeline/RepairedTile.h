//===- RepairedTile.h - elements of a tile, computed again ------*- C++ -*-===//
#ifndef TK_PASSES_PIPELINE_REPAIREDTILE_H
#define TK_PASSES_PIPELINE_REPAIREDTILE_H

#include "dialects/tkgpu/TkGpuFiniteOps.h"
#include "passes/pipeline/StoredTiles.h"

namespace tk {

/// Adds a tkgpu.repair of `stored`, in front of what takes the tile, or behind its store if
/// `whenStored` and that can be. `references` is the buffer with the references of rows that sums
/// are under, or null. Null if the place of the tile's elements, or a reference, is not known.
gpu::RepairOp addRepair(gpu::FuncOp function, gpu::ElementOp element, StoredTile &stored,
                        mlir::Value references, bool whenStored);

} // namespace tk

#endif // TK_PASSES_PIPELINE_REPAIREDTILE_H
