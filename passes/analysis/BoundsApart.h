//===- BoundsApart.h - accesses in statements of their own ------*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_BOUNDSAPART_H
#define TK_PASSES_ANALYSIS_BOUNDSAPART_H

#include "passes/analysis/ScalarExpr.h"

namespace tk {

/// Are all accesses in `op` seen to be in bounds wherever their own indices are, also where an
/// index of which `onOthers` has the end has no values? The proof of `p[H - 1]` may rest on that.
bool isInBoundsApart(mlir::Operation *op, Dependence &onOthers);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_BOUNDSAPART_H
