//===- Passes.h - declarations and registration of every pass ---*- C++ -*-===//
//
// Generated from Passes.td: createSimplify(), SimplifyOptions, ..., registerTkPasses().
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_PASSES_H
#define TK_PASSES_PASSES_H

#include "dialects/tk/TkDialect.h"

#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"
} // namespace tk

#endif // TK_PASSES_PASSES_H
