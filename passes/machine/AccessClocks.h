//===- AccessClocks.h - what accesses take of the L1 cache ------*- C++ -*-===//
//
// The first-level cache gives 32 words of four bytes a clock, one of each bank. An access of a warp
// takes as many clocks as its lanes need different words of one bank.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_ACCESSCLOCKS_H
#define TK_PASSES_MACHINE_ACCESSCLOCKS_H

#include "passes/machine/Footprint.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/IR/BuiltinTypes.h"

namespace tk {

namespace cost {
/// Instructions of a thread's access to memory: itself, and the address beside what the indices
/// cost. What a condition adds. What a choice between two addresses adds (load_common), for one of
/// 64 bits, and for the value. Counted in NVRTC's code for sm_90a, of windows and of gathers.
inline constexpr double access = 1.5, maskOfAccess = 0.5, choiceOfAddress = 3;
} // namespace cost

/// What an access of a block's threads takes.
struct AccessCost {
  double bytes = 0;    ///< of the first-level cache's rate, which is the shared memory's
  double accesses = 0; ///< of single threads
};

/// Of a tile in memory.
AccessCost costOfMemory(const KnownValues &values, const TileAccess &access,
                        mlir::RankedTensorType tile);

/// Of a tile in shared memory, by threads that read or write `vector` elements at once.
AccessCost costOfShared(gpu::SharedType buffer, mlir::RankedTensorType tile, int64_t vector);

} // namespace tk

#endif // TK_PASSES_MACHINE_ACCESSCLOCKS_H
