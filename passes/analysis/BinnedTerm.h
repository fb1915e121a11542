//===- BinnedTerm.h - terms of sums by a key --------------------*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_BINNEDTERM_H
#define TK_PASSES_ANALYSIS_BINNEDTERM_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// The term of a sum by a key, in i32 or f32, `bin == index and conditions ? weight : 0`, where
/// `index` is the last one of the compute op, on which nothing else depends.
struct BinnedTerm {
  mlir::Value bin;
  mlir::Value weight; ///< null: 1
  llvm::SmallVector<mlir::Value> conditions;
};

/// Matches sum `k` of `reduce`, which no other one of its accumulators corrects.
std::optional<BinnedTerm> matchBinnedTerm(ComputeOp compute, ReduceOp reduce, unsigned k);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_BINNEDTERM_H
