//===- ColumnParts.h - partial results of columns ---------------*- C++ -*-===//
//
// The analysis of CarryColumns.cpp, which has the rewriting.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_PARALLEL_COLUMNPARTS_H
#define TK_PASSES_PARALLEL_COLUMNPARTS_H

#include "dialects/tk/TkDialect.h"

#include "llvm/ADT/DenseMap.h"

namespace tk {

/// Partial results of parts of an index, and the statement that takes them over.
struct ColumnParts {
  ComputeOp parts;
  unsigned chunk = 0; ///< the index that counts the parts
  mlir::Value range;  ///< the end of what is in parts
  ComputeOp owner;    ///< reads, or stores, the elements
  /// The owner's position of each of the indices of the parts, but `chunk`, and of those of the
  /// reductions.
  llvm::DenseMap<mlir::Value, unsigned> places;
  int64_t savedBits = 0; ///< of each element that is no longer read
};

/// `compute` as partial results of parts of one range.
std::optional<ColumnParts> matchParts(ComputeOp compute);

/// The reduction of which result `r` of the statement is the accumulator that stands alone.
std::optional<std::pair<ReduceOp, unsigned>> reductionOf(ComputeOp compute, unsigned r);

/// Is each term of the parts computed from what the owner has, and from what is read once for many
/// elements? Says then which index is which.
bool matchTerms(ColumnParts &found);

/// Are all readers of the parts reductions of the same kinds over all of them, which can come
/// behind the owner?
bool matchReaders(const ColumnParts &found);

/// Does the index of which each part has some values stand for the owner's first?
bool goesThroughFirst(const ColumnParts &found);

} // namespace tk

#endif // TK_PASSES_PARALLEL_COLUMNPARTS_H
