//===- TileLoops.h - persistent blocks --------------------------*- C++ -*-===//
#ifndef TK_PASSES_PARALLEL_TILELOOPS_H
#define TK_PASSES_PARALLEL_TILELOOPS_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tk {

/// On a function: its blocks go through tiles already, and carry what these are reduced to.
inline constexpr llvm::StringLiteral carriesTilesAttrName = "tkgpu.carries_tiles";

/// On a function with one tile for each value of its grid's index: the argument that has the first
/// value of each share, and how many shares there are (tk.in_shares).
inline constexpr llvm::StringLiteral sharesAttrName = "tkgpu.shares";

/// Moves all that depends on the loop's induction variable, or has an effect, into the loop, which
/// stands in the function's block.
void moveIntoLoop(gpu::FuncOp function, mlir::scf::ForOp loop);

} // namespace tk

#endif // TK_PASSES_PARALLEL_TILELOOPS_H
