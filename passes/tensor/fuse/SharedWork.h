//===- SharedWork.h - what two compute ops both compute ----------*- C++ -*-===//
//
// tk-merge-computes merges two compute ops that read the same elements, or compute the same
// reduction. This is how it finds that out.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TENSOR_FUSE_SHAREDWORK_H
#define TK_PASSES_TENSOR_FUSE_SHAREDWORK_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// What two statements have in common under a view of one's indices as the other's.
struct Sharing {
  unsigned reductions = 0; // of the smaller
  unsigned equalReductions = 0, equalLoads = 0;
  unsigned equalFactors = 0;   // loads that are factors of a matrix product in both
  bool everyLoopShared = true; // each reduction of the smaller runs over a range of the larger's
  unsigned ownProducts = 0;    // matrix products of the smaller that the larger lacks
};

/// `embedding` has the position in `large` of each index of `small`.
Sharing getSharing(ComputeOp small, ComputeOp large, mlir::ArrayRef<unsigned> embedding);

/// Does `small` reduce rows of what `large` reads element by element, such as the rows of a state
/// that `large` updates? A block that has such a row reads it once for both.
bool reducesRowsOf(ComputeOp small, ComputeOp large, mlir::ArrayRef<unsigned> embedding);

/// The number of different matrix products of a statement, less those inside reductions.
unsigned countProducts(ComputeOp compute);

/// Does one of the statements multiply matrices, while the other one reduces in another way?
/// Threads that feed matrix units have nothing to do the other reduction with.
bool isProductBesideReduction(ComputeOp a, ComputeOp b);

/// Do both statements have a matrix product in the terms of another one?
bool areChains(ComputeOp a, ComputeOp b);

/// Does each statement have a matrix product in a sum that the other one has, too, if indices at
/// equal positions are the same?
bool shareInnerProduct(ComputeOp a, ComputeOp b);

} // namespace tk

#endif // TK_PASSES_TENSOR_FUSE_SHAREDWORK_H
