//===- PipelinePasses.td - the passes on asynchronous copies, products and warp roles ===//
// Included by passes/Passes.td.
#ifndef TK_PASSES_PIPELINE_PIPELINEPASSES_TD
#define TK_PASSES_PIPELINE_PIPELINEPASSES_TD

def LeaveOutWarps : Pass<"tk-leave-out-warps", "::mlir::ModuleOp"> {
  let summary = "Leave out warps whose rows belong to the next tile";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
  let statistics = [
    Statistic<"numFunctions", "functions", "Functions with spare warps">];
}

def PipelineCopies : Pass<"tk-pipeline-copies", "::mlir::ModuleOp"> {
  let summary = "Start cp.async copies several iterations before their tiles are used";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let options = [
    Option<"stages", "stages", "int64_t", "0",
           "Stages of a pipeline; 0: the number that the function asks for, or 3">];
  let statistics = [Statistic<"numLoops", "loops", "Loops with a multistage pipeline">];
}

def SumInProducts : Pass<"tk-sum-in-products", "::mlir::ModuleOp"> {
  let summary = "Compute row sums of softmax numerators by extra columns of the matrix product";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numSums", "sums",
                              "Row sums computed by extra columns of a contraction">];
}

def FormBulkStores : Pass<"tk-form-bulk-stores", "::mlir::ModuleOp"> {
  let summary = "Store results of wgmma through shared memory by TMA";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numFormed", "stores", "Stores replaced by TMA stores">];
}

def SpecializeWarps : Pass<"tk-specialize-warps", "::mlir::ModuleOp"> {
  let summary = "Give TMA loads to producer warps that run several pipeline stages ahead";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let options = !listconcat(patternOptions, [
    Option<"oneRole", "one-role", "bool", "false",
           "Let all warps wait for each TMA load right after it is issued">]);
  let statistics = [
    Statistic<"numSpecialized", "functions", "Functions with producer and consumer warps">,
    Statistic<"numOneRole", "one-role", "Functions with TMA loads and without a producer warp">];
}

def BoundWarpgroups : Pass<"tk-bound-warpgroups", "::mlir::ModuleOp"> {
  let summary = "Bound a warpgroup's loops and masks by its own rows";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops", "Loops with a bound for each warpgroup">];
}

def DeferExchanges : Pass<"tk-defer-exchanges", "::mlir::ModuleOp"> {
  let summary = "Combine a row's sum across lanes after the loop if instruction issue bounds the loop";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numSums", "sums", "Sums whose exchange was moved after the loop">];
}

def DeferStates : Pass<"tk-defer-states", "::mlir::ModuleOp"> {
  let summary = "Keep a partial softmax state for each thread in a loop, and combine the states after it";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numStates", "states", "Partial softmax states kept by each thread">];
}

def OverlapProducts : Pass<"tk-overlap-products", "::mlir::ModuleOp"> {
  let summary = "Keep wgmma products in flight during the next iteration";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numLoops", "loops",
                              "Loops with contractions in flight across iterations">];
}

def OverlapOperands : Pass<"tk-overlap-operands", "::mlir::ModuleOp"> {
  let summary = "Load the next iteration's register operands under this iteration's products";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops",
                              "Loops that load register operands one iteration ahead">];
}

def OverlapChains : Pass<"tk-overlap-chains", "::mlir::ModuleOp"> {
  let summary = "Move the second of two back-to-back contractions under the next iteration's work";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops",
                              "Loops whose second contraction overlaps the next iteration">];
}

def PairSums : Pass<"tk-pair-sums", "::mlir::ModuleOp"> {
  let summary = "Scale a block's partial sum under the next block's contraction";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops", "Loops with two partial sums in flight">];
}

def OverlapTiles : Pass<"tk-overlap-tiles", "::mlir::ModuleOp"> {
  let summary = "Start the next tile's first contraction under the last contraction of this tile";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops",
                              "Loops over tiles whose consecutive tiles overlap">];
}

def JoinEnds : Pass<"tk-join-ends", "::mlir::ModuleOp"> {
  let summary = "Compute the two boundary tiles of a window as one";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops",
                              "Loops over tiles whose boundary tiles are computed as one">];
}

def SplitMaskedSteps : Pass<"tk-split-masked-steps", "::mlir::ModuleOp"> {
  let summary = "Give iterations without masks a loop of their own if contractions are in flight";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numLoops", "loops",
                              "Loops divided into iterations with and without masks">];
}

def StaggerWarpgroups : Pass<"tk-stagger-warpgroups", "::mlir::ModuleOp"> {
  let summary = "Let one of two warpgroups end a tile earlier, so that epilogues run under products";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops", "Loops that one warpgroup ends earlier">];
}

def OverlapScores : Pass<"tk-overlap-scores", "::mlir::ModuleOp"> {
  let summary = "Start the next iteration's scores before this iteration's exponentials";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops",
                              "Loops whose scores are computed one iteration ahead">];
}

def AlternateWarpgroups : Pass<"tk-alternate-warpgroups", "::mlir::ModuleOp"> {
  let summary = "Order warpgroups by ping-pong scheduling if several contractions are in flight";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numLoops", "loops", "Loops with ping-pong scheduling">,
                    Statistic<"numAhead", "ahead",
                              "Loops that wait for all stages before the first contraction">];
}

def KeepReferences : Pass<"tk-keep-references", "::mlir::ModuleOp"> {
  let summary = "Skip the running-maximum update after a tile's first iterations; recompute tiles if a row sum overflows";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops", "Loops with deferred rescaling">];
}

def CompareAsIntegers : Pass<"tk-compare-as-integers", "::mlir::ModuleOp"> {
  let summary = "Compare scores as integers if the running row maximum is at least 0";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops",
                              "Loops with a copy that compares scores as integers">];
}

def OrderArrivals : Pass<"tk-order-arrivals", "::mlir::ModuleOp"> {
  let summary = "Release stages of a shared circular buffer before accumulators are rescaled";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numArrivals", "arrivals",
                              "Arrivals ordered before the rescaling of accumulators">];
}

def BeginProducts : Pass<"tk-begin-products", "::mlir::ModuleOp"> {
  let summary = "Issue contractions of unordered warpgroups before instructions that do not feed them";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numWaits", "waits", "Waits moved after a contraction">,
                    Statistic<"numRows", "rows", "Tiles of row values moved after a contraction">];
}

def CountQuotients : Pass<"tk-count-quotients", "::mlir::ModuleOp"> {
  let summary = "Carry quotients of a producer loop's counter instead of dividing (strength reduction)";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::TkDialect"];
  let statistics = [Statistic<"numLoops", "loops", "Loops that carry quotients and remainders">];
}

def OverlapSlices : Pass<"tk-overlap-slices", "::mlir::ModuleOp"> {
  let summary = "Read the next slice's first f64 fragments under this slice's last contraction";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops", "Loops whose consecutive slices overlap">];
}

#endif // TK_PASSES_PIPELINE_PIPELINEPASSES_TD
