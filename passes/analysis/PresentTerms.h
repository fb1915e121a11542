//===- PresentTerms.h - terms that a mask leaves out ------------*- C++ -*-===//
//
// A term of a sum whose weight is masked does not exist: it is no product of 0 with what the other
// factors read there.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_ANALYSIS_PRESENTTERMS_H
#define TK_PASSES_ANALYSIS_PRESENTTERMS_H

#include "dialects/tk/TkDialect.h"

#include "llvm/ADT/DenseMap.h"

namespace tk {

/// By reduction: for each of its sums the condition under which a term exists, a value of the
/// reduction's body, or null where all terms exist.
using PresentTerms = llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value>>;

/// Which conditions are wanted: all, or those that are computed from elements alone and need no
/// reduction of their own.
enum class Conditions { All, OfElements };

/// Finds the conditions of all sums in `root`, a kernel or one of its statements, and adds to their
/// bodies what computes them.
PresentTerms addPresentTerms(mlir::Operation *root, Conditions wanted);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_PRESENTTERMS_H
