//===- PlanPasses.td - the passes that plan launches --------------------===//
// Included by passes/Passes.td.
#ifndef TK_PASSES_PLAN_PLANPASSES_TD
#define TK_PASSES_PLAN_PLANPASSES_TD

def PlaceResults : Pass<"tk-place-results", "::mlir::ModuleOp"> {
  let summary = "Copy a result at the end of the kernel if it cannot be written in place";
  let statistics = [Statistic<"numCopied", "copies", "Compute ops that copy a result">];
}

def SelectSchedule : Pass<"tk-select-schedule", "::mlir::ModuleOp"> {
  let summary = "Choose tiles for each compute op with one result for each thread";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
}

def CoarsenThreads : Pass<"tk-coarsen-threads", "::mlir::ModuleOp"> {
  let summary = "Choose larger tiles with several results for each thread";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numCoarsened", "statements",
                              "Compute ops with several outputs for each thread">];
}

def OverwriteRows : Pass<"tk-overwrite-rows", "::mlir::ModuleOp"> {
  let summary = "Overwrite an inout parameter in place if each block holds whole rows";
  let statistics = [Statistic<"numOverwritten", "copies-left-out",
                              "Copies of results replaced by writes in place">];
}

def WidenVectors : Pass<"tk-widen-vectors", "::mlir::ModuleOp"> {
  let summary = "Allow vector accesses of up to 16 bytes in schedules";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numWidened", "schedules-widened",
                              "Schedules with wider vector accesses">];
}

def AttachReductions : Pass<"tk-attach-reductions", "::mlir::ModuleOp"> {
  let summary = "Begin reductions over matrix products in the epilogue of these products";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numAttached", "reductions",
                              "Reductions begun in the epilogue of a contraction">];
}

#endif // TK_PASSES_PLAN_PLANPASSES_TD
