//===- CpuBackend.h - from tk to launchable CPU code -------------*- C++ -*-===//
#ifndef TK_COMPILER_CPUBACKEND_H
#define TK_COMPILER_CPUBACKEND_H

#include "compiler/Pipeline.h"
#include "tk/backend.h"

#include "mlir/IR/BuiltinOps.h"

namespace tk {

/// Compiles a kernel of a module, fused or not, for this machine, as `pipeline` asks. `object`
/// receives the object file.
Expected<detail::Executable> compileCpuExecutable(mlir::ModuleOp module, llvm::StringRef kernel,
                                                  const Signature &signature,
                                                  const PipelineOptions &pipeline,
                                                  std::string *object);

/// The launch plan of a kernel on the CPU.
LaunchPlan cpuPlan(const Signature &signature);

/// The object file of a kernel for the processors of a level, such as "x86-64-v3".
Expected<std::string> compileCpuObject(mlir::ModuleOp module, llvm::StringRef kernel,
                                       const PipelineOptions &pipeline, llvm::StringRef level);

/// Links an object file that was made on a machine of the same cpuDescription(); nullopt where it
/// does not fit.
std::optional<detail::Executable> loadCpuExecutable(llvm::StringRef object, llvm::StringRef kernel,
                                                    const Signature &signature);

/// Turns kernels into functions of linalg on tensors, as they are compiled for this machine.
bool lowerToLinalg(mlir::ModuleOp module);

/// All that object code depends on of this machine.
std::string cpuDescription();

} // namespace tk

#endif // TK_COMPILER_CPUBACKEND_H
