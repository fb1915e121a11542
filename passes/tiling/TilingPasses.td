//===- TilingPasses.td - the passes from tensors to tiles ---------------===//
// Included by passes/Passes.td.
#ifndef TK_PASSES_TILING_TILINGPASSES_TD
#define TK_PASSES_TILING_TILINGPASSES_TD

def FoldMasks : Pass<"tk-fold-masks", "::mlir::ModuleOp"> {
  let summary = "Fold the reduction's identity value into masked loads";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numFolded", "selections",
                              "Selections replaced by the identity value of a masked load">];
}

def Tile : Pass<"tk-tile", "::mlir::ModuleOp"> {
  let summary = "Turn compute ops into launches of kernels over tiles";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let options = [
    Option<"naive", "naive", "bool", "false",
           "Let reductions take one element at a time and each thread load its own operands">];
  let statistics = [Statistic<"numTiled", "statements", "Compute ops turned into launches">];
}

#endif // TK_PASSES_TILING_TILINGPASSES_TD
