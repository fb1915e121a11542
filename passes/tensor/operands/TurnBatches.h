//===- TurnBatches.h - contractions along a batch index ---------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_OPERANDS_TURNBATCHES_H
#define TK_PASSES_TENSOR_OPERANDS_TURNBATCHES_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Transposes 16-bit operands that are both contiguous along a common batch index, and the results.
/// Returns the number of contractions.
unsigned turnBatches(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_TENSOR_OPERANDS_TURNBATCHES_H
