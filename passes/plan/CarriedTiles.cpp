//===- CarriedTiles.cpp - tiles of blocks that carry columns --------------===//
//
// Blocks that carry sums of columns beside what they compute of rows or elements are persistent: a
// thread has some columns of each row, and adds them up in registers.
//   1. Without reductions a block has a tile of rows and columns.
//   2. With reductions along rows a block has whole rows: several short ones, or a long one. A
//      thread has 16 elements of a row, or 32 where one sum is carried for each column.
//   3. Rows of an owner with more than two indices keep their tiles: blocks go through those along
//      one index, and there are as many of them for each tile of the others.
//   4. If a row has more columns than a block's threads have, the blocks of a cluster share it.
//      Each block then carries its own columns, and the cluster joins what it reduces of a row.
//
// Before: rows of 32768 columns, d_x 101 us and sums of columns 66 us, which read x and d_y again
// After:  clusters of 4 blocks, with 16 columns a thread; 110 us for both
//
//===----------------------------------------------------------------------===//
#include "passes/plan/CarriedTiles.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/machine/Machine.h"
#include "passes/machine/limits/Rows.h"
#include "passes/plan/Planner.h"
#include "passes/plan/ScheduleBlock.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk;

using namespace limits::carried_tiles;

/// A schedule for `blocks` blocks a multiprocessor, of `threads` threads with `elements` each of
/// the elements of `tile`.
static gpu::ScheduleAttr scheduleFor(StatementShape &shape, gpu::ScheduleAttr old,
                                     ArrayRef<int64_t> tile, int64_t threads, int64_t elements,
                                     int64_t blocks, int64_t cluster = 1) {
  return gpu::ScheduleAttr::get(shape.compute.getContext(), tile, old.getReduce(), -1,
                                threads / lanesOfWarp, elements, old.getVector(), 1, 1, blocks,
                                cluster, {}, 1);
}

/// The schedule of an owner whose rows of `columns` elements a cluster shares: each block carries
/// `count` numbers of each of its own columns. Nothing if blocks have no room, or no whole row.
static std::optional<CarriedTiles> planCluster(StatementShape &shape, gpu::ScheduleAttr old,
                                               int64_t columns, int64_t count) {
  gpu::TargetAttr target = getTarget(shape.kernel);
  Planner planner(shape, target, /*coarse=*/true);
  Value last = shape.compute.getIndex(1);
  const int64_t cluster = columns / (mostThreadsOfRow * elementsOfThread);
  if (count * elementsOfThread > mostCarried || cluster < leastClusterBlocks ||
      cluster > mostClusterBlocks || !planner.maySpread(last) ||
      getSizeFact(shape.kernel, shape.endOf(last)).divisor % columns != 0)
    return std::nullopt;
  return CarriedTiles{scheduleFor(shape, old, {1, columns}, cluster * mostThreadsOfRow,
                                  elementsOfThread, 1, cluster),
                      target.getProcessors() / cluster};
}

/// The schedule of an owner of more than two indices, which reduces whole rows over some of them.
static std::optional<CarriedTiles> planOwnTiles(StatementShape &shape, gpu::ScheduleAttr old,
                                                int64_t count, unsigned counted) {
  ComputeOp owner = shape.compute;
  auto sizeOf = [&](unsigned p) { return shape.upperOf(owner.getIndex(p)); };
  for (Operation *op : shape.reductions) {
    auto reduce = dyn_cast<ReduceOp>(op);
    if (!reduce || reduce->getBlock() != owner.getBlock())
      return std::nullopt;
    const unsigned first = owner.getNumIndices() - reduce.getNumIndices();
    for (unsigned n = 0; n < reduce.getNumIndices(); ++n) {
      const unsigned p = first + n;
      if (p <= counted || !rangesOver(reduce, n, owner.getExtents()[p]) || !sizeOf(p) ||
          *sizeOf(p) > old.getTile()[p])
        return std::nullopt;
    }
  }
  const int64_t threads = old.getWarps() * lanesOfWarp;
  if (shape.reductions.empty() || old.getCluster() > 1 || threads > rowThreadsAtOnce ||
      old.getPerThread() * count > mostCarried)
    return std::nullopt;
  int64_t others = 1;
  for (unsigned p = 0; p < owner.getNumIndices(); ++p) {
    if (!sizeOf(p))
      return std::nullopt;
    if (p != counted)
      others *= llvm::divideCeil(std::max<int64_t>(*sizeOf(p), 1), old.getTile()[p]);
  }
  const int64_t blocks = rowThreadsAtOnce / threads;
  const int64_t all = getTarget(shape.kernel).getProcessors() * blocks;
  if (others > all)
    return std::nullopt;
  return CarriedTiles{scheduleFor(shape, old, old.getTile(), threads, old.getPerThread(), blocks),
                      all / others};
}

std::optional<CarriedTiles> tk::planCarriedTiles(StatementShape &shape, int64_t count,
                                                 unsigned counted) {
  ComputeOp owner = shape.compute;
  auto old = gpu::getTiles(owner);
  gpu::TargetAttr target = getTarget(shape.kernel);
  ScheduleBlock block = readScheduleBlock(shape);
  if (!old || !block.tiles.empty() || !block.coarsen.empty() || old.getLoop() >= 0 ||
      !old.getStep().empty() || gpu::getPlan(owner).mergedRows ||
      gpu::getPlan(owner).tileReductions ||
      gpu::getPlan(owner).family == gpu::PlanFamily::SharedTerms || // a loop for each result
      !shape.contractions.empty() || boundsReduction(owner, counted))
    return std::nullopt;
  if (owner.getNumIndices() > 2)
    return planOwnTiles(shape, old, count, counted);
  const int64_t bits = std::clamp<int64_t>(shape.narrowestBits, 16, 32);
  const int64_t vector = vectorBits / bits;
  Value last = owner.getIndex(owner.getNumIndices() - 1);
  std::optional<int64_t> rows = shape.upperOf(owner.getIndex(0)), width = shape.upperOf(last);
  int64_t elements = std::min<int64_t>(llvm::bit_floor(uint64_t(mostCarried / count)),
                                       elementsOfThread * 16 / bits);
  if (!rows || !width || elements < vector ||
      getSizeFact(shape.kernel, shape.endOf(last)).divisor % vector != 0)
    return std::nullopt;
  if (shape.reductions.empty()) {
    elements = std::min<int64_t>(elements, 2 * vector);
    const int64_t all = threadsOfElements * elements,
                  blocks = elementThreadsAtOnce / threadsOfElements;
    int64_t columns = llvm::PowerOf2Ceil(std::max<int64_t>(*width, 1));
    if (owner.getNumIndices() == 1)
      return CarriedTiles{scheduleFor(shape, old, {all}, threadsOfElements, elements, blocks),
                          target.getProcessors() * blocks};
    columns = std::min(columns, lanesOfWarp * vector);
    const int64_t across = llvm::divideCeil(std::max<int64_t>(*width, 1), columns);
    return CarriedTiles{
        scheduleFor(shape, old, {all / columns, columns}, threadsOfElements, elements, blocks),
        std::max<int64_t>(target.getProcessors() * blocks / across, 1)};
  }
  // Rows that a block has whole.
  for (Operation *op : shape.reductions) {
    auto reduce = dyn_cast<ReduceOp>(op);
    if (!reduce || reduce->getBlock() != owner.getBlock() || reduce.getNumIndices() != 1 ||
        owner.getNumIndices() != 2 || !rangesOver(reduce, 0, owner.getExtents()[1]))
      return std::nullopt;
  }
  const int64_t columns = old.getTile()[1];
  if (*width > columns)
    return std::nullopt;
  // A row that has a multiprocessor to itself leaves twice as many registers.
  if (columns / elements > mostThreadsOfRow && 2 * elements * count <= mostCarriedOfLoneRow)
    elements *= 2;
  int64_t threads = std::max(columns / elements, std::min(columns / vector, lanesOfWarp));
  if (threads > mostThreadsOfRow)
    return planCluster(shape, old, columns, count);
  if (threads == 0)
    return std::nullopt;
  // A row that has the threads of four warps is alone in its block.
  const int64_t together = threads >= threadsOfLoneRow ? 1 : threadsOfRows / threads;
  threads *= together;
  if (threads < lanesOfWarp)
    return std::nullopt;
  const int64_t blocks = rowThreadsAtOnce / threads;
  return CarriedTiles{
      scheduleFor(shape, old, {together, columns}, threads, together * columns / threads, blocks),
      target.getProcessors() * blocks};
}

bool tk::mayCarryColumns(gpu::TargetAttr target, int64_t width, int64_t divisor) {
  constexpr int64_t longestOfBlock = mostThreadsOfRow * 2 * elementsOfThread;
  if (width <= longestOfBlock)
    return true;
  return hasFeature(target, Feature::Clusters) && llvm::isPowerOf2_64(width) &&
         divisor % width == 0 && width <= mostClusterBlocks * mostThreadsOfRow * elementsOfThread;
}

int64_t tk::blocksThatCarry(gpu::TargetAttr target, int64_t width) {
  const int64_t threads = std::max<int64_t>(llvm::PowerOf2Ceil(width) / elementsOfThread, 1);
  const int64_t blocks = target.getProcessors() * rowThreadsAtOnce / threads;
  const bool isOfCluster = width > mostThreadsOfRow * 2 * elementsOfThread;
  return isOfCluster ? blocks : std::max<int64_t>(blocks, target.getProcessors());
}
