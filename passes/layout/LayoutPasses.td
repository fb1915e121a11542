//===- LayoutPasses.td - the passes that place elements in threads and in shared memory ===//
// Included by passes/Passes.td.
#ifndef TK_PASSES_LAYOUT_LAYOUTPASSES_TD
#define TK_PASSES_LAYOUT_LAYOUTPASSES_TD

def AlignRows : Pass<"tk-align-rows", "::mlir::ModuleOp"> {
  let summary = "Rotate tiles of unaligned rows so that their vectors are aligned in memory";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numAligned", "indices", "Indices along rows that were rotated">];
}

def CoalesceAccesses : Pass<"tk-coalesce-accesses", "::mlir::ModuleOp"> {
  let summary = "Give every tile a layout in which accesses to global memory are coalesced";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = !listconcat(patternOptions, [
    Option<"naive", "naive", "bool", "false",
           "Place consecutive threads along the first axis, with accesses of one element">]);
  let statistics = [
    Statistic<"numConversions", "conversions", "Layout conversions of tiles">,
    Statistic<"numVectors", "vector-accesses", "Vector accesses of more than one element">];
}

def PromoteShared : Pass<"tk-promote-shared", "::mlir::ModuleOp"> {
  let summary = "Bring operands of matrix products and converted tiles through shared memory";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let options = patternOptions;
  let statistics = [
    Statistic<"numCopies", "async-copies", "Loads replaced by cp.async copies">,
    Statistic<"numScratch", "scratch-tiles", "Layout conversions through shared memory">];
}

def SelectElements : Pass<"tk-select-elements", "::mlir::ModuleOp"> {
  let summary = "Select the one element of a row that differs only in the thread that holds it";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numSelected", "selected",
                              "Selections made only by the thread that holds the element">];
}

def FormWarpgroupDots : Pass<"tk-form-warpgroup-dots", "::mlir::ModuleOp"> {
  let summary = "Compute contractions of loaded tiles by wgmma, on tiles that TMA loads";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numFormed", "products", "Contractions computed by wgmma">];
}

#endif // TK_PASSES_LAYOUT_LAYOUTPASSES_TD
