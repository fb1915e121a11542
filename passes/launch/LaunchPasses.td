//===- LaunchPasses.td - the passes on whole launches -------------------===//
// Included by passes/Passes.td.
#ifndef TK_PASSES_LAUNCH_LAUNCHPASSES_TD
#define TK_PASSES_LAUNCH_LAUNCHPASSES_TD

def JoinLaunches : Pass<"tk-join-launches", "::mlir::ModuleOp"> {
  let summary = "Combine partial results in the last block of a launch instead of a second launch";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numJoined", "launches",
                              "Launches replaced by the last block of another launch">];
}

def ShareGrids : Pass<"tk-share-grids", "::mlir::ModuleOp"> {
  let summary = "Run two short independent launches in one grid (horizontal fusion)";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numShared", "launches",
                              "Launches whose blocks joined the grid of another launch">];
}

def OverlapLaunches : Pass<"tk-overlap-launches", "::mlir::ModuleOp"> {
  let summary = "Start launches before the launch in front of them ends (programmatic dependent launch)";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numOverlapped", "functions",
                              "Functions that wait for earlier launches">];
}

def LimitRegisters : Pass<"tk-limit-registers", "::mlir::ModuleOp"> {
  let summary = "Limit registers so that enough blocks fit a multiprocessor to hide memory latency";
  let options = patternOptions;
  let statistics = [Statistic<"numLimited", "functions", "Functions whose registers were limited">];
}

def PlanSharedMemory : Pass<"tk-plan-shared-memory", "::mlir::ModuleOp"> {
  let summary = "Place buffers in shared memory, and insert waits and barriers between their uses";
  let dependentDialects = ["::tk::gpu::TkGpuDialect"];
  let statistics = [Statistic<"numBarriers", "barriers", "Barriers inserted">];
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

#endif // TK_PASSES_LAUNCH_LAUNCHPASSES_TD
