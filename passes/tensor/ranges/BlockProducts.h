//===- BlockProducts.h - products of the blocks of a row --------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_RANGES_BLOCKPRODUCTS_H
#define TK_PASSES_TENSOR_RANGES_BLOCKPRODUCTS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// By which number the sum of products `reduce` divides `index`: one factor has the quotient alone,
/// and the other one the remainder. Rows that a table of pages gives have both in one factor.
std::optional<int64_t> findBlocks(ReduceOp reduce, mlir::BlockArgument index);

} // namespace tk

#endif // TK_PASSES_TENSOR_RANGES_BLOCKPRODUCTS_H
