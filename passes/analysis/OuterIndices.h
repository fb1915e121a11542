//===- OuterIndices.h - sets of indices from outside of a sum ---*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_OUTERINDICES_H
#define TK_PASSES_ANALYSIS_OUTERINDICES_H

#include "passes/analysis/ScalarExpr.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

namespace tk {

using OuterIndices = llvm::SmallDenseSet<mlir::Value, 4>;

/// The indices from outside of `reduce` that `value` depends on.
inline OuterIndices outerIndices(ReduceOp reduce, mlir::Value value) {
  OuterIndices indices;
  for (mlir::BlockArgument index : getIterationIndices(value))
    if (!reduce.getBody().isAncestor(index.getParentRegion()))
      indices.insert(index);
  return indices;
}

inline OuterIndices without(const OuterIndices &all, const OuterIndices &others) {
  OuterIndices rest;
  for (mlir::Value index : all)
    if (!others.contains(index))
      rest.insert(index);
  return rest;
}

inline bool meets(const OuterIndices &a, const OuterIndices &b) {
  return llvm::any_of(a, [&](mlir::Value index) { return b.contains(index); });
}

} // namespace tk

#endif // TK_PASSES_ANALYSIS_OUTERINDICES_H
