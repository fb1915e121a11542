//===- PlanSchedule.cpp - tiles from the shape of a compute op ------------===//
//
//   1. Contractions: m and n get square tiles, k a slice that fits shared memory. Every other
//      parallel index goes to the grid. Back-to-back contractions share the tile of their common
//      index. A block then has the outer contraction's whole n, so that nothing is computed twice.
//   2. Reductions: PlanRows.cpp.
//   3. No reductions: PlanElements.cpp.
//
// FitTiles.cpp then makes tiles smaller that exceed registers or shared memory.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/Machine.h"
#include "passes/machine/limits/Products.h"
#include "passes/machine/limits/Shapes.h"
#include "passes/plan/Planner.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk;

namespace {

using namespace limits::plan_schedule;

} // namespace

bool tk::usesMatrixUnits(Contraction &product) {
  if (product.operand.isInteger(8))
    return true;
  auto type = dyn_cast<FloatType>(product.operand);
  return type && (type.getWidth() <= 16 || type.isF64() ||
                  (type.isF32() && product.op.getPrecision() == Precision::TF32));
}

/// Is a factor contiguous in memory along `index`?
static bool isAnyAlong(Contraction &product, Value index) {
  for (Value term : product.op.getYield().getValues())
    if (Operation *factors = term.getDefiningOp())
      for (Value factor : factors->getOperands())
        if (auto load = withoutExtension(factor).getDefiningOp<LoadOp>();
            load && !load.getIndices().empty() && runsOneByOne(load.getIndices().back(), index))
          return true;
  return false;
}

/// Halves a side while the grid is known to leave multiprocessors idle: the larger one down to 64,
/// of f64 with columns next to each other in memory the rows first; on CUDA cores and of f64 then
/// either down to 32 while all tiles run at once.
///
/// Measured on an H200: f32 with 256 to 1024 rows and columns takes 0.66 to 0.81 of the time so,
/// while tiles that do not all run at once lose 9 % at 640^3 and 11 % at 1024^3; f64 at 1000^3 with
/// 32 x 128 takes 0.89 of what 64 x 64 take (1.06 to 1.1 with columns apart), at 512^3 with 64 x 32
/// 0.76.
void Planner::shrinkToFillMachine(Contraction &product) {
  auto blocks = [&]() -> std::optional<int64_t> {
    int64_t count = 1;
    for (unsigned p = 0; p < shape.compute.getNumIndices(); ++p) {
      Value index = shape.compute.getIndex(p);
      std::optional<int64_t> upper = shape.upperOf(index);
      if (!upper)
        return std::nullopt;
      count *= llvm::divideCeil(std::max<int64_t>(*upper, 1), tileOf(index));
    }
    return count;
  };
  // Sides that the program has set stay as they are.
  auto sideOf = [&](Value index) { return block.tiles.contains(index) ? 0 : tileOf(index); };
  bool isF64 = product.operand.isF64();
  bool areRowsFirst = isF64 && isAnyAlong(product, product.n);
  bool isFine = isF64 || !usesMatrixUnits(product);
  while (blocks() && *blocks() < target.getProcessors()) {
    int64_t m = sideOf(product.m), n = sideOf(product.n);
    if (std::max(m, n) <= 64)
      break;
    tiles[(areRowsFirst && m > 32) || m >= n ? product.m : product.n] /= 2;
  }
  while (isFine && blocks() && 2 * *blocks() <= target.getProcessors()) {
    int64_t m = sideOf(product.m), n = sideOf(product.n);
    if (std::max(m, n) <= 32)
      break;
    tiles[m > n ? product.m : product.n] /= 2;
  }
}

/// Are there known to be many blocks for each processor?
static bool hasManyBlocks(Planner &planner) {
  int64_t blocks = 1;
  for (BlockArgument index : planner.shape.compute.getBlock()->getArguments()) {
    std::optional<int64_t> upper = planner.shape.upperOf(index);
    if (!upper)
      return false;
    blocks *= llvm::divideCeil(std::max<int64_t>(*upper, 1), planner.tileOf(index));
    blocks = std::min<int64_t>(blocks, INT32_MAX);
  }
  return blocks >= manyBlocks * planner.target.getProcessors();
}

void Planner::planProduct(Contraction &product) {
  bool matrix = usesMatrixUnits(product);
  unsigned bits = product.operand.isIntOrFloat() ? product.operand.getIntOrFloatBitWidth() : 64;
  int64_t m = 16, n = matrix ? 32 : 16;
  int64_t k = matrix ? std::max<int64_t>(512 / std::max(bits, 8u), 16) : 16;
  if (coarse) {
    // 128 x 128 of the matrix unit leave room for two blocks on a processor: one's products run
    // while the other waits. On CUDA cores a thread with 16 x 8 outputs loads least for each.
    // 64 x 128 of f64 are 64 registers of two words, for two blocks of four warps.
    m = n = bits == 64 ? 64 : 128;
    if (matrix && bits == 64)
      n = 128;
    if (matrix)
      k = wideSliceBits / std::max(bits, 8u);
    else if (bits == 32)
      m = 256, k = isAnyAlong(product, product.k) ? 32 : 16;
  }
  int64_t least = matrix ? 16 : 8;
  set(product.m, fit(product.m, m, least));
  set(product.n, fit(product.n, n, least));
  set(product.k, fit(product.k, k, least));
  bool isAlone = shape.contractions.size() == 1;
  if (coarse && (matrix ? bits == 64 && isAlone : bits == 32))
    chooseCoreTile(product);
  else if (coarse)
    shrinkToFillMachine(product);
  // What a thread of the most warps has of the sums stays in registers.
  if (coarse && (matrix || bits == 32))
    for (int64_t sums = countSums(product) * (bits == 64 ? 2 : 1);
         tileOf(product.m) * tileOf(product.n) * sums > mostSums * 8 * 32;) {
      Value larger = tileOf(product.m) < tileOf(product.n) ? product.n : product.m;
      if (block.tiles.contains(larger) || tileOf(larger) <= 32)
        break;
      tiles[larger] /= 2;
    }
  int64_t outputs = tileOf(product.m) * tileOf(product.n);
  // Of the matrix unit's operands a warp reads least where it has 64 x 64 outputs; smaller tiles
  // rather have more warps, which hide each other's latencies. Outputs of f64 count twice.
  int64_t wide = bits == 64 ? 2 : 1;
  bool isLarge = matrix && wide * outputs > 64 * 128;
  int64_t wanted = coarse ? (isLarge ? 128 / wide : matrix ? 32 : 64) : 1;
  if (coarse && isLarge && bits == 16)
    wanted = planElementLoads(product, wanted);
  if (matrix && !coarse)
    wanted = 4;
  // The accumulators of several products are in registers at the same time.
  wanted = std::max<int64_t>(wanted / static_cast<int64_t>(shape.contractions.size()), 1);
  warps = std::clamp<int64_t>(outputs / (32 * wanted), 1, 8);
  if (matrix) // a warp's part is at least 16x8
    warps = std::min<int64_t>(warps, outputs / 128);
  // On CUDA cores a thread of few results loads as much as it multiplies: where there are blocks
  // enough to hide what one waits for, it has more.
  const int64_t ofThread = coarse && !matrix && hasManyBlocks(*this) ? leastOutputs : 4;
  warps = std::max<int64_t>(warps,
                            std::min<int64_t>(4, std::max<int64_t>(outputs / (32 * ofThread), 1)));
  perThread = std::max<int64_t>(outputs / (warps * 32), 1);
  stages = coarse && matrix ? 3 : 2;
  // On CUDA cores registers leave room for one block only, so what it has in flight is all there
  // is.
  int64_t slice = (tileOf(product.m) + tileOf(product.n)) * tileOf(product.k) * bits / 8;
  int64_t deepest = bits == 32 && tileOf(product.k) < 32 ? 6 : 4;
  int64_t together = llvm::count_if(shape.contractions,
                                    [&](Contraction &other) { return other.op == product.op; });
  if (coarse && !matrix && deepest * slice * together <= target.getShared())
    stages = deepest;
  else if (coarse && !matrix && together > 1)
    stages = std::max<int64_t>(target.getShared() / (slice * together), stages);
  // Copies of slices that no sum has would only be begun.
  if (std::optional<int64_t> terms = shape.upperOf(product.k);
      terms && coarse && !matrix && product.op.getNumIndices() == 1)
    stages = std::clamp<int64_t>(llvm::divideCeil(*terms, tileOf(product.k)), 2, stages);
  // Of f64 a stage has least work to hide a copy behind.
  if (coarse && matrix && bits == 64 && 2 * 4 * slice <= target.getShared())
    stages = 4;
  group = 8;
}

/// How many blocks a chain has for each tile of its rows; nothing if sizes are not known.
static std::optional<int64_t> countOtherBlocks(StatementShape &shape, Contraction &outer) {
  int64_t count = 1;
  for (Value index : shape.compute.getBlock()->getArguments()) {
    std::optional<int64_t> upper = shape.upperOf(index);
    if (!upper)
      return std::nullopt;
    if (index != outer.m && index != outer.n)
      count *= std::max<int64_t>(*upper, 1);
  }
  return count;
}

/// How many terms of an inner sum of a chain a block has at a time: all if one tile holds them. On
/// CUDA cores every term of the tile is multiplied, so that slices leave out most of those behind
/// the last one.
static int64_t depthOfChain(Planner &planner, Contraction &inner) {
  std::optional<int64_t> depth = planner.shape.upperOf(inner.k);
  const int64_t whole =
      planner.fit(inner.k, depth && *depth <= widestOutput ? widestOutput : 64, 16);
  if (!planner.coarse || usesMatrixUnits(inner) || !depth || *depth > widestOutput)
    return whole;
  int64_t best = whole;
  for (int64_t slice = longestSliceOfChain; slice >= shortestSliceOfChain; slice /= 2)
    if (llvm::alignTo(*depth, slice) < llvm::alignTo(*depth, best))
      best = slice;
  const double part = double(llvm::alignTo(*depth, best)) / double(whole);
  return part <= mostPartOfSlices ? best : whole;
}

/// An outer contraction over `k` with another inside: scores and their weighted sum.
void Planner::planChain(Contraction &outer) {
  // The matrix unit has 16 rows at least; CUDA cores would multiply those that do not count. One
  // row's products are no tiles at all: a warp has the factors of some terms in registers.
  const bool areFew = coarse && !usesMatrixUnits(outer) &&
                      shape.upperOf(outer.m).value_or(leastMatrixRows) < leastMatrixRows;
  int64_t rows = fit(outer.m, coarse ? 128 : 64, areFew ? 1 : leastMatrixRows);
  // Rows for one warp alone leave it too many columns of the inner product's terms.
  const bool areTooWide = isForLess() && rows <= leastMatrixRows;
  set(outer.n, fit(outer.n, shape.upperOf(outer.n) && !areTooWide ? widestOutput : 128, 8));
  // On CUDA cores fewer rows take less time, and blocks of few leave fewer multiprocessors without.
  bool haveOwn = llvm::all_of(shape.contractions, [&](Contraction &inner) {
    return !outer.op->isProperAncestor(inner.op) || inner.m == outer.m || inner.n == outer.m;
  });
  std::optional<int64_t> others = countOtherBlocks(shape, outer);
  if (coarse && haveOwn && others && !usesMatrixUnits(outer)) {
    const int64_t count = *shape.upperOf(outer.m) * *others;
    while (rows > fewestRowsOfChain && 2 * count <= rows * target.getProcessors())
      rows /= 2;
  }
  set(outer.m, rows);
  // Several blocks on a multiprocessor hide each other's latencies.
  set(outer.k, fit(outer.k, coarse && !areFew ? 64 : 32, 16));
  for (Contraction &inner : shape.contractions) {
    if (!outer.op->isProperAncestor(inner.op))
      continue;
    inChain.insert(inner.op);
    set(inner.m, fit(inner.m, 64, 8));
    set(inner.n, fit(inner.n, 64, 8));
    set(inner.k, depthOfChain(*this, inner));
  }
  // What a warp reads of shared memory serves all of its rows: 32 of them halve the traffic. A row
  // then takes tile / 32 registers of each of its accumulators. A warp alone would wait for each of
  // its products. On CUDA cores a block fills a multiprocessor, which four warps do not keep busy.
  const int64_t widest = coarse && !usesMatrixUnits(outer) ? widestRowOfCores : widestChainRow;
  bool isWide = tileOf(outer.n) + tileOf(outer.k) > widest;
  int64_t rowsOfWarp = coarse && !isWide && tileOf(outer.m) > 32 ? 32 : 16;
  warps = std::clamp<int64_t>(tileOf(outer.m) / rowsOfWarp, 1, 8);
  perThread = std::max<int64_t>(tileOf(outer.m) * tileOf(outer.n) / (warps * 32), 1);
  stages = 2;
}

void Planner::planContractions() {
  for (Contraction &product : shape.contractions) {
    const gpu::PlanUnit unit = usesMatrixUnits(product) ? gpu::PlanUnit::Mma : gpu::PlanUnit::Cores;
    if (product.isOuter && isChainForWarpgroups(product)) {
      setFamily(gpu::PlanFamily::FusedGemm, gpu::PlanUnit::Wgmma);
      planWarpgroupChain(product);
    } else if (product.isOuter) {
      setFamily(gpu::PlanFamily::FusedGemm, unit);
      planChain(product);
    } else if (isForWarpgroups(product)) {
      setFamily(gpu::PlanFamily::Gemm, gpu::PlanUnit::Wgmma);
      planWarpgroupProduct(product);
    } else if (!inChain.contains(product.op)) {
      setFamily(gpu::PlanFamily::Gemm, unit);
      planProduct(product);
    }
  }
}

void Planner::setFamily(gpu::PlanFamily chosen, gpu::PlanUnit multiplier) {
  if (family == gpu::PlanFamily::FusedGemm)
    return;
  family = chosen;
  unit = multiplier;
}

/// Gives each thread as many outputs along an index as the schedule block says, starting from a
/// plan in which it has one: the tiles grow by that, but for those that the block sets, which then
/// take fewer threads.
void Planner::coarsenAsAsked() {
  int64_t elements = 1, longest = 1;
  perThread = 1;
  for (auto [index, factor] : block.coarsen) {
    perThread *= factor;
    if (!block.tiles.contains(index))
      tiles[index] = fit(index, tileOf(index) * factor);
  }
  for (Value index : shape.compute.getBlock()->getArguments())
    elements *= tileOf(index);
  if (shape.contractions.empty())
    for (Operation *op : shape.reductions)
      for (BlockArgument index : op->getRegion(0).front().getArguments())
        longest = std::max(longest, tileOf(index));
  warps = std::clamp<int64_t>(elements * longest / (32 * perThread), 1, 32);
  // A warp's part of a product on the matrix unit is at least 16 x 8.
  for (Contraction &product : shape.contractions)
    if (usesMatrixUnits(product))
      warps = std::clamp<int64_t>(tileOf(product.m) * tileOf(product.n) / 128, 1, warps);
}

PlannedTiles Planner::finish() {
  SmallVector<int64_t> tile, reduce, step;
  for (unsigned p = 0; p < shape.compute.getNumIndices(); ++p)
    tile.push_back(tileOf(shape.compute.getIndex(p)));
  if (!steps.empty())
    for (unsigned p = 0; p < shape.compute.getNumIndices(); ++p)
      step.push_back(steps.lookup_or(shape.compute.getIndex(p), tile[p]));
  for (Operation *op : shape.reductions) {
    auto reduction = dyn_cast<ReduceOp>(op);
    unsigned count = reduction ? reduction.getNumIndices() : 1;
    for (unsigned i = 0; i < count; ++i)
      reduce.push_back(tileOf(op->getRegion(0).front().getArgument(i)));
  }
  stages = block.stages.value_or(stages);
  group = block.group.value_or(group);
  // Rows of long terms ask for more threads than a block, or a cluster, has.
  warps = llvm::bit_floor<uint64_t>(std::clamp<int64_t>(warps, 1, 32 * cluster / teams));
  return {family, unit,
          gpu::ScheduleAttr::get(shape.compute.getContext(), tile, reduce, loop, warps, perThread,
                                 block.vector.value_or(shape.narrowestBits / 8), stages, group,
                                 persistent, cluster, step, teams)};
}

void PlannedTiles::writeTo(ComputeOp compute) const {
  gpu::changePlan(compute, [&](gpu::KernelPlan &plan) {
    plan.family = family;
    plan.unit = unit;
    plan.tiles = tiles;
  });
}

PlannedTiles tk::planSchedule(StatementShape &shape, gpu::TargetAttr target, bool coarse) {
  bool asked = coarse && !readScheduleBlock(shape).coarsen.empty();
  Planner planner(shape, target, coarse && !asked);
  if (planner.planHistogram() || planner.planSort() || planner.planSmallProduct())
    return planner.finish();
  if (planner.planChecks())
    shape.contractions.clear();
  else if (!shape.contractions.empty())
    planner.planContractions();
  else if (!shape.reductions.empty())
    planner.planRows();
  else
    planner.planElements();
  if (asked)
    planner.coarsenAsAsked();
  planner.limitOperands();
  planner.fitChains();
  planner.fitMatrixChains();
  planner.fitRows();
  return planner.finish();
}

gpu::ScheduleAttr tk::widenVectors(StatementShape &shape, gpu::TargetAttr target,
                                   gpu::ScheduleAttr schedule) {
  ScheduleBlock block = readScheduleBlock(shape);
  return gpu::ScheduleAttr::get(schedule.getContext(), schedule.getTile(), schedule.getReduce(),
                                schedule.getLoop(), schedule.getWarps(), schedule.getPerThread(),
                                block.vector.value_or(vectorBytes), schedule.getStages(),
                                schedule.getGroup(), schedule.getPersistent(),
                                schedule.getCluster(), schedule.getStep(), schedule.getTeams());
}
