//===- RangeEnds.h - comparisons that bound an index ------------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_NORMALIZE_RANGEENDS_H
#define TK_PASSES_TENSOR_NORMALIZE_RANGEENDS_H

#include "passes/analysis/IndexSum.h"
#include "passes/analysis/ScalarExpr.h"

namespace tk {

/// A condition on the index of a reduction at `position`: it is at least `at`, or less than `at`.
struct RangeEnd {
  unsigned position = 0;
  bool isBegin = false;
  IndexSum at;            ///< without indices of the reduction
  mlir::Value value;      ///< that is `at`, if the comparison has one
  mlir::Value condition;  ///< null for a bound of the reduction, and where `isImplied`
  bool isImplied = false; ///< a condition that says more has this end
};

/// What `condition` says of an index of `reduce`, on whose indices `varying` is the dependence.
std::optional<RangeEnd> matchRangeEnd(ReduceOp reduce, mlir::Value condition, Dependence &varying);

/// The begin and the end that an equation with an index of `reduce`, rounded down, has for it: `k -
/// k % 2 == i` holds for no `k` but `i` and `i + 1`. `condition` then stays.
std::optional<std::pair<RangeEnd, RangeEnd>> matchEquation(ReduceOp reduce, mlir::Value condition,
                                                           Dependence &varying);

} // namespace tk

#endif // TK_PASSES_TENSOR_NORMALIZE_RANGEENDS_H
