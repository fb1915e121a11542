//===- StoreRowOperands.h - the operands of sorted rows ---------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_KEYS_STOREROWOPERANDS_H
#define TK_PASSES_TENSOR_KEYS_STOREROWOPERANDS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Stores the operands of rows that `sorted`, whose first indices are a block and a place in it,
/// multiplies by columns of the block's operand.
void storeRowOperands(ComputeOp sorted);

} // namespace tk

#endif // TK_PASSES_TENSOR_KEYS_STOREROWOPERANDS_H
