//===- CpuPipeline.h - from tk to the LLVM dialect -------------*- C++ -*-===//
#ifndef TK_COMPILER_CODEGEN_CPU_CPUPIPELINE_H
#define TK_COMPILER_CODEGEN_CPU_CPUPIPELINE_H

#include "passes/lowering/cpu/CpuMachine.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace mlir {
class DialectRegistry;
class OpPassManager;
} // namespace mlir

namespace tk::cpu {

enum class CpuStage {
  Linalg, ///< tk -> linalg on tensors, inside loops over tiles
  Loops,  ///< -> loops and vectors on buffers, with the calling convention of tk/cpu_abi.h
  Llvm,   ///< -> the LLVM dialect
};

/// One pass of the CPU's pipeline, or several that stand together.
struct CpuPass {
  llvm::StringRef name;
  CpuStage stage;
  bool needed; ///< there is no code without it
  void (*add)(mlir::OpPassManager &manager, const CpuMachine &machine);
};

/// All of them, in their order.
llvm::ArrayRef<CpuPass> cpuPassTable();

/// Adds the passes of a stage.
void addStage(mlir::OpPassManager &manager, CpuStage stage, const CpuMachine &machine);

/// Whether a pass of this name is among them.
bool isCpuPass(llvm::StringRef name);

/// The machine that this process runs on.
CpuMachine hostMachine();

/// The dialects, and the implementations of interfaces, that the stages need.
void registerCpuDialects(mlir::DialectRegistry &registry);

} // namespace tk::cpu

#endif // TK_COMPILER_CODEGEN_CPU_CPUPIPELINE_H
