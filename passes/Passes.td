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

def FuseProducers : Pass<"tk-fuse-producers", "::mlir::ModuleOp"> {
  let summary = "Compute a local tensor where it is read instead of storing it";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = [
    Option<"maxExtra", "max-extra", "int64_t", "256",
           "Largest extent of an index along which a reduction may be computed again">];
  let statistics = [Statistic<"numInlined", "loads-inlined", "Loads replaced by what they read">];
}

def MergeComputes : Pass<"tk-merge-computes", "::mlir::ModuleOp"> {
  let summary = "Join statements over the same indices that share loads or reductions";
  let statistics = [Statistic<"numMerged", "computes-merged", "Statements joined to another">];
}

def OnlineReductions : Pass<"tk-online-reductions", "::mlir::ModuleOp"> {
  let summary = "Carry reductions that depend on each other through one loop";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let statistics = [Statistic<"numJoined", "reductions-joined", "Reductions that joined a loop">];
}

//===----------------------------------------------------------------------===//
// passes/memory: layouts, shared memory, pipelines
//===----------------------------------------------------------------------===//

def CoalesceAccesses : Pass<"tk-coalesce-accesses", "::mlir::ModuleOp"> {
  let summary = "Give every tile a layout in which accesses to global memory are coalesced";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = [
    Option<"coalesce", "coalesce", "bool", "true",
           "False: consecutive threads along the first axis, accesses of one element">];
  let statistics = [
    Statistic<"numConversions", "conversions", "Tiles converted from one layout to another">,
    Statistic<"numVectors", "vector-accesses", "Accesses of more than one element a thread">];
}

#endif // TK_PASSES_TD
