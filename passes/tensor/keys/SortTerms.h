//===- SortTerms.h - reductions of the elements with a key ------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_KEYS_SORTTERMS_H
#define TK_PASSES_TENSOR_KEYS_SORTTERMS_H

#include "passes/tensor/keys/RowKey.h"

namespace tk {

/// Sorts the elements of reductions by a key that has to equal an index, if that pays. Returns the
/// number of reductions whose elements are sorted.
unsigned sortTerms(KernelOp kernel, RowOrders &orders);

} // namespace tk

#endif // TK_PASSES_TENSOR_KEYS_SORTTERMS_H
