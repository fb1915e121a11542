//===- UnitRows.h - a row of one value for attention ------------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_SPLIT_UNITROWS_H
#define TK_PASSES_TENSOR_SPLIT_UNITROWS_H

#include "passes/tensor/split/ChainRows.h"

namespace tk {

/// Adds an index of one value to the compute op of `chain`, and to the other operands of the inner
/// contractions. Only loads inside the bounds read its results. Returns the new compute op, which
/// replaces `compute`. Returns null and changes nothing if these operands read nothing.
ComputeOp addUnitRow(ComputeOp compute, const ChainRows &chain);

} // namespace tk

#endif // TK_PASSES_TENSOR_SPLIT_UNITROWS_H
