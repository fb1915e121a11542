//===- FuseProducersCost.h - the indices that a producer depends on -*- C++ -*-===//
//
// Shared by FuseProducersCost.cpp, which has the cost rule of producer fusion, Reach.cpp, which has
// the indices, FuseRowsCost.cpp, which has the rule for row reductions, and FuseProductsCost.cpp,
// which has the rule for matrix products.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TENSOR_FUSE_FUSEPRODUCERSCOST_H
#define TK_PASSES_TENSOR_FUSE_FUSEPRODUCERSCOST_H

#include "passes/tensor/fuse/FuseProducers.h"

#include "llvm/ADT/SetVector.h"

namespace tk {

/// The most values of indices without tiles for which reductions are repeated. Each repetition
/// reads the row again, which a launch that stores them reads once.
inline constexpr int64_t fewValues = 4;

/// The indices that one reduction of the producer depends on, seen from the consumer.
struct Reach {
  llvm::SetVector<mlir::BlockArgument> parallel, reduced;
  unsigned numComponents = 0;
  bool allPlain = true; // each component is one iteration index itself
  llvm::SmallVector<mlir::BlockArgument> extra;
};

Reach getReach(mlir::Operation *reduction, Read read);

/// True if `index` is an index of the consumer, and not of a reduction in it.
bool isParallel(mlir::BlockArgument index, ComputeOp consumer);

/// The extent of such an index.
mlir::Value getExtent(mlir::BlockArgument index, ComputeOp consumer);

/// Its name for a note, in quotes.
std::string quote(mlir::BlockArgument index, ComputeOp consumer);

/// A budget of repetitions along further indices. A value that is repeated along several indices is
/// repeated as often as the product of their extents.
class RepeatBudget {
public:
  explicit RepeatBudget(int64_t most) : left(most) {}

  /// True if `index` is known to be short enough beside those that were allowed before.
  bool allows(mlir::BlockArgument index, ComputeOp consumer);
  /// The same of an index whose values end at `end`.
  bool allows(mlir::Value end);

private:
  int64_t left;
};

/// The reductions around the read, from the innermost one whose index the read depends on outwards.
/// The fused computation moves out of reductions further inside.
llvm::SmallVector<ReduceOp> getReductionsOver(Read read, const Reach &reach);

/// The reason not to compute `reduce`, which is no matrix product, at the read, or nothing.
std::optional<std::string> whyNotRows(ReduceOp reduce, Read read, const Reach &reach,
                                      int64_t maxExtra);

/// The reason why `product` is not in the elements of a reduction over its own rows or columns
/// alone (ReducedProducts.cpp), or nothing.
std::optional<std::string> whyNotReduced(ReduceOp product, Read read, const Reach &reach);

/// The reason why `reduce`, a sum over pairs, is not in the elements of a reduction over its rows
/// or columns (ReducedPairs.cpp), or nothing.
std::optional<std::string> whyNotPairs(ReduceOp reduce, Read read, const Reach &reach);

/// The reason not to compute `product`, or the value that contains it, at the read, or nothing.
std::optional<std::string> whyNotProducts(mlir::Operation *product, Read read, const Reach &reach,
                                          int64_t maxExtra);

} // namespace tk

#endif // TK_PASSES_TENSOR_FUSE_FUSEPRODUCERSCOST_H
