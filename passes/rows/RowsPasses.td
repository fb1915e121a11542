//===- RowsPasses.td - the passes on kernels of rows --------------------===//
// Included by passes/Passes.td.
#ifndef TK_PASSES_ROWS_ROWSPASSES_TD
#define TK_PASSES_ROWS_ROWSPASSES_TD

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

def FetchAhead : Pass<"tk-fetch-ahead", "::mlir::ModuleOp"> {
  let summary = "Load the next rows of a persistent block while it reduces others";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let options = patternOptions;
  let statistics = [Statistic<"numLoops", "loops", "Loops that load rows ahead">];
}

def FetchOperands : Pass<"tk-fetch-operands", "::mlir::ModuleOp"> {
  let summary = "Copy the next iteration's operands that threads convert to thread-private staging";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numLoops", "loops", "Loops whose converted operands come early">];
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

#endif // TK_PASSES_ROWS_ROWSPASSES_TD
