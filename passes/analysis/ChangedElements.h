//===- ChangedElements.h - elements in place that change --------*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_CHANGEDELEMENTS_H
#define TK_PASSES_ANALYSIS_CHANGEDELEMENTS_H

#include "dialects/tk/TkDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <optional>

namespace tk {

/// An element in place that is what it was unless a condition holds: `x = if c then v else x`.
struct ChangedElement {
  mlir::arith::SelectOp choice;
  mlir::arith::TruncFOp rounding; ///< what rounds the choice to the result's type, or null
};

/// Result `r` of `compute` as such an element of the `inout` parameter that it overwrites. Nothing
/// if it is none, or if the condition differs along the result's innermost index, along which a
/// thread stores vectors.
std::optional<ChangedElement> getChangedElement(KernelOp kernel, ComputeOp compute, unsigned r);

/// Does `compute`, of one result that is in place, read of what that overwrites only the element
/// that it stores?
bool readsOwnElements(KernelOp kernel, ComputeOp compute);

/// The condition of all results of `compute`, if each is such an element and all have the same one;
/// else null.
mlir::Value getConditionOfChange(KernelOp kernel, ComputeOp compute);

/// The indices of `compute` that that condition is over; empty if there is no such condition.
llvm::SmallVector<mlir::Value> indicesOfChange(KernelOp kernel, ComputeOp compute);

/// An index of a compute op that has one value where its results change.
struct ChangedPlace {
  unsigned index;    ///< which one
  mlir::Value place; ///< the value, which may lie outside of the index's range
};

/// The index `p` of `compute` whose results change under the condition `p == place`, and
/// `place` does not follow from `p`; nothing if the condition is another one.
std::optional<ChangedPlace> getChangedPlace(KernelOp kernel, ComputeOp compute);

/// The index of `compute` that `value` is, but for a conversion that keeps all of its bits.
mlir::BlockArgument asIndexOf(ComputeOp compute, mlir::Value value);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_CHANGEDELEMENTS_H
