//===- Passes.td - every pass of tk, its options and statistics -----------===//
#ifndef TK_PASSES_TD
#define TK_PASSES_TD

include "mlir/Pass/PassBase.td"

// Of a pass whose rewrites have names (passes/Patterns.h).
defvar patternOptions = [
  ListOption<"disable", "disable", "std::string", "Names of the patterns to leave out">,
  ListOption<"only", "only", "std::string", "Names of the only patterns to run">];

include "passes/tensor/TensorPasses.td"
include "passes/plan/PlanPasses.td"
include "passes/numerics/NumericsPasses.td"
include "passes/tiling/TilingPasses.td"
include "passes/layout/LayoutPasses.td"
include "passes/rows/RowsPasses.td"
include "passes/pipeline/PipelinePasses.td"
include "passes/launch/LaunchPasses.td"

#endif // TK_PASSES_TD
