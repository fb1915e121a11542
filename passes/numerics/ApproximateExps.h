//===- ApproximateExps.h - exponentials of fewer bits -----------*- C++ -*-===//
#ifndef TK_PASSES_NUMERICS_APPROXIMATEEXPS_H
#define TK_PASSES_NUMERICS_APPROXIMATEEXPS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Marks the exponentials in `compute`, and the quotients by their sums, that are of use for no
/// more than 16 bits.
void markApproximateExps(ComputeOp compute);

/// Is `value` of use for 16 bits or less only, perhaps as a factor or a choice?
bool isNarrowed(mlir::Value value);

/// See ApproximateScores.cpp. To be called once the weights that may be approximate are marked.
void approximateScores(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_NUMERICS_APPROXIMATEEXPS_H
