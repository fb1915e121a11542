//===- LowerToCpu.h - tk to loops for the CPU ------------------*- C++ -*-===//
#ifndef TK_PASSES_LOWERING_CPU_LOWERTOCPU_H
#define TK_PASSES_LOWERING_CPU_LOWERTOCPU_H

#include "passes/lowering/cpu/CpuMachine.h"

#include "mlir/Pass/Pass.h"

namespace tk::cpu {

/// `tk-lower-to-cpu`: replaces every tk.kernel by a function with the convention of cpu_abi.h, of
/// the kernel's name with "tk_entry_" before it, and a function for each parallel loop.
std::unique_ptr<mlir::Pass> createLowerToCpuPass(const CpuMachine &machine = {});
void registerLowerToCpuPass();

} // namespace tk::cpu

#endif // TK_PASSES_LOWERING_CPU_LOWERTOCPU_H
