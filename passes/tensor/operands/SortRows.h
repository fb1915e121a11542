//===- SortRows.h - rows whose matrix a table names -------------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_OPERANDS_SORTROWS_H
#define TK_PASSES_TENSOR_OPERANDS_SORTROWS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Sorts the rows of products by the table's entry that selects the operand of each row, if that
/// pays. Returns the number of compute ops whose rows are sorted.
unsigned sortRows(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_TENSOR_OPERANDS_SORTROWS_H
