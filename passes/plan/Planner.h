//===- Planner.h - the choice of a compute op's schedule --------*- C++ -*-===//
//
// Shared by PlanSchedule.cpp (contractions), PlanElements.cpp (elementwise compute ops),
// FitTiles.cpp (limits of registers and shared memory), PlanHopper.cpp (contractions by wgmma),
// PlanCores.cpp (contractions on CUDA cores), PlanTeams.cpp (pingpong or cooperative warpgroups),
// PlanChains.cpp (back-to-back contractions), PlanRows.cpp (reductions), KeptRows.cpp (rows that
// blocks and clusters keep), PlanFactorRows.cpp (GEMV), PlanOffsetRows.cpp (columns of rows between
// offsets), PlanShared.cpp (results that share elements), PlanPairs.cpp (pairwise contractions),
// PlanSmallProducts.cpp (products of few rows and columns) and PlanAcross.cpp (across memory).
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_PLAN_PLANNER_H
#define TK_PASSES_PLAN_PLANNER_H

#include "passes/machine/WarpgroupTiles.h"
#include "passes/plan/ScheduleBlock.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

namespace tk {

/// True if the matrix unit computes the contraction.
bool usesMatrixUnits(Contraction &product);

/// Does an index of an access follow from one over the same range as `along`?
bool followsIndex(mlir::Value value, mlir::Value along, StatementShape &shape);

/// Chooses the schedule of one compute op.
struct Planner {
  Planner(StatementShape &shape, gpu::TargetAttr target, bool coarse)
      : shape(shape), target(target), coarse(coarse), block(readScheduleBlock(shape)),
        tiles(block.tiles) {}

  StatementShape &shape;
  gpu::TargetAttr target;
  bool coarse;
  ScheduleBlock block; ///< the program's own, which takes precedence
  llvm::DenseMap<mlir::Value, int64_t> tiles;
  llvm::DenseMap<mlir::Value, int64_t> steps;      ///< of tiles that overlap the next one
  llvm::SmallPtrSet<mlir::Operation *, 4> inChain; ///< planned with the contraction around them
  int64_t warps = 8, perThread = 1, stages = 1, group = 1, loop = -1;
  int64_t persistent = 0, cluster = 1, teams = 1;
  gpu::PlanFamily family = gpu::PlanFamily::None;
  gpu::PlanUnit unit = gpu::PlanUnit::None;
  bool isSpread = false;   ///< rows are divided among the blocks of a cluster
  bool hasWindows = false; ///< a thread has several results of a few elements each

  /// `size`, or the power of two that holds the whole index if that is smaller.
  int64_t fit(mlir::Value index, int64_t size, int64_t least = 1) {
    if (std::optional<int64_t> upper = shape.upperOf(index))
      size = std::min<int64_t>(size, llvm::PowerOf2Ceil(std::max<int64_t>(*upper, 1)));
    return std::max(size, least);
  }
  void set(mlir::Value index, int64_t size) { tiles.try_emplace(index, size); }
  int64_t tileOf(mlir::Value index) { return tiles.lookup_or(index, 1); }

  /// True if the plan is repeated because a former one did not fit.
  bool isForLess() { return shape.kernel->getParentOp()->hasAttr(planningSharedAttrName); }
  void planContractions();
  /// Gives a block the products of several points if each has few rows and columns
  /// (PlanSmallProducts.cpp).
  bool planSmallProduct();
  void planProduct(Contraction &product);
  bool areWindowsCopied(Contraction &product);
  bool isForWarpgroups(Contraction &product);
  bool isWideForFewRows(Contraction &product);
  bool isMisaligned(Contraction &product, int64_t bytes);
  bool areFactorsStored(Contraction &product);
  // FastestTile.cpp
  int64_t countSums(Contraction &product);
  bool holdsSums(Contraction &product);
  std::optional<int64_t> usualPlaces(mlir::Value index, double share);
  int64_t usualExtent(mlir::Value index);
  const WarpgroupTile &fastestTile(Contraction &product, mlir::Value rows, mlir::Value columns,
                                   int64_t others);
  // PlanHopper.cpp
  int64_t depthOfSlices(Contraction &product, bool areConverted);
  void planWarpgroupProduct(Contraction &product);
  /// True if pingpong teams, each with a tile of its own, are faster than cooperative warpgroups
  /// that share tiles such as `shared`, of which there would be `tiles`.
  bool areTeamsFaster(Contraction &product, const WarpgroupTile &shared, int64_t tiles);
  int64_t chooseTeams(Contraction &product, const WarpgroupTile &shared, int64_t tiles);
  int64_t groupOfTeams(Contraction &product);
  void planChain(Contraction &outer);
  /// True if wgmma computes the back-to-back contractions. If there are few rows, that requires
  /// work units for each multiprocessor (present, or created later), or gathered operands.
  bool isChainForWarpgroups(Contraction &outer, bool inShares = false);
  bool fitsOneWarpgroup(Contraction &outer);
  int64_t countOthers(mlir::Value m, mlir::Value n);
  int64_t walkedTogether(Contraction &outer);
  int64_t consumersOfChain(Contraction &outer);
  bool haveRegisters(Contraction &outer, int64_t columns, int64_t consumers, int64_t terms);
  void planWarpgroupChain(Contraction &outer);
  void planShortChain(Contraction &outer);
  /// Gives blocks several results, and threads parts of the elements that these share, if there are
  /// such elements (PlanShared.cpp).
  bool planShared();
  /// Gives threads all terms of their own results along `index`, if there are enough results.
  bool planOwnTerms(mlir::Value index);
  /// Gives blocks several rows of a GEMV (PlanFactorRows.cpp).
  bool planFactorRows();
  /// Gives blocks several rows of columns whose terms lie between offsets (PlanOffsetRows.cpp).
  bool planOffsetRows();
  /// Gives blocks the scanned states of several columns, which they reduce (PlanStates.cpp).
  bool planStates();
  /// Gives blocks the bins of a sum by a key (PlanHistogram.cpp).
  bool planHistogram();
  /// Gives a block a row that is sorted (PlanSort.cpp).
  bool planSort();
  /// Tiles a pairwise contraction by rows and columns of its results (PlanPairs.cpp).
  bool planPairs();
  /// Tiles sums that have few terms, or none, as elements (PlanRows.cpp).
  bool planChecks();
  int64_t planChunk(mlir::Operation *op);
  int64_t planScanAcross(ScanOp scan, mlir::Value across);
  int64_t planWholeColumns(ReduceOp reduction, mlir::Value across);
  int64_t planWindows(mlir::Value across);
  int64_t planShortChain(ReduceOp reduction, mlir::Value across);
  void fitBesideScans();
  int64_t planAcross(mlir::Operation *op);
  mlir::Value indexInBlocks(mlir::Operation *op);
  bool scansManyRows(mlir::Value along);
  mlir::Value planAlong(mlir::Operation *op, int64_t depth);
  /// Gives the block all values of the indices of `op` besides `along`, and of the results, if it
  /// then holds at most `most` elements. Returns the number of rows along `along`, or 1.
  int64_t planOtherAxes(ReduceOp op, mlir::Value along, int64_t most);
  /// Extends the slices of rows along `along`, which a block takes whole, to several rows along
  /// another index of `op`. Returns the number of rows, or 1.
  int64_t planRowsOfSlice(ReduceOp op, mlir::Value along, int64_t most);
  /// Gives a block at most `wanted` rows, along one of the indices without a tile. Returns their
  /// number.
  int64_t planRowsOfBlock(int64_t wanted);
  /// True if a reduction reads another part of its range for each value of `index`.
  bool countsParts(mlir::Value index);
  bool maySpread(mlir::Value index);
  bool maySpreadPlanes(ReduceOp op);
  int64_t bytesOfRow(int64_t length);
  int64_t bytesStored(mlir::Value along, int64_t length);
  int64_t bytesOfWeights(mlir::Value along, int64_t length);
  int64_t keptBits(mlir::Value along);
  bool isReadAlone(mlir::Value row);
  bool isReadOnce(mlir::Value row);
  bool isReadAgain(mlir::Value along);
  int64_t blocksThatStay(mlir::Value along, int64_t length);
  int64_t blocksWithJoinedWeights(mlir::Value along, int64_t length);
  bool isKept(int64_t length);
  bool isKeptBySeveral(mlir::Value along);
  bool fillsProcessor(mlir::Value along, int64_t length);
  bool isSharedByThirds(mlir::Value along, int64_t length);
  int64_t threadsOfRow(mlir::Value row, int64_t length, int64_t filled, bool isAligned);
  int64_t warpsOfParts();
  /// The rows that the reductions of a compute op are over, as far as they are planned.
  struct RowTiles {
    mlir::Value row;                 ///< the index along one of them
    int64_t longest = 0, filled = 0; ///< of elements of a tile, and of a row in it
    bool isHeld = true;              ///< a block holds each row
    bool isAligned = true;           ///< rows begin at whole vectors
    bool isInHalves = true;          ///< or at halves of them
    bool isFilled = true;            ///< rows end with their tiles
  };
  void planRow(mlir::Operation *op, RowTiles &rows);
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
  void fitRows();
  void halve(mlir::Value index);
  PlannedTiles finish();
};

} // namespace tk

#endif // TK_PASSES_PLAN_PLANNER_H
