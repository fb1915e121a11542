//===- CarryColumns.h - sums down columns beside rows -----------*- C++ -*-===//
#ifndef TK_PASSES_PARALLEL_CARRYCOLUMNS_H
#define TK_PASSES_PARALLEL_CARRYCOLUMNS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Lets the blocks of statements of `kernel` carry what others reduce down columns of the elements
/// that these read. Returns of how many; `pass` says so in notes.
unsigned carryColumns(KernelOp kernel, llvm::StringRef pass);

} // namespace tk

#endif // TK_PASSES_PARALLEL_CARRYCOLUMNS_H
