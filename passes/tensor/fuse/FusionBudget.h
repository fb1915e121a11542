//===- FusionBudget.h - limits of recomputation by fusion -------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_FUSE_FUSIONBUDGET_H
#define TK_PASSES_TENSOR_FUSE_FUSIONBUDGET_H

#include "passes/tensor/fuse/FuseProducers.h"

namespace tk {

/// The reason to store the producer instead of computing it at each of `reads`, which are all reads
/// of one producer that could be fused: the copies of its expression would exceed the budget of
/// repeated work or of code. Nothing if they stay within both.
std::optional<std::string> whyOverBudget(llvm::ArrayRef<Read> reads);

/// The readers that load a tensor which the producer loads, too, or that read the producer at
/// several places. Cloned operations may be equal to operations that they have.
llvm::SmallVector<ComputeOp> getReadersWithEqualLoads(llvm::ArrayRef<Read> reads);

/// Merges equal expressions in the body of `compute`, so that each is counted and cloned once.
void mergeEqualExpressions(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_TENSOR_FUSE_FUSIONBUDGET_H
