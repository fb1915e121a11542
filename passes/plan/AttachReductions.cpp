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
// 3. The old reduction combines the partial values. Plan its compute op again.
// 4. Pattern `carried-columns`: a column reduction of a tensor that another compute op reads as
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

/// Rows of a fragment of a product, which the threads of one warp have.
static constexpr int64_t rowsOfPart = 16;

/// Has the stored result's statement, which multiplies matrices, tiles that hold several values of
/// what is reduced, each computed at once?
static bool isTiledProduct(KernelOp kernel, const StoredReduction &found) {
  auto producer = found.stored.getDefiningOp<ComputeOp>();
  auto schedule = gpu::getTiles(producer);
  constexpr int64_t leastTile = 16; // below, there is as much to store again as there is to read
  if (!schedule || !schedule.getStep().empty() || gpu::getPlan(producer).mergedRows ||
      getTileReduction(producer, found.stored.getResultNumber()))
    return false;
  int64_t values = 1;
  for (unsigned index : found.reduced) {
    if (schedule.getLoop() == index)
      return false;
    values *= schedule.getTile()[index];
  }
  return values >= leastTile && !analyzeStatement(kernel, producer).contractions.empty();
}

/// Puts the terms into the stored result's statement, and what is left into the reduction.
static void attach(const StoredReduction &found) {
  ReduceOp reduce = found.reduce;
  auto producer = found.stored.getDefiningOp<ComputeOp>();
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
  // The statement is made anew with each result that it gets.
  const unsigned stored = found.stored.getResultNumber();
  const StringRef storedName = cast<StringAttr>(producer.getNames()[stored]).getValue();
  SmallVector<Value> terms;
  for (Value term : reduce.getYield().getValues())
    terms.push_back(mapping.lookupOrDefault(term));
  const SmallVector<unsigned> positions = producer.getIndicesOf(stored);
  const SmallVector<StringRef> names(found.reduced.size(), "tile");
  OpBuilder builder(reduce);
  const SmallVector<Value> zeros(found.reduced.size(),
                                 arith::ConstantIndexOp::create(builder, reduce.getLoc(), 0));
  for (auto [k, term] : llvm::enumerate(terms)) {
    const std::string name = (storedName + "_" + stringifyReduceKind(reduce.getKind(k))).str();
    SmallVector<int64_t> tile(gpu::getTiles(producer).getTile());
    const std::optional<unsigned> rows = rowsOfTile(producer, tile);
    SmallVector<int64_t> sizes;
    for (unsigned index : found.reduced)
      sizes.push_back(index == rows ? std::min(tile[index], rowsOfPart) : tile[index]);
    producer = addTileReduction(
        producer, {term, positions, found.reduced, sizes, reduce.getKind(k), Value()}, name);
    auto rest = ReduceOp::create(
        builder, reduce.getLoc(), reduce.getKind(k), names, zeros,
        producer.getExtents().take_back(names.size()), reduce.getResult(k).getType(),
        [&](OpBuilder &inner, Location loc, ValueRange indices) {
          SmallVector<Value> at;
          size_t other = 0, counted = 0;
          for (unsigned index : positions)
            at.push_back(llvm::is_contained(found.reduced, index) ? indices[counted++]
                                                                  : found.readerArgs[other++]);
          return LoadOp::create(inner, loc, producer.getResults().back(), at, Value()).getResult();
        });
    reduce.getResult(k).replaceAllUsesWith(rest.getResult(0));
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
    SmallVector<StoredReduction, 0> attachments;
    for (ReduceOp reduce : reader.getBlock()->getOps<ReduceOp>())
      if (std::optional<StoredReduction> found = matchStoredReduction(reduce);
          found && isTiledProduct(kernel, *found) && readsForReductionsOnly(reader, found->stored))
        attachments.push_back(*found);
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
