//===- PlanHopper.cpp - tiles of contractions for wgmma -------------------===//
//
// A contraction uses wgmma if TMA can load its operands: they are stored in an order that the
// hardware multiplies, and their rows are a multiple of 16 bytes apart. FastestTile.cpp chooses
// among the tiles whose sums warpgroups hold.
//
//===----------------------------------------------------------------------===//
#include "dialects/tk/TkInvariance.h"
#include "dialects/tkgpu/TkGpuProducts.h"
#include "passes/analysis/JointSums.h"
#include "passes/analysis/PackedFactors.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/Machine.h"
#include "passes/machine/TileFacts.h"
#include "passes/machine/WarpgroupTiles.h"
#include "passes/machine/limits/Packed.h"
#include "passes/machine/limits/Products.h"
#include "passes/plan/ComputedRows.h"
#include "passes/plan/InvariantTiles.h"
#include "passes/plan/MergeIndices.h"
#include "passes/plan/Planner.h"
#include "passes/plan/TileBoxes.h"
#include "passes/plan/WindowPlaces.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;
using namespace tk;

namespace {

using namespace limits::plan_hopper;

} // namespace

/// What `factor` is computed from that is over `k`, not over groups of it; null if it is not
/// computed element by element.
static std::optional<SmallVector<LoadOp>> getTermsOf(Value factor, Value k) {
  std::optional<SmallVector<LoadOp>> loads = getElementsOf(factor);
  if (loads)
    llvm::erase_if(*loads, [&](LoadOp load) {
      return llvm::none_of(load.getIndices(), [&](Value at) { return runsOneByOne(at, k); });
    });
  return loads;
}

/// All that the product reads for each k.
static SmallVector<LoadOp> getTermsOf(Contraction &product) {
  SmallVector<LoadOp> terms;
  for (Value term : product.op.getYield().getValues())
    for (Value factor : term.getDefiningOp()->getOperands())
      llvm::append_range(terms, getTermsOf(factor, product.k).value_or(SmallVector<LoadOp>()));
  return terms;
}

/// The fewest terms that have an element of a factor in common, such as a scale of groups. The few
/// that share a word of packed numbers are copied with the word.
static int64_t shortestRun(Contraction &product) {
  int64_t shortest = std::numeric_limits<int64_t>::max();
  product.op.getBody().walk([&](FloorDivOp quotient) {
    std::optional<int64_t> run = getConstantIndex(quotient.getRhs());
    if (quotient.getLhs() == product.k && run && *run >= limits::unpacked_elements::kLeastOfGroup)
      shortest = std::min(shortest, *run);
  });
  return shortest;
}

/// The fewest terms whose words of packed numbers, along the sum, are a row of a box.
static int64_t leastDepthOfWords(Contraction &product) {
  int64_t least = 1;
  product.op.getBody().walk([&](LoadOp load) {
    auto quotient = load.getIndices().empty()
                        ? FloorDivOp()
                        : load.getIndices().back().getDefiningOp<FloorDivOp>();
    std::optional<int64_t> run =
        quotient ? getConstantIndex(quotient.getRhs()) : std::optional<int64_t>();
    if (run && quotient.getLhs() == product.k && *run > 1 &&
        *run < limits::unpacked_elements::kLeastOfGroup)
      least = std::max(least, bytesOfWords * 8 * *run / load.getType().getIntOrFloatBitWidth());
  });
  return least;
}

/// Do the columns of a product in 16 bits come as rows that lie along k, of which slices of `depth`
/// divide the range?
static bool areColumnsAlong(StatementShape &shape, Contraction &product, int64_t depth) {
  bool isDivided = shape.startsAtZero(product.k) &&
                   getSizeFact(shape.kernel, shape.endOf(product.k)).divisor % depth == 0;
  return isDivided && product.operand.getIntOrFloatBitWidth() == 16 &&
         llvm::any_of(getTermsOf(product), [&](LoadOp load) {
           return runsOneByOne(load.getIndices().back(), product.k) &&
                  llvm::any_of(load.getIndices(), [&](Value index) {
                    return llvm::is_contained(getIterationIndices(index), product.n);
                  });
         });
}

/// Do rows that the product reads begin elsewhere than at multiples of so many bytes?
bool Planner::isMisaligned(Contraction &product, int64_t bytes) {
  return llvm::any_of(getTermsOf(product),
                      [&](LoadOp load) { return rowAlignment(shape, load) < bytes; });
}

/// Are all factors of the product boxes of what is stored, in the type that it is multiplied in?
bool Planner::areFactorsStored(Contraction &product) {
  return llvm::all_of(product.op.getYield().getValues(), [&](Value term) {
    return llvm::all_of(term.getDefiningOp()->getOperands(), [&](Value factor) {
      auto load = withoutExtension(factor).getDefiningOp<LoadOp>();
      return load && isMultipliedAsStored(shape.compute, factor) &&
             isBoxOfRows(shape, product, load);
    });
  });
}

/// Are both factors of a product whose indices are counted through what bulk copies bring: boxes,
/// and windows at places that the copies count through?
bool Planner::areWindowsCopied(Contraction &product) {
  SmallVector<Value> counted = getMergedIndices(product.m);
  if (counted.empty())
    counted = getMergedIndices(product.n);
  Operation *factors = product.op.getYield().getValues()[0].getDefiningOp();
  if (counted.empty() || !isa_and_nonnull<arith::MulFOp>(factors))
    return false;
  return llvm::all_of(factors->getOperands(), [&](Value factor) {
    auto load = withoutExtension(factor).getDefiningOp<LoadOp>();
    if (!load || !isMultipliedAsStored(shape.compute, factor) || !isBoxOfRows(shape, product, load))
      return false;
    const bool isOfPlaces = Dependence{counted}.on(load.getResult());
    return !isOfPlaces || tk::areWindowsCopied(shape.kernel, load, counted);
  });
}

bool Planner::isForWarpgroups(Contraction &product) {
  bool isInChain = product.isOuter || llvm::any_of(shape.contractions, [&](Contraction &other) {
                     return other.op->isProperAncestor(product.op);
                   });
  if (!hasFeature(target, Feature::WarpgroupProducts) || !coarse || isInChain ||
      (areTermsMerged(product.op) && !areWindowsCopied(product)) ||
      !haveWarpgroupProduct(product.operand, getSumPrecision(product.op)))
    return false;
  // The one factor that may go through registers; of few rows' many columns each product's.
  Value computed;
  for (Value term : product.op.getYield().getValues()) {
    Operation *factors = term.getDefiningOp();
    if (!isa_and_nonnull<arith::MulFOp, arith::MulIOp>(factors))
      return false;
    for (Value factor : factors->getOperands()) {
      if (withoutExtension(factor).getType() != product.operand)
        return false;
      auto load = withoutExtension(factor).getDefiningOp<LoadOp>();
      if (load && isMultipliedAsStored(shape.compute, factor) && isBoxOfRows(shape, product, load))
        continue;
      std::optional<SmallVector<LoadOp>> terms = getTermsOf(factor, product.k);
      bool areBoxes = terms && llvm::all_of(*terms, [&](LoadOp load) {
                        return isBoxOfRows(shape, product, load);
                      });
      if ((computed && computed != factor && !isWideForFewRows(product)) || !areBoxes)
        return false;
      computed = factor;
    }
  }
  // More sums than the smallest tile leaves registers for are left to warps, whose tiles may be
  // smaller.
  if (!holdsSums(product))
    return false;
  std::optional<int64_t> rows = shape.upperOf(product.m), columns = shape.upperOf(product.n);
  if (isWideForFewRows(product))
    return !computed || llvm::is_contained(getIterationIndices(computed), product.n);
  // The unit that multiplies decides the order of addition.
  if (isBatchInvariant(shape.kernel))
    return true;
  return (!rows || *rows > 16) && (!columns || *columns >= 8);
}

/// Few rows and many columns: the columns then are the rows of the hardware's products, of which
/// there are 64 at least, and the time is that of reading the columns' operand. Several products
/// have the same rows and columns.
bool Planner::isWideForFewRows(Contraction &product) {
  std::optional<int64_t> rows = shape.upperOf(product.m), columns = shape.upperOf(product.n);
  const int64_t numProducts = shape.contractions.size();
  bool isSingle = numProducts == 1;
  bool areAlike = llvm::all_of(shape.contractions, [&](Contraction &other) {
    return other.m == product.m && other.n == product.n && !other.isInner && !other.isOuter;
  });
  if (!rows || (columns && *columns < 1024) || !(isSingle || areAlike))
    return false;
  return *rows * (goThroughRegisters(shape.compute, product.n) ? 1 : numProducts) <= mostFewRows;
}

/// Is the statement's index dealt out in shares?
static bool isInShares(ComputeOp compute) {
  return !compute.getBlock()->getOps<InSharesOp>().empty();
}

/// Are both factors of the inner products, and the other factor of the outer one, loaded as the
/// hardware multiplies them, and the inner k and the outputs such that one tile holds them?
bool Planner::isChainForWarpgroups(Contraction &outer, bool inShares) {
  bool isWide = outer.operand.isF16() || outer.operand.isBF16();
  bool isNarrow = gpu::isByteFloat(outer.operand);
  auto isSummedByHardware = [&](Contraction &product) {
    return isWide || product.op.getPrecision() == Precision::Fast;
  };
  if (!hasFeature(target, Feature::WarpgroupProducts) || !coarse || !(isWide || isNarrow) ||
      !isSummedByHardware(outer))
    return false;
  std::optional<int64_t> rows = shape.upperOf(outer.m), columns = shape.upperOf(outer.n);
  if (!columns || *columns > mostColumnsOfChain)
    return false;
  SmallVector<Value> tiled;
  for (Contraction &product : shape.contractions)
    tiled.append({product.m, product.n, product.k});
  // Blocks that have a multiprocessor for themselves copy by a warp that does nothing else.
  bool isGathered = inShares || isInShares(shape.compute);
  auto isLoaded = [&](Value factor, Value k) {
    if (!isBulkLoadable(shape, factor) || !(isWide || isContiguousAlong(factor, k)))
      return false;
    auto load = withoutExtension(factor).getDefiningOp<LoadOp>();
    if (llvm::all_of(load.getIndices(),
                     [&](Value index) { return isRunOfBox(shape, index, tiled); }))
      return true;
    // Rows that a table names cannot be copied ahead by warps that multiply: those of few queries,
    // too, are better gathered for warpgroups, though they are not enough to fill one.
    bool isOfTable =
        llvm::any_of(load.getIndices(), [&](Value index) { return followsTable(index, tiled); });
    isGathered |= isOfTable;
    return isGathered &&
           areRowsGathered(shape, load, tiled, isOfTable ? rowsOfGatheredBox : rowsOfFixedBox);
  };
  for (auto [k, term] : llvm::enumerate(outer.op.getYield().getValues())) {
    auto product = term.getDefiningOp<arith::MulFOp>();
    if (product && outer.op.getKind(k) == ReduceKind::Sum && !isLoaded(product.getLhs(), outer.k) &&
        !isLoaded(product.getRhs(), outer.k))
      return false;
  }
  bool hasInner = false;
  for (Contraction &inner : shape.contractions) {
    if (!outer.op->isProperAncestor(inner.op))
      continue;
    std::optional<int64_t> depth = shape.upperOf(inner.k);
    if (inner.operand != outer.operand || !depth || *depth > mostColumnsOfChain ||
        !isSummedByHardware(inner))
      return false;
    for (Value term : inner.op.getYield().getValues()) {
      auto product = term.getDefiningOp<arith::MulFOp>();
      if (!product || !isLoaded(product.getLhs(), inner.k) || !isLoaded(product.getRhs(), inner.k))
        return false;
    }
    hasInner = true;
  }
  // Outputs of more columns than warps hold are those of warpgroups, however few rows there are.
  bool areFew =
      rows && *rows <= 16 && *columns <= mostColumnsOfWarpgroup && !isBatchInvariant(shape.kernel);
  return hasInner && (!areFew || isGathered) && (!isForLess() || fitsOneWarpgroup(outer));
}

/// How many terms the slices of a product's operands have that a block multiplies at a time.
int64_t Planner::depthOfSlices(Contraction &product, bool areConverted) {
  // Of few rows' many columns whole lines, however narrow their elements are.
  int64_t bits = product.operand.getIntOrFloatBitWidth();
  if (isWideForFewRows(product))
    for (LoadOp load : getTermsOf(product))
      bits = std::min<int64_t>(bits, load.getType().getIntOrFloatBitWidth());
  if (areConverted && findPackedFactor(product.op))
    bits = std::min<int64_t>(bits, bitsOfPacked);
  int64_t depth = sliceBytes * 8 / bits;
  // What threads add up of a slice costs them as much, however long that is.
  if (product.op.getPrecision() == Precision::Blocked && usualExtent(product.k) > depth)
    depth *= slicesOfBlock;
  // Of several indices the tiled one may be a slice by itself.
  if (product.op.getNumIndices() > 1)
    depth = fit(product.k, depth, leastSlice);
  // What runs of terms have in common is one number for each row of a slice.
  if (areConverted)
    while (depth > leastOfConverted && depth > shortestRun(product))
      depth /= 2;
  const int64_t least = findPackedFactor(product.op) ? leastDepthOfWords(product) : 1;
  if (depth < least && product.op.getNumIndices() == 1 && shape.startsAtZero(product.k) &&
      getSizeFact(shape.kernel, shape.endWithoutMask(product.k)).divisor % least == 0)
    depth = least;
  return depth;
}

void Planner::planWarpgroupProduct(Contraction &product) {
  int64_t accumulators = countSums(product);
  // Waves over the indices that are not tiled count as well; what is not bounded is many.
  int64_t others = 1;
  auto extentOf = [&](Value index) { return usualExtent(index); };
  for (unsigned p = 0; p < shape.compute.getNumIndices(); ++p)
    if (Value index = shape.compute.getIndex(p); index != product.m && index != product.n)
      others = std::min<int64_t>(others * std::max<int64_t>(extentOf(index), 1), 1 << 20);
  // A tile's rows are those of the factor that goes through registers.
  Value rows = product.m, columns = product.n;
  if (goThroughRegisters(shape.compute, product.n))
    std::swap(rows, columns);
  const bool isBlocked = product.op.getPrecision() == Precision::Blocked;
  const WarpgroupTile &best = fastestTile(product, rows, columns, others);
  int64_t consumers = llvm::bit_floor<uint64_t>(block.consumers.value_or(0));
  bool areMisaligned = isMisaligned(product, sectorBytes);
  teams = chooseTeams(product, best, others * best.count(extentOf(rows), extentOf(columns)));
  // Few rows' columns that threads convert before they are multiplied: of two small blocks on a
  // multiprocessor one converts while the other one multiplies.
  bool areConverted = isWideForFewRows(product) && rows == product.n;
  if (isWideForFewRows(product)) {
    // Wide tiles, as long as they keep nearly all processors reading.
    int64_t wide = others * llvm::divideCeil(extentOf(product.n), 128);
    set(product.m, fit(product.m, 64, 8));
    set(product.n, 4 * wide >= 3 * target.getProcessors() && !areConverted ? 128 : 64);
    // Of parts more is copied for each product: tiles as wide as two warpgroups have sums for.
    if (isBlocked && tileOf(product.m) == 64 && wide >= 4 * target.getProcessors() &&
        !block.tiles.contains(product.n))
      tiles[product.n] = 256;
  } else {
    // A team is a warpgroup. Of 128 x 128, for which less is copied, it writes all results at once.
    if (teams > 1)
      consumers = 1;
    set(rows, teams > 1 ? 64 : std::max(best.m, 64 * consumers));
    set(columns,
        fit(columns,
            teams > 1 ? llvm::bit_floor<uint64_t>(256 / accumulators) : llvm::PowerOf2Ceil(best.n),
            8));
    if (!llvm::isPowerOf2_64(best.n) && best.n < tileOf(columns))
      steps[columns] = best.n;
  }
  if (isBatchInvariant(shape.kernel) && teams == 1 && !isBlocked && !areConverted &&
      rows == product.m && !product.isInner && tileOf(product.m) <= rowsOfWarpgroup &&
      !block.tiles.contains(product.m) && !block.tiles.contains(product.n)) {
    const int64_t width =
        invariantColumns(tileOf(product.n), extentOf(product.n),
                         others * llvm::divideCeil(extentOf(product.m), rowsOfWarpgroup),
                         target.getProcessors(), 16);
    if (width < tileOf(product.n))
      tiles[product.m] = rowsOfWarpgroup, tiles[product.n] = width;
  }
  int64_t depth = depthOfSlices(product, areConverted);
  // If threads compute an operand of few columns, wide elements have slices of twice as many terms,
  // and narrow ones leave room for two blocks.
  const bool areFewSums =
      tileOf(product.m) * tileOf(product.n) <= sumsOfFewColumns && shape.contractions.size() == 1;
  const int64_t bitsOfRows = !areFewSums || teams > 1 || isBlocked || isWideForFewRows(product)
                                 ? 0
                                 : bitsOfComputedOperand(shape.compute, product, rows);
  if (bitsOfRows >= 32 && shape.startsAtZero(product.k) &&
      getSizeFact(shape.kernel, shape.endWithoutMask(product.k)).divisor % (2 * depth) == 0)
    depth *= 2;
  // With a tile for each processor there is no next one to overlap with.
  int64_t tiles =
      others * llvm::divideCeil(extentOf(product.m), tileOf(product.m)) *
      llvm::divideCeil(extentOf(product.n), steps.lookup_or(product.n, tileOf(product.n)));
  // Blocks whose sums go through rows or columns of products have no copies ahead of a tile
  // (tk-specialize-warps): other blocks work while one waits.
  auto isOfStatement = [&](Value index) {
    auto argument = dyn_cast<BlockArgument>(index);
    return argument && argument.getOwner() == shape.compute.getBlock();
  };
  const bool haveTile = isOfStatement(product.m) && isOfStatement(product.n);
  const bool mayStay = !areConverted && (!product.isInner || haveTile);
  persistent = block.persistent.value_or(tiles > target.getProcessors() && mayStay) || teams > 1;
  // Two boxes at a time that are neighbours along k keep memory's pages open, and halve the waits
  // of the smallest tiles; blocks that go on to other tiles would lose more where those end.
  const bool areSmallest = tileOf(product.m) == 64 && tileOf(product.n) == 64 && teams == 1 &&
                           !isBlocked && product.op.getNumIndices() == 1;
  bool arePairs = (isWideForFewRows(product) || areSmallest) && !areConverted && !persistent &&
                  !product.isInner && areColumnsAlong(shape, product, 2 * depth);
  if (arePairs)
    depth *= 2;
  set(product.k, product.isInner ? fit(product.k, depth, 16) : depth);
  int64_t height = tileOf(isWideForFewRows(product) ? product.n : rows);
  warps = height >= 128 ? 8 : 4;
  // Each warpgroup has 64 rows, or a multiple.
  if (consumers && height % (64 * consumers) == 0)
    warps = 4 * consumers;
  perThread = std::max<int64_t>(tileOf(product.m) * tileOf(product.n) / (warps * 32), 1);
  // Rows that do not begin at sectors of 32 bytes take more requests; two blocks share the
  // columns'.
  if (areMisaligned && tileOf(product.m) * tileOf(product.n) >= 128 * 128)
    cluster = 2;
  stages = areConverted ? stagesOfConverted : arePairs ? stagesOfPairs : stagesOfSlices;
  if (areConverted && tileOf(product.m) <= 16 && tiles > blocksOfFullRings * target.getProcessors())
    stages -= 1;
  if (bitsOfRows == 16 && persistent == 1 && !block.persistent &&
      tiles > 2 * target.getProcessors()) {
    stages = stagesOfConverted;
    persistent = 2;
  }
  // Of rows that straddle sectors the second-level cache holds fewer.
  group = areMisaligned ? 8 : 16;
  if (teams > 1)
    group = groupOfTeams(product);
  cluster = block.cluster.value_or(cluster);
}
