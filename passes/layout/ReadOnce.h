//===- ReadOnce.h - copies of what is read once -----------------*- C++ -*-===//
//
// A tensor that is larger than the second-level cache and of which a launch reads each element once
// leaves nothing of what was there before, and in the end little of itself. What comes to be
// evicted first leaves the cache to others, and to the part of itself that is still there at the
// next launch.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_LAYOUT_READONCE_H
#define TK_PASSES_LAYOUT_READONCE_H

#include "dialects/tkgpu/TkGpuDialect.h"

namespace tk {

/// Is no element that `copy` brings brought by another block or another time, of a tensor that is
/// a few times as large as the second-level cache?
bool isStreamedOnce(gpu::BulkCopyOp copy);

/// Do the tiles beside this one bring the same, and others not, while what is read once
/// (isStreamedOnce, as the operations say) goes through the cache?
bool isReadAgainSoon(gpu::BulkCopyOp copy);

/// Is what `load` brings a factor of a sum's terms, of such a tensor, and do other threads, blocks
/// and times bring other elements?
bool isStreamedOnce(gpu::LoadOp load);

} // namespace tk

#endif // TK_PASSES_LAYOUT_READONCE_H
