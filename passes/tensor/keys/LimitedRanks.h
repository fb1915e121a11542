//===- LimitedRanks.h - ranks that are compared with a limit ----*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_KEYS_LIMITEDRANKS_H
#define TK_PASSES_TENSOR_KEYS_LIMITEDRANKS_H

#include "passes/tensor/keys/RankedTerms.h"

namespace tk {

/// The integers that keys become.
struct KeyOrder {
  mlir::Value key, bound; ///< of the type that was loaded
  int64_t shift = 0;      ///< lower bits of the order that all keys have in common
  int64_t bits = 32;      ///< of an order
  int64_t beforeAll = 0;  ///< one less than the first integer
  /// Position of the index of the compute op at which the bound is the key.
  std::optional<unsigned> boundIndex;
};

/// A comparison of a sum of ranked terms with a limit.
struct LimitTest {
  mlir::Operation *compare;
  mlir::Value sum;                        ///< its operand: the reduction, or a load of its result
  bool isBelow = false;                   ///< holds for small sums
  llvm::SmallVector<mlir::Value> indices; ///< of the element of the compute op

  ComputeOp getCompute() const { return compare->getParentOfType<ComputeOp>(); }
};

/// A sum or a count of ranked terms that only comparisons with limits of the row read.
struct LimitedRank {
  RankedReduction ranked;
  KeyOrder order;
  llvm::SmallVector<LimitTest> tests;
  llvm::SmallVector<unsigned> positions; ///< of the indices of a row: batches, then columns
};

std::optional<LimitedRank> matchLimitedRank(ComputeOp compute, const RankedReduction &ranked);

} // namespace tk

#endif // TK_PASSES_TENSOR_KEYS_LIMITEDRANKS_H
