//===- PlanSchedule.cpp - tiles from the shape of a compute op ------------===//
//
//   1. Contractions: m and n get square tiles, k a slice that fits shared memory. Every other
//      parallel index goes to the grid. Back-to-back contractions share the tile of their common
//      index. A block then has the outer contraction's whole n, so that nothing is computed twice.
//   2. Reductions: PlanRows.cpp.
//   3. No reductions: a block takes a run of elements along memory. If reads and writes of equally
//      many bytes are contiguous along different indices, it takes a square.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/WarpGrid.h"
#include "passes/machine/Machine.h"
#include "passes/plan/Planner.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace tk;

namespace {

/// How much of the last index of an outer contraction one block keeps.
constexpr int64_t widestOutput = 256;
/// Of a row's scores and outputs, how many a warp with 32 rows holds in registers.
constexpr int64_t widestChainRow = 192;
/// Bits along k of an operand's tile: lines of 128 bytes, which is what memory moves.
constexpr int64_t wideSliceBits = 1024;

/// Of a statement without reductions: the warps of a block, and the blocks that each multiprocessor
/// should still have where a thread takes more than one access.
constexpr int64_t warpsOfElements = 4, blocksToSpare = 16;
/// Of a chain on CUDA cores whose blocks would leave multiprocessors without work.
constexpr int64_t fewestRowsOfChain = 2;
/// Rows of a product that the matrix unit multiplies at least.
constexpr int64_t leastMatrixRows = 16;
/// Values of an index that a thread may have all of, with what it loads for them.
constexpr int64_t mostResultsOfLoad = 4;
/// How many rows share what a thread loads element by element for them.
constexpr int64_t rowsThatShare = 4;

/// Of small tiles on CUDA cores: results that a thread has at least where there are so many blocks
/// for each processor.
constexpr int64_t leastOutputs = 16, manyBlocks = 32;
/// Of each operand of a product on CUDA cores, how much a thread may have in registers: what a
/// layout can name.
constexpr int64_t mostOperands = 1024;
/// Of all sums of products that share a tile, on the matrix unit, what a thread may have.
constexpr int64_t mostSums = 128;
/// What is left of shared memory each time a plan is made again, see CompiledSource::lower.
constexpr double partOfEachTime = 0.75;

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

/// An outer contraction over `k` with another inside: scores and their weighted sum.
void Planner::planChain(Contraction &outer) {
  // The matrix unit has 16 rows at least; CUDA cores would multiply those that do not count. One
  // row's products are no tiles at all: a warp has the factors of some terms in registers.
  const bool areFew = coarse && !usesMatrixUnits(outer) &&
                      shape.upperOf(outer.m).value_or(leastMatrixRows) < leastMatrixRows;
  int64_t rows = fit(outer.m, coarse ? 128 : 64, areFew ? 1 : leastMatrixRows);
  set(outer.n, fit(outer.n, shape.upperOf(outer.n) ? widestOutput : 128, 8));
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
    std::optional<int64_t> depth = shape.upperOf(inner.k);
    set(inner.k, fit(inner.k, depth && *depth <= widestOutput ? widestOutput : 64, 16));
  }
  // What a warp reads of shared memory serves all of its rows: 32 of them halve the traffic. A row
  // then takes tile / 32 registers of each of its accumulators. A warp alone would wait for each of
  // its products.
  bool isWide = tileOf(outer.n) + tileOf(outer.k) > widestChainRow;
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

/// The index along which several rows should share what a thread loads: the innermost of those that
/// nothing of what lies apart along the statement's last index follows. Null if there is none, or
/// the blocks of `elements` outputs would be few.
static Value indexThatShares(Planner &planner, int64_t elements) {
  StatementShape &shape = planner.shape;
  ComputeOp compute = shape.compute;
  Value last = compute.getIndex(compute.getNumIndices() - 1);
  llvm::SmallDenseSet<Value> own;
  bool areApart = false;
  int64_t blocks = 1;
  for (Value index : compute.getBlock()->getArguments())
    blocks *= shape.upperOf(index).value_or(1);
  compute.getBody().walk([&](LoadOp load) {
    SmallVector<BlockArgument> indices;
    for (Value index : load.getIndices())
      llvm::append_range(indices, getIterationIndices(index));
    if (!llvm::is_contained(indices, last) || runsOneByOne(load.getIndices().back(), last))
      return;
    areApart = true;
    own.insert_range(indices);
  });
  if (!areApart ||
      blocks / (elements * rowsThatShare) < blocksToSpare * planner.target.getProcessors())
    return {};
  for (Value index : llvm::reverse(compute.getBlock()->getArguments()))
    if (index != last && !own.contains(index) && planner.fit(index, rowsThatShare) == rowsThatShare)
      return index;
  return {};
}

/// An index of few values, whose number is known, that nothing of what is loaded follows: the parts
/// of a number, for example. Null if there is none.
static Value indexOfResults(Planner &planner) {
  StatementShape &shape = planner.shape;
  llvm::SmallDenseSet<Value> read;
  shape.compute.getBody().walk([&](LoadOp load) {
    for (Value at : load.getIndices())
      read.insert_range(getIterationIndices(at));
  });
  for (auto [index, extent] : llvm::zip_equal(shape.compute.getBlock()->getArguments().drop_back(),
                                              shape.compute.getExtents().drop_back())) {
    std::optional<int64_t> count = getSizeFact(shape.kernel, extent).exact;
    if (count && *count > 1 && *count <= mostResultsOfLoad && llvm::isPowerOf2_64(*count) &&
        !read.contains(index))
      return index;
  }
  return {};
}

void Planner::planElements() {
  ComputeOp compute = shape.compute;
  unsigned count = compute.getNumIndices();
  family = gpu::PlanFamily::Elementwise;
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
    // Lines of 64 elements both ways; with one element a thread as many as there are threads.
    int64_t side = coarse ? 64 : int64_t(1) << (llvm::Log2_64(rest) / 2);
    set(other, fit(other, side));
    set(last, fit(last, std::max(side, rest / side > 64 ? side : rest / side)));
    perThread = std::max<int64_t>(tileOf(other) * tileOf(last) / (warps * 32), 1);
    if (Value results = coarse ? indexOfResults(*this) : Value(); results && results != other) {
      set(results, fit(results, mostResultsOfLoad));
      perThread *= tileOf(results);
    }
    return;
  }
  // Small blocks, whose places others take as soon as they are done, and a thread reads 32 bytes:
  // with more, those that fit have no more on its way. But what a thread computes once for all of
  // its random numbers (keys, places) is then shared by more of them.
  if (coarse) {
    warps = warpsOfElements;
    rest = warps * 32 * perThread;
    int64_t elements = 1, streams = 0;
    for (unsigned p = 0; p < count; ++p)
      elements *= shape.upperOf(compute.getIndex(p)).value_or(1);
    bool draws = false;
    compute.getBody().walk([&](Operation *op) {
      auto load = dyn_cast<LoadOp>(op);
      streams += load && load.getIndices().size() >= count;
      draws |= isa<RandOp>(op);
    });
    if ((streams == 1 || draws) &&
        elements / (2 * rest) >= blocksToSpare * target.getProcessors()) {
      rest *= 2;
      perThread *= 2;
    }
  }
  // What is loaded is loaded once for all that is made of it.
  if (Value results = coarse ? indexOfResults(*this) : Value()) {
    set(results, fit(results, mostResultsOfLoad));
    perThread *= tileOf(results);
  }
  // What lies apart takes a request an element, which several rows share.
  if (Value shared = coarse ? indexThatShares(*this, rest) : Value()) {
    set(shared, rowsThatShare);
    perThread *= rowsThatShare;
  }
  for (unsigned p = count; p-- > 0 && rest > 1;) {
    Value index = compute.getIndex(p);
    set(index, fit(index, rest));
    rest /= tileOf(index);
  }
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

/// On CUDA cores a thread holds a slice of k of its outputs' rows and columns. Where there is one
/// warp, because tiles are narrow or the program says how many outputs a thread has, its lanes
/// share out 4 and 8 of them at least, where there are so many; either side may become the rows.
/// Slices that are too long for its registers become shorter, but those that the program asks for.
void Planner::limitOperands() {
  auto isOnMatrixUnits = [](Contraction &product) {
    return usesMatrixUnits(product) &&
           llvm::all_of(product.op.getYield().getValues(), [](Value term) {
             Operation *factors = term.getDefiningOp();
             return !factors || factors->getNumOperands() != 2 ||
                    withoutExtension(factors->getOperand(0)).getType() ==
                        withoutExtension(factors->getOperand(1)).getType();
           });
  };
  // How lanes lie may follow from other products, too: with less a thread the plan is made again,
  // half of it the first time and of that each time, as the part of shared memory says.
  const double part = double(target.getShared()) / double(getWholeTarget(shape.kernel).getShared());
  const int64_t most =
      llvm::bit_floor<uint64_t>(std::max<int64_t>(double(mostOperands) * part * part, 1));
  for (Contraction &product : shape.contractions) {
    int64_t m = tileOf(product.m), n = tileOf(product.n), side = std::max(m, n);
    if (isOnMatrixUnits(product) && (warps > 1 || std::min(m, n) >= 16))
      continue;
    if (warps > 1) {
      while (!block.tiles.contains(product.k) && tileOf(product.k) > 1 &&
             tileOf(product.k) * sideOfThread(m, n, warps) > most)
        tiles[product.k] /= 2;
      continue;
    }
    int64_t outputs = std::max<int64_t>(m * n / 32, 1);
    int64_t rows = std::clamp<int64_t>(outputs / 4, 1, std::max<int64_t>(side / 4, 1));
    int64_t columns = std::clamp<int64_t>(outputs, 1, std::max<int64_t>(side / 8, 4));
    while (tileOf(product.k) > 1 && tileOf(product.k) * std::max(rows, columns) > most)
      tiles[product.k] /= 2;
  }
}

/// A chain on CUDA cores has its rows' slice, one of the second factor and the weights in two
/// layouts in shared memory at a time: fewer terms of the outer sum where there is no room.
void Planner::fitChains() {
  constexpr int64_t leastTerms = 16;
  for (Contraction &outer : shape.contractions) {
    if (!outer.isOuter || usesMatrixUnits(outer) || block.tiles.contains(outer.k))
      continue;
    for (Contraction &inner : shape.contractions) {
      if (!outer.op->isProperAncestor(inner.op))
        continue;
      auto elements = [&] {
        int64_t m = tileOf(outer.m), k = tileOf(outer.k);
        return m * tileOf(inner.k) + k * tileOf(outer.n) + 2 * m * k;
      };
      while (elements() * outer.operand.getIntOrFloatBitWidth() / 8 > target.getShared() &&
             tileOf(outer.k) > leastTerms)
        tiles[outer.k] /= 2;
    }
  }
}

/// Rows and scans that needed more shared memory, or more registers, than there are: their tiles
/// are half as large the first time, and half of that each time, as the part of shared memory says.
/// First the rows that a block has beside each other, then what it takes of a row at a time.
void Planner::fitRows() {
  if (!isForLess() || !shape.contractions.empty())
    return;
  const double part = double(target.getShared()) / double(getWholeTarget(shape.kernel).getShared());
  int64_t halves = std::llround(std::log(part) / std::log(partOfEachTime));
  SmallVector<Value> rows, terms;
  auto isTogether = [&](Value index) { // with a reduction or a scan along the same row
    return llvm::any_of(shape.reductions, [&](Operation *op) {
      return llvm::any_of(op->getRegion(0).front().getArguments(), [&](BlockArgument other) {
        return other.getType().isIndex() && shape.endOf(other) == shape.endOf(index);
      });
    });
  };
  for (Value index : shape.compute.getBlock()->getArguments())
    if (!isTogether(index))
      rows.push_back(index);
  for (Operation *op : shape.reductions)
    if (auto reduction = dyn_cast<ReduceOp>(op))
      for (unsigned n = 0; n < reduction.getNumIndices(); ++n)
        terms.push_back(reduction.getIndex(n));
  auto longest = [&](ArrayRef<Value> indices) {
    int64_t most = 1;
    for (Value index : indices)
      most = std::max(most, block.tiles.contains(index) ? 1 : tileOf(index));
    return most;
  };
  for (; halves > 0; --halves) {
    ArrayRef<Value> among = longest(rows) > 1 ? rows : terms;
    const int64_t most = longest(among);
    for (Value index : among)
      if (most > 1 && tileOf(index) == most && !block.tiles.contains(index))
        halve(index);
  }
}

/// Halves the tile along `index`. An output along the same row is stepped through then.
void Planner::halve(Value index) {
  tiles[index] /= 2;
  for (unsigned p = 0; p < shape.compute.getNumIndices(); ++p) {
    Value other = shape.compute.getIndex(p);
    if (other == index || shape.endOf(other) != shape.endOf(index) ||
        tileOf(other) != 2 * tileOf(index))
      continue;
    tiles[other] = tileOf(index);
    loop = p;
  }
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
  warps = llvm::bit_floor<uint64_t>(std::max<int64_t>(warps, 1));
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
  if (!shape.contractions.empty())
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
