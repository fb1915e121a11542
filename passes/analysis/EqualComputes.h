//===- EqualComputes.h - compute ops that compute the same ------*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_EQUALCOMPUTES_H
#define TK_PASSES_ANALYSIS_EQUALCOMPUTES_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Of `statements`, one of the same kernel that computes what `compute` does; null if there is
/// none.
ComputeOp findEqual(llvm::ArrayRef<ComputeOp> statements, ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_EQUALCOMPUTES_H
