//===- SharedTiles.h - how tiles lie in shared memory -----------*- C++ -*-===//
#ifndef TK_PASSES_LAYOUT_SHAREDTILES_H
#define TK_PASSES_LAYOUT_SHAREDTILES_H

#include "dialects/tkgpu/TkGpuLayout.h"

namespace tk {

/// The axis along which a layout's vectors, or else its lanes, run.
int64_t contiguousAxisOf(gpu::LayoutAttr layout);

/// The axis along which consecutive lanes run; the last if they replicate.
int64_t laneAxisOf(gpu::LayoutAttr layout);

/// A tile with rows along `axis` whose 16-byte chunks are permuted so that eight chunks in a row,
/// and eight chunks below each other, lie in different banks.
gpu::SharedType swizzledTile(mlir::RankedTensorType tile, mlir::Type stored, int64_t axis);

/// A tile with rows of at most `most` bytes along `axis`, permuted as the hardware does.
gpu::SharedType panelledTile(llvm::ArrayRef<int64_t> shape, mlir::Type stored, int64_t axis,
                             int64_t most);

/// Scratch for a tile that is stored in layout `from` and loaded in layout `to`, with rows padded
/// by as much as keeps the vectors of both aligned.
gpu::SharedType scratchTile(mlir::RankedTensorType tile, gpu::LayoutAttr from, gpu::LayoutAttr to);

/// Elements that one plain access of `layout` to `shared` may take.
int64_t sharedVector(gpu::SharedType shared, gpu::LayoutAttr layout);

} // namespace tk

#endif // TK_PASSES_LAYOUT_SHAREDTILES_H
