//===- CommonQuotients.h - quotients by a value of all pairs ----*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_SPLIT_COMMONQUOTIENTS_H
#define TK_PASSES_TENSOR_SPLIT_COMMONQUOTIENTS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Are there quotients in the elements of `reduce`, a sum over pairs of a `row` and a `column`, by
/// a value that is the same for all pairs?
bool hasCommonQuotients(ReduceOp reduce, mlir::Value row, mlir::Value column);

/// Makes them products with the value's reciprocal, which are corrected. A sum is NaN if one of its
/// operands is not in the range in which they are rounded as quotients are.
void multiplyByReciprocals(ReduceOp reduce, mlir::Value row, mlir::Value column);

} // namespace tk

#endif // TK_PASSES_TENSOR_SPLIT_COMMONQUOTIENTS_H
