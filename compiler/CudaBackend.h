//===- CudaBackend.h - from tkgpu to launchable GPU code ---------*- C++ -*-===//
#ifndef TK_COMPILER_CUDABACKEND_H
#define TK_COMPILER_CUDABACKEND_H

#include "dialects/tk/TkDialect.h"
#include "tk/backend.h"

#include "mlir/IR/BuiltinOps.h"

#include <functional>

namespace tk {

/// Sets `tkgpu.target` from the table of architectures; the emulator stands for one of them.
/// `device` names a product; empty: the one that the architecture's row assumes.
Status attachCudaTarget(mlir::ModuleOp module, std::string_view target, std::string_view device);

/// Refuses, with `unsupported`, a statement that reads more tensors than a launch can be given.
Status checkParameterSpace(const LaunchPlan &plan, const Signature &signature);

/// What the text says of itself.
struct CudaText {
  std::string assumes; ///< of sizes, see describe(Facts, Signature)
  const Signature *signature = nullptr;
  bool lineDirectives = true;
  /// See cuda::EmitOptions.
  std::function<std::string(llvm::StringRef file, unsigned line)> sourceLine;
  std::function<std::string(llvm::StringRef file, unsigned line)> statement; ///< see EmitOptions
};

/// The launch plan of a kernel whose computes have become tkgpu.launch operations, and the CUDA
/// text of their functions. Diagnostics go to the context's handler.
Expected<detail::Executable> emitCudaExecutable(mlir::ModuleOp module, KernelOp kernel,
                                                const CudaText &text);

/// Compiles the emitted text for an architecture such as "sm_90a"; needs NVRTC but no GPU.
Expected<detail::Executable> compileWithNvrtc(detail::Executable executable,
                                              const std::string &target);

/// The path of nvdisasm: of PATH, of a CUDA toolkit, or of the Python package
/// nvidia-cuda-nvdisasm; empty where there is none.
std::string findDisassembler();

/// The machine code of a cubin as text, by cuobjdump or nvdisasm where one is installed.
/// `places` adds comments with the places of the text that each instruction comes from.
Expected<std::string> disassemble(const std::string &cubin, bool places = false);

} // namespace tk

#endif // TK_COMPILER_CUDABACKEND_H
