//===- StoredReductions.h - what is reduced of stored results ---*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_STOREDREDUCTIONS_H
#define TK_PASSES_ANALYSIS_STOREDREDUCTIONS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// A reduction over all of some indices of a result of another statement, whose terms are computed
/// from its element alone (and from parameters): what computes the result could begin it.
struct StoredReduction {
  ReduceOp reduce;
  mlir::OpResult stored;
  /// Positions in the stored result's statement: of the indices that are reduced over, in order,
  /// and of the result's others, in order.
  llvm::SmallVector<unsigned> reduced, others;
  llvm::SmallVector<mlir::Value> readerArgs; ///< what the reduction's statement calls the others
  llvm::SmallVector<mlir::Value> ownArgs;    ///< the reduction's own indices, as `reduced`
};

/// `reduce` as a reduction of what is stored, if it is a plain one of floats or finds the place of
/// their extremum.
std::optional<StoredReduction> matchStoredReduction(ReduceOp reduce);

/// Are all reads of `stored` in `reader` inside reductions of it? Else the reader has its elements
/// at hand anyway.
bool readsForReductionsOnly(ComputeOp reader, mlir::OpResult stored);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_STOREDREDUCTIONS_H
