//===- EmitCuda.h - CUDA C++ text of block programs --------------*- C++ -*-===//
//
// Prints tkgpu.func operations, with layouts chosen and shared memory laid out, as CUDA C++ over
// the primitives of runtime/device. Emission decides nothing about speed: every width, swizzle,
// layout and stage is on the operations.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_CODEGEN_CUDA_EMITCUDA_H
#define TK_COMPILER_CODEGEN_CUDA_EMITCUDA_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <string>
#include <vector>

namespace tk::cuda {

struct EmitOptions {
  /// Tie each line to its place in the .tk file with #line.
  bool lineDirectives = true;
  /// The text of a line of the .tk file, for a comment at what computes it; empty: no comments.
  std::function<std::string(llvm::StringRef file, unsigned line)> sourceLine;
  /// The tensor that the statement on a line of the .tk file defines, for names; or empty.
  std::function<std::string(llvm::StringRef file, unsigned line)> statement;
};

/// What a launch needs to know of an emitted kernel.
struct EmittedKernel {
  std::string name;                   ///< of the tkgpu.func
  std::string symbol;                 ///< in the CUDA text
  size_t begin = 0;                   ///< where its text begins
  std::vector<std::string> arguments; ///< their names in the text
  unsigned threads = 0;               ///< a block
  unsigned sharedBytes = 0;           ///< dynamic shared memory
  unsigned indexBits = 64;            ///< width of `index` arguments
  unsigned cluster = 1;               ///< blocks in a row that run together
  bool waits = false;                 ///< for earlier launches to end
};

struct EmittedModule {
  std::string text;
  std::vector<EmittedKernel> kernels;

  /// By the name of the tkgpu.func.
  const EmittedKernel *find(llvm::StringRef name) const;
};

/// Emits every tkgpu.func of the module; fails with a diagnostic at the operation that it cannot
/// express.
mlir::FailureOr<EmittedModule> emitCuda(mlir::ModuleOp module, const EmitOptions &options = {});

/// The files of runtime/device, by the name in their #include, and their text.
struct DeviceHeader {
  llvm::StringRef name;
  llvm::StringRef text;
};
llvm::ArrayRef<DeviceHeader> deviceHeaders();

} // namespace tk::cuda

#endif // TK_COMPILER_CODEGEN_CUDA_EMITCUDA_H
