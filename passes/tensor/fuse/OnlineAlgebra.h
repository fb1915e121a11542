//===- OnlineAlgebra.h - factoring a running value out of an element -*- C++ -*-===//
//
// The algebra of tk-online-reductions. An element t(j, m) of a sum may use the result m of an
// earlier reduction. It can be summed with the running m if t(j, new) = t(j, old) * f(old, new) for
// a factor f that does not depend on j. This file finds f by taking the element apart.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TENSOR_FUSE_ONLINEALGEBRA_H
#define TK_PASSES_TENSOR_FUSE_ONLINEALGEBRA_H

#include "passes/analysis/ScalarExpr.h"

#include <optional>
#include <string>

namespace tk {

/// One factor exp(scale * (x(j) - v(m))) of an element, times values that do not depend on m. sign
/// * v(m) never decreases as the running m changes, and bounds sign * x(j).
struct ExponentialFactor {
  mlir::Operation *op;  // tk.exp_diff, math.exp or math.exp2
  mlir::Value term;     // x
  mlir::Value bound;    // v
  double scale = 1.0;   // > 0
  bool negated = false; // sign is -1: a running minimum
  bool isPlain = true;  // the exponent is x - v and nothing else
};

/// The dependence of one accumulator on the earlier ones. Without factors it does not depend on
/// them.
struct Separation {
  llvm::SmallVector<ExponentialFactor> factors;
};

/// Separates the element of `reduce` from the results of `earlier` reductions over the same ranges.
/// On failure the result is empty and `reason` has the reason.
std::optional<Separation> separate(ReduceOp reduce, llvm::ArrayRef<ReduceOp> earlier,
                                   std::string &reason);

} // namespace tk

#endif // TK_PASSES_TENSOR_FUSE_ONLINEALGEBRA_H
