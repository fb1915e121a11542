//===- SharedHazards.h - where barriers are needed --------------*- C++ -*-===//
#ifndef TK_PASSES_PIPELINE_SHAREDHAZARDS_H
#define TK_PASSES_PIPELINE_SHAREDHAZARDS_H

#include "dialects/tkgpu/TkGpuDialect.h"

namespace tk {

/// The buffer that a value of type !tkgpu.shared is (a stage of).
gpu::AllocSharedOp sharedBufferOf(mlir::Value shared);

/// Inserts a barrier before each access to shared memory that conflicts with an access by another
/// thread since the last barrier. Offsets must be planned. Returns how many it inserted.
unsigned insertBarriers(gpu::FuncOp function);

} // namespace tk

#endif // TK_PASSES_PIPELINE_SHAREDHAZARDS_H
