//===- ChangePasses.h - results in place that change in part ----*- C++ -*-===//
#ifndef TK_PASSES_PLAN_CHANGEPASSES_H
#define TK_PASSES_PLAN_CHANGEPASSES_H

#include "dialects/tk/TkDialect.h"

#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/plan/ChangePasses.h.inc"
} // namespace tk

#endif // TK_PASSES_PLAN_CHANGEPASSES_H
