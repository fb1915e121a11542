//===- Passes.td - every pass of tk, its options and statistics -----------===//
#ifndef TK_PASSES_TD
#define TK_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// passes/fusion: tk -> tk
//===----------------------------------------------------------------------===//

def Simplify : Pass<"tk-simplify", "::mlir::ModuleOp"> {
  let summary = "Merge equal subexpressions and reductions, move linear factors out of sums";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let statistics = [
    Statistic<"numMerged", "reductions-merged", "Reductions equal to an earlier one">,
    Statistic<"numHoisted", "factors-hoisted", "Linear factors moved out of a sum">];
}

#endif // TK_PASSES_TD
