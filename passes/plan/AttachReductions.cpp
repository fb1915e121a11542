//===- AttachReductions.cpp - reductions in a product's epilogue ----------===//
//
// A kernel may store a matrix product and then reduce it, for example to the sum of squares of each
// row. Reading the product again costs as much as storing it. The tiles are in registers in the
// product's epilogue, so this pass begins the reduction there.
//
// 1. Find a reduction over some indices of a stored product: along its rows, down its columns, or
//    over all of it. Its elements must depend on the product's element and on parameters only.
// 2. Pattern `partial-results`: give the product's compute op one more result, with one partial
//    value for each tile along the reduced indices. Down the rows of a tile there is one value for
//    each 16 rows, the rows of an MMA fragment. Warps finish at different times, and so need no
//    barrier.
// 3. The place of an extremum (`argmax`, `argmin`) has two results: the extremum of each tile, and
//    the first place in the tile where it stands.
// 4. The old reduction combines the partial values. The first tile that has the extremum of all
//    says the place. Plan the compute op of the reduction again.
// 5. Pattern `carried-columns`: a column reduction of a tensor that another compute op reads as
//    well is carried by the blocks of that op (CarryColumns.cpp).
//
// The pass declines if the reduction's compute op needs the product otherwise, because the row is
// then loaded anyway. It also declines if a tile has fewer than 16 values to reduce.
//
//   %y = tk.compute ["m", "n"] in (%M, %N) { product }      // tiles of 128 x 256
//   %s = tk.compute ["m"] in (%M) { reduce <sum> ["n"] from 0 to %N { %y[m, n] * %y[m, n] } }
//     =>
//   %y, %p = tk.compute ["m", "n", "tiles"] in (%M, %N, ceil(%N / 256)) { product, product^2 }
//   %s = tk.compute ["m"] in (%M) { reduce <sum> ["t"] from 0 to ceil(%N / 256) { %p[m, t] } }
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/StoredReductions.h"
#include "passes/analysis/TileReductions.h"
#include "passes/machine/limits/Rows.h"
#include "passes/plan/CarryColumns.h"
#include "passes/plan/MergeIndices.h"
#include "passes/plan/StatementShape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tk {
#define GEN_PASS_DEF_ATTACHREDUCTIONS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

using namespace limits::attach_reductions;

/// Has the stored result's statement, which multiplies matrices, tiles that hold several values of
/// what is reduced, each computed at once?
static bool isTiledProduct(KernelOp kernel, const StoredReduction &found) {
  auto producer = found.stored.getDefiningOp<ComputeOp>();
  auto schedule = gpu::getTiles(producer);
  constexpr int64_t leastTile = 16; // below, there is as much to store again as there is to read
  // Columns that a product leaves to its next tile are none where the plan is made anew.
  const bool hasSteps = schedule && !schedule.getStep().empty() &&
                        gpu::getPlan(producer).family != gpu::PlanFamily::Gemm;
  if (!schedule || hasSteps || gpu::getPlan(producer).mergedRows ||
      getTileReduction(producer, found.stored.getResultNumber()))
    return false;
  int64_t values = 1;
  for (unsigned index : found.reduced) {
    if (schedule.getLoop() == index)
      return false;
    values *= schedule.getTile()[index];
  }
  return values >= leastTile && (gpu::getPlan(producer).family == gpu::PlanFamily::Pairwise ||
                                 !analyzeStatement(kernel, producer).contractions.empty());
}

/// Clones the terms of the reduction into the statement of the stored result.
static SmallVector<Value> cloneTerms(const StoredReduction &found, ComputeOp producer) {
  ReduceOp reduce = found.reduce;
  YieldOp yield = producer.getYield();
  OpBuilder body(yield);
  IRMapping mapping;
  for (auto [argument, position] : llvm::zip_equal(found.ownArgs, found.reduced))
    mapping.map(argument, producer.getIndex(position));
  for (auto [argument, position] : llvm::zip_equal(found.readerArgs, found.others))
    mapping.map(argument, producer.getIndex(position));
  for (Operation &op : reduce.getBlock()->without_terminator()) {
    auto load = dyn_cast<LoadOp>(op);
    if (load && load.getTensor() == found.stored)
      mapping.map(load.getResult(), yield.getValues()[found.stored.getResultNumber()]);
    else
      body.clone(op, mapping);
  }
  return llvm::map_to_vector(reduce.getYield().getValues(),
                             [&](Value term) { return mapping.lookupOrDefault(term); });
}

/// Where the reader finds the partial values: at its own indices, and at `tiles` of the reduced
/// ones.
static SmallVector<Value> placesOfParts(const StoredReduction &found, ArrayRef<unsigned> positions,
                                        ValueRange tiles) {
  SmallVector<Value> at;
  size_t other = 0, counted = 0;
  for (unsigned index : positions)
    at.push_back(llvm::is_contained(found.reduced, index) ? tiles[counted++]
                                                          : found.readerArgs[other++]);
  return at;
}

/// Puts the places of each tile's extremum behind the extrema, its last result, and reads them
/// where the reader's `tile` is the first one that has the extremum.
static void attachPlaces(const StoredReduction &found, ComputeOp producer, AddedReduction added,
                         StringRef name, Value tile) {
  ReduceOp reduce = found.reduce;
  OpBuilder body(producer.getYield()), builder(reduce);
  const Location loc = reduce.getLoc();
  added.value = arith::IndexCastOp::create(body, loc, reduce.getResult(0).getType(),
                                           producer.getIndex(found.reduced.front()));
  producer = addTileReduction(producer, added, name);
  Value number = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), tile);
  Value place = LoadOp::create(builder, loc, producer.getResults().back(),
                               placesOfParts(found, added.positions, number), Value());
  reduce.getResult(0).replaceAllUsesWith(place);
}

/// The result of `producer` that is `added` already; null if there is none.
static Value findPartial(ComputeOp producer, const AddedReduction &added) {
  for (OpResult result : producer->getResults()) {
    const unsigned r = result.getResultNumber();
    std::optional<TileReduction> known = getTileReduction(producer, r);
    if (!known || known->kind != added.kind || known->isCarried ||
        producer.getYield().getValues()[r] != added.value ||
        known->axes.size() != added.reduced.size())
      continue;
    if (llvm::all_of(llvm::zip_equal(known->axes, added.reduced, added.sizes), [](auto entry) {
          auto [axis, index, size] = entry;
          return axis.index == index && axis.size == size;
        }))
      return result;
  }
  return {};
}

/// Puts the terms into the stored result's statement, and what is left into the reduction.
static void attach(const StoredReduction &found) {
  ReduceOp reduce = found.reduce;
  auto producer = found.stored.getDefiningOp<ComputeOp>();
  const SmallVector<Value> terms = cloneTerms(found, producer);
  // The statement is made anew with each result that it gets.
  const unsigned stored = found.stored.getResultNumber();
  const StringRef storedName = cast<StringAttr>(producer.getNames()[stored]).getValue();
  const SmallVector<unsigned> positions = producer.getIndicesOf(stored);
  const SmallVector<StringRef> names(found.reduced.size(), "tile");
  OpBuilder builder(reduce);
  const SmallVector<Value> zeros(found.reduced.size(),
                                 arith::ConstantIndexOp::create(builder, reduce.getLoc(), 0));
  for (auto [k, term] : llvm::enumerate(terms)) {
    const ReduceKind kind = reduce.getKind(k);
    const ReduceKind partial = kind == ReduceKind::ArgMax   ? ReduceKind::Max
                               : kind == ReduceKind::ArgMin ? ReduceKind::Min
                                                            : kind;
    const std::string name = (storedName + "_" + stringifyReduceKind(partial)).str();
    SmallVector<int64_t> tile(gpu::getTiles(producer).getTile());
    const std::optional<unsigned> rows = rowsOfTile(producer, tile);
    SmallVector<int64_t> sizes;
    for (unsigned index : found.reduced)
      sizes.push_back(index == rows && !isArgReduction(kind) ? std::min(tile[index], rowsOfPart)
                                                             : tile[index]);
    AddedReduction added{term, positions, found.reduced, sizes, partial, Value()};
    // A place stands behind the extrema that it is of.
    Value extrema = isArgReduction(kind) ? Value() : findPartial(producer, added);
    if (!extrema) {
      producer = addTileReduction(producer, added, name);
      extrema = producer.getResults().back();
    }
    const unsigned number = cast<OpResult>(extrema).getResultNumber();
    SmallVector<Value> counts;
    const std::optional<TileReduction> partials = getTileReduction(producer, number);
    for (const TileReduction::Axis &axis : partials->axes)
      counts.push_back(producer.getExtents()[axis.counter]);
    auto rest = ReduceOp::create(
        builder, reduce.getLoc(), kind, names, zeros, counts, reduce.getResult(k).getType(),
        [&](OpBuilder &inner, Location loc, ValueRange tiles) {
          return LoadOp::create(inner, loc, extrema, placesOfParts(found, positions, tiles),
                                Value())
              .getResult();
        });
    if (!isArgReduction(kind)) {
      reduce.getResult(k).replaceAllUsesWith(rest.getResult(0));
      continue;
    }
    added.kind = kind;
    attachPlaces(found, producer, added, (storedName + "_" + stringifyReduceKind(kind)).str(),
                 rest.getResult(0));
  }
  reduce->erase();
}

namespace {

struct AttachReductions : tk::impl::AttachReductionsBase<AttachReductions> {
  using AttachReductionsBase::AttachReductionsBase;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    auto kernels = [&] { return getOperation().getOps<KernelOp>(); };
    patterns.run("partial-results", [&] {
      for (KernelOp kernel : kernels())
        for (ComputeOp reader : llvm::to_vector(kernel.getBody().getOps<ComputeOp>()))
          attachReductionsOf(kernel, reader);
      for (KernelOp kernel : kernels())
        for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>()))
          dropUnusedResults(compute);
    });
    patterns.run("carried-columns", [&] {
      for (KernelOp kernel : kernels())
        if (getOperation()->hasAttr(gpu::targetAttrName))
          numAttached += carryColumns(kernel, getArgument());
    });
  }

private:
  void attachReductionsOf(KernelOp kernel, ComputeOp reader) {
    auto schedule = gpu::getTiles(reader);
    if (!schedule)
      return;
    // Extrema that are read by themselves, too, are those of the places, which come first.
    SmallVector<StoredReduction, 0> attachments, plain;
    for (ReduceOp reduce : reader.getBlock()->getOps<ReduceOp>())
      if (std::optional<StoredReduction> found = matchStoredReduction(reduce);
          found && isTiledProduct(kernel, *found) && readsForReductionsOnly(reader, found->stored))
        (isArgReduction(reduce.getKind(0)) ? attachments : plain).push_back(*found);
    llvm::append_range(attachments, plain);
    if (attachments.empty())
      return;
    StatementShape shape = analyzeStatement(kernel, reader);
    const bool coarse = schedule != planSchedule(shape, getTarget(kernel), false).tiles;
    // The statement that stores a result is made anew with each reduction that is attached to it.
    for (const StoredReduction &attachment : attachments)
      if (std::optional<StoredReduction> now = matchStoredReduction(attachment.reduce)) {
        note(reader, getArgument(), Verdict::Derived,
             describe(now->reduce) + " begins in the epilogue of " +
                 describe(now->stored.getDefiningOp<ComputeOp>()));
        attach(*now);
        ++numAttached;
      }
    shape = analyzeStatement(kernel, reader);
    PlannedTiles planned = planSchedule(shape, getTarget(kernel), coarse);
    planned.tiles = widenVectors(shape, getTarget(kernel), planned.tiles);
    planned.writeTo(reader);
  }
};

} // namespace
