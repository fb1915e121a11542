//===- SeparatePartials.h - reductions that leave partial results ---------===//
#ifndef TK_PASSES_MESH_SEPARATEPARTIALS_H
#define TK_PASSES_MESH_SEPARATEPARTIALS_H

#include "passes/mesh/IndexUses.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace tk::mesh {

/// Gives each reduction of `compute` over an index of a sharded dimension, and each gather from a
/// sharded dimension, a compute op of its own, in front of `compute`, which reads it. Returns the
/// new ops.
mlir::SmallVector<ComputeOp> separatePartials(ComputeOp compute,
                                              llvm::function_ref<Sharding(mlir::Value)> shardingOf);

/// Makes a compute op, named after `compute` and `suffix`, of what `op` in its body computes, and
/// has `compute` read that.
ComputeOp separate(mlir::Operation *op, llvm::StringRef suffix, ComputeOp compute);

} // namespace tk::mesh

#endif // TK_PASSES_MESH_SEPARATEPARTIALS_H
