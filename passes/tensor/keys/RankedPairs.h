//===- RankedPairs.h - reductions of pairs under a comparison ---*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_KEYS_RANKEDPAIRS_H
#define TK_PASSES_TENSOR_KEYS_RANKEDPAIRS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// A reduction over several indices, of which a key depends on one and a bound on others.
struct RankedPairs {
  ReduceOp reduce;
  unsigned term = 0;                         ///< the position of the key's index
  llvm::SmallVector<mlir::Value> conditions; ///< the comparison, and conditions on the key's index
  llvm::SmallVector<mlir::Value> others;     ///< conditions that do not depend on it
  mlir::Value weight;                        ///< null: 1

  ReduceKind getKind() const { return ReduceOp(reduce).getKind(0); }
};

std::optional<RankedPairs> matchRankedPairs(ComputeOp compute, ReduceOp reduce);
/// Creates a compute op that reduces over the key's index alone.
ComputeOp storeInner(ComputeOp compute, const RankedPairs &pairs);
/// Replaces the reduction by one of what `stored` stores over the other indices.
void reduceStored(ComputeOp compute, const RankedPairs &pairs, ComputeOp stored);

} // namespace tk

#endif // TK_PASSES_TENSOR_KEYS_RANKEDPAIRS_H
