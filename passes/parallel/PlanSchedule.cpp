//===- PlanSchedule.cpp - tiles from a statement's shape ------------------===//
//
//   1. Contractions: m and n get square tiles, k a slice that fits shared memory; every other
//      parallel index goes to the grid. A contraction inside another's reduction shares its tile of
//      that index, and the block keeps all of the outer one's n, so that nothing is computed twice.
//   2. Reductions along memory: the whole row in one tile where it is known to fit, so that it is
//      read once; else a loop over slices. Short rows share a block.
//   3. Reductions across memory: threads run along the contiguous parallel index.
//   4. No reductions: a block takes a run of elements along memory; where reads and writes run
//   along
//      different indices, a square.
//
//===----------------------------------------------------------------------===//
#include "passes/parallel/ScheduleBlock.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk;

namespace {

/// The longest row that a block holds in registers, in elements.
constexpr int64_t longestWholeRow = 32768;
/// How much of the last index of an outer contraction one block keeps.
constexpr int64_t widestOutput = 256;
/// Of a row's scores and outputs, how many a warp with 32 rows holds in registers.
constexpr int64_t widestChainRow = 192;
/// Bits along k of an operand's tile: lines of 128 bytes, which is what memory moves.
constexpr int64_t wideSliceBits = 1024;

/// The widest access of a thread, in bytes.
constexpr int64_t widestAccess = 16;

struct Planner {
  Planner(StatementShape &shape, gpu::TargetAttr target, bool coarse)
      : shape(shape), target(target), coarse(coarse), block(readScheduleBlock(shape, target)),
        tiles(block.tiles) {}

  StatementShape &shape;
  gpu::TargetAttr target;
  bool coarse;
  ScheduleBlock block; ///< the program's own, which comes before anything chosen here
  llvm::DenseMap<Value, int64_t> tiles;
  llvm::SmallPtrSet<Operation *, 4> inChain; ///< planned with the contraction around them
  int64_t warps = 8, perThread = 1, stages = 1, group = 1, loop = -1;

  /// `size`, or the power of two that holds the whole index if that is smaller.
  int64_t fit(Value index, int64_t size, int64_t least = 1) {
    if (std::optional<int64_t> upper = shape.upperOf(index))
      size = std::min<int64_t>(size, llvm::PowerOf2Ceil(std::max<int64_t>(*upper, 1)));
    return std::max(size, least);
  }
  void set(Value index, int64_t size) { tiles.try_emplace(index, size); }
  int64_t tileOf(Value index) { return tiles.lookup_or(index, 1); }

  void planContractions();
  void planProduct(Contraction &product);
  void planChain(Contraction &outer);
  bool planAcross(Operation *op);
  Value planAlong(Operation *op);
  void planRows();
  void planElements();
  void shrinkToFillMachine(Contraction &product);
  gpu::ScheduleAttr finish();
};

} // namespace

static bool usesMatrixUnits(Contraction &product) {
  if (product.operand.isInteger(8))
    return true;
  auto type = dyn_cast<FloatType>(product.operand);
  return type &&
         (type.getWidth() <= 16 || (type.isF32() && product.op.getPrecision() == Precision::TF32));
}

/// Halves the larger side while the grid is known to leave multiprocessors idle.
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
  while (blocks() && *blocks() < target.getProcessors()) {
    int64_t &m = tiles[product.m], &n = tiles[product.n];
    if (std::max(m, n) <= 64)
      break;
    (m >= n ? m : n) /= 2;
  }
}

void Planner::planProduct(Contraction &product) {
  bool matrix = usesMatrixUnits(product);
  unsigned bits = product.operand.isIntOrFloat() ? product.operand.getIntOrFloatBitWidth() : 64;
  int64_t m = 16, n = matrix ? 32 : 16, k = matrix ? 512 / std::max(bits, 8u) : 16;
  if (coarse) {
    // 128 x 128 of the matrix unit leave room for two blocks on a processor: one's products run
    // while the other waits. On CUDA cores a thread with 16 x 8 outputs loads least for each.
    m = n = bits == 64 ? 64 : 128;
    if (matrix)
      k = wideSliceBits / std::max(bits, 8u);
    else if (bits == 32)
      m = 256, k = 32;
  }
  int64_t least = matrix ? 16 : 8;
  set(product.m, fit(product.m, m, least));
  set(product.n, fit(product.n, n, least));
  set(product.k, fit(product.k, k, least));
  if (coarse)
    shrinkToFillMachine(product);
  int64_t outputs = tileOf(product.m) * tileOf(product.n);
  // Of the matrix unit's operands a warp reads least where it has 64 x 64 outputs; smaller tiles
  // rather have more warps, which hide each other's latencies.
  int64_t wanted = coarse ? (matrix && outputs > 64 * 128 ? 128 : matrix ? 32 : 64) : 1;
  if (matrix && !coarse)
    wanted = 4;
  warps = std::clamp<int64_t>(outputs / (32 * wanted), 1, 8);
  if (matrix) // a warp's part is at least 16x8
    warps = std::min<int64_t>(warps, outputs / 128);
  warps = std::max<int64_t>(warps, std::min<int64_t>(4, std::max<int64_t>(outputs / 128, 1)));
  perThread = std::max<int64_t>(outputs / (warps * 32), 1);
  stages = coarse && matrix ? 3 : 2;
  group = 8;
}

/// An outer contraction over `k` with another inside: scores and their weighted sum.
void Planner::planChain(Contraction &outer) {
  int64_t rows = coarse ? 128 : 64;
  set(outer.m, fit(outer.m, rows, 16));
  set(outer.n, fit(outer.n, shape.upperOf(outer.n) ? widestOutput : 128, 8));
  set(outer.k, fit(outer.k, coarse ? 64 : 32, 16));
  for (Contraction &inner : shape.contractions) {
    if (!outer.op->isProperAncestor(inner.op))
      continue;
    inChain.insert(inner.op);
    set(inner.m, fit(inner.m, 64, 8));
    set(inner.n, fit(inner.n, 64, 8));
    std::optional<int64_t> depth = shape.upperOf(inner.k);
    set(inner.k, fit(inner.k, depth && *depth <= widestOutput ? widestOutput : 64, 16));
  }
  // What a warp reads of shared memory serves all of its rows: 32 of them halve the traffic. A row
  // then takes tile / 32 registers of each of its accumulators.
  int64_t rowsOfWarp = coarse && tileOf(outer.n) + tileOf(outer.k) <= widestChainRow ? 32 : 16;
  warps = std::clamp<int64_t>(tileOf(outer.m) / rowsOfWarp, 1, 8);
  perThread = std::max<int64_t>(tileOf(outer.m) * tileOf(outer.n) / (warps * 32), 1);
  stages = 2;
}

void Planner::planContractions() {
  for (Contraction &product : shape.contractions) {
    if (product.isOuter)
      planChain(product);
    else if (!inChain.contains(product.op))
      planProduct(product);
  }
}

/// A reduction whose loads run along a parallel index: threads along that, a few terms at a time.
bool Planner::planAcross(Operation *op) {
  Value across;
  for (Value index : shape.compute.getBlock()->getArguments())
    if (shape.runsAlong[op].contains(index) && shape.dependsOn[op].contains(index))
      across = index;
  auto reduction = dyn_cast<ReduceOp>(op);
  if (!across || !reduction)
    return false;
  set(across, fit(across, coarse ? 64 : 32));
  Value last = reduction.getIndex(reduction.getNumIndices() - 1);
  set(last, fit(last, coarse ? 32 : 8));
  return true;
}

/// A reduction (scan) along memory, or whatever else: slices of one of its indices, or all of it.
Value Planner::planAlong(Operation *op) {
  Value best;
  for (BlockArgument index : op->getRegion(0).front().getArguments()) {
    auto reduction = dyn_cast<ReduceOp>(op);
    if (reduction && index.getArgNumber() >= reduction.getNumIndices())
      break;
    if (!best || shape.runsAlong[op].contains(index))
      best = index;
  }
  std::optional<int64_t> upper = shape.upperOf(best);
  bool whole = upper && *upper <= longestWholeRow && shape.startsAtZero(best);
  int64_t slice = coarse ? 1024 : 256;
  whole &= coarse || *upper <= slice;
  set(best, fit(best, whole ? longestWholeRow : slice));
  // An output along the same row: the block goes on to step through it, so that the reduction is
  // computed once a row.
  for (auto [p, index] : llvm::enumerate(shape.compute.getBlock()->getArguments())) {
    bool own = shape.dependsOn[op].contains(index) && !isa<ScanOp>(op);
    if (shape.endOf(index) != shape.endOf(best) || own || tiles.contains(index))
      continue;
    set(index, tileOf(best));
    if (!whole)
      loop = p;
  }
  return best;
}

void Planner::planRows() {
  int64_t longest = 0;
  for (Operation *op : shape.reductions) {
    // Nested reductions share the block's registers: only the outermost is tiled.
    if (op->getParentOfType<ReduceOp>() || op->getParentOfType<ScanOp>())
      continue;
    if (planAcross(op))
      longest = std::max<int64_t>(longest, 1024);
    else
      longest = std::max(longest, tileOf(planAlong(op)));
  }
  int64_t wanted = coarse ? 1024 : 256, rows = 1;
  for (unsigned p = shape.compute.getNumIndices(); p-- > 0 && rows == 1;) {
    Value index = shape.compute.getIndex(p);
    if (tiles.contains(index))
      continue;
    rows = fit(index, std::clamp<int64_t>(wanted / std::max<int64_t>(longest, 1), 1, 32));
    set(index, rows);
  }
  int64_t threads = rows * longest / (coarse ? 8 : 1);
  warps = std::clamp<int64_t>(threads / 32, 1, longest > 16384 ? 32 : longest > 4096 ? 16 : 8);
  perThread = std::max<int64_t>(rows * longest / (warps * 32), 1);
}

void Planner::planElements() {
  ComputeOp compute = shape.compute;
  unsigned count = compute.getNumIndices();
  if (count == 0) {
    warps = 1;
    return;
  }
  Value last = compute.getIndex(count - 1), other;
  for (const llvm::SetVector<Value> &access : shape.innermost)
    for (Value index : access)
      if (index != last && !access.contains(last) && fit(index, 32) >= 16 && fit(last, 32) >= 16)
        other = index;
  warps = 8;
  perThread = coarse ? std::clamp<int64_t>(128 / shape.narrowestBits, 1, 8) : 1;
  int64_t rest = warps * 32 * perThread;
  if (other) {
    int64_t side = std::min<int64_t>(64, int64_t(1) << (llvm::Log2_64(rest) / 2));
    set(other, fit(other, side));
    set(last, fit(last, std::max(side, rest / side > 64 ? side : rest / side)));
    return;
  }
  for (unsigned p = count; p-- > 0 && rest > 1;) {
    Value index = compute.getIndex(p);
    set(index, fit(index, rest));
    rest /= tileOf(index);
  }
}

gpu::ScheduleAttr Planner::finish() {
  SmallVector<int64_t> tile, reduce;
  for (unsigned p = 0; p < shape.compute.getNumIndices(); ++p)
    tile.push_back(tileOf(shape.compute.getIndex(p)));
  for (Operation *op : shape.reductions) {
    auto reduction = dyn_cast<ReduceOp>(op);
    unsigned count = reduction ? reduction.getNumIndices() : 1;
    for (unsigned i = 0; i < count; ++i)
      reduce.push_back(tileOf(op->getRegion(0).front().getArgument(i)));
  }
  stages = block.stages.value_or(stages);
  group = block.group.value_or(group);
  warps = llvm::bit_floor<uint64_t>(std::max<int64_t>(warps, 1));
  return gpu::ScheduleAttr::get(shape.compute.getContext(), tile, reduce, loop, warps, perThread,
                                block.vector.value_or(shape.narrowestBits / 8), stages, group);
}

gpu::ScheduleAttr tk::planSchedule(StatementShape &shape, gpu::TargetAttr target, bool coarse) {
  Planner planner(shape, target, coarse);
  if (!shape.contractions.empty())
    planner.planContractions();
  else if (!shape.reductions.empty())
    planner.planRows();
  else
    planner.planElements();
  return planner.finish();
}

gpu::ScheduleAttr tk::widenVectors(StatementShape &shape, gpu::TargetAttr target,
                                   gpu::ScheduleAttr schedule) {
  ScheduleBlock block = readScheduleBlock(shape, target);
  return gpu::ScheduleAttr::get(schedule.getContext(), schedule.getTile(), schedule.getReduce(),
                                schedule.getLoop(), schedule.getWarps(), schedule.getPerThread(),
                                block.vector.value_or(widestAccess), schedule.getStages(),
                                schedule.getGroup());
}
