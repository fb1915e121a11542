//===- SortRows.h - rows whose matrix a table selects -----------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_KEYS_SORTROWS_H
#define TK_PASSES_TENSOR_KEYS_SORTROWS_H

#include "passes/tensor/keys/RowKey.h"

namespace tk {

/// Sorts the rows of products by the table's entry that selects the operand of each row, if that
/// pays. Returns the number of compute ops whose rows are sorted.
unsigned sortRows(KernelOp kernel, RowOrders &orders);

} // namespace tk

#endif // TK_PASSES_TENSOR_KEYS_SORTROWS_H
