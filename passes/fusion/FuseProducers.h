//===- FuseProducers.h - the decisions of producer fusion -------*- C++ -*-===//
//
// The decisions of tk-fuse-producers. FuseProducers.cpp has the rewriting.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_FUSION_FUSEPRODUCERS_H
#define TK_PASSES_FUSION_FUSEPRODUCERS_H

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

/// Why the read should go through memory, or nothing if the producer can be computed there.
/// `maxExtra`: how often reductions may be computed again along indices that they do not depend on.
std::optional<std::string> whyNotInline(Read read, ProducerKind kind, int64_t maxExtra);

/// Does the reader go over the row that the producer reduces anyway, so that it computes those
/// reductions beside its own (exponentials under a maximum, squares about a mean), whether or not
/// they are stored for others as well?
bool isCarriedFreely(Read read);

/// Why a producer with matrix products should be stored although each of its reads could be
/// computed in place, or nothing.
std::optional<std::string> whyStoreProducts(llvm::ArrayRef<Read> reads, bool isKernelResult,
                                            int64_t maxExtra);

/// True if `reduce` is a matrix product in the terms of a reduction that is no running one.
bool isReducedProduct(ReduceOp reduce);

/// The products equal to `reduce` in the terms of other reductions of its statement: the maximum
/// that a log-sum-exp needs, and the sum under it, have one each.
llvm::SmallVector<ReduceOp> findTwins(ReduceOp reduce, ComputeOp compute);

/// Why a producer that scans should be stored, or nothing if the reader can scan.
std::optional<std::string> whyNotScan(Read read);

/// How many terms `reduce` has at most, whatever the sizes are, if that is known to be at most
/// `most`.
std::optional<int64_t> countKnownTerms(ReduceOp reduce, int64_t most);

/// True if the producer's own reductions, or those that the consumer has, are a softmax over an
/// index that the read stands under.
bool isUnderSoftmax(Read read);

/// True if the reader runs over the range of the producer's `statistic` itself and can carry it
/// there: a softmax's maximum that the reader takes exponentials under, or a sum of such
/// exponentials.
bool isCarriedByReader(ReduceOp statistic, Read read);

/// True if the reader sums squares of distances from what is read, over the same range.
bool isPointOfReader(ReduceOp statistic, Read read);

/// True if the reader has in a reduction's terms what is read, and parts of both that reduction and
/// `statistic` are worth a launch (columns, long rows): where it is computed in place, nothing of
/// either begins before all of `statistic` is known. Squares of distances from it need not wait.
bool delaysParts(ReduceOp statistic, Read read);

} // namespace tk

#endif // TK_PASSES_FUSION_FUSEPRODUCERS_H
