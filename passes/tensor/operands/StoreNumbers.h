//===- StoreNumbers.h - storing operands that are packed --------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_OPERANDS_STORENUMBERS_H
#define TK_PASSES_TENSOR_OPERANDS_STORENUMBERS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Stores operands of contractions in 16 bits whose elements select packed numbers, if that takes
/// less time than to unpack them in each tile. Returns their number.
unsigned storeNumbers(KernelOp kernel, int64_t processors);

} // namespace tk

#endif // TK_PASSES_TENSOR_OPERANDS_STORENUMBERS_H
