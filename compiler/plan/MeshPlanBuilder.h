//===- MeshPlanBuilder.h - a placed kernel as a plan ------------*- C++ -*-===//
#ifndef TK_COMPILER_PLAN_MESHPLANBUILDER_H
#define TK_COMPILER_PLAN_MESHPLANBUILDER_H

#include "dialects/tk/TkDialect.h"
#include "tk/mesh_plan.h"

#include <optional>

namespace tk {

/// The plan of a kernel behind tk-split-at-collectives. `locals` are the names of its local
/// kernels, as the plan numbers them. Nullopt, with diagnostics, if a launch could not evaluate a
/// size.
std::optional<MeshPlan> meshPlanOf(KernelOp placed, llvm::ArrayRef<std::string> locals);

} // namespace tk

#endif // TK_COMPILER_PLAN_MESHPLANBUILDER_H
