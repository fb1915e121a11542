//===- PlanAcross.cpp - tiles of reductions across memory -----------------===//
//
//   1. Reductions: threads run along the contiguous parallel index and take a few terms at a time.
//      Of short ones, such as parts of longer sums, a block takes all: it waits for memory once.
//   2. Scans likewise: a block steps down lines of memory that lie side by side. Where accesses are
//      of 16 bytes, the next rows come while these are scanned (tk-fetch-ahead).
//
//===----------------------------------------------------------------------===//
#include "passes/parallel/Planner.h"

using namespace mlir;
using namespace tk;

/// The widest access of a thread.
static constexpr int64_t vectorBits = 128;
/// Reductions of columns: how many a block has side by side, and its threads.
static constexpr int64_t columnsAcross = 64, threadsAcross = 128;
/// Of such columns' terms that a thread has a maximum and sums of, and corrects those for: what it
/// takes in at a time, in bits. logsumexp down 16384 x 4096 of bf16 on an H200: 41.2 us with half
/// as many, 39.3 us so.
static constexpr int64_t bitsOfTerms = 1024, leastBits = 16;
/// How many accesses of a thread bring all terms of short ones at once.
static constexpr int64_t accessesAcross = 4;
/// Scans down columns: a block's threads, how many elements of a row's part each has, and how many
/// bits of a row a block has at most.
struct ScanShape {
  int64_t threads, elements, mostBits;
};
/// What memory moves at once or at least.
static constexpr int64_t lineBits = 1024, sectorBits = 256;
/// Where the next rows come early (tk-fetch-ahead), and where only other blocks load meanwhile.
static constexpr ScanShape fetchedScan = {128, 32, 4 * lineBits}, ownScan = {512, 64, lineBits};

/// A scan down columns: a block has several lines of memory side by side, or less if there would be
/// too few blocks, and takes as many rows at a time as its threads hold. What it has summed so far
/// goes on to the next rows. Returns how many threads a block has, or 0.
int64_t Planner::planScanAcross(ScanOp scan, Value across) {
  auto position = dyn_cast<BlockArgument>(scan.getPosition());
  if (!coarse || !position || position.getOwner() != shape.compute.getBlock())
    return 0;
  Value along = scan.getBlock()->getArgument(0);
  std::optional<int64_t> length = shape.upperOf(along), width = shape.upperOf(across);
  int64_t bits = shape.narrowestBits;
  int64_t divisor = getSizeFact(shape.kernel, shape.endWithoutMask(across)).divisor;
  int64_t ownRows = ownScan.threads * ownScan.elements * bits / ownScan.mostBits;
  bool isFetched = divisor * bits % vectorBits == 0 && !(length && *length <= ownRows) &&
                   !shape.compute->hasAttr("tk.in_place");
  const ScanShape &how = isFetched ? fetchedScan : ownScan;
  int64_t columns = how.mostBits / bits;
  // Less than half a line costs more than multiprocessors without a block, if they are not many.
  auto enoughBlocks = [&] {
    int64_t processors = target.getProcessors();
    if (!isFetched)
      return processors / 2;
    return columns * bits <= lineBits / 2 ? processors / 3 : processors * 3 / 4;
  };
  while (width && columns * bits > sectorBits && *width / columns < enoughBlocks())
    columns /= 2;
  set(across, fit(across, columns));
  set(along, fit(along, how.threads * how.elements / tileOf(across)));
  set(position, tileOf(along));
  if (!length || *length > tileOf(along))
    loop = position.getArgNumber();
  return how.threads;
}

/// A reduction whose loads run along a parallel index: threads along that, a few terms at a time.
/// Returns how many threads a block has, or 0 if it is none.
int64_t Planner::planAcross(Operation *op) {
  Value across;
  for (Value index : shape.compute.getBlock()->getArguments())
    if (shape.runsAlong[op].contains(index) && shape.dependsOn[op].contains(index))
      across = index;
  if (auto scan = dyn_cast<ScanOp>(op))
    return across && across != scan.getPosition() ? planScanAcross(scan, across) : 0;
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
  // A thread has one access of each tile (tk-unroll-loops adds to that), unless it corrects what it
  // has for each tile: then as much as its registers hold.
  int64_t bits = areAlone ? vectorBits : bitsOfTerms;
  int64_t width =
      areAlone ? shape.narrowestBits : std::max<int64_t>(shape.narrowestBits, leastBits);
  int64_t terms = threadsAcross * bits / width / columnsAcross;
  std::optional<int64_t> length = shape.upperOf(last);
  if (areAlone && reduction.getNumIndices() == 1 && shape.startsAtZero(last) && length &&
      *length <= accessesAcross * terms)
    terms *= accessesAcross;
  set(across, fit(across, columnsAcross));
  set(last, fit(last, terms));
  return threadsAcross;
}
