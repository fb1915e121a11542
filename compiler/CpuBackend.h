//===- CpuBackend.h - from tk to launchable CPU code -------------*- C++ -*-===//
#ifndef TK_COMPILER_CPUBACKEND_H
#define TK_COMPILER_CPUBACKEND_H

#include "tk/backend.h"

#include "mlir/IR/BuiltinOps.h"

namespace tk {

/// Compiles a kernel of a module, fused or not, for this machine. `afterPass` is called with each
/// pass's name and the module.
Expected<detail::Executable>
compileCpuExecutable(mlir::ModuleOp module, llvm::StringRef kernel, const Signature &signature,
                     std::function<void(llvm::StringRef, mlir::Operation *)> afterPass = {});

} // namespace tk

#endif // TK_COMPILER_CPUBACKEND_H
