//===- SeparateProducts.h - sums of several matrix products -----*- C++ -*-===//
#ifndef TK_PASSES_FUSION_SEPARATEPRODUCTS_H
#define TK_PASSES_FUSION_SEPARATEPRODUCTS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Gives each of the matrix products that the terms of `reduce` consist of a sum of its own, in
/// place of `reduce`; true if they are several.
bool separateProducts(ReduceOp reduce);

} // namespace tk

#endif // TK_PASSES_FUSION_SEPARATEPRODUCTS_H
