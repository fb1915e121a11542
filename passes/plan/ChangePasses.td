//===- ChangePasses.td - results in place that change in part -------------===//
#ifndef TK_PASSES_PLAN_CHANGEPASSES_TD
#define TK_PASSES_PLAN_CHANGEPASSES_TD

include "mlir/Pass/PassBase.td"

def ScatterRows : Pass<"tk-scatter-rows", "::mlir::ModuleOp"> {
  let summary = "Visit only the rows of an inout result that a tensor of indices names";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numScattered", "compute-ops-scattered",
                              "Compute ops whose blocks go over the elements that name rows">];
}

#endif // TK_PASSES_PLAN_CHANGEPASSES_TD
