//===- KeptRows.cpp - where rows are kept, and by how many threads --------===//
//
// Decides which rows are kept on chip: in the registers of a block, in the shared memory of one or
// of a cluster, or nowhere, so that they are read again. From that follow the threads of a row, the
// blocks of its cluster, and the blocks of a multiprocessor that go on to further rows.
//
//===----------------------------------------------------------------------===//
#include "passes/machine/Machine.h"
#include "passes/machine/limits/RowLimits.h"
#include "passes/machine/limits/Rows.h"
#include "passes/plan/Planner.h"

using namespace mlir;
using namespace tk;

using namespace limits::kept_rows;

/// Is a row that a cluster cannot hold read again faster by it than by one block? An online
/// reduction joins the cluster's warps for each slice, even if little of it is left.
bool Planner::isReadAgain(Value along) {
  int64_t divisor = getSizeFact(shape.kernel, shape.endOf(along)).divisor;
  bool isOnline = llvm::any_of(shape.reductions, [](Operation *op) {
    auto reduction = dyn_cast<ReduceOp>(op);
    return reduction && !reduction.getRescale().empty();
  });
  return (!isOnline || divisor % longestSpreadRow == 0) &&
         bytesOfRow(*shape.upperOf(along)) * spreadRowsAtOnce <= cacheBytesOfPlans;
}

/// Do the blocks of a cluster keep rows that are too long for the registers of their threads in
/// shared memory, each brought as soon as the one before it has been read (tk-fetch-ahead); or, of
/// several rows, something as wide as one that all else is computed from (tk-keep-rows)?
bool Planner::isKeptBySeveral(Value along) {
  int64_t length = *shape.upperOf(along);
  return maySpread(along) && length > longestSpreadRow && length <= longestKeptRow &&
         llvm::isPowerOf2_64(length) &&
         getSizeFact(shape.kernel, shape.endOf(along)).divisor >= length &&
         keptBits(along) == rowBits && !gpu::getPlan(shape.compute).inPlace;
}

/// Do the blocks of a cluster that keeps rows fill a multiprocessor each? Two of them have no room
/// for several rows, and would load to registers, reduce and load again in turn; one brings them
/// and what all rows share early, and computes what it reduces a second time from fewer elements a
/// thread.
bool Planner::fillsProcessor(Value along, int64_t length) {
  int64_t blocks = length / (threadsOfBlock * elementsOfThread), rows = bytesOfRow(length);
  return isKeptBySeveral(along) && 2 * rows >= target.getShared() * blocks &&
         rows + bytesOfWeights(along, length) < target.getShared() * blocks;
}

/// Do three blocks of a multiprocessor go through rows that clusters keep, each with the row of a
/// cluster's block and with as many elements a thread as that gives? What one computes hides under
/// what the others load, and little is exchanged. Of rows whose weights are longer than they are
/// one block holds those (tk-fetch-ahead).
bool Planner::isSharedByThirds(Value along, int64_t length) {
  int64_t blocks = length / (threadsOfThird * elementsInParts);
  return isKeptBySeveral(along) && bytesOfWeights(along, length) <= bytesOfRow(length) &&
         blocksOfThirds * bytesOfRow(length) < target.getShared() * blocks;
}

/// How many blocks of a multiprocessor go through rows of `length` elements, of which they bring
/// the next while they reduce others; 0: each block has one. There must be room for another row
/// beside this one, and time in which memory would wait: blocks of a cluster wait for each other,
/// and one that fills its multiprocessor reduces several times.
int64_t Planner::blocksThatStay(Value along, int64_t length) {
  int64_t blocks = threadsOfBlock * cluster / (warps * 32);
  int64_t values = 0;
  for (Operation *op : shape.reductions)
    values += op->getNumResults();
  bool waits = cluster > 1 || values > 1;
  int64_t rows = isKeptBySeveral(along) ? 1 : 2;
  // What a cluster would read for each row again, more than the row, a block alone has registers
  // for.
  if (isKeptBySeveral(along) && bytesOfWeights(along, length) > bytesOfRow(length))
    blocks = 1;
  else if (isSharedByThirds(along, length))
    blocks = blocksOfThirds;
  bool fits = rows * bytesOfRow(length) * blocks / cluster < target.getShared();
  return length > longestOwnRow && waits && fits && maySpread(along) &&
                 !gpu::getPlan(shape.compute).inPlace
             ? blocks
             : 0;
}

/// How many blocks of a multiprocessor go through rows of up to `length` elements that begin
/// anywhere, and so keep what the rows share as their rows are misaligned (tk-align-rows); 0: each
/// block has one, and joins that from pairs of loads, which is faster where it is no more than a
/// row.
int64_t Planner::blocksWithJoinedWeights(Value along, int64_t length) {
  int64_t blocks = threadsOfBlock / (warps * 32);
  // With 64 registers threads of the smallest blocks spill, and those that hold whole tiles, of
  // which tk-drop-registers leaves no vector out, compute more: seven eighths of the blocks
  // have 72.
  int64_t vectors = warps * 32 * vectorBits / shape.narrowestBits;
  bool isHeldWhole = shape.upperOf(along).value_or(length) > length - vectors;
  if (warps <= mostWarpsOfSmall || isHeldWhole)
    blocks -= blocks / 8;
  int64_t weights = bytesOfWeights(along, length), rows = 0;
  for (Value index : shape.compute.getBlock()->getArguments())
    if (shape.endOf(index) != shape.endOf(along))
      rows = shape.upperOf(index).value_or(0);
  bool isOneRow =
      coarse && hasFeature(target, Feature::BulkCopies) && shape.compute.getNumIndices() == 2;
  bool fits = weights * blocks <= target.getShared() * 3 / 5;
  return isOneRow && rows >= blocks * target.getProcessors() && fits &&
                 weights > bytesOfRow(length) && blocks > 1
             ? blocks
             : 0;
}

/// Is a row of `length` elements, of which a block has no more, kept in shared memory
/// (tk-keep-rows)? There must be room for as many as blocks whose threads have 64 registers. What
/// is computed from several rows is faster held in registers, by more threads.
bool Planner::isKept(int64_t length) {
  int64_t threads = length / mostElementsOfThread;
  return coarse && !isSpread && shape.narrowestBits == 16 && length >= leastKeptRow &&
         threads <= threadsOfHalf &&
         bytesOfRow(length) * (threadsOfBlock / threads) < target.getShared();
}

/// How many threads share a row of `length` elements along `row`, and the blocks that have them: so
/// few that each has many bytes on their way at once and the steps of joining threads are shared by
/// many elements, so many that its part fits registers. Blocks of half a multiprocessor are best:
/// one loads while the other reduces. Clusters of 8 leave multiprocessors without work.
int64_t Planner::threadsOfRow(Value row, int64_t length, int64_t filled, bool isAligned) {
  int64_t most = elementsOfThread;
  bool isLong =
      isSpread ? length > mostClusterBlocks * threadsOfHalf * most : length >= threadsOfHalf * most;
  if (isLong && isAligned && shape.narrowestBits == 16 && isReadAlone(row))
    most = mostElementsOfThread;
  bool isKeptWhole = isSpread ? isKeptBySeveral(row) : isKept(length);
  bool isAlone = isSpread && isAligned && filled == length && fillsProcessor(row, length);
  bool isThird = isSpread && isAligned && filled == length && isSharedByThirds(row, length);
  if (isAligned && filled == length && isKeptWhole && !isAlone)
    most = isThird ? elementsInParts : mostElementsOfThread;
  int64_t elements = shape.narrowestBits <= 16 ? most : most / 2;
  int64_t vectors = std::max<int64_t>(length * shape.narrowestBits / vectorBits, 1);
  int64_t threads = std::max(length / elements, std::min<int64_t>(vectors, 32));
  if (!isSpread)
    return std::min(threads, threadsOfBlock);
  cluster = threads / (isAlone ? threadsOfBlock : isThird ? threadsOfThird : threadsOfHalf);
  return threads;
}
