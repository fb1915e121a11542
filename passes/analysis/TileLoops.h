//===- TileLoops.h - persistent blocks --------------------------*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_TILELOOPS_H
#define TK_PASSES_ANALYSIS_TILELOOPS_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tk {

/// Moves all operations that depend on the loop's induction variable, or have an effect, into the
/// loop, which stands in the function's block.
void moveIntoLoop(gpu::FuncOp function, mlir::scf::ForOp loop);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_TILELOOPS_H
