//===- DecayedSums.h - sums whose elements decay with distance --*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_SPLIT_DECAYEDSUMS_H
#define TK_PASSES_TENSOR_SPLIT_DECAYEDSUMS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Computes sums weighted by a power of the distance from the result in chunks; returns their
/// number.
unsigned splitDecayedSums(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_TENSOR_SPLIT_DECAYEDSUMS_H
