//===- PadConditions.h - conditions that say what a pad says ----*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_NORMALIZE_PADCONDITIONS_H
#define TK_PASSES_TENSOR_NORMALIZE_PADCONDITIONS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// On a compute op: its results are stored, and computed nowhere else.
inline constexpr llvm::StringLiteral storedApartAttrName = "tk.stored_apart";

/// Leaves out conditions that a load's pad of 0 says as well (PadConditions.cpp); whether there was
/// one. With `splits`, sums of products under such conditions become products beside which results
/// that are NaN are computed again.
bool padConditions(ComputeOp compute, bool splits);

/// True if each part of `condition` only says that a place of one of `loads` is inside its tensor.
bool saysInside(KernelOp kernel, mlir::Value condition, llvm::ArrayRef<LoadOp> loads);

/// A compute op of `reduce` alone, ahead of `compute`, with its results as they are. Its name is
/// that of the first result of `compute`, and `suffix`.
ComputeOp copySum(ComputeOp compute, ReduceOp reduce, llvm::StringRef suffix);

/// Replaces the sum `reduce` by `result`, which stands before it. A result that is NaN is computed
/// again by the sum.
void computeNaNAgain(ReduceOp reduce, mlir::Value result);

} // namespace tk

#endif // TK_PASSES_TENSOR_NORMALIZE_PADCONDITIONS_H
