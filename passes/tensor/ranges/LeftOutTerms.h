//===- LeftOutTerms.h - NaN in elements that a mask leaves out --*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_RANGES_LEFTOUTTERMS_H
#define TK_PASSES_TENSOR_RANGES_LEFTOUTTERMS_H

#include "passes/analysis/TermConditions.h"

#include "llvm/ADT/MapVector.h"

namespace tk {

/// The elements that a reduction leaves out once its masks are bounds. Some of them would be NaN: a
/// plain exponential of a distance from -inf or NaN, and a quotient by 0 or NaN.
class LeftOutTerms {
public:
  explicit LeftOutTerms(ReduceOp reduce) : reduce(reduce), builder(reduce) {}

  /// To be called before and after the bounds of index number `index` follow from `term`.
  void beginChange(const TermCondition &term, unsigned index);
  void endChange(const TermCondition &term, unsigned index);

  /// Makes the result NaN where an element that is left out would be.
  void keepNaN();

private:
  /// Whether any element is left out, by the value that would make it NaN.
  using Causes = llvm::SmallMapVector<mlir::Value, mlir::Value, 2>;
  mlir::Value isNotEmpty();
  void keepNaN(mlir::Value isNaN, mlir::Value leftOut);

  ReduceOp reduce;
  mlir::OpBuilder builder;
  mlir::Value notEmpty, lower, upper; ///< before the bounds change
  Causes distances, quotients;
};

} // namespace tk

#endif // TK_PASSES_TENSOR_RANGES_LEFTOUTTERMS_H
