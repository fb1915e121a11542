//===- TermConditions.h - masks in the elements of reductions ---*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_TERMCONDITIONS_H
#define TK_PASSES_ANALYSIS_TERMCONDITIONS_H

#include "passes/analysis/ScalarExpr.h"

namespace tk {

/// A condition under which an element counts. If it is false, the element is the identity value of
/// its reduction. It is NaN if `from` is present and is -inf or NaN, or if `divisor` is present and
/// is 0 or NaN.
struct TermCondition {
  mlir::Value holds, from, divisor;
  bool operator==(const TermCondition &other) const = default;
};

/// Collects the conditions of a reduction's element.
class TermConditions {
public:
  explicit TermConditions(ReduceOp reduce);
  llvm::SmallVector<TermCondition> found;

private:
  void addAll(mlir::Value condition, mlir::Value from = {});
  void add(mlir::Value term, ReduceKind kind, bool isFactor, mlir::Value from = {});
  void addShared(mlir::Value a, mlir::Value b, bool isFactor);
  void addDividend(mlir::Operation *quotient, ReduceKind kind, bool isFactor);

  ReduceOp reduce;
  Dependence varying;
  mlir::Value divisor; ///< what all that is looked at is divided by
};

} // namespace tk

#endif // TK_PASSES_ANALYSIS_TERMCONDITIONS_H
