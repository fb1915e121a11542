//===- GuardPasses.td - values that only some rows of a tile see ----------===//
#ifndef TK_PASSES_PIPELINE_GUARDPASSES_TD
#define TK_PASSES_PIPELINE_GUARDPASSES_TD

include "mlir/Pass/PassBase.td"

def GuardMaskedValues : Pass<"tk-guard-masked-values", "::mlir::ModuleOp"> {
  let summary = "Recompute tiles without values that are not finite if a sum of masked weights is not";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numProducts", "products",
                              "Products whose tiles may be computed again">];
}

def RecomputeElements : Pass<"tk-recompute-elements", "::mlir::ModuleOp"> {
  let summary = "Recompute results of masked weights that are not finite, each by itself";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numTiles", "tiles",
                              "Tiles whose elements may be computed again">];
}

#endif // TK_PASSES_PIPELINE_GUARDPASSES_TD
