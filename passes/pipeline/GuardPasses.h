//===- GuardPasses.h - values that only some rows of a tile see -*- C++ -*-===//
#ifndef TK_PASSES_PIPELINE_GUARDPASSES_H
#define TK_PASSES_PIPELINE_GUARDPASSES_H

#include "dialects/tk/TkDialect.h"

#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/pipeline/GuardPasses.h.inc"
} // namespace tk

#endif // TK_PASSES_PIPELINE_GUARDPASSES_H
