//===- CarryColumns.cpp - sums down columns beside rows or elements -------===//
//
// Reductions down the columns of a tensor, or over all of it, read again what another compute op
// has read for each row or element. An example are the gradients of a norm's weights.
//   1. The rewrite matches compute ops of partial results, as tk-split-reductions creates them:
//      each result belongs to a part of one index and to some of the others. Their elements are
//      computed element by element.
//   2. It looks for a compute op over the same elements that reads all of the operands, or stores
//      them. That compute op reduces nothing, or whole rows that a block holds.
//   3. Its blocks become persistent and carry the reductions of their tiles
//      (TileReduction::isCarried): a thread adds its own columns in registers. The schedule gives a
//      thread only as many elements as leave registers for them (CarriedTiles.cpp).
//   4. Statistics of the rows that a compute op stores for this one alone are computed here: its
//      blocks have the rows.
//   5. Each block stores one partial result for each column. The reduction that combined the parts
//      combines these, always in one order. The compute op of the parts is erased.
// The rewrite declines if the blocks would store half as many bytes as are no longer read.
//
//   %y = tk.compute ["r", "c"] { f(x[r, c]) }
//   %p = tk.compute ["part", "c"] { reduce <sum> ["r"] from part * 1024 .. { g(x[r, c]) } }
//   %s = tk.compute ["c"] { reduce <sum> ["part"] { %p[part, c] } }
//     =>
//   %y, %p = tk.compute ["r", "c", "blocks_r"] in (%R, %C, min(%R, 264)) { f(x[r, c]), g(x[r, c]) }
//   %s = tk.compute ["c"] { reduce <sum> ["block"] { %p[block, c] } }
//
//===----------------------------------------------------------------------===//
#include "passes/plan/CarryColumns.h"
#include "passes/machine/limits/Rows.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/StoredReductions.h"
#include "passes/analysis/TileReductions.h"
#include "passes/plan/CarriedTiles.h"
#include "passes/plan/ColumnParts.h"
#include "passes/plan/MergeIndices.h"
#include "passes/plan/StatementShape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk;

using namespace limits::carry_columns;

/// Are partial results, which are written and read, little beside what is no longer read?
static bool isWorthIt(StatementShape &shape, const ColumnParts &found, const CarriedTiles &tiles,
                      int64_t count) {
  int64_t rows = *shape.upperOf(shape.compute.getIndex(found.counted));
  int64_t blocks = std::min<int64_t>(
      tiles.mostBlocks, llvm::divideCeil(rows, tiles.schedule.getTile()[found.counted]));
  ComputeOp parts = found.parts;
  const bool areColumns = parts.getNumIndices() > 1;
  return !areColumns ||
         double(rows * found.savedBits) >= leastGain * double(partialBits * count * blocks);
}

/// Computes the terms of the parts' result `r` where the owner has its elements.
static Value cloneTerm(const ColumnParts &found, unsigned r, OpBuilder &builder) {
  auto [reduce, k] = *reductionOf(found.parts, r);
  ComputeOp owner = found.owner, parts = found.parts;
  IRMapping mapping;
  for (auto [index, position] : found.places)
    mapping.map(index, owner.getIndex(position));
  auto copy = [&](auto &self, Value value) -> Value {
    if (Value known = mapping.lookupOrNull(value))
      return known;
    Operation *op = value.getDefiningOp();
    if (!op || (op->getBlock() != reduce.getBlock() && op->getBlock() != parts.getBlock()))
      return value;
    if (auto load = dyn_cast<LoadOp>(op); load && load.getTensor().getDefiningOp() == owner) {
      Value stored =
          owner.getYield().getValues()[cast<OpResult>(load.getTensor()).getResultNumber()];
      mapping.map(value, stored);
      return stored;
    }
    // Factors of products are rounded for the matrix units alone.
    auto trunc = isa<arith::ExtFOp>(op) ? op->getOperand(0).getDefiningOp<arith::TruncFOp>()
                                        : arith::TruncFOp();
    if (trunc && trunc->hasAttr(roundedFactorAttr) && trunc.getIn().getType() == value.getType()) {
      Value exact = self(self, trunc.getIn());
      mapping.map(value, exact);
      return exact;
    }
    for (Value operand : op->getOperands())
      mapping.map(operand, self(self, operand));
    return builder.clone(*op, mapping)->getResult(cast<OpResult>(value).getResultNumber());
  };
  return copy(copy, reduce.getYield().getValues()[k]);
}

/// Lets a reduction of the parts take the last result of `owner`.
static void readBlocks(ReduceOp reduce, ComputeOp owner, ArrayRef<unsigned> reduced,
                       ArrayRef<unsigned> positions, ArrayRef<Value> others) {
  OpBuilder builder(reduce);
  const SmallVector<StringRef> names(reduced.size(), "block");
  const SmallVector<Value> zeros(reduced.size(),
                                 arith::ConstantIndexOp::create(builder, reduce.getLoc(), 0));
  auto rest = ReduceOp::create(
      builder, reduce.getLoc(), reduce.getKind(0), names, zeros,
      owner.getExtents().take_back(names.size()), reduce.getResult(0).getType(),
      [&](OpBuilder &inner, Location loc, ValueRange indices) {
        SmallVector<Value> at;
        size_t other = 0, counted = 0;
        for (unsigned index : positions)
          at.push_back(llvm::is_contained(reduced, index) ? indices[counted++] : others[other++]);
        return LoadOp::create(inner, loc, owner->getResults().back(), at, Value()).getResult();
      });
  reduce.getResult(0).replaceAllUsesWith(rest.getResult(0));
  reduce->erase();
}

/// Adds the parts' reductions to the owner, whose blocks carry them, and drops the parts. Returns
/// the new owner.
static ComputeOp carry(ColumnParts &found, const CarriedTiles &tiles) {
  ComputeOp parts = found.parts;
  if (!gpu::getPlan(found.owner).tileReductions)
    gpu::setTiles(found.owner, tiles.schedule);
  OpBuilder host(found.owner);
  Location loc = parts.getLoc();
  // As many blocks as run at once, or tiles if those are fewer.
  const int64_t rowsOfTile = tiles.schedule.getTile()[found.counted];
  Value size = arith::ConstantIndexOp::create(host, loc, rowsOfTile);
  Value most = arith::ConstantIndexOp::create(host, loc, tiles.mostBlocks);
  Value count =
      host.createOrFold<arith::CeilDivSIOp>(loc, found.owner.getExtents()[found.counted], size);
  count = arith::MinSIOp::create(host, loc, count, most);
  const auto positions = llvm::to_vector(llvm::seq<unsigned>(tiles.schedule.getTile().size()));
  for (OpResult result : llvm::to_vector(parts->getResults())) {
    const unsigned r = result.getResultNumber();
    auto [own, k] = *reductionOf(parts, r);
    OpBuilder body(found.owner.getYield());
    Value term = cloneTerm(found, r, body);
    SmallVector<unsigned> reduced;
    for (unsigned n = 0; n < own.getNumIndices(); ++n)
      reduced.push_back(found.places.lookup(own.getIndex(n)));
    // That of the blocks first.
    llvm::sort(reduced, [&](unsigned a, unsigned b) {
      return std::pair(a != found.counted, a) < std::pair(b != found.counted, b);
    });
    SmallVector<int64_t> sizes;
    for (unsigned p : reduced)
      sizes.push_back(tiles.schedule.getTile()[p]);
    found.owner =
        addTileReduction(found.owner, {term, positions, reduced, sizes, own.getKind(k), count},
                         cast<StringAttr>(parts.getNames()[r]).getValue());
    for (Operation *user : llvm::to_vector(result.getUsers())) {
      auto reduce = cast<ReduceOp>(user->getParentOp());
      std::optional<StoredReduction> read = matchStoredReduction(reduce);
      // The parts' indices that are left stand as the owner's do, in whatever order.
      SmallVector<std::pair<unsigned, Value>> others;
      for (auto [position, argument] : llvm::zip_equal(read->others, read->readerArgs))
        others.push_back({found.places.lookup(parts.getIndex(position)), argument});
      llvm::sort(others, llvm::less_first());
      SmallVector<Value> at;
      for (auto [position, argument] : others)
        at.push_back(argument);
      readBlocks(reduce, found.owner, reduced, positions, at);
    }
  }
  parts->erase();
  return found.owner;
}

/// Gives blocks that sum the partial results of many blocks fewer columns each, of which they take
/// more terms at a time, if there are too few of them to occupy the multiprocessors.
static gpu::ScheduleAttr narrowed(StatementShape &shape, gpu::ScheduleAttr tiles) {
  const Value across = shape.compute.getIndex(0);
  std::optional<int64_t> width = shape.upperOf(across);
  if (!width || shape.compute.getNumIndices() > 1 || tiles.getReduce().size() != 1 ||
      tiles.getCluster() != 1)
    return tiles;
  int64_t columns = tiles.getTile()[0], terms = tiles.getReduce()[0];
  const int64_t processors = getTarget(shape.kernel).getProcessors();
  std::optional<int64_t> blocks =
      shape.upperOf(cast<ReduceOp>(shape.reductions.front()).getIndex(0));
  while (columns > columnsOfSector && *width <= columns * processors / 2 && blocks &&
         terms < *blocks) {
    columns /= 2;
    terms *= 2;
  }
  return tiles.withTiles({columns}, {terms});
}

static void planAgain(KernelOp kernel, ComputeOp compute) {
  StatementShape shape = analyzeStatement(kernel, compute);
  PlannedTiles planned = planSchedule(shape, getTarget(kernel), /*coarse=*/true);
  planned.tiles = widenVectors(shape, getTarget(kernel), planned.tiles);
  if (planned.family == gpu::PlanFamily::ColumnReduction)
    planned.tiles = narrowed(shape, planned.tiles);
  planned.writeTo(compute);
}

/// Is `statistics` over rows that the blocks of `owner` have, and read by `owner` alone, a row's
/// values at the row? Its indices are the first ones of `owner`.
static bool areStatisticsOfRows(ComputeOp statistics, ComputeOp owner) {
  const unsigned outer = statistics.getNumIndices();
  if (outer == 0 || owner.getNumIndices() <= outer)
    return false;
  for (unsigned p = 0; p < outer; ++p)
    if (!isSameExtent(statistics.getExtents()[p], owner.getExtents()[p]))
      return false;
  llvm::SetVector<Value> read;
  owner.walk([&](LoadOp load) { read.insert(load.getTensor()); });
  for (Operation *user : statistics->getUsers()) {
    auto load = dyn_cast<LoadOp>(user);
    if (!load || load->getParentOfType<ComputeOp>() != owner ||
        !llvm::equal(load.getIndices(), owner.getBlock()->getArguments().take_front(outer)))
      return false;
  }
  bool areRows = !statistics->use_empty();
  statistics.getBody().walk([&](Operation *op) {
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      areRows &= reduce->getBlock() == statistics.getBlock() &&
                 outer + reduce.getNumIndices() <= owner.getNumIndices();
      for (unsigned n = 0; areRows && n < reduce.getNumIndices(); ++n)
        areRows &= rangesOver(reduce, n, owner.getExtents()[outer + n]);
    } else if (auto load = dyn_cast<LoadOp>(op))
      areRows &= read.contains(load.getTensor());
    else
      areRows &= !isa<ScanOp>(op);
  });
  return areRows;
}

/// Computes statistics of rows in `owner`, which carries columns, rather than in a compute op whose
/// results only `owner` reads: it then reads its rows once for both.
static void takeStatistics(ComputeOp owner) {
  llvm::SetVector<ComputeOp> candidates;
  owner.walk([&](LoadOp load) {
    if (auto source = load.getTensor().getDefiningOp<ComputeOp>())
      if (areStatisticsOfRows(source, owner))
        candidates.insert(source);
  });
  for (ComputeOp statistics : candidates) {
    OpBuilder builder = OpBuilder::atBlockBegin(owner.getBlock());
    IRMapping mapping;
    for (unsigned p = 0; p < statistics.getNumIndices(); ++p)
      mapping.map(statistics.getIndex(p), owner.getIndex(p));
    const unsigned outer = statistics.getNumIndices();
    auto old = gpu::getTiles(owner);
    SmallVector<int64_t> slices;
    for (Operation &op : statistics.getBlock()->without_terminator()) {
      builder.clone(op, mapping);
      if (auto reduce = dyn_cast<ReduceOp>(op))
        llvm::append_range(slices, old.getTile().slice(outer, reduce.getNumIndices()));
    }
    for (Operation *user : llvm::to_vector(statistics->getUsers())) {
      auto load = cast<LoadOp>(user);
      const unsigned result = cast<OpResult>(load.getTensor()).getResultNumber();
      load.getResult().replaceAllUsesWith(
          mapping.lookupOrDefault(statistics.getYield().getValues()[result]));
      load->erase();
    }
    statistics->erase();
    llvm::append_range(slices, old.getReduce());
    gpu::setTiles(owner, old.withTiles(old.getTile(), slices));
  }
}

/// Lets the blocks of `owner` carry what as many of `candidates` compute as there is room for;
/// takes these off the list. Returns how many.
static unsigned carryBeside(KernelOp kernel, ComputeOp owner,
                            SmallVectorImpl<ColumnParts> &candidates, StringRef pass) {
  SmallVector<ColumnParts> taken;
  std::optional<CarriedTiles> tiles;
  int64_t count = 0;
  for (const ColumnParts &parts : candidates) {
    ColumnParts found = parts;
    found.owner = owner;
    if (!matchTerms(found) || !findCounted(found) || !matchReaders(found) ||
        (!taken.empty() && taken.front().counted != found.counted))
      continue;
    StatementShape shape = analyzeStatement(kernel, owner);
    const int64_t more = count + found.parts.getNumResults();
    std::optional<CarriedTiles> all = planCarriedTiles(shape, more, found.counted);
    if (!all || !isWorthIt(shape, found, *all, found.parts.getNumResults()))
      continue;
    taken.push_back(std::move(found));
    tiles = all;
    count = more;
  }
  for (ColumnParts &found : taken) {
    note(found.parts, pass, Verdict::Derived,
         describe(found.parts) + " is accumulated by the blocks of " + describe(owner));
    llvm::SetVector<ComputeOp> readers;
    for (Operation *user : found.parts->getUsers())
      readers.insert(user->getParentOfType<ComputeOp>());
    llvm::erase_if(candidates,
                   [&](const ColumnParts &other) { return other.parts == found.parts; });
    found.owner = owner;
    owner = carry(found, *tiles);
    for (ComputeOp reader : readers)
      planAgain(kernel, reader);
  }
  if (!taken.empty())
    takeStatistics(owner);
  sortByDependence(&kernel.getBody().front());
  return taken.size();
}

unsigned tk::carryColumns(KernelOp kernel, StringRef pass) {
  SmallVector<ColumnParts> candidates;
  SmallVector<ComputeOp> owners;
  for (ComputeOp compute : kernel.getBody().getOps<ComputeOp>()) {
    if (std::optional<ColumnParts> found = matchParts(compute))
      candidates.push_back(*found);
    else if (compute.getNumIndices() > 0)
      owners.push_back(compute);
  }
  unsigned count = 0;
  for (ComputeOp owner : owners)
    if (!candidates.empty())
      count += carryBeside(kernel, owner, candidates, pass);
  return count;
}
