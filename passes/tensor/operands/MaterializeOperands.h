//===- MaterializeOperands.h - patterns that store operands -----*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_OPERANDS_MATERIALIZEOPERANDS_H
#define TK_PASSES_TENSOR_OPERANDS_MATERIALIZEOPERANDS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

// Each is a pattern of tk-materialize-operands, and returns how many operands it stores. The file
// of the same name says how.

unsigned transposeFactors(KernelOp kernel, int64_t processors);
unsigned storeInvariants(KernelOp kernel);
unsigned storeScans(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_TENSOR_OPERANDS_MATERIALIZEOPERANDS_H
