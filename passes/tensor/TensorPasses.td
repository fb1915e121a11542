//===- TensorPasses.td - the passes on tensors --------------------------===//
// Included by passes/Passes.td.
#ifndef TK_PASSES_TENSOR_TENSORPASSES_TD
#define TK_PASSES_TENSOR_TENSORPASSES_TD

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

def CollapseRows : Pass<"tk-collapse-rows", "::mlir::ModuleOp"> {
  let summary = "Collapse row indices of matrix products although a stored operand is written by "
                "two indices";
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

def ShiftRanges : Pass<"tk-shift-ranges", "::mlir::ModuleOp"> {
  let summary = "Let ranges between loaded offsets begin at 0 if they are short on average";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numShifted", "ranges-shifted", "Ranges that begin at 0 now">];
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

def SplitDepths : Pass<"tk-split-depths", "::mlir::ModuleOp"> {
  let summary = "Split the inner sum of a back-to-back contraction behind a power of two of terms";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numSplit", "depths-split", "Inner sums split in two">];
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

def MaskOperands : Pass<"tk-mask-operands", "::mlir::ModuleOp"> {
  let summary = "Move a condition on one operand of a product into that operand, and compute "
                "results that are NaN again";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = [Option<"always", "always", "bool", "false",
                        "Move conditions of sums of any size, even if that costs time">];
  let statistics = [Statistic<"numSums", "sums", "Sums that become matrix products">];
}

def PackOperands : Pass<"tk-pack-operands", "::mlir::ModuleOp"> {
  let summary = "Store the two values of a row or column of a pairwise contraction as one number "
                "of 64 bits";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = [Option<"always", "always", "bool", "false",
                        "Pack operands of sums of any size, even if that costs time">];
  let statistics = [Statistic<"numSums", "sums", "Sums whose operands are packed">];
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
    - an operand that a table gives each row,
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

#endif // TK_PASSES_TENSOR_TENSORPASSES_TD
