//===- RunningReferences.h - numerators of attention sinks ------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_NORMALIZE_RUNNINGREFERENCES_H
#define TK_PASSES_TENSOR_NORMALIZE_RUNNINGREFERENCES_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Rewrites exponentials relative to the greater of a running maximum of `online` and an invariant
/// value. They become exponentials relative to the running maximum. Returns the number of maxima.
unsigned referToRunningMaxima(ReduceOp online);

} // namespace tk

#endif // TK_PASSES_TENSOR_NORMALIZE_RUNNINGREFERENCES_H
