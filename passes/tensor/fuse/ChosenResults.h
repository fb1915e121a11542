//===- ChosenResults.h - results that the cost rule is not asked about -*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_FUSE_CHOSENRESULTS_H
#define TK_PASSES_TENSOR_FUSE_CHOSENRESULTS_H

#include "passes/tensor/fuse/FuseProducers.h"

#include "llvm/ADT/DenseSet.h"

namespace tk {

/// Is a result stored without the rule, for an option or for the predicted time?
bool isChosenToStore(mlir::OpResult producer);

/// The reason why it is.
std::optional<std::string> whyChosenToStore(mlir::OpResult producer);

/// Has no plan of the kernel fitted with reductions computed where they are read?
bool isTooLargeInside(mlir::OpResult producer, ProducerKind kind);

/// Shall a result be computed where it is read, whatever that costs? A scan cannot be.
bool shallInline(mlir::OpResult producer, ProducerKind kind);

/// Is it so for the predicted time?
bool isInlinedByTime(mlir::OpResult producer);

/// Does the producer reduce rows of a product that shall be computed where it is read, though the
/// reader computes each element of such a row in a place of its own? No tile of the reader holds a
/// row of the product. Products of which a computation is in `once` are stored all the same.
bool isStatisticOfInlined(Read read, const llvm::DenseSet<int64_t> &once = {});

/// Adds the computations (ValueCopies.h) of the products that shall be computed where they are
/// read.
void addInlinedComputations(KernelOp kernel, llvm::DenseSet<int64_t> &numbers);

} // namespace tk

#endif // TK_PASSES_TENSOR_FUSE_CHOSENRESULTS_H
