//===- GroupFactors.h - the operands of a term ------------------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_NORMALIZE_GROUPFACTORS_H
#define TK_PASSES_TENSOR_NORMALIZE_GROUPFACTORS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Multiplies the factors of the elements of `reduce` in the order that makes two operands of
/// them; true if they were in another order.
bool groupFactors(ReduceOp reduce);

} // namespace tk

#endif // TK_PASSES_TENSOR_NORMALIZE_GROUPFACTORS_H
