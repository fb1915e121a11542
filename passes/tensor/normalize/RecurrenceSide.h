//===- RecurrenceSide.h - the terms up to an index --------------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_NORMALIZE_RECURRENCESIDE_H
#define TK_PASSES_TENSOR_NORMALIZE_RECURRENCESIDE_H

#include "dialects/tk/TkDialect.h"

#include <optional>

namespace tk {

/// The terms that a sum over one index has: those up to `place`, an index of its compute op, or
/// from there on.
struct RecurrenceSide {
  mlir::BlockArgument place;
  bool isBackward = false, isIncluded = true;
  mlir::Value condition; ///< that says so, around a factor of the term; null if a bound does

  /// The side of the sum `reduce`, which stands in the body of `compute`.
  static std::optional<RecurrenceSide> of(ReduceOp reduce, ComputeOp compute);
};

/// The selections of a value or 0 among the factors of `term`.
void collectChoices(mlir::Value term, llvm::SmallVectorImpl<mlir::arith::SelectOp> &choices);

} // namespace tk

#endif // TK_PASSES_TENSOR_NORMALIZE_RECURRENCESIDE_H
