//===- Passes.td - every pass of tk, its options and statistics -----------===//
#ifndef TK_PASSES_TD
#define TK_PASSES_TD

include "mlir/Pass/PassBase.td"

// Of a pass whose rewrites have names (passes/Patterns.h).
defvar patternOptions = [
  ListOption<"disable", "disable", "std::string", "Names of the patterns to leave out">,
  ListOption<"only", "only", "std::string", "Names of the only patterns to run">];

//===----------------------------------------------------------------------===//
// passes/fusion: tk -> tk
//===----------------------------------------------------------------------===//

def Simplify : Pass<"tk-simplify", "::mlir::ModuleOp"> {
  let summary = "Fold and merge equal expressions and reductions, and hoist invariant factors "
                "out of sums";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let options = patternOptions;
  let statistics = [
    Statistic<"numMerged", "reductions-merged", "Reductions replaced by an equal earlier one">,
    Statistic<"numHoisted", "factors-hoisted", "Linear factors hoisted out of a sum">,
    Statistic<"numOrdered", "indices-ordered",
              "Reductions whose indices were put in the order of memory">];
}

def DropUnitAxes : Pass<"tk-drop-unit-axes", "::mlir::ModuleOp"> {
  let summary = "Drop trailing axes of dense parameters that have one element";
  let statistics = [Statistic<"numDropped", "axes-dropped", "Axes of parameters dropped">];
}

def CollapseAxes : Pass<"tk-collapse-axes", "::mlir::ModuleOp"> {
  let summary = "Collapse neighbouring axes that all accesses use together and a reduction runs "
                "over";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numCollapsed", "indices-collapsed",
                              "Indices merged into another one">];
}

def DivideIndices : Pass<"tk-divide-indices", "::mlir::ModuleOp"> {
  let summary = "Split an index into group and position if a reduction over each group is read";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numDivided", "indices-divided",
                              "Indices split into group and position">];
}

def GroupRows : Pass<"tk-group-rows", "::mlir::ModuleOp"> {
  let summary = "Split rows of a contraction into groups if a table has one entry for each group";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numGrouped", "rows-grouped",
                              "Indices split into group and position">,
                    Statistic<"numJoined", "terms-joined",
                              "Reductions whose two indices became one">];
}

def SeparateReductions : Pass<"tk-separate-reductions", "::mlir::ModuleOp"> {
  let summary = "Hoist reductions that lack some indices into compute ops of their own";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = [
    Option<"maxExtra", "max-extra", "int64_t", "256",
           "Most times that a reduction may be recomputed along indices that it does not depend on">];
  let statistics = [Statistic<"numSeparated", "statements-made",
                              "Compute ops created for reductions">];
}

def FuseProducers : Pass<"tk-fuse-producers", "::mlir::ModuleOp"> {
  let summary = "Fuse producers into the compute ops that read them if the cost rule allows it";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = !listconcat(patternOptions, [
    Option<"maxExtra", "max-extra", "int64_t", "256",
           "Most times that a reduction may be recomputed along indices that it does not depend on">]);
  let statistics = [Statistic<"numInlined", "loads-inlined",
                              "Loads replaced by the computation of their element">];
}

def MergeComputes : Pass<"tk-merge-computes", "::mlir::ModuleOp"> {
  let summary = "Merge compute ops over the same indices that share loads or reductions";
  let options = patternOptions;
  let statistics = [Statistic<"numMerged", "computes-merged",
                              "Compute ops merged into another one">];
}

def RestrictRanges : Pass<"tk-restrict-ranges", "::mlir::ModuleOp"> {
  let summary = "Turn masks that compare indices into bounds of reductions";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numRestricted", "ranges-restricted",
                              "Bounds of reductions tightened">];
}

def OnlineReductions : Pass<"tk-online-reductions", "::mlir::ModuleOp"> {
  let summary = "Carry reductions that depend on each other in one loop with rescaling";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numJoined", "reductions-joined",
                              "Reductions added to the loop of another one">];
}

def SplitReductions : Pass<"tk-split-reductions", "::mlir::ModuleOp"> {
  let summary = "Split long reductions with few results into two levels";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = !listconcat(patternOptions, [
    Option<"chunk", "chunk", "int64_t", "4096",
           "Elements of the reduction in one partial result">]);
  let statistics = [Statistic<"numSplit", "reductions-split", "Reductions split into two levels">];
}

def SplitContractions : Pass<"tk-split-contractions", "::mlir::ModuleOp"> {
  let summary = "Split the K of matrix products with few tiles into parts for different blocks";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numSplit", "contractions-split",
                              "Contractions split along k (split-K)">];
}

def SplitChains : Pass<"tk-split-chains", "::mlir::ModuleOp"> {
  let summary = "Split fused attention loops with few rows into parts, and combine partial "
                "softmax states";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numSplit", "chains-split",
                              "Online reductions split into parts (split-KV)">];
}

def PackRows : Pass<"tk-pack-rows", "::mlir::ModuleOp"> {
  let summary = "Pack rows that share the streamed operands of a back-to-back contraction into "
                "one index";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numPacked", "statements-packed",
                              "Compute ops whose rows were packed">];
}

def ShareParts : Pass<"tk-share-parts", "::mlir::ModuleOp"> {
  let summary = "Cut ranges of loaded lengths into equal work units, one for each multiprocessor";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numShared", "statements-shared",
                              "Compute ops decomposed into work units">];
}

def SplitSignificands : Pass<"tk-split-significands", "::mlir::ModuleOp"> {
  let summary = "Compute f32 matrix products by bf16x3 decomposition on the matrix unit if that "
                "is faster";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let options = [
    Option<"always", "always", "bool", "false",
           "Decompose contractions of any size, even if that costs time">,
    Option<"shares", "shares", "int64_t", "1",
           "With always: blocks that divide a tile's pairs of bf16 parts among themselves">];
  let statistics = [Statistic<"numSums", "sums", "Contractions computed by bf16x3 decomposition">];
}

def SplitResidues : Pass<"tk-split-residues", "::mlir::ModuleOp"> {
  let summary = "Compute transposed convolutions by phase, without the masked products";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numSums", "sums", "Masked sums computed by residue">];
}

def FlattenWindows : Pass<"tk-flatten-windows", "::mlir::ModuleOp"> {
  let summary = "Turn convolutions into matrix products over flattened pixels if that is faster";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let options = [
    Option<"always", "always", "bool", "false",
           "Flatten windows of any size, even if that costs time">,
    Option<"unrolled", "unrolled", "int64_t", "0",
           "With always: a bit for each axis whose taps become channels">,
    Option<"slice", "slice", "int64_t", "64",
           "With always: channels of one slice of the contraction">,
    Option<"shares", "shares", "int64_t", "1",
           "With always: blocks that divide a tile's pairs of bf16 parts among themselves">];
  let statistics = [Statistic<"numSums", "sums", "Sums over windows turned into contractions">];
}

def MaterializeOperands : Pass<"tk-materialize-operands", "::mlir::ModuleOp"> {
  let summary = "Store an operand in another form if the hardware cannot read it as it lies";
  let description = [{
    Each pattern stores one kind of operand by a compute op of its own:

    - an operand whose contiguous axis is not the index of the sum,
    - an operand whose rows are gathered through a table,
    - an operand that is packed, with several numbers to a byte,
    - an operand whose rows have no alignment,
    - a value that many elements would compute alike,
    - a scan along a second index.

    A pattern applies if storing takes less time than it saves.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numStored", "stored",
                              "Operands, values and scans stored by a compute op of their own">];
}

def BoundMasks : Pass<"tk-bound-masks", "::mlir::ModuleOp"> {
  let summary = "Compute the ranges in which masks that read tensors hold, for groups of rows";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numBounded", "masks-bounded", "Masks whose ranges are computed">,
                    Statistic<"numListed", "masks-listed",
                              "Masks whose blocks are computed as lists">];
}

//===----------------------------------------------------------------------===//
// passes/memory: layouts, shared memory, pipelines
//===----------------------------------------------------------------------===//

def FoldMasks : Pass<"tk-fold-masks", "::mlir::ModuleOp"> {
  let summary = "Fold the reduction's identity value into masked loads";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numFolded", "selections",
                              "Selections replaced by the identity value of a masked load">];
}

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

def UnrollLoops : Pass<"tk-unroll-loops", "::mlir::ModuleOp"> {
  let summary = "Unroll loops so that several loads are in flight";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numUnrolled", "loops", "Loops unrolled">];
}

def HoistLoads : Pass<"tk-hoist-loads", "::mlir::ModuleOp"> {
  let summary = "Move small loads before the first reduction or wait of a block of code";
  let options = [
    Option<"maxElements", "max-elements", "int64_t", "2",
           "Most registers of a thread that a moved load may occupy across the reductions">];
  let statistics = [Statistic<"numHoisted", "loads", "Loads moved before a reduction">];
}

def AdvanceStores : Pass<"tk-advance-stores", "::mlir::ModuleOp"> {
  let summary = "Move stores before a reduction if they do not need its result";
  let statistics = [Statistic<"numAdvanced", "stores", "Stores moved before a reduction">];
}

def DropRegisters : Pass<"tk-drop-registers", "::mlir::ModuleOp"> {
  let summary = "Drop registers of elements past the end of every row";
  let options = patternOptions;
  let statistics = [Statistic<"numDropped", "registers", "Registers of a thread dropped">];
}

def ShareRandomBlocks : Pass<"tk-share-random-blocks", "::mlir::ModuleOp"> {
  let summary = "Compute one Philox block for neighbouring random numbers of a thread";
  let statistics = [Statistic<"numShared", "draws",
                              "Tiles of random numbers that share Philox blocks">];
}

def SelectElements : Pass<"tk-select-elements", "::mlir::ModuleOp"> {
  let summary = "Select the one element of a row that differs only in the thread that holds it";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numSelected", "selected",
                              "Selections made only by the thread that holds the element">];
}

def JoinReductions : Pass<"tk-join-reductions", "::mlir::ModuleOp"> {
  let summary = "Reduce a mean and a variance, or a maximum and exponentials, in one exchange";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numJoined", "pairs", "Pairs of reductions that share one exchange">];
}

def HoldNarrowTiles : Pass<"tk-hold-narrow-tiles", "::mlir::ModuleOp"> {
  let summary = "Keep loaded 8- and 16-bit elements packed across reductions, and unpack them at each use";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
  let options = [
    Option<"minRegisters", "min-registers", "int64_t", "32",
           "Fewest registers of a thread for which a tile is recomputed">];
  let statistics = [Statistic<"numRecomputed", "recomputed",
                              "Tiles recomputed from packed elements">];
}

def JoinLaunches : Pass<"tk-join-launches", "::mlir::ModuleOp"> {
  let summary = "Combine partial results in the last block of a launch instead of a second launch";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numJoined", "launches",
                              "Launches replaced by the last block of another launch">];
}

def OverlapLaunches : Pass<"tk-overlap-launches", "::mlir::ModuleOp"> {
  let summary = "Start launches before the launch in front of them ends (programmatic dependent launch)";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numOverlapped", "functions",
                              "Functions that wait for earlier launches">];
}

def SumInProducts : Pass<"tk-sum-in-products", "::mlir::ModuleOp"> {
  let summary = "Compute row sums of softmax numerators by extra columns of the matrix product";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numSums", "sums",
                              "Row sums computed by extra columns of a contraction">];
}

def LimitRegisters : Pass<"tk-limit-registers", "::mlir::ModuleOp"> {
  let summary = "Limit registers so that enough blocks fit a multiprocessor to hide memory latency";
  let options = patternOptions;
  let statistics = [Statistic<"numLimited", "functions", "Functions whose registers were limited">];
}

def FormWarpgroupDots : Pass<"tk-form-warpgroup-dots", "::mlir::ModuleOp"> {
  let summary = "Compute contractions of loaded tiles by wgmma, on tiles that TMA loads";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numFormed", "products", "Contractions computed by wgmma">];
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

def PlanSharedMemory : Pass<"tk-plan-shared-memory", "::mlir::ModuleOp"> {
  let summary = "Place buffers in shared memory, and insert waits and barriers between their uses";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numBarriers", "barriers", "Barriers inserted">];
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

def OverlapSlices : Pass<"tk-overlap-slices", "::mlir::ModuleOp"> {
  let summary = "Read the next slice's first f64 fragments under this slice's last contraction";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops", "Loops whose consecutive slices overlap">];
}

//===----------------------------------------------------------------------===//
// passes/parallel, passes/tiling: tk -> tkgpu
//===----------------------------------------------------------------------===//

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

def Tile : Pass<"tk-tile", "::mlir::ModuleOp"> {
  let summary = "Turn compute ops into launches of kernels over tiles";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let options = [
    Option<"naive", "naive", "bool", "false",
           "Let reductions take one element at a time and each thread load its own operands">];
  let statistics = [Statistic<"numTiled", "statements", "Compute ops turned into launches">];
}

def FetchAhead : Pass<"tk-fetch-ahead", "::mlir::ModuleOp"> {
  let summary = "Load the next rows of a persistent block while it reduces others";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numLoops", "loops", "Loops that load rows ahead">];
}

def KeepRows : Pass<"tk-keep-rows", "::mlir::ModuleOp"> {
  let summary = "Keep long rows in thread-private shared memory instead of registers";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numRows", "rows", "Tiles kept in thread-private shared memory">];
}

def KeepWeights : Pass<"tk-keep-weights", "::mlir::ModuleOp"> {
  let summary = "Keep shifted tiles that rows share in thread-private shared memory";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numKept", "kept", "Tiles kept in thread-private shared memory">];
}

def CutStores : Pass<"tk-cut-stores", "::mlir::ModuleOp"> {
  let summary = "Compute and store tiles of many registers in chunks";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numCut", "stores", "Stores cut into chunks">];
}

def RefillParts : Pass<"tk-refill-parts", "::mlir::ModuleOp"> {
  let summary = "Load each chunk of the next row as soon as this row's chunk has been read";
  let options = patternOptions;
  let statistics = [Statistic<"numParts", "parts", "Chunks loaded separately">,
                    Statistic<"numEarly", "early", "Loops that load rows before a barrier">,
                    Statistic<"numAwaited", "awaited",
                              "Chunks of single rows with a wait of their own">];
}

def PersistBlocks : Pass<"tk-persist-blocks", "::mlir::ModuleOp"> {
  let summary = "Let persistent blocks compute several tiles each";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numPersistent", "functions", "Functions with persistent blocks">];
}

def HandOutTiles : Pass<"tk-hand-out-tiles", "::mlir::ModuleOp"> {
  let summary = "Assign tiles to persistent clusters by an atomic counter";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numHandedOut", "loops", "Loops with a dynamic tile scheduler">];
}

def KeepReads : Pass<"tk-keep-reads", "::mlir::ModuleOp"> {
  let summary = "Load rows with an L2 evict-last hint if the launch moves several times the size of the L2";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numKept", "loads", "Loads with an L2 evict-last hint">];
}

#endif // TK_PASSES_TD
