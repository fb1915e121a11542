//===- CpuExecutable.h - kernels compiled for this machine's CPU --*- C++ -*-===//
//
// tk kernels to machine code in this process: the lowering in passes/lowering/cpu, upstream's
// bufferisation and conversions to LLVM, LLVM's -O3, and the ORC JIT.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_CODEGEN_CPU_CPUEXECUTABLE_H
#define TK_COMPILER_CODEGEN_CPU_CPUEXECUTABLE_H

#include "compiler/codegen/cpu/CpuPipeline.h"
#include "runtime/include/tk/cpu_abi.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <memory>
#include <string>

namespace tk::cpu {

struct CpuOptions {
  /// Called with the name of a pass and the module after it.
  std::function<void(llvm::StringRef pass, mlir::Operation *module)> afterPass;
  /// Of the rows of cpuPassTable(), numbered from 1, only the needed ones run behind this one.
  unsigned last = ~0U;
  /// Called after each row up to that one; returning failure stops the compilation.
  std::function<mlir::LogicalResult(llvm::StringRef name, unsigned number, mlir::ModuleOp)>
      afterRow;
  /// Where set, receives the optimised LLVM IR.
  std::string *llvmIR = nullptr;
  /// Where set, receives the object file, for loadCpuObject.
  std::string *object = nullptr;
  /// "x86-64-v3" or "x86-64-v4": code for all processors of that level; empty: for this machine's.
  std::string level;
  /// Run the verifier after each pass.
  bool verify = true;
};

/// Machine code of one kernel. Immutable; may be run from several threads at once.
///
/// The arguments of `entry` (see tk/cpu_abi.h):
///   tensors  the tensor parameters in the order of the declaration, then the results; an `inout`
///            parameter is read and overwritten where it is
///   ints     the dimensions; then for each `strided` parameter the strides of all its axes, in
///            elements; then the integer and bool scalar parameters
///   floats   the floating-point scalar parameters
class CpuExecutable {
public:
  virtual ~CpuExecutable() = default;
  virtual tk_cpu_entry entry() const = 0;
  /// Milliseconds spent in MLIR passes, in LLVM's passes, and in code generation and linking.
  struct Times {
    double passes = 0, optimise = 0, generate = 0;
  };
  virtual Times times() const = 0;
};

/// Compiles `kernel` of a verified module of tk kernels, fused or not. The module is not changed.
/// Fails with what the passes reported.
llvm::Expected<std::unique_ptr<CpuExecutable>>
compileForCpu(mlir::ModuleOp module, llvm::StringRef kernel, const CpuOptions &options = {});

/// The object file of a kernel for the processors of `options.level`, which this machine need not
/// have.
llvm::Expected<std::string> compileObject(mlir::ModuleOp module, llvm::StringRef kernel,
                                          const CpuOptions &options);

/// Runs the first stage on the kernels of a module: linalg on tensors, inside loops over tiles.
llvm::LogicalResult lowerToLinalg(mlir::ModuleOp module);

/// Links an object file that compileForCpu made on a machine with the same hostDescription().
llvm::Expected<std::unique_ptr<CpuExecutable>> loadCpuObject(llvm::StringRef object,
                                                             llvm::StringRef kernel);

/// All that the code made here depends on of this machine: triple, processor, features.
std::string hostDescription();

} // namespace tk::cpu

#endif // TK_COMPILER_CODEGEN_CPU_CPUEXECUTABLE_H
