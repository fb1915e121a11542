//===- PlanAcross.cpp - tiles of reductions across memory -----------------===//
//
//   1. Reductions: threads run along the contiguous parallel index and take a few elements at a
//      time. A block takes all elements of a short reduction, such as a part of a longer sum, and
//      waits for memory once. If many results have few elements, such as those of windows, each
//      thread has several neighbouring results in both directions and visits their elements. It
//      reads what they share once, and needs no barrier.
//   2. Scans: a block steps down neighbouring lines of memory in the same way. If accesses have 16
//      bytes, the next rows are loaded while these are scanned (tk-fetch-ahead).
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/IndexGrowth.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/OffsetRanges.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/ScanPosition.h"
#include "passes/machine/Machine.h"
#include "passes/machine/TileFacts.h"
#include "passes/machine/limits/Elements.h"
#include "passes/plan/Planner.h"

using namespace mlir;
using namespace tk;

using namespace limits::plan_across;
/// Scans down columns: a block's threads, how many elements of a row's part each has, and how many
/// bits of a row a block has at most.
struct ScanShape {
  int64_t threads, elements, mostBits;
};
/// Where the next rows come early (tk-fetch-ahead), and where only other blocks load meanwhile.
static constexpr ScanShape fetchedScan = {128, 32, 4 * lineBits}, ownScan = {512, 64, lineBits};

/// A scan in chunks (tk-split-reductions): a block has a chunk of a row, or of several columns.
/// Returns how many elements that is, or 0 if it is none.
int64_t Planner::planChunk(Operation *op) {
  auto scan = dyn_cast<ScanOp>(op);
  std::optional<IndexOrMirror> place =
      scan && coarse ? getScanPosition(scan, shape.compute) : std::nullopt;
  std::optional<int64_t> chunk = place ? getScanChunk(scan, place->index) : std::nullopt;
  if (!chunk || block.tiles.contains(place->index))
    return 0;
  Value across;
  for (Value index : shape.compute.getBlock()->getArguments())
    if (index != place->index && shape.runsAlong[op].contains(index) &&
        shape.dependsOn[op].contains(index))
      across = index;
  set(place->index, *chunk);
  set(scan.getBlock()->getArgument(0), *chunk);
  if (across)
    set(across, fit(across, std::max<int64_t>(ownScan.threads * ownScan.elements / *chunk, 1)));
  return *chunk * (across ? tileOf(across) : 1);
}

/// A scan down columns: a block has several lines of memory side by side, or less if there would be
/// too few blocks, and takes as many rows at a time as its threads hold. What it has summed so far
/// goes on to the next rows. Returns how many threads a block has, or 0.
int64_t Planner::planScanAcross(ScanOp scan, Value across) {
  std::optional<IndexOrMirror> place = getScanPosition(scan, shape.compute);
  if (!coarse || !place)
    return 0;
  BlockArgument position = place->index;
  Value along = scan.getBlock()->getArgument(0);
  std::optional<int64_t> length = shape.upperOf(along), width = shape.upperOf(across);
  int64_t bits = shape.narrowestBits;
  int64_t divisor = getSizeFact(shape.kernel, shape.endWithoutMask(across)).divisor;
  int64_t ownRows = ownScan.threads * ownScan.elements * bits / ownScan.mostBits;
  bool isFetched = divisor * bits % vectorBits == 0 && !(length && *length <= ownRows) &&
                   !gpu::getPlan(shape.compute).inPlace;
  const ScanShape &how = isFetched ? fetchedScan : ownScan;
  const bool isShort = !isFetched && length && *length <= rowsOfShortScan;
  int64_t columns = how.mostBits / bits, others = 1; // the blocks of other indices
  for (Value index : shape.compute.getBlock()->getArguments())
    if (isShort && index != across && index != position && !tiles.contains(index))
      others = std::min<int64_t>(others * shape.upperOf(index).value_or(1), INT32_MAX);
  // Less than half a line costs more than multiprocessors without a block, if they are not many.
  auto enoughBlocks = [&] {
    int64_t processors = target.getProcessors();
    if (!isFetched)
      return processors / 2;
    return columns * bits <= lineBits / 2 ? processors / 3 : processors * 3 / 4;
  };
  while (width && columns * bits > sectorBits && others * (*width / columns) < enoughBlocks())
    columns /= 2;
  set(across, fit(across, columns));
  // Few blocks have many threads each, which compute the terms and have more bytes in flight.
  int64_t threads = how.threads, blocks = 1;
  for (Value index : shape.compute.getBlock()->getArguments())
    if (index != position)
      blocks = std::min<int64_t>(
          blocks * llvm::divideCeil(shape.upperOf(index).value_or(INT32_MAX), tileOf(index)),
          INT32_MAX);
  while (isFetched && threads < ownScan.threads &&
         blocks * threads < target.getProcessors() * how.threads / 2)
    threads *= 2;
  set(along, fit(along, threads * how.elements / tileOf(across)));
  set(position, tileOf(along));
  if (!length || *length > tileOf(along))
    loop = position.getArgNumber();
  else if (isShort) // Few threads share a column, and meet.
    return std::clamp<int64_t>(tileOf(along) * tileOf(across) / elementsOfShortScan, 32,
                               how.threads);
  return threads;
}

/// Do the terms of a reduction lie in a window, which slides as the statement's indices step: does
/// each of its indices stand beside one of the statement's where memory is read?
static bool isOverWindow(StatementShape &shape, ReduceOp reduction) {
  bool any = false, all = true;
  reduction.walk([&](LoadOp load) {
    for (Value term : reduction.getBlock()->getArguments())
      all &= llvm::any_of(load.getIndices(), [&](Value axis) {
        SmallVector<BlockArgument> needs = getIterationIndices(axis);
        return llvm::is_contained(needs, term) && llvm::any_of(needs, [&](BlockArgument index) {
                 return index.getOwner() == shape.compute.getBlock();
               });
      });
    any = true;
  });
  return any && all && !reduction.isOnline();
}

/// How many terms each result of a reduction has, if they are known to be few. Neighbouring results
/// share most terms of a window: it may have more.
static std::optional<int64_t> countFewTerms(StatementShape &shape, Operation *op) {
  auto reduction = dyn_cast<ReduceOp>(op);
  if (!reduction || reduction->getBlock() != shape.compute.getBlock())
    return std::nullopt;
  int64_t terms = 1;
  const bool isWindow = isOverWindow(shape, reduction);
  const int64_t most = isWindow ? termsOfWindow : fewTerms;
  for (unsigned i = 0; i < reduction.getNumIndices(); ++i) {
    std::optional<int64_t> upper = shape.upperOf(reduction.getIndex(i));
    if (!upper || !shape.startsAtZero(reduction.getIndex(i)) ||
        *upper > (isWindow ? termsOfWindowAxis : fewTerms))
      return std::nullopt;
    terms *= std::max<int64_t>(*upper, 1);
    if (terms > most)
      return std::nullopt;
  }
  return terms;
}

/// Of how many neighbouring values of `index` the bounds of `reduction` are the same: a power of
/// two.
static int64_t rowsWithOneRange(StatementShape &shape, ReduceOp reduction, Value index) {
  int64_t rows = int64_t(1) << 30;
  SmallVector<Value> work(reduction->getOperands());
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (value == index)
      return 1;
    Operation *op = value.getDefiningOp();
    if (!op || !shape.compute->isProperAncestor(op))
      continue;
    if (isa<FloorDivOp>(op) && op->getOperand(0) == index) {
      int64_t divisor = getSizeFact(shape.kernel, op->getOperand(1)).divisor;
      rows = std::min(rows, divisor & -divisor);
      continue;
    }
    llvm::append_range(work, getInputs(op));
  }
  return rows;
}

/// A chain of few terms, such as the states of parts, for many results: a thread has all terms of
/// neighbouring results, or some at a time, and need not meet others. Where it is known how many
/// there are on average alone, so many are loaded at once. Returns how many threads a block has, or
/// 0.
int64_t Planner::planShortChain(ReduceOp reduction, Value across) {
  std::optional<int64_t> terms = countFewTerms(shape, reduction);
  auto typical = reduction->getAttrOfType<IntegerAttr>(typicalTermsAttrName);
  if ((!terms && !typical) || reduction.getNumIndices() != 1)
    return 0;
  int64_t results = 1;
  Value below; // the innermost of the other indices
  for (Value index : shape.compute.getBlock()->getArguments()) {
    std::optional<int64_t> upper = shape.upperOf(index);
    if (!upper || tiles.contains(index))
      return 0;
    results = std::min<int64_t>(results, INT32_MAX) * std::max<int64_t>(*upper, 1);
    if (index != across && *upper > 1)
      below = index;
  }
  if (!typical && results < *terms * target.getProcessors() * resultsOfProcessor)
    return 0;
  const int64_t columns = fit(across, (below ? 32 : threadsAcross) * resultsOfChain);
  int64_t rows = below ? rowsWithOneRange(shape, reduction, below) : 1, atOnce = termsOfChain;
  if (typical)
    atOnce = std::min<int64_t>(llvm::PowerOf2Ceil(typical.getInt()), termsOfChain);
  set(across, columns);
  if (below) {
    rows = std::min(rows, fit(below, threadsAcross * resultsOfChain / columns));
    set(below, rows);
  }
  set(reduction.getIndex(0), fit(reduction.getIndex(0), atOnce));
  return std::max<int64_t>(rows * columns / resultsOfChain, 32);
}

/// Do neighbouring results along `index` read neighbouring places, as terms do?
static bool slidesAlong(StatementShape &shape, Value index) {
  bool slides = false;
  for (Operation *op : shape.reductions)
    op->walk([&](LoadOp load) {
      for (Value axis : load.getIndices())
        for (BlockArgument term : getIterationIndices(axis))
          slides |= term.getOwner()->getParentOp() == op && growth(axis, term) == 1 &&
                    growth(axis, index) == 1;
    });
  return slides;
}

/// Many results of few terms, in all of a statement's reductions: a thread has several results, and
/// all their terms. Returns how many threads a block has, or 0.
int64_t Planner::planWindows(Value across) {
  int64_t columns = fit(across, threadsAcross * vectorBits / shape.narrowestBits), blocks = 1;
  Value below; // the innermost of the other indices
  for (Value index : shape.compute.getBlock()->getArguments()) {
    std::optional<int64_t> upper = shape.upperOf(index);
    if (!upper || tiles.contains(index))
      return 0;
    for (Operation *op : shape.reductions)
      if (!countFewTerms(shape, op) || !shape.dependsOn[op].contains(index) ||
          !shape.runsAlong[op].contains(across))
        return 0;
    blocks *= index == across ? llvm::divideCeil(*upper, columns) : std::max<int64_t>(*upper, 1);
    if (index != across && *upper > 1)
      below = index;
  }
  bool isShared = false;
  shape.compute.getBody().walk([&](LoadOp load) {
    SetVector<Value> needs;
    for (Value index : load.getIndices())
      for (BlockArgument argument : getIterationIndices(index))
        needs.insert(argument);
    isShared |=
        load->getParentOfType<ReduceOp>() && needs.contains(across) && !needs.contains(below);
  });
  int64_t results = isShared ? resultsThatShare : resultsOfBlock;
  int64_t rows = below ? fit(below, std::max<int64_t>(results / columns, 1)) : 1;
  // Windows that slide down columns alone read what lies above and below a tile twice: a high one.
  const bool areColumns =
      below && !isShared && slidesAlong(shape, below) && !slidesAlong(shape, across);
  while (areColumns && columns > columnsAcross && fit(below, 2 * rows) == 2 * rows) {
    columns /= 2;
    rows *= 2;
  }
  // Planes that have fewer rows than that: a block has several of them.
  const unsigned position = below ? cast<BlockArgument>(below).getArgNumber() : 0;
  const Value outer = position > 0 ? Value(shape.compute.getIndex(position - 1)) : Value();
  int64_t planes =
      outer && !isShared ? fit(outer, std::max<int64_t>(results / (2 * columns * rows), 1)) : 1;
  const int64_t wanted = blocksOfWindows * target.getProcessors();
  while (planes > 1 && blocks / (rows * planes) < wanted)
    planes /= 2;
  while (rows > 1 && blocks / rows < wanted)
    rows /= 2;
  if (rows * planes * columns < threadsAcross || blocks / (rows * planes) < wanted)
    return 0;
  set(across, columns);
  // Two short sides of what slides share more than one long one, and leave less empty.
  const int64_t threads = threadsAcross * vectorBits / shape.narrowestBits / columns;
  const int64_t near = std::min(isShared ? vectorsThatShare : elementsThatShare, rows);
  const int64_t far = isShared ? threads : rows * planes / near;
  if (outer && !areColumns && slidesAlong(shape, below) && threads > 1 &&
      near * far <= rows * planes && far > 1) {
    planes = fit(outer, far);
    rows = near;
  }
  if (planes > 1)
    set(outer, planes);
  if (below)
    set(below, rows);
  hasWindows = true;
  return threadsAcross;
}

/// A reduction of columns whose results are read again for each of its elements, as a norm over
/// channels is: a block has whole columns, if they are short, of which it reads each element once.
/// Returns how many threads it has, or 0.
int64_t Planner::planWholeColumns(ReduceOp reduction, Value across) {
  Value along = reduction.getIndex(0);
  std::optional<int64_t> length = shape.upperOf(along);
  if (reduction.getNumIndices() != 1 || !length || !shape.startsAtZero(along))
    return 0;
  Value own;
  for (Value index : shape.compute.getBlock()->getArguments())
    if (index != across && shape.endOf(index) == shape.endOf(along) &&
        !shape.dependsOn[reduction].contains(index))
      own = index;
  const int64_t rows = llvm::PowerOf2Ceil(std::max<int64_t>(*length, 1));
  const int64_t columns =
      fit(across, std::min(columnsAcross, std::max<int64_t>(elementsOfColumns / rows, 1)));
  if (!own || rows > longestColumn || (tiles.contains(own) && tileOf(own) != rows))
    return 0;
  set(across, columns);
  set(along, rows);
  set(own, rows);
  return std::clamp<int64_t>(rows * tileOf(across) / elementsOfColumnThread, 32, threadsOfColumns);
}

/// A reduction whose loads run along a parallel index: threads along that, a few terms at a time.
/// Returns how many threads a block has, or 0 if it is none.
/// Does another reduction than `op` have a range of its own for each value of `index`? A block with
/// several values would go through the terms of all of them for each.
static bool dividesOtherTerms(const StatementShape &shape, Operation *op, Value index) {
  return llvm::any_of(shape.reductions, [&](Operation *other) {
    auto reduce = dyn_cast<ReduceOp>(other);
    return reduce && other != op && dividesTerms(reduce, index);
  });
}

int64_t Planner::planAcross(Operation *op) {
  Value across;
  for (Value index : shape.compute.getBlock()->getArguments())
    if (shape.runsAlong[op].contains(index) && shape.dependsOn[op].contains(index) &&
        !dividesOtherTerms(shape, op, index))
      across = index;
  if (auto scan = dyn_cast<ScanOp>(op)) {
    std::optional<IndexOrMirror> place = getScanPosition(scan, shape.compute);
    const Value position = place ? Value(place->index) : scan.getPosition();
    // Gathered terms lie in the order of the scan as well as across it.
    if (shape.runsAlong[op].contains(scan.getBlock()->getArgument(0)))
      return 0;
    return across && across != position ? planScanAcross(scan, across) : 0;
  }
  auto reduction = dyn_cast<ReduceOp>(op);
  if (!across || !reduction)
    return 0;
  Value last = reduction.getIndex(reduction.getNumIndices() - 1);
  if (!coarse) {
    set(across, fit(across, 32));
    set(last, fit(last, 8));
    return threadsAcross;
  }
  bool areAlone = llvm::all_of(llvm::seq(reduction.getNumAccumulators()),
                               [&](unsigned k) { return reduction.standsAlone(k); });
  if (int64_t threads = planWholeColumns(reduction, across))
    return threads;
  if (int64_t threads = hasWindows ? threadsAcross : areAlone ? planWindows(across) : 0)
    return threads;
  if (int64_t threads = areAlone ? 0 : planShortChain(reduction, across))
    return threads;
  // A thread has one access of each tile (tk-unroll-loops adds to that), unless it corrects what it
  // has for each tile: then as much as its registers hold.
  int64_t bits = areAlone ? vectorBits : bitsOfTerms;
  int64_t width =
      areAlone ? shape.narrowestBits : std::max<int64_t>(shape.narrowestBits, leastBits);
  if (auto typical = reduction->getAttrOfType<IntegerAttr>(typicalTermsAttrName);
      typical && areAlone && reduction.getNumIndices() == 1) {
    // Most results have few terms: threads have columns of their own rather than terms.
    const int64_t elements = threadsAcross * bits / width;
    const int64_t terms = std::min(static_cast<int64_t>(llvm::PowerOf2Ceil(typical.getInt())),
                                   elements / columnsAcross);
    set(across, fit(across, elements / terms));
  }
  set(across, fit(across, columnsAcross));
  // Of fewer columns a block takes more terms at a time: it waits for memory as rarely.
  const int64_t columns = areAlone ? tileOf(across) : columnsAcross;
  int64_t terms = threadsAcross * bits / width / columns;
  std::optional<int64_t> length = shape.upperOf(last);
  if (areAlone && reduction.getNumIndices() == 1 && shape.startsAtZero(last) && length &&
      *length <= accessesAcross * terms)
    terms *= accessesAcross;
  set(last, fit(last, terms));
  return threadsAcross;
}

/// A block has all of a row that it scans, so that of what is reduced for each of the row's
/// elements it takes fewer terms at a time.
void Planner::fitBesideScans() {
  const int64_t most = 32 * warps * (coarse ? termsBesideScans : 1);
  for (ScanOp scan : shape.compute.getBlock()->getOps<ScanOp>()) {
    std::optional<IndexOrMirror> place = getScanPosition(scan, shape.compute);
    Value position = place ? Value(place->index) : scan.getPosition();
    for (Operation *op : shape.reductions) {
      auto reduction = dyn_cast<ReduceOp>(op);
      if (!reduction || !shape.dependsOn[op].contains(position))
        continue;
      int64_t elements = 1;
      for (Value index : shape.compute.getBlock()->getArguments())
        elements *= shape.dependsOn[op].contains(index) ? tileOf(index) : 1;
      for (unsigned n = reduction.getNumIndices(); n-- > 0;) {
        Value index = reduction.getIndex(n);
        while (!block.tiles.contains(index) && tileOf(index) > 1 && elements * tileOf(index) > most)
          tiles[index] /= 2;
        elements *= tileOf(index);
      }
    }
  }
}
