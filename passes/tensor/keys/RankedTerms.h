//===- RankedTerms.h - reductions of terms before a bound -------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_KEYS_RANKEDTERMS_H
#define TK_PASSES_TENSOR_KEYS_RANKEDTERMS_H

#include "passes/tensor/keys/RankTest.h"

namespace tk {

/// The element of a reduction: the identity unless all conditions hold.
struct RankedElement {
  llvm::SmallVector<mlir::Value> conditions;
  mlir::Value weight; ///< null: 1, or true
};
std::optional<RankedElement> splitRankedElement(ReduceOp reduce);
/// Is nothing reduced in what `value`, in `compute`, is computed from?
bool isComputedPlainly(mlir::Value value, ComputeOp compute);

/// A reduction of the terms whose key compares with a bound.
struct RankedReduction {
  ReduceOp reduce;
  RankTest test;
  mlir::Value term;                          ///< the index of the reduction
  mlir::Value numTerms;                      ///< its extent
  mlir::Location loc;                        ///< of the reduction
  llvm::SmallVector<mlir::Value> conditions; ///< the others under which a term counts
  mlir::Value weight;                        ///< null: 1, or true
  llvm::SmallVector<unsigned> batches = {};  ///< positions of indices that the key depends on
  llvm::SmallVector<unsigned> columns = {};  ///< those that terms depend on besides

  /// Is the result how many keys there are?
  bool isCount() const { return !weight && conditions.empty(); }
  /// What combines the terms, and their type. Terms without a weight are counted.
  ReduceKind getKind() const;
  mlir::Type getType() const;
};

std::optional<RankedReduction> matchRankedReduction(ComputeOp compute, ReduceOp reduce);

} // namespace tk

#endif // TK_PASSES_TENSOR_KEYS_RANKEDTERMS_H
