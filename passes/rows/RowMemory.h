//===- RowMemory.h - shared memory for rows that come early -----*- C++ -*-===//
#ifndef TK_PASSES_ROWS_ROWMEMORY_H
#define TK_PASSES_ROWS_ROWMEMORY_H

#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuPrivateOps.h"
#include "passes/machine/Machine.h"

#include <algorithm>

namespace tk {

/// How many blocks of a multiprocessor go through rows that they reduce: threads of 64 registers
/// fill it, if the schedule says nothing else.
inline int64_t blocksThatReduce(gpu::FuncOp function) {
  auto schedule = gpu::getTiles(function);
  if (schedule && schedule.getPersistent() != 0)
    return schedule.getPersistent();
  return std::max<int64_t>(usualThreadsOfProcessor / (function.getBlockWarps() * 32), 1);
}

/// The shared memory of one of so many blocks of a multiprocessor, of whose shares the hardware
/// takes some.
inline int64_t sharedBytesOfBlock(gpu::TargetAttr target, int64_t blocks) {
  return (target.getShared() + sharedOfSystem) / blocks - sharedOfSystem;
}

/// Bytes of a function's buffers in shared memory, if no two share bytes.
inline int64_t bytesOfBuffers(gpu::FuncOp function) {
  int64_t bytes = 0;
  function.walk([&](gpu::AllocSharedOp alloc) { bytes += alloc.getType().getSizeInBytes(); });
  function.walk([&](gpu::AllocPrivateOp alloc) {
    bytes += alloc.getType().getBytesOfThread() * function.getBlockWarps() * lanesOfWarp;
  });
  return bytes;
}

} // namespace tk

#endif // TK_PASSES_ROWS_ROWMEMORY_H
