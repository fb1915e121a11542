//===- SlidingLoads.h - loads whose tile moves by less than its size -*- C++ -*-===//
//
// A window reads, term by term, tiles that lie one or a few places further on: what one iteration
// of its loops reads the next one reads, too.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_LAYOUT_SLIDINGLOADS_H
#define TK_PASSES_LAYOUT_SLIDINGLOADS_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tk {

/// The axes of a load's tile along which it slides with `loop`, in order: the index over that axis
/// alone grows one by one along the tile, and with the loop by less than the tile is long.
llvm::SmallVector<int64_t> slidAxes(gpu::LoadOp load, mlir::scf::ForOp loop);

/// Does a load slide along an axis of which a thread has several places, with `loop` or one around
/// it?
bool slidesInRegisters(gpu::LoadOp load, mlir::scf::ForOp loop);

} // namespace tk

#endif // TK_PASSES_LAYOUT_SLIDINGLOADS_H
