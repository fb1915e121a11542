//===- PlanRows.cpp - tiles of reductions ---------------------------------===//
//
//   1. Reductions along memory: one tile has the whole row if the row is known to fit, so that it
//      is read once. Otherwise a loop visits chunks of the row. Short rows share a block. A
//      reduction over chunks of the row, each reduced by an inner one, has a tile of both.
//   2. If the machine has clusters, the blocks of a cluster share a row that is too long for a
//      block, or rows over two axes (PlanSeveralAxes.cpp). They hold the row, or read it again from
//      the L2 cache. Blocks are persistent for long rows if the next row fits beside this one or in
//      its place (tk-fetch-ahead). Rows that exceed the registers beside the computation stay in
//      shared memory (tk-keep-rows).
//      Which blocks keep rows, and how many threads have one: KeptRows.cpp.
//   3. Reductions and scans across memory: PlanAcross.cpp.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ChangedElements.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/OffsetRanges.h"
#include "passes/analysis/VisitedPlaces.h"
#include "passes/machine/Machine.h"
#include "passes/machine/limits/RowLimits.h"
#include "passes/machine/limits/Rows.h"
#include "passes/plan/Planner.h"
#include "passes/plan/RowExpressions.h"

using namespace mlir;
using namespace tk;

using namespace limits::plan_rows;

static ReduceOp reductionOf(Value index) {
  return dyn_cast<ReduceOp>(cast<BlockArgument>(index).getOwner()->getParentOp());
}

/// May the blocks of a cluster share the rows along `index`? They join what they reduce and
/// exchange nothing else, so each reduction is over the row, and rows lie along memory wherever
/// they are accessed.
bool Planner::maySpread(Value index) {
  if (!coarse || !hasFeature(target, Feature::Clusters) || shape.narrowestBits > 16 ||
      shape.endOf(index) != shape.endWithoutMask(index))
    return false;
  for (Operation *op : shape.reductions) {
    auto reduction = dyn_cast<ReduceOp>(op);
    if (!reduction || reduction->getBlock() != shape.compute.getBlock() ||
        reduction.getNumIndices() != 1 || !shape.startsAtZero(reduction.getIndex(0)) ||
        shape.endOf(reduction.getIndex(0)) != shape.endOf(index))
      return false;
    for (Value parallel : shape.compute.getBlock()->getArguments())
      if (shape.runsAlong[op].contains(parallel) && shape.dependsOn[op].contains(parallel))
        return false;
  }
  bool lies = true;
  shape.compute.getBody().walk([&](LoadOp load) {
    for (Value axis : load.getIndices().drop_back(!load.getIndices().empty()))
      lies &= !followsIndex(axis, index, shape);
  });
  for (unsigned r = 0; r < shape.compute.getNumResults(); ++r) {
    SmallVector<unsigned> positions = shape.compute.getIndicesOf(r);
    for (unsigned p : ArrayRef(positions).drop_back(!positions.empty()))
      lies &= shape.endOf(shape.compute.getIndex(p)) != shape.endOf(index);
  }
  return lies;
}

/// What a thread has to keep of each element of a row along `along`, in bits, so that everything
/// behind the first reduction is computed from that.
int64_t Planner::keptBits(Value along) { return RowExpressions(shape, along).bitsBehindFirst(); }

/// Does `op` say where an extremum is?
static bool isPlace(Operation *op) {
  auto reduce = dyn_cast<ReduceOp>(op);
  return reduce && isArgReduction(reduce.getKind(0));
}

/// Does a compute op scan rows along `along` and nothing else, and has each multiprocessor several
/// rows? Blocks then step through their rows: some load while others scan.
bool Planner::scansManyRows(Value along) {
  int64_t rows = 1;
  for (Value index : shape.compute.getBlock()->getArguments())
    if (shape.endOf(index) != shape.endWithoutMask(along))
      rows = std::min<int64_t>(rows * shape.upperOf(index).value_or(1), INT32_MAX);
  return rows >= rowsOfProcessor * target.getProcessors() &&
         llvm::all_of(shape.reductions, [](Operation *other) { return isa<ScanOp>(other); });
}

/// A reduction (scan) along memory, or whatever else: slices of one of its indices, or all of it.
/// Each index has `depth` elements.
Value Planner::planAlong(Operation *op, int64_t depth) {
  Value best;
  for (BlockArgument index : op->getRegion(0).front().getArguments()) {
    auto reduction = dyn_cast<ReduceOp>(op);
    if (reduction && index.getArgNumber() >= reduction.getNumIndices())
      break;
    if (!best || shape.runsAlong[op].contains(index))
      best = index;
  }
  std::optional<int64_t> upper = shape.upperOf(best);
  isSpread |= upper && *upper > longestWholeRow && maySpread(best) && !isReadOnce(best) &&
              (*upper <= longestSpreadRow || isKeptBySeveral(best) || isReadAgain(best));
  int64_t spread = isSpread && isKeptBySeveral(best) ? longestKeptRow : longestSpreadRow;
  int64_t longest = (isSpread ? spread : longestWholeRow) / depth;
  const bool isAlone =
      isa<ScanOp>(op) && coarse && upper && *upper > sliceOfScan && scansManyRows(best);
  if (isAlone)
    longest = std::min(longest, sliceOfScan);
  bool whole = upper && *upper <= longest &&
               (shape.startsAtZero(best) || (coarse && shape.lengthOfPart(best)));
  int64_t part = !coarse ? smallSlice : upper && *upper >= longSlice / depth ? longSlice : slice;
  part = isAlone ? sliceOfScan : part / depth;
  // Rows between offsets end after few terms, whatever the longest may have.
  if (std::optional<double> mean =
          coarse && reductionOf(best) ? meanOfShifted(reductionOf(best)) : std::nullopt)
    part = std::clamp(int64_t(llvm::bit_floor(uint64_t(std::max(*mean, 1.0)))), leastRange, part);
  whole &= coarse || *upper <= smallSlice;
  // Of the places in a part of a row a thread has two numbers for each element that it holds.
  whole &= !upper || *upper <= longSlice || !isPlace(op) || shape.startsAtZero(best);
  set(best, fit(best, whole || isSpread ? longest : part));
  // An output along the same row, of which a mask may leave only a part to the reduction: the block
  // goes on to step through it, so that the reduction is computed once a row.
  for (unsigned p = shape.compute.getNumIndices(); p-- > 0;) {
    Value index = shape.compute.getIndex(p);
    bool own = shape.dependsOn[op].contains(index) && !isa<ScanOp>(op);
    if (shape.endOf(index) != shape.endWithoutMask(best) || own || tiles.contains(index))
      continue;
    set(index, tileOf(best));
    if (!whole)
      loop = p;
    break; // another one over as many is an axis of its own
  }
  return best;
}

/// The index of a reduction inside `op` that its loads run along, where they step from block to
/// block, or from one short row to the next, by the index of `op`; null if there is none.
Value Planner::indexInBlocks(Operation *op) {
  auto outer = dyn_cast<ReduceOp>(op);
  if (!outer || outer.getNumIndices() != 1)
    return {};
  Value found;
  bool alone = true;
  outer.getBody().walk([&](ReduceOp inner) {
    bool steps = false, runs = false;
    std::optional<int64_t> length = shape.upperOf(inner.getIndex(0));
    bool isShortRow = length && *length <= slice && shape.startsAtZero(inner.getIndex(0)) &&
                      !isContraction(inner);
    inner.getBody().walk([&](LoadOp load) {
      if (load.getIndices().empty())
        return;
      Value along = load.getIndices().back();
      bool follows = llvm::any_of(load.getIndices(), [&](Value at) {
        return (isShortRow || at == along) &&
               llvm::is_contained(getIterationIndices(at), outer.getIndex(0));
      });
      runs |= runsOneByOne(along, outer.getIndex(0));
      steps |= runsOneByOne(along, inner.getIndex(0)) && follows;
    });
    alone &= !found && steps && !runs && inner.getNumIndices() == 1;
    found = inner.getIndex(0);
  });
  return alone ? found : Value();
}

/// Plans one outermost reduction or scan, whose tile is along memory or across it.
void Planner::planRow(Operation *op, RowTiles &rows) {
  if (int64_t elements = planChunk(op)) {
    rows.longest = std::max(rows.longest, elements);
    rows.isHeld = false;
    return;
  }
  Value inner = coarse ? indexInBlocks(op) : Value();
  if (int64_t across = inner ? 0 : planAcross(op)) {
    rows.longest = std::max<int64_t>(rows.longest, 8 * across);
    rows.isHeld = false;
    return;
  }
  int64_t depth = 1;
  std::optional<int64_t> innerUpper = inner ? shape.upperOf(inner) : std::nullopt;
  if (innerUpper && *innerUpper <= slice && shape.startsAtZero(inner)) {
    set(inner, fit(inner, slice));
    depth = tileOf(inner);
  }
  Value along = planAlong(op, depth);
  rows.row = along;
  family = gpu::PlanFamily::RowReduction;
  bool isSlice = false;
  if (auto reduction = dyn_cast<ReduceOp>(op); reduction && !inner) {
    depth = planOtherAxes(reduction, along,
                          maySpreadPlanes(reduction) ? longestSpreadPlane : longestWholeRow);
    isSpread |= tileOf(along) * depth > longestWholeRow;
    isSlice = depth == 1 && reduction.getNumIndices() > 1;
    if (isSlice)
      depth = planRowsOfSlice(reduction, along, longSlice);
  }
  rows.longest = std::max(rows.longest, tileOf(along) * depth);
  std::optional<int64_t> upper = shape.upperOf(along);
  rows.isHeld &= upper && *upper <= tileOf(along) && shape.startsAtZero(along) && !isSlice;
  int64_t divisor = getSizeFact(shape.kernel, shape.endWithoutMask(along)).divisor * depth;
  rows.isAligned &= divisor * shape.narrowestBits % vectorBits == 0;
  rows.isInHalves &= divisor * shape.narrowestBits * 2 % vectorBits == 0;
  rows.isFilled &=
      divisor % (tileOf(along) * depth) == 0 && shape.endOf(along) == shape.endWithoutMask(along);
  rows.filled = std::max(rows.filled, depth == 1 ? upper.value_or(0) : tileOf(along) * depth);
}

/// Does a range from `lower` to `upper` have values only where a stored result is NaN?
static bool isEmptyUnlessNaN(Value lower, Value upper) {
  if (auto least = upper.getDefiningOp<arith::MinSIOp>())
    return isEmptyUnlessNaN(lower, least.getLhs()) || isEmptyUnlessNaN(lower, least.getRhs());
  auto choice = upper.getDefiningOp<arith::SelectOp>();
  auto test = choice ? choice.getCondition().getDefiningOp<arith::CmpFOp>() : arith::CmpFOp();
  return test && test.getPredicate() == arith::CmpFPredicate::UNO &&
         choice.getFalseValue() == lower;
}

/// Does `op` reduce terms only where a stored result is NaN?
static bool hasTermsForNaN(Operation *op) {
  auto reduce = dyn_cast<ReduceOp>(op);
  return reduce &&
         llvm::any_of(llvm::zip_equal(reduce.getLower(), reduce.getUpper()), [](auto bounds) {
           auto [lower, upper] = bounds;
           return isEmptyUnlessNaN(lower, upper);
         });
}

/// Does a loaded value say how many terms `op` reduces?
static bool hasLoadedRange(Operation *op) {
  auto reduce = dyn_cast<ReduceOp>(op);
  if (!reduce)
    return false;
  SmallVector<Value> work(reduce.getUpper());
  while (!work.empty()) {
    Operation *source = work.pop_back_val().getDefiningOp();
    if (isa_and_nonnull<LoadOp>(source))
      return true;
    if (source && source->getBlock() == reduce->getBlock())
      llvm::append_range(work, source->getOperands());
  }
  return false;
}

/// A compute op that takes stored results and computes those that are NaN again is one over
/// elements: its sums have no terms, as a rule. So is one that changes a few rows in place by sums
/// over short ranges, or that visits rows which elements name.
bool Planner::planChecks() {
  if (!coarse || shape.reductions.empty())
    return false;
  if (std::optional<VisitedPlaces> visited = getVisitedPlaces(shape.kernel, shape.compute)) {
    planElements();
    set(visited->element.reduce.getIndex(0), fit(visited->element.reduce.getIndex(0), slice));
    setFamily(gpu::PlanFamily::RowReduction, gpu::PlanUnit::None);
    return true;
  }
  const bool changesRows = !indicesOfChange(shape.kernel, shape.compute).empty() &&
                           llvm::all_of(shape.reductions, hasLoadedRange);
  if (!changesRows && !llvm::all_of(shape.reductions, hasTermsForNaN))
    return false;
  planElements();
  setFamily(gpu::PlanFamily::RowReduction, gpu::PlanUnit::None);
  return true;
}

void Planner::planRows() {
  if (planPairs())
    return setFamily(gpu::PlanFamily::Pairwise, gpu::PlanUnit::Cores);
  if (planStates())
    return setFamily(gpu::PlanFamily::ColumnReduction, gpu::PlanUnit::None);
  if (planShared())
    return setFamily(gpu::PlanFamily::SharedTerms, gpu::PlanUnit::None);
  if (planFactorRows())
    return setFamily(gpu::PlanFamily::Gemv, gpu::PlanUnit::None);
  if (planOffsetRows())
    return setFamily(gpu::PlanFamily::RowReduction, gpu::PlanUnit::None);
  family = gpu::PlanFamily::ColumnReduction; // unless a reduction goes along memory
  RowTiles found;
  // Nested reductions share the block's registers: only the outermost is tiled, and the one that
  // runs along each of its terms.
  for (Operation *op : shape.reductions)
    if (!op->getParentOfType<ReduceOp>() && !op->getParentOfType<ScanOp>())
      planRow(op, found);
  const auto [row, longest, filled, isHeld, isAligned, isInHalves, isFilled] = found;
  int64_t threads = longest; // for one row, or for a slice at a time
  if (coarse)
    threads = isHeld || isSpread ? threadsOfRow(row, longest, filled, isAligned)
                                 : std::min(longest / 8, threadsOfHalf);
  // Rows that end before their tiles go to half as many threads, if those can have them.
  int64_t vectors = threads * vectorBits / shape.narrowestBits;
  if (coarse && isHeld && isAligned && !isSpread && threads >= 2 * leastThreads &&
      filled < longest && filled * shape.narrowestBits <= threads / 2 * manyElements * 16 &&
      filled % (vectors / 2) == 0)
    threads /= 2;
  int64_t wanted = (coarse ? 128 : 256) / std::max<int64_t>(threads, 1);
  // Of rows of one access a thread a warp has two: the block's bytes on their way are twice as
  // many.
  int64_t together = 1;
  if (coarse && isHeld && isAligned && wanted > 1 &&
      longest * shape.narrowestBits == threads * vectorBits && threads == 32)
    together = 2;
  wanted *= together;
  // A block that has one row makes room for the next as soon as that is stored.
  if (coarse && isHeld && isFilled && hasFeature(target, Feature::BulkCopies) &&
      longest * shape.narrowestBits >= threads * elementsOfThread * 16 &&
      bytesOfRow(longest) + bytesStored(row, longest) >= leastBytesOfBlock)
    wanted = 1;
  // Rows that begin at any alignment have a block each, which follows theirs (tk-align-rows), or go
  // on to others (blocksWithJoinedWeights). Short ones share it.
  int64_t mostBits = isInHalves ? shortRowBitsInHalves : shortRowBits;
  bool isShort = filled * shape.narrowestBits <= mostBits &&
                 (isInHalves || bytesOfWeights(row, longest) <= bytesOfRow(longest));
  if (coarse && isHeld && !isAligned && !isShort &&
      longest * shape.narrowestBits >= 32 * vectorBits)
    wanted = 1;
  int64_t rows = planRowsOfBlock(std::clamp<int64_t>(wanted, 1, 32));
  if (rows < wanted)
    together = 1;
  warps = std::clamp<int64_t>(rows * threads / (32 * together), 1, 32 * cluster);
  // Of rows that end before their tiles threads have no registers beyond that (tk-drop-registers):
  // copies would bring, and reductions read, what is of no use.
  if (isHeld && isAligned && filled == longest)
    persistent = blocksThatStay(row, longest);
  else if (isHeld && !isInHalves && rows == 1 && !isSpread)
    persistent = blocksWithJoinedWeights(row, longest);
  if (coarse && block.tiles.empty())
    warps = std::max(warps, warpsOfParts());
  perThread = std::max<int64_t>(rows * longest / (warps * 32), 1);
  fitBesideScans();
}
