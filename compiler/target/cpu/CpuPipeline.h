//===- CpuPipeline.h - from tk to the LLVM dialect -------------*- C++ -*-===//
#ifndef TK_COMPILER_TARGET_CPU_CPUPIPELINE_H
#define TK_COMPILER_TARGET_CPU_CPUPIPELINE_H

#include "passes/lowering/cpu/CpuMachine.h"

#include "llvm/ADT/StringRef.h"

namespace mlir {
class DialectRegistry;
class OpPassManager;
} // namespace mlir

namespace tk::cpu {

/// The stages, each a group of passes; the CPU's pipeline is all of them in this order.
/// tk -> linalg on tensors, inside loops over tiles.
void addLinalgStage(mlir::OpPassManager &manager, const CpuMachine &machine);
/// -> loops and vectors on buffers, with the calling convention of tk/cpu_abi.h.
void addLoopStage(mlir::OpPassManager &manager);
/// -> the LLVM dialect.
void addLlvmStage(mlir::OpPassManager &manager);

/// Whether a pass of this name is among them.
bool isCpuPass(llvm::StringRef name);

/// The machine that this process runs on.
CpuMachine hostMachine();

/// The dialects, and the implementations of interfaces, that the stages need.
void registerCpuDialects(mlir::DialectRegistry &registry);

} // namespace tk::cpu

#endif // TK_COMPILER_TARGET_CPU_CPUPIPELINE_H
