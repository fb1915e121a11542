//===- AccessClocks.h - what accesses take of the L1 cache ------*- C++ -*-===//
//
// The first-level cache gives 32 words of four bytes a clock, one of each bank. An access of a warp
// takes as many clocks as its lanes need different words of one bank.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_ACCESSCLOCKS_H
#define TK_PASSES_MACHINE_ACCESSCLOCKS_H

#include "passes/machine/Footprint.h"

#include "mlir/IR/BuiltinTypes.h"

namespace tk {

/// Bytes of the first-level cache's rate, which is the shared memory's, that an access of a block's
/// threads to memory takes.
double bytesOfCache(const KnownValues &values, const TileAccess &access,
                    mlir::RankedTensorType tile);

} // namespace tk

#endif // TK_PASSES_MACHINE_ACCESSCLOCKS_H
