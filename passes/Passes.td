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
  let summary = "Merge equal subexpressions and reductions, move linear factors out of sums";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let options = patternOptions;
  let statistics = [
    Statistic<"numMerged", "reductions-merged", "Reductions replaced by an equal earlier one">,
    Statistic<"numHoisted", "factors-hoisted", "Linear factors hoisted out of a sum">,
    Statistic<"numOrdered", "indices-ordered",
              "Reductions whose indices were put in the order of memory">];
}

def DropUnitAxes : Pass<"tk-drop-unit-axes", "::mlir::ModuleOp"> {
  let summary = "Drop axes of a parameter that are known to have one element";
  let statistics = [Statistic<"numDropped", "axes-dropped", "Axes of parameters dropped">];
}

def CollapseAxes : Pass<"tk-collapse-axes", "::mlir::ModuleOp"> {
  let summary = "Make one index of neighbouring ones that are reduced together";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numCollapsed", "indices-collapsed",
                              "Indices merged into another one">];
}

def DivideIndices : Pass<"tk-divide-indices", "::mlir::ModuleOp"> {
  let summary = "Make two indices of one whose groups are reduced: the group and the place in it";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numDivided", "indices-divided",
                              "Indices split into group and position">];
}

def GroupRows : Pass<"tk-group-rows", "::mlir::ModuleOp"> {
  let summary = "Make two indices of a product's rows that read one entry of a table by groups, and one of "
                "blocks of a chain's terms";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numGrouped", "rows-grouped",
                              "Indices split into group and position">,
                    Statistic<"numJoined", "terms-joined",
                              "Reductions whose two indices became one">];
}

def SeparateReductions : Pass<"tk-separate-reductions", "::mlir::ModuleOp"> {
  let summary = "Make statements of reductions that lack indices, and of products that are reduced again";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = [
    Option<"maxExtra", "max-extra", "int64_t", "256",
           "Most times that a reduction may be recomputed along indices that it does not depend on">];
  let statistics = [Statistic<"numSeparated", "statements-made",
                              "Compute ops created for reductions">];
}

def FuseProducers : Pass<"tk-fuse-producers", "::mlir::ModuleOp"> {
  let summary = "Compute a local tensor where it is read instead of storing it";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = [
    Option<"maxExtra", "max-extra", "int64_t", "256",
           "Most times that a reduction may be recomputed along indices that it does not depend on">];
  let statistics = [Statistic<"numInlined", "loads-inlined",
                              "Loads replaced by the computation of their element">];
}

def MergeComputes : Pass<"tk-merge-computes", "::mlir::ModuleOp"> {
  let summary = "Join statements over the same indices that share loads or reductions";
  let options = patternOptions;
  let statistics = [Statistic<"numMerged", "computes-merged",
                              "Compute ops merged into another one">];
}

def RestrictRanges : Pass<"tk-restrict-ranges", "::mlir::ModuleOp"> {
  let summary = "Turn masks that are index predicates into bounds of reductions";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numRestricted", "ranges-restricted",
                              "Bounds of reductions tightened">];
}

def OnlineReductions : Pass<"tk-online-reductions", "::mlir::ModuleOp"> {
  let summary = "Carry reductions that depend on each other through one loop";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numJoined", "reductions-joined",
                              "Reductions added to the loop of another one">];
}

def SplitReductions : Pass<"tk-split-reductions", "::mlir::ModuleOp"> {
  let summary = "Give a long reduction with few outputs a second, parallel level";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = !listconcat(patternOptions, [
    Option<"chunk", "chunk", "int64_t", "4096",
           "Elements of the reduction in one partial result">]);
  let statistics = [Statistic<"numSplit", "reductions-split", "Reductions split into two levels">];
}

def SplitContractions : Pass<"tk-split-contractions", "::mlir::ModuleOp"> {
  let summary = "Compute a long product of few tiles in parallel parts";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numSplit", "contractions-split",
                              "Contractions split along k (split-K)">];
}

def SplitChains : Pass<"tk-split-chains", "::mlir::ModuleOp"> {
  let summary = "Compute a carried reduction of few rows in parallel parts, and combine their states";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numSplit", "chains-split",
                              "Online reductions split into parts (split-KV)">];
}

def PackRows : Pass<"tk-pack-rows", "::mlir::ModuleOp"> {
  let summary = "Make one index of a chain's rows, or add one of a single value if it has none";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numPacked", "statements-packed",
                              "Compute ops whose rows were packed">];
}

def ShareParts : Pass<"tk-share-parts", "::mlir::ModuleOp"> {
  let summary = "Cut ranges whose lengths tensors hold into equal shares, one for each processor";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numShared", "statements-shared",
                              "Compute ops decomposed into work units">];
}

def SplitSignificands : Pass<"tk-split-significands", "::mlir::ModuleOp"> {
  let summary = "Multiply f32 numbers on the matrix unit, as sums of three parts in bf16";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let options = [
    Option<"always", "always", "bool", "false",
           "Decompose contractions of any size, even if that costs time">,
    Option<"shares", "shares", "int64_t", "1",
           "With always: blocks that divide a tile's pairs of bf16 parts among themselves">];
  let statistics = [Statistic<"numSums", "sums", "Contractions computed by bf16x3 decomposition">];
}

def SplitResidues : Pass<"tk-split-residues", "::mlir::ModuleOp"> {
  let summary = "Sum by residues what a mask takes every s-th term of, without the terms that it excludes";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numSums", "sums", "Masked sums computed by residue">];
}

def FlattenWindows : Pass<"tk-flatten-windows", "::mlir::ModuleOp"> {
  let summary = "Make a sum over windows a product of stored rows of pixels that are counted through";
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
  let summary = "Find which terms a mask that reads tensors admits, for groups of rows";
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
  let summary = "Let masked loads bring what reductions over them need outside their bounds";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numFolded", "selections",
                              "Selections replaced by the identity value of a masked load">];
}

def AlignRows : Pass<"tk-align-rows", "::mlir::ModuleOp"> {
  let summary = "Rotate the tiles of rows of any length such that their vectors are aligned in memory";
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
  let summary = "Bring operands of products and converted tiles through shared memory";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [
    Statistic<"numCopies", "async-copies", "Loads replaced by cp.async copies">,
    Statistic<"numScratch", "scratch-tiles", "Layout conversions through shared memory">];
}

def LeaveOutWarps : Pass<"tk-leave-out-warps", "::mlir::ModuleOp"> {
  let summary = "Leave out warps whose part of a tile is another block's too";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
  let statistics = [
    Statistic<"numFunctions", "functions", "Functions with spare warps">];
}

def PipelineCopies : Pass<"tk-pipeline-copies", "::mlir::ModuleOp"> {
  let summary = "Begin asynchronous copies some iterations before their tiles are used";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let options = [
    Option<"stages", "stages", "int64_t", "0",
           "Stages of a pipeline; 0: the number that the function asks for, or 3">];
  let statistics = [Statistic<"numLoops", "loops", "Loops with a multistage pipeline">];
}

def UnrollLoops : Pass<"tk-unroll-loops", "::mlir::ModuleOp"> {
  let summary = "Have what several iterations of a loop read on its way at once";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numUnrolled", "loops", "Loops unrolled">];
}

def HoistLoads : Pass<"tk-hoist-loads", "::mlir::ModuleOp"> {
  let summary = "Begin small loads before the first reduction over a block's threads";
  let options = [
    Option<"maxElements", "max-elements", "int64_t", "2",
           "Most registers of a thread that a moved load may occupy across the reductions">];
  let statistics = [Statistic<"numHoisted", "loads", "Loads moved before a reduction">];
}

def AdvanceStores : Pass<"tk-advance-stores", "::mlir::ModuleOp"> {
  let summary = "Store what is known of rows before they are reduced before the threads meet";
  let statistics = [Statistic<"numAdvanced", "stores", "Stores moved before a reduction">];
}

def DropRegisters : Pass<"tk-drop-registers", "::mlir::ModuleOp"> {
  let summary = "Have no registers for what lies behind the end of every row";
  let options = patternOptions;
  let statistics = [Statistic<"numDropped", "registers", "Registers of a thread dropped">];
}

def ShareRandomBlocks : Pass<"tk-share-random-blocks", "::mlir::ModuleOp"> {
  let summary = "Compute one Philox block for neighbouring random numbers of a thread";
  let statistics = [Statistic<"numShared", "draws",
                              "Tiles of random numbers that share Philox blocks">];
}

def SelectElements : Pass<"tk-select-elements", "::mlir::ModuleOp"> {
  let summary = "Let the thread that has it change the one element of a row that differs";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numSelected", "selected",
                              "Selections made only by the thread that holds the element">];
}

def JoinReductions : Pass<"tk-join-reductions", "::mlir::ModuleOp"> {
  let summary = "Reduce for a mean and a variance, or a maximum and exponentials, in one exchange";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numJoined", "pairs", "Pairs of reductions that share one exchange">];
}

def HoldNarrowTiles : Pass<"tk-hold-narrow-tiles", "::mlir::ModuleOp"> {
  let summary = "Keep loaded 8- and 16-bit elements across reductions, not what is derived from them";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
  let options = [
    Option<"minRegisters", "min-registers", "int64_t", "32",
           "Fewest registers of a thread for which a tile is recomputed">];
  let statistics = [Statistic<"numRecomputed", "recomputed",
                              "Tiles recomputed from packed elements">];
}

def JoinLaunches : Pass<"tk-join-launches", "::mlir::ModuleOp"> {
  let summary = "Let a launch's last blocks do the next one's work";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numJoined", "launches",
                              "Launches replaced by the last block of another launch">];
}

def OverlapLaunches : Pass<"tk-overlap-launches", "::mlir::ModuleOp"> {
  let summary = "Let a kernel's launches begin before those before them have ended";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numOverlapped", "functions",
                              "Functions that wait for earlier launches">];
}

def SumInProducts : Pass<"tk-sum-in-products", "::mlir::ModuleOp"> {
  let summary = "Have products sum the rows of weights that they take";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numSums", "sums",
                              "Row sums computed by extra columns of a contraction">];
}

def LimitRegisters : Pass<"tk-limit-registers", "::mlir::ModuleOp"> {
  let summary = "Ask for as many blocks a multiprocessor as hide the latency of memory";
  let options = patternOptions;
  let statistics = [Statistic<"numLimited", "functions", "Functions whose registers were limited">];
}

def FormWarpgroupDots : Pass<"tk-form-warpgroup-dots", "::mlir::ModuleOp"> {
  let summary = "Compute products of loaded tiles by warpgroups, on tiles that bulk copies bring";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numFormed", "products", "Contractions computed by wgmma">];
}

def FormBulkStores : Pass<"tk-form-bulk-stores", "::mlir::ModuleOp"> {
  let summary = "Write results of warpgroup products through shared memory, by bulk copies";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numFormed", "stores", "Stores replaced by TMA stores">];
}

def SpecializeWarps : Pass<"tk-specialize-warps", "::mlir::ModuleOp"> {
  let summary = "Give the bulk copies of a function to warps of their own, some stages ahead";
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
  let summary = "End a warpgroup's loops, and leave out its masks, where its own rows need no more";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops", "Loops with a bound for each warpgroup">];
}

def DeferExchanges : Pass<"tk-defer-exchanges", "::mlir::ModuleOp"> {
  let summary = "Let threads add up their parts of a row's sum after the loop where its steps are short";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numSums", "sums", "Sums whose exchange was moved after the loop">];
}

def DeferStates : Pass<"tk-defer-states", "::mlir::ModuleOp"> {
  let summary = "Let threads have a maximum and sums of exponentials under it of their own in a loop";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numStates", "states", "Partial softmax states kept by each thread">];
}

def OverlapProducts : Pass<"tk-overlap-products", "::mlir::ModuleOp"> {
  let summary = "Keep an iteration's warpgroup products in flight during the next one's";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numLoops", "loops",
                              "Loops with contractions in flight across iterations">];
}

def OverlapOperands : Pass<"tk-overlap-operands", "::mlir::ModuleOp"> {
  let summary = "Load the next iteration's operands in registers under this one's products";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops",
                              "Loops that load register operands one iteration ahead">];
}

def OverlapChains : Pass<"tk-overlap-chains", "::mlir::ModuleOp"> {
  let summary = "Move the second of two chained warpgroup products under the next iteration's work";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops",
                              "Loops whose second contraction overlaps the next iteration">];
}

def OverlapTiles : Pass<"tk-overlap-tiles", "::mlir::ModuleOp"> {
  let summary = "Begin the next tile's chain of products under the last product of this one's";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops",
                              "Loops over tiles whose consecutive tiles overlap">];
}
def JoinEnds : Pass<"tk-join-ends", "::mlir::ModuleOp"> {
  let summary = "Work on the first and the last step of a window's rows as one";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops",
                              "Loops over tiles whose boundary tiles are computed as one">];
}
def SplitMaskedSteps : Pass<"tk-split-masked-steps", "::mlir::ModuleOp"> {
  let summary = "Give the steps of warpgroup products that need no mask a loop of their own";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numLoops", "loops",
                              "Loops divided into iterations with and without masks">];
}
def StaggerWarpgroups : Pass<"tk-stagger-warpgroups", "::mlir::ModuleOp"> {
  let summary = "Have one of two warpgroups end a tile earlier, so that each works under the other's products";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops", "Loops that one warpgroup ends earlier">];
}
def OverlapScores : Pass<"tk-overlap-scores", "::mlir::ModuleOp"> {
  let summary = "Begin the next step's first product of a chain before this step's exponentials";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops",
                              "Loops whose scores are computed one iteration ahead">];
}
def AlternateWarpgroups : Pass<"tk-alternate-warpgroups", "::mlir::ModuleOp"> {
  let summary = "Let warpgroups begin their products in turns, so that others' work runs under them";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numLoops", "loops", "Loops with ping-pong scheduling">,
                    Statistic<"numAhead", "ahead",
                              "Loops that wait for all stages before the first contraction">];
}

def KeepReferences : Pass<"tk-keep-references", "::mlir::ModuleOp"> {
  let summary = "Leave maxima out of steps, and go through a block's tiles again where sums leave their range";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops", "Loops with deferred rescaling">];
}
def CompareAsIntegers : Pass<"tk-compare-as-integers", "::mlir::ModuleOp"> {
  let summary = "Take maxima of scores as integers where what they are joined with is at least 0";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops",
                              "Loops with a copy that compares scores as integers">];
}

def PlanSharedMemory : Pass<"tk-plan-shared-memory", "::mlir::ModuleOp"> {
  let summary = "Place shared tiles at offsets, and waits and barriers between their uses";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numBarriers", "barriers", "Barriers inserted">];
}

def OrderArrivals : Pass<"tk-order-arrivals", "::mlir::ModuleOp"> {
  let summary = "Leave the stages of shared rings before the sums of their products are scaled";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numArrivals", "arrivals",
                              "Arrivals ordered before the rescaling of accumulators">];
}

def BeginProducts : Pass<"tk-begin-products", "::mlir::ModuleOp"> {
  let summary = "Begin products of warpgroups that come apart before what does not feed them";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numWaits", "waits", "Waits moved after a contraction">,
                    Statistic<"numRows", "rows", "Tiles of row values moved after a contraction">];
}

def OverlapSlices : Pass<"tk-overlap-slices", "::mlir::ModuleOp"> {
  let summary = "Read the next slice's first fragments of f64 under this slice's last product";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops", "Loops whose consecutive slices overlap">];
}

//===----------------------------------------------------------------------===//
// passes/parallel, passes/tiling: tk -> tkgpu
//===----------------------------------------------------------------------===//

def PlaceResults : Pass<"tk-place-results", "::mlir::ModuleOp"> {
  let summary = "Copy results that may not be written where they go while old values are read";
  let statistics = [Statistic<"numCopied", "copies", "Compute ops that copy a result">];
}

def SelectSchedule : Pass<"tk-select-schedule", "::mlir::ModuleOp"> {
  let summary = "Choose tiles for every statement such that a thread has one output";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
}

def CoarsenThreads : Pass<"tk-coarsen-threads", "::mlir::ModuleOp"> {
  let summary = "Give every thread several outputs: larger tiles for the same threads";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numCoarsened", "statements",
                              "Compute ops with several outputs for each thread">];
}

def OverwriteRows : Pass<"tk-overwrite-rows", "::mlir::ModuleOp"> {
  let summary = "Write a result over the parameter that it replaces if a block has read the rows whole";
  let statistics = [Statistic<"numOverwritten", "copies-left-out",
                              "Copies of results replaced by writes in place">];
}

def WidenVectors : Pass<"tk-widen-vectors", "::mlir::ModuleOp"> {
  let summary = "Let schedules have accesses of up to 16 bytes";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numWidened", "schedules-widened",
                              "Schedules with wider vector accesses">];
}

def AttachReductions : Pass<"tk-attach-reductions", "::mlir::ModuleOp"> {
  let summary = "Begin reductions over products' results in the tiles that store them";
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
  let summary = "Compute functions to the precision that the rounding of their results leaves";
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
  let summary = "Turn statements into launches of block programs over tiles";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let options = [
    Option<"naive", "naive", "bool", "false",
           "Let reductions take one element at a time and each thread load its own operands">];
  let statistics = [Statistic<"numTiled", "statements", "Compute ops turned into launches">];
}

def FetchAhead : Pass<"tk-fetch-ahead", "::mlir::ModuleOp"> {
  let summary = "Bring the rows that a block will reduce while it reduces others";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops", "Loops that load rows ahead">];
}

def KeepRows : Pass<"tk-keep-rows", "::mlir::ModuleOp"> {
  let summary = "Keep rows that would fill a thread's registers in shared memory, each thread its part";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numRows", "rows", "Tiles kept in thread-private shared memory">];
}

def KeepWeights : Pass<"tk-keep-weights", "::mlir::ModuleOp"> {
  let summary = "Keep joined tiles that rows share in shared memory, each thread its part";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numKept", "kept", "Tiles kept in thread-private shared memory">];
}

def CutStores : Pass<"tk-cut-stores", "::mlir::ModuleOp"> {
  let summary = "Compute and store tiles of many registers in parts";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numCut", "stores", "Stores cut into chunks">];
}

def RefillParts : Pass<"tk-refill-parts", "::mlir::ModuleOp"> {
  let summary = "Bring each part of the next row as soon as that of this one has been read";
  let options = patternOptions;
  let statistics = [Statistic<"numParts", "parts", "Chunks loaded separately">,
                    Statistic<"numEarly", "early", "Loops that load rows before a barrier">,
                    Statistic<"numAwaited", "awaited",
                              "Chunks of single rows with a wait of their own">];
}

def PersistBlocks : Pass<"tk-persist-blocks", "::mlir::ModuleOp"> {
  let summary = "Let as many blocks as processors hold take one tile after the other";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numPersistent", "functions", "Functions with persistent blocks">];
}

def HandOutTiles : Pass<"tk-hand-out-tiles", "::mlir::ModuleOp"> {
  let summary = "Let clusters that stay take their next tile from a counter";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numHandedOut", "loops", "Loops with a dynamic tile scheduler">];
}

def KeepReads : Pass<"tk-keep-reads", "::mlir::ModuleOp"> {
  let summary = "Keep what rows are read from in the second-level cache where launches move much";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numKept", "loads", "Loads with an L2 evict-last hint">];
}

#endif // TK_PASSES_TD
