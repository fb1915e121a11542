//===- FuseProducers.h - the decisions of producer fusion -------*- C++ -*-===//
//
// The decisions of tk-fuse-producers. FuseProducers.cpp has the rewriting.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TENSOR_FUSE_FUSEPRODUCERS_H
#define TK_PASSES_TENSOR_FUSE_FUSEPRODUCERS_H

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ProducerKind.h"

#include <optional>
#include <string>

namespace tk {

/// One read of a producer in a consumer.
struct Read {
  LoadOp load;
  ComputeOp consumer;
  mlir::OpResult producer;
};

/// The reason to store the producer for this read, or nothing if it can be computed at the read.
/// `maxExtra` is the most times that reductions may be recomputed along indices that they do not
/// depend on.
std::optional<std::string> whyNotInline(Read read, ProducerKind kind, int64_t maxExtra);

/// The statement that would be stored if the producer's row reductions were computed at the read,
/// and otherwise be computed where it is read itself (KeptElements.cpp); null if there is none.
/// `isStored` says whether a result is stored whatever it computes.
ComputeOp findKeptElements(Read read, int64_t maxExtra,
                           llvm::function_ref<bool(mlir::OpResult)> isStored);

/// Makes stored results that are computed alike one (EqualResults.cpp); their number.
unsigned mergeEqualResults(KernelOp kernel);

/// True if the reader runs over the row that the producer reduces, so that it computes these
/// reductions beside its own (exponentials relative to a maximum, squares about a mean). This does
/// not depend on whether they are stored for other readers.
bool isCarriedFreely(Read read);

/// The reason to store a producer with matrix products although each of its reads could be computed
/// in place, or nothing.
std::optional<std::string> whyStoreProducts(llvm::ArrayRef<Read> reads, bool isKernelResult,
                                            int64_t maxExtra);

/// True if `reduce` is a matrix product in the elements of a reduction that is not online.
bool isReducedProduct(ReduceOp reduce);

/// True if `reduce` is a sum, or an extremum, over pairs in the elements of a reduction that is not
/// online (ReducedPairs.cpp).
bool isReducedPair(ReduceOp reduce);

/// The matrix products equal to `reduce` in the elements of other reductions of its compute op. The
/// maximum and the sum of a log-sum-exp, for example, have one each.
llvm::SmallVector<ReduceOp> findTwins(ReduceOp reduce, ComputeOp compute);

/// The reason to store a producer that scans, or nothing if the reader can scan.
std::optional<std::string> whyNotScan(Read read);

/// Drops the roundings of factors in a reduction over scanned states, which only the matrix unit
/// asks for.
void keepFactorsOfStates(ReduceOp reduce);

/// An upper bound of the number of elements of `reduce` for all sizes, if it is known to be at most
/// `most`.
std::optional<int64_t> countKnownTerms(ReduceOp reduce, int64_t most);

/// True if the producer's own reductions, or those that the consumer has, are a softmax over an
/// index that the read stands under.
bool isUnderSoftmax(Read read);

/// True if the reader runs over the range of the producer's `statistic` and can carry it: the
/// maximum of a softmax whose exponentials the reader computes, or a sum of such exponentials.
bool isCarriedByReader(ReduceOp statistic, Read read);

/// True if the reader sums squares of distances from the read value, over the same range.
bool isPointOfReader(ReduceOp statistic, Read read);

/// True if the elements of one of the reader's reductions use the read value, and both that
/// reduction and `statistic` are worth splitting (columns, long rows). If `statistic` is computed
/// in place, no part of either begins before all of `statistic` is known. Squares of distances from
/// it need not wait.
bool delaysParts(ReduceOp statistic, Read read);

} // namespace tk

#endif // TK_PASSES_TENSOR_FUSE_FUSEPRODUCERS_H
