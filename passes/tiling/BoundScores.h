//===- BoundScores.h - softmaxes of bounded scores --------------*- C++ -*-===//
#ifndef TK_PASSES_TILING_BOUNDSCORES_H
#define TK_PASSES_TILING_BOUNDSCORES_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Gives weights under a running maximum one reference for the whole range where their scores are
/// known to lie close together. To be called once the weights that may be approximate are marked.
void boundScores(KernelOp kernel, ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_TILING_BOUNDSCORES_H
