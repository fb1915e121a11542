//===- BoundScores.h - softmaxes of bounded scores --------------*- C++ -*-===//
#ifndef TK_PASSES_NUMERICS_BOUNDSCORES_H
#define TK_PASSES_NUMERICS_BOUNDSCORES_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Rows that are neighbours in a thread's part of a product's sums lie so far apart.
inline constexpr int64_t kSharedApart = 8;

/// Can weights under the running maximum of `reduction` get one reference for the whole range, once
/// they are marked as ones that may be approximate?
bool areScoresBounded(KernelOp kernel, ReduceOp reduction);

/// Gives weights under a running maximum one reference for the whole range where their scores are
/// known to lie close together. To be called once the weights that may be approximate are marked.
void boundScores(KernelOp kernel, ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_NUMERICS_BOUNDSCORES_H
