//===- CarryColumns.h - sums down columns beside rows -----------*- C++ -*-===//
#ifndef TK_PASSES_PLAN_CARRYCOLUMNS_H
#define TK_PASSES_PLAN_CARRYCOLUMNS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Makes blocks of compute ops of `kernel` carry the column reductions of other compute ops over
/// the elements that they read. Returns the number of such reductions; `pass` reports them in
/// notes.
unsigned carryColumns(KernelOp kernel, llvm::StringRef pass);

} // namespace tk

#endif // TK_PASSES_PLAN_CARRYCOLUMNS_H
