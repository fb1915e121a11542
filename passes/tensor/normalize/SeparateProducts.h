//===- SeparateProducts.h - sums of several matrix products -----*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_NORMALIZE_SEPARATEPRODUCTS_H
#define TK_PASSES_TENSOR_NORMALIZE_SEPARATEPRODUCTS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Replaces `reduce` by a sum for each of the matrix products in its elements; true if there are
/// several.
bool separateProducts(ReduceOp reduce);

} // namespace tk

#endif // TK_PASSES_TENSOR_NORMALIZE_SEPARATEPRODUCTS_H
