//===- FuseProducersCost.h - the indices that a producer depends on -*- C++ -*-===//
//
// Shared by FuseProducersCost.cpp, which has the cost rule of producer fusion, and
// FuseProductsCost.cpp, which has the rule for matrix products.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_FUSION_FUSEPRODUCERSCOST_H
#define TK_PASSES_FUSION_FUSEPRODUCERSCOST_H

#include "passes/fusion/FuseProducers.h"

#include "llvm/ADT/SetVector.h"

namespace tk {

/// For how many values of indices along which a consumer has no tiles reductions are repeated, each
/// of which reads the row again where a launch that stores them reads it once.
inline constexpr int64_t fewValues = 4;

/// What one reduction of the producer depends on, in terms of the consumer's iteration.
struct Reach {
  llvm::SetVector<mlir::BlockArgument> parallel, reduced;
  unsigned numComponents = 0;
  bool allPlain = true; // each component is one iteration index itself
  llvm::SmallVector<mlir::BlockArgument> extra;
};

Reach getReach(mlir::Operation *reduction, Read read);

/// Is `index` one of the consumer's own, not of a reduction in it?
bool isParallel(mlir::BlockArgument index, ComputeOp consumer);

/// The extent of such an index.
mlir::Value getExtent(mlir::BlockArgument index, ComputeOp consumer);

/// Its name for a note, in quotes.
std::string quote(mlir::BlockArgument index, ComputeOp consumer);

/// How often something may be repeated along further indices: what is repeated along several is
/// repeated as often as their extents' product says.
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

/// The reductions around the read, from the innermost one that varies what is read outwards. Out of
/// those further inside what is computed there moves.
llvm::SmallVector<ReduceOp> getReductionsOver(Read read, const Reach &reach);

/// Why the `product` does not stand in the terms of a reduction of its own rows or columns alone
/// (ReducedProducts.cpp), or nothing.
std::optional<std::string> whyNotReduced(ReduceOp product, Read read, const Reach &reach);

/// Why the `product`, or what holds it, is not computed where it is read, or nothing.
std::optional<std::string> whyNotProducts(mlir::Operation *product, Read read, const Reach &reach,
                                          int64_t maxExtra);

} // namespace tk

#endif // TK_PASSES_FUSION_FUSEPRODUCERSCOST_H
