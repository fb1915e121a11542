//===- PlanRules.h - how planners choose what a schedule block sets -*- C++ -*-===//
//
// A planner follows rules that were measured, not the cost model of launches. Where that model
// predicts less time for another schedule, the rule says why the planner did not choose it.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_PLAN_PLANRULES_H
#define TK_PASSES_PLAN_PLANRULES_H

#include "dialects/tkgpu/TkGpuPlan.h"

namespace tk {

/// The keys of a schedule block that planRule knows.
llvm::ArrayRef<llvm::StringLiteral> ruledKeys();

/// The rule by which the planner of a plan's family chooses the value of `key`, with the file that
/// has it. Every known key has one.
llvm::StringRef planRule(const gpu::KernelPlan &plan, llvm::StringRef key);

} // namespace tk

#endif // TK_PASSES_PLAN_PLANRULES_H
