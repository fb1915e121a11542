//===- DeclinedProducts.h - notes on sums of products ------------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_SPLIT_DECLINEDPRODUCTS_H
#define TK_PASSES_TENSOR_SPLIT_DECLINEDPRODUCTS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Notes which large sums of products in `compute` are no contractions, and why.
void noteDeclinedProducts(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_TENSOR_SPLIT_DECLINEDPRODUCTS_H
