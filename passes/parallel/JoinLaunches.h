//===- JoinLaunches.h - last blocks do the next launch's work ---*- C++ -*-===//
#ifndef TK_PASSES_PARALLEL_JOINLAUNCHES_H
#define TK_PASSES_PARALLEL_JOINLAUNCHES_H

#include "mlir/IR/BuiltinOps.h"

namespace tk {

/// Lets the last blocks of launches do what the next ones would with their results, where that can
/// be seen. Returns how many launches others took over.
int64_t joinLaunches(mlir::ModuleOp module);

} // namespace tk

#endif // TK_PASSES_PARALLEL_JOINLAUNCHES_H
