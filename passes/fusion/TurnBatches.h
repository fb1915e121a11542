//===- TurnBatches.h - contractions along a batch index ---------*- C++ -*-===//
#ifndef TK_PASSES_FUSION_TURNBATCHES_H
#define TK_PASSES_FUSION_TURNBATCHES_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Stores factors in 16 bits that lie along an index of both, and the results, otherwise; returns
/// for how many products.
unsigned turnBatches(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_FUSION_TURNBATCHES_H
