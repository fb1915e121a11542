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

} // namespace tk

#endif // TK_PASSES_TENSOR_NORMALIZE_PADCONDITIONS_H
