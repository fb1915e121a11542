//===- CpuPasses.h - declarations and registration of the CPU's passes -----*- C++ -*-===//
//
// Generated from CpuPasses.td: createTkToLinalg(), ..., registerTkCpuPasses().
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_LOWERING_CPU_CPUPASSES_H
#define TK_PASSES_LOWERING_CPU_CPUPASSES_H

#include "dialects/tk/TkDialect.h"

#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/lowering/cpu/CpuPasses.h.inc"
} // namespace tk

#endif // TK_PASSES_LOWERING_CPU_CPUPASSES_H
