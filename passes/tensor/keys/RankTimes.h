//===- RankTimes.h - predicted times of ranked reductions -------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_KEYS_RANKTIMES_H
#define TK_PASSES_TENSOR_KEYS_RANKTIMES_H

#include "passes/tensor/keys/RankedTerms.h"

namespace tk {

/// Predicted times of a ranked reduction, in nanoseconds.
struct RankTimes {
  double compared = 0;  ///< if all terms are compared with all bounds
  double sorted = 0;    ///< if the terms are sorted in chunks and searched
  int64_t ofChunk = 0;  ///< terms of such a chunk
  double threshold = 0; ///< if the threshold of each row is searched digit by digit
  int64_t bitsOfDigit = 0;
};

/// The times of `ranked`, of `compute`, whose keys have `bitsOfKey` bits. Null if an extent is not
/// bounded.
std::optional<RankTimes> predictRanks(KernelOp kernel, ComputeOp compute,
                                      const RankedReduction &ranked, int64_t bitsOfKey = 32);

} // namespace tk

#endif // TK_PASSES_TENSOR_KEYS_RANKTIMES_H
