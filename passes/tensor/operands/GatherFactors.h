//===- GatherFactors.h - operands whose rows are gathered -------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_OPERANDS_GATHERFACTORS_H
#define TK_PASSES_TENSOR_OPERANDS_GATHERFACTORS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Stores operands of contractions whose rows are gathered, if that pays. Returns the number of
/// operands.
unsigned gatherFactors(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_TENSOR_OPERANDS_GATHERFACTORS_H
