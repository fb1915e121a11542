//===- RunningReferences.h - numerators of attention sinks ------*- C++ -*-===//
#ifndef TK_PASSES_FUSION_RUNNINGREFERENCES_H
#define TK_PASSES_FUSION_RUNNINGREFERENCES_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Makes exponentials under the greater of a running maximum of `online` and what is the same for
/// all terms exponentials under the maximum; of how many maxima.
unsigned referToRunningMaxima(ReduceOp online);

} // namespace tk

#endif // TK_PASSES_FUSION_RUNNINGREFERENCES_H
