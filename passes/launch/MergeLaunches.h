//===- MergeLaunches.h - one launch for two functions -----------*- C++ -*-===//
#ifndef TK_PASSES_LAUNCH_MERGELAUNCHES_H
#define TK_PASSES_LAUNCH_MERGELAUNCHES_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/IR/IRMapping.h"

namespace tk {

/// Maps each argument of `from` that `mapping` lacks to an argument of `into`. A value that the
/// launch of `into` does not pass becomes a new argument.
void passArguments(gpu::FuncOp into, gpu::FuncOp from, gpu::LaunchOp launchOfFrom,
                   mlir::IRMapping &mapping);

/// Appends the results of `second`, whose function is `from`, to those of `first`, whose function
/// is `into`. Returns a launch of `into` with `blocks` blocks in the place of `second`.
gpu::LaunchOp appendResults(gpu::LaunchOp first, gpu::FuncOp into, gpu::LaunchOp second,
                            gpu::FuncOp from, mlir::Value blocks, mlir::IRMapping &mapping);

/// Replaces both launches by `merged`, and erases `from`.
void replaceLaunches(gpu::LaunchOp first, gpu::LaunchOp second, gpu::LaunchOp merged,
                     gpu::FuncOp from);

} // namespace tk

#endif // TK_PASSES_LAUNCH_MERGELAUNCHES_H
