//===- NumericsPasses.td - the passes that choose how numbers are computed ===//
// Included by passes/Passes.td.
#ifndef TK_PASSES_NUMERICS_NUMERICSPASSES_TD
#define TK_PASSES_NUMERICS_NUMERICSPASSES_TD

def ConvertIndices : Pass<"tk-convert-indices", "::mlir::ModuleOp"> {
  let summary = "Give arithmetic on indices a type that holds its values";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = patternOptions;
}

def ApproximateFunctions : Pass<"tk-approximate-functions", "::mlir::ModuleOp"> {
  let summary = "Approximate functions to the precision that the rounding of their results needs";
  let description = [{
    The patterns change the bodies of compute ops before these become kernels. Each pattern keeps the
    error bound of docs/reference/numerics.md. Later patterns read attributes that earlier ones set.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::tk::gpu::TkGpuDialect"];
  let options = patternOptions;
}

def RefineTiles : Pass<"tk-refine-tiles", "::mlir::ModuleOp"> {
  let summary = "Move work on a tile's elements to its rows and to its accumulators";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let options = patternOptions;
}

#endif // TK_PASSES_NUMERICS_NUMERICSPASSES_TD
