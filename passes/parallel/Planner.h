//===- Planner.h - a statement's schedule while it is chosen ----*- C++ -*-===//
//
// Shared by PlanSchedule.cpp (products, elements), PlanHopper.cpp (products of warpgroups),
// PlanCores.cpp (products on CUDA cores), PlanTeams.cpp (whether they take tiles in turns),
// PlanChains.cpp (two of them), PlanRows.cpp (reductions), PlanFactorRows.cpp (of rows beside one),
// PlanShared.cpp (of terms that results share), PlanPairs.cpp (of pairs of rows) and PlanAcross.cpp
// (across memory).
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_PARALLEL_PLANNER_H
#define TK_PASSES_PARALLEL_PLANNER_H

#include "passes/parallel/ScheduleBlock.h"
#include "passes/parallel/WarpgroupTiles.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

namespace tk {

/// Is the product one of those that the matrix unit computes?
bool usesMatrixUnits(Contraction &product);

/// Chooses the schedule of one statement.
struct Planner {
  Planner(StatementShape &shape, gpu::TargetAttr target, bool coarse)
      : shape(shape), target(target), coarse(coarse), block(readScheduleBlock(shape)),
        tiles(block.tiles) {}

  StatementShape &shape;
  gpu::TargetAttr target;
  bool coarse;
  ScheduleBlock block; ///< the program's own, which comes before anything chosen here
  llvm::DenseMap<mlir::Value, int64_t> tiles;
  llvm::DenseMap<mlir::Value, int64_t> steps;      ///< where tiles begin closer than their size
  llvm::SmallPtrSet<mlir::Operation *, 4> inChain; ///< planned with the contraction around them
  int64_t warps = 8, perThread = 1, stages = 1, group = 1, loop = -1;
  int64_t persistent = 0, cluster = 1, teams = 1;
  gpu::PlanFamily family = gpu::PlanFamily::None;
  gpu::PlanUnit unit = gpu::PlanUnit::None;
  bool isSpread = false;   ///< rows over the blocks of a cluster
  bool hasWindows = false; ///< a thread has several results of few terms each

  /// `size`, or the power of two that holds the whole index if that is smaller.
  int64_t fit(mlir::Value index, int64_t size, int64_t least = 1) {
    if (std::optional<int64_t> upper = shape.upperOf(index))
      size = std::min<int64_t>(size, llvm::PowerOf2Ceil(std::max<int64_t>(*upper, 1)));
    return std::max(size, least);
  }
  void set(mlir::Value index, int64_t size) { tiles.try_emplace(index, size); }
  int64_t tileOf(mlir::Value index) { return tiles.lookup_or(index, 1); }

  /// Is the plan made again, as one before it did not fit?
  bool isForLess() { return shape.kernel->getParentOp()->hasAttr(planningSharedAttrName); }
  void planContractions();
  void planProduct(Contraction &product);
  bool isForWarpgroups(Contraction &product);
  bool isWideForFewRows(Contraction &product);
  bool isMisaligned(Contraction &product, int64_t bytes);
  bool areFactorsStored(Contraction &product);
  int64_t countSums(Contraction &product);
  void planWarpgroupProduct(Contraction &product);
  /// Are teams, each with tiles of its own, faster than warpgroups that share tiles such as
  /// `shared`, of which there would be `tiles`?
  bool areTeamsFaster(Contraction &product, const WarpgroupTile &shared, int64_t tiles);
  int64_t chooseTeams(Contraction &product, const WarpgroupTile &shared, int64_t tiles);
  int64_t groupOfTeams(Contraction &product);
  void planChain(Contraction &outer);
  /// Are the two products of a chain for warpgroups? Of few rows only where shares of a
  /// multiprocessor are, or will be, made of them, or where factors are gathered.
  bool isChainForWarpgroups(Contraction &outer, bool inShares = false);
  bool fitsOneWarpgroup(Contraction &outer);
  int64_t countOthers(mlir::Value m, mlir::Value n);
  int64_t walkedTogether(Contraction &outer);
  int64_t consumersOfChain(Contraction &outer);
  bool haveRegisters(Contraction &outer, int64_t columns, int64_t consumers, int64_t terms);
  void planWarpgroupChain(Contraction &outer);
  /// Gives blocks several results, and threads parts of the terms that these share, if there are
  /// such (PlanShared.cpp).
  bool planShared();
  /// Gives blocks several rows that are summed beside one that all share (PlanFactorRows.cpp).
  bool planFactorRows();
  /// Gives blocks rows and columns of results whose terms are functions of a value of each, if they
  /// are such (PlanPairs.cpp).
  bool planPairs();
  int64_t planScanAcross(ScanOp scan, mlir::Value across);
  int64_t planWindows(mlir::Value across);
  int64_t planShortChain(ReduceOp reduction, mlir::Value across);
  void fitBesideScans();
  int64_t planAcross(mlir::Operation *op);
  mlir::Value indexInBlocks(mlir::Operation *op);
  mlir::Value planAlong(mlir::Operation *op, int64_t depth);
  /// Gives the block all of the indices of `op` besides `along`, and of the results', if it holds
  /// `most` elements or fewer then; returns how many rows along `along` these are, or 1.
  int64_t planOtherAxes(ReduceOp op, mlir::Value along, int64_t most);
  /// Makes the slices of rows along `along`, which a block takes whole, higher: of several rows
  /// along another index of `op`. Returns of how many, or 1.
  int64_t planRowsOfSlice(ReduceOp op, mlir::Value along, int64_t most);
  /// Gives a block `wanted` rows or fewer, along one of the indices that have no tile yet. Returns
  /// how many.
  int64_t planRowsOfBlock(int64_t wanted);
  /// Is what a reduction takes in another part of its range for each value of `index`?
  bool countsParts(mlir::Value index);
  bool maySpread(mlir::Value index);
  bool maySpreadPlanes(ReduceOp op);
  int64_t bytesOfRow(int64_t length);
  int64_t bytesStored(mlir::Value along, int64_t length);
  int64_t bytesOfWeights(mlir::Value along, int64_t length);
  int64_t keptBits(mlir::Value along);
  bool isReadAlone(mlir::Value row);
  bool isReadAgain(mlir::Value along);
  int64_t blocksThatStay(mlir::Value along, int64_t length);
  int64_t blocksWithJoinedWeights(mlir::Value along, int64_t length);
  bool isKept(int64_t length);
  bool isKeptBySeveral(mlir::Value along);
  bool fillsProcessor(mlir::Value along, int64_t length);
  bool isSharedByThirds(mlir::Value along, int64_t length);
  int64_t threadsOfRow(mlir::Value row, int64_t length, int64_t filled, bool isAligned);
  int64_t warpsOfParts();
  void planRows();
  void planElements();
  void shrinkToFillMachine(Contraction &product);
  void chooseCoreTile(Contraction &product);
  int64_t planElementLoads(Contraction &product, int64_t outputs);
  void coarsenAsAsked();
  void limitOperands();
  void fitChains();
  void fitMatrixChains();
  /// Records the family of a product: that of the outermost of several.
  void setFamily(gpu::PlanFamily chosen, gpu::PlanUnit multiplier);
  PlannedTiles finish();
};

} // namespace tk

#endif // TK_PASSES_PARALLEL_PLANNER_H
