//===- LaunchPlanBuilder.h - from launches in IR to a launch plan -*- C++ -*-===//
#ifndef TK_COMPILER_PLAN_LAUNCHPLANBUILDER_H
#define TK_COMPILER_PLAN_LAUNCHPLANBUILDER_H

#include "dialects/tk/TkDialect.h"
#include "tk/plan.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

namespace tk {

/// What emission knows of a function and a launch needs.
struct FunctionShape {
  std::string symbol; ///< in the compiled code
  unsigned threads = 0;
  unsigned sharedBytes = 0;
  unsigned indexBits = 64;
  unsigned cluster = 1; ///< blocks in a row that run together
  bool waits = false;   ///< for earlier launches to end
};

/// The plan of a kernel whose statements are tkgpu.launch operations. `shapeOf` gives what emission
/// knows of a function by its symbol. nullopt and a diagnostic if an operand cannot be evaluated at
/// launch.
std::optional<LaunchPlan>
buildLaunchPlan(KernelOp kernel, llvm::function_ref<FunctionShape(llvm::StringRef)> shapeOf);

} // namespace tk

#endif // TK_COMPILER_PLAN_LAUNCHPLANBUILDER_H
