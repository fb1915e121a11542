//===- PairTerms.h - terms of two values -----------------------*- C++ -*-===//
//
// What a reduction takes in may be a function of two values, one over its results' rows and one
// over their columns: distances, equal letters, the least of sums. Such terms are computed like
// products, from tiles of both.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_ANALYSIS_PAIRTERMS_H
#define TK_PASSES_ANALYSIS_PAIRTERMS_H

#include "dialects/tk/TkDialect.h"

#include "llvm/ADT/SetVector.h"

namespace tk {

/// A term as a function of the elements `a` and `b`, as they are loaded.
struct PairTerm {
  LoadOp a, b;                             ///< not over n, and not over m
  llvm::SetVector<mlir::Operation *> body; ///< what is computed of them, in order
};

/// Is the term of two zeros known to be 0? Then zeros may stand where there are no terms of a sum.
bool isZeroOfZeros(PairTerm &pair);
/// The same of what `body` computes, in order, of `elements`.
bool isZeroOfZeros(llvm::ArrayRef<mlir::Value> elements, llvm::ArrayRef<mlir::Operation *> body);

/// `term`, which is over `m`, `n` and `k`, as a function of two loaded values, both over `k`, of
/// which one is not over `n` and the other not over `m`; whatever else it needs is over none of
/// the three. Nothing if it is no such function.
std::optional<PairTerm> getPairTerm(mlir::Value term, mlir::Value m, mlir::Value n, mlir::Value k);

/// True if `reduce`, of its statement or in the terms of other reductions, is a pairwise
/// contraction with enough rows, columns and terms for tiles of pairs.
bool isPairwise(ReduceOp reduce);

/// True if what `compute` reduces is one pairwise contraction, and nothing else.
bool computesPairs(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_PAIRTERMS_H
