//===- AwaitParts.h - a row is read as its parts come -----------*- C++ -*-===//
#ifndef TK_PASSES_ROWS_AWAITPARTS_H
#define TK_PASSES_ROWS_AWAITPARTS_H

#include "dialects/tkgpu/TkGpuDialect.h"

namespace tk {

/// Where a large block brings one row to its threads' own shared memory and waits for it, outside
/// loops, has it come in parts, which the row's first reader waits for one by one: what comes first
/// is converted and reduced while the others are on their way. Returns how many parts there are.
unsigned awaitParts(gpu::FuncOp function);

} // namespace tk

#endif // TK_PASSES_ROWS_AWAITPARTS_H
