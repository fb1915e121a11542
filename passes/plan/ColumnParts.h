//===- ColumnParts.h - partial results of columns ---------------*- C++ -*-===//
//
// The analysis of CarryColumns.cpp, which has the rewriting.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_PLAN_COLUMNPARTS_H
#define TK_PASSES_PLAN_COLUMNPARTS_H

#include "dialects/tk/TkDialect.h"

#include "llvm/ADT/DenseMap.h"

namespace tk {

/// Partial results of parts of an index, and the compute op that takes them over.
struct ColumnParts {
  ComputeOp parts;
  unsigned chunk = 0; ///< the index that counts the parts
  mlir::Value range;  ///< the end of the divided range
  ComputeOp owner;    ///< reads, or stores, the elements
  /// The owner's position of each index of the parts, except for `chunk`, and of each index of the
  /// reductions.
  llvm::DenseMap<mlir::Value, unsigned> places;
  int64_t savedBits = 0; ///< bits of each element that is no longer read
  unsigned counted = 0;  ///< the owner's position of the divided index
};

/// `compute` as partial results of parts of one range.
std::optional<ColumnParts> matchParts(ComputeOp compute);

/// The reduction of which result `r` of the compute op is an independent accumulator.
std::optional<std::pair<ReduceOp, unsigned>> reductionOf(ComputeOp compute, unsigned r);

/// True if each element of the parts is computed from values that the owner has, and from values
/// that are read once for many elements. Fills in which index is which.
bool matchTerms(ColumnParts &found);

/// True if all readers of the parts are reductions of the same kinds over all of them, and can come
/// after the owner.
bool matchReaders(const ColumnParts &found);

/// True if the divided index is one of the owner's: the first one, if it has two at most. Fills in
/// which one.
bool findCounted(ColumnParts &found);

} // namespace tk

#endif // TK_PASSES_PLAN_COLUMNPARTS_H
