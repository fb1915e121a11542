//===- TransposedLoads.h - loads whose tile is transposed -------*- C++ -*-===//
#ifndef TK_PASSES_LAYOUT_TRANSPOSEDLOADS_H
#define TK_PASSES_LAYOUT_TRANSPOSEDLOADS_H

#include "dialects/tkgpu/TkGpuDialect.h"

namespace tk {

/// Turns a transposition of a loaded tile into a load of the transposed tile: which element lies
/// where is then a matter of layout, and the tile can be copied to shared memory as it stands.
void foldTransposedLoads(gpu::FuncOp function);

/// A load that was made for a transposition alone, and the load that it stands for.
struct TransposedCopy {
  gpu::LoadOp copy, original;
  mlir::DenseI64ArrayAttr permutation;
};

/// Gives transpositions of tiles that other products use as they are loads of their own.
llvm::SmallVector<TransposedCopy> separateTransposedLoads(gpu::FuncOp function);

/// Makes one load for both again.
void joinTransposedLoads(llvm::ArrayRef<TransposedCopy> copies);

} // namespace tk

#endif // TK_PASSES_LAYOUT_TRANSPOSEDLOADS_H
