//===- SoftmaxChain.h - a softmax, and the sums by its weights --*- C++ -*-===//
//
// A softmax over an index, the key, the sums of products with its weights, and the logarithm of its
// denominator.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MESH_SOFTMAXCHAIN_H
#define TK_PASSES_MESH_SOFTMAXCHAIN_H

#include "passes/mesh/IndexUses.h"

#include <vector>

namespace tk::mesh {

struct SoftmaxChain {
  /// A compute op, with its index at each dimension of the logits; -1: none stands there.
  struct Member {
    mutable ComputeOp compute; ///< operations are handles
    llvm::SmallVector<int> indexOf;
  };
  /// A sum over the keys of products with a weight.
  struct WeightedSum : Member {
    mutable ReduceOp reduce;
  };
  mlir::Value logits;
  unsigned key = 0;           ///< dimension of the logits
  mutable ComputeOp max, sum; ///< the maximum and the denominator, whole compute ops
  llvm::SmallVector<ComputeOp> weights;
  llvm::SmallVector<WeightedSum> sums;
  llvm::SmallVector<ComputeOp> logs;   ///< logsumexp of the same logits over the key
  llvm::SmallVector<Member> producers; ///< that compute the logits from the key
};

/// The softmaxes of a kernel whose denominators and weights nothing else reads.
std::vector<SoftmaxChain> findSoftmaxChains(KernelOp kernel);

/// The index at each dimension of the logits where `reduce`, a sum of a chain, reads the weights.
llvm::SmallVector<int> indicesOfWeights(const SoftmaxChain &chain, ReduceOp reduce,
                                        ComputeOp compute);

} // namespace tk::mesh

#endif // TK_PASSES_MESH_SOFTMAXCHAIN_H
