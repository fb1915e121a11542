//===- BoundsApart.h - accesses in statements of their own ------*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_BOUNDSAPART_H
#define TK_PASSES_ANALYSIS_BOUNDSAPART_H

#include "passes/analysis/ScalarExpr.h"

namespace tk {

/// Are all accesses in `op` seen to be in bounds wherever their own indices are, also where an
/// index of which `onOthers` has the end has no values? The proof of `p[H - 1]` may rest on that,
/// unless H is the tensor's own extent and one of those that are `kept`.
bool isInBoundsApart(mlir::Operation *op, Dependence &onOthers, mlir::ValueRange kept = {});

} // namespace tk

#endif // TK_PASSES_ANALYSIS_BOUNDSAPART_H
