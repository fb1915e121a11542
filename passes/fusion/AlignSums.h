//===- AlignSums.h - contractions over several indices ----------*- C++ -*-===//
#ifndef TK_PASSES_FUSION_ALIGNSUMS_H
#define TK_PASSES_FUSION_ALIGNSUMS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Stores factors of sums over several indices such that both lie along the same one; returns for
/// how many products.
unsigned alignSums(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_FUSION_ALIGNSUMS_H
