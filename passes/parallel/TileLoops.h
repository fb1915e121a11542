//===- TileLoops.h - persistent blocks --------------------------*- C++ -*-===//
#ifndef TK_PASSES_PARALLEL_TILELOOPS_H
#define TK_PASSES_PARALLEL_TILELOOPS_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tk {

/// On a function whose blocks are persistent already and carry the reductions of their tiles.
inline constexpr llvm::StringLiteral carriesTilesAttrName = "tkgpu.carries_tiles";

/// On a function with one tile for each value of its grid's index: the argument that has the first
/// value of each work unit, and the number of work units (tk.in_shares).
inline constexpr llvm::StringLiteral sharesAttrName = "tkgpu.shares";

/// Moves all operations that depend on the loop's induction variable, or have an effect, into the
/// loop, which stands in the function's block.
void moveIntoLoop(gpu::FuncOp function, mlir::scf::ForOp loop);

} // namespace tk

#endif // TK_PASSES_PARALLEL_TILELOOPS_H
