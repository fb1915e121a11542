//===- BoundMasks.cpp - ranges of masks that read tensors -----------------===//
//
// Packed sequences have a mask such as `document[i] == document[j]`. The mask bounds no loop, so
// each row `i` would visit every key `j`. Yet for a group of 64 rows the mask is false outside one
// range of keys, and it may be true throughout a second, inner range. This pass computes both
// ranges before the loop.
//
// 1. Pattern `loaded-bounds`: loop bounds that are loaded for each row, such as the offsets of
//    packed sequences, become a mask with known ranges (LiftBounds.cpp).
// 2. Pattern `block-lists`: a mask that reads a table of blocks becomes a list of the blocks that
//    each group of rows sees (ListBlocks.cpp).
// 3. Pattern `row-groups` takes the other masks of fused attention loops that read tensors. For
//    each group it reduces each row value that the mask compares to its minimum and its maximum. A
//    value that is loaded at `i / n` and shared by the whole group needs no reduction.
// 4. Two conditions on a key follow: the mask holds for some row, and the mask holds for all rows.
// 5. A new compute op tests both conditions for all keys of each group. It stores the range of keys
//    that some row sees, and the range of keys that all rows see. The second range is empty if
//    those keys are not contiguous.
// 6. Both ranges travel with the mask (MaskRanges.h). tk-tile limits the loop to the first range,
//    and leaves the mask out inside the second (BlockRanges.cpp).
//
// The pass declines a mask that compares anything but integers of a row with integers of a key. It
// also declines loops with fewer than about 2^24 scores, because the extra launch would cost more.
//
//   %o = tk.compute ["i", "e"] {
//     .. select(%document[i] == %document[j], %s, -inf) ..}
//     =>
//   %begin, %end, %all, %behind = tk.compute ["i.group"] {
//     %least = min of %document[i], %greatest = max of %document[i] for i in the group
//     %some(j) = %least <= %document[j] <= %greatest
//     %every(j) = %least == %document[j] == %greatest
//     min of j where %some(j), max of j + 1 where %some(j), .. }
//   %o = tk.compute ["i", "e"] {
//     .. select(%all[i / 64] <= j < %behind[i / 64] or
//               %begin[i / 64] <= j < %end[i / 64] and %document[i] == %document[j], %s, -inf) ..}
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/machine/limits/Operands.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/MaskRanges.h"
#include "passes/analysis/Notes.h"
#include "passes/tensor/ranges/ChainMasks.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tk {
#define GEN_PASS_DEF_BOUNDMASKS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

using namespace limits::bound_masks;

/// The least, the greatest, or the number, of the terms for which the mask is true for some, or
/// for all, of a group's rows; `none` if there are none.
static Value findTerms(OpBuilder &body, ChainMask &mask, GroupTruth &truth, ReduceKind kind,
                       bool forAll, Value none) {
  Location loc = mask.holds.getLoc();
  Type i32 = body.getI32Type();
  auto createTerm = [&](OpBuilder &term, Location, ValueRange indices) -> Value {
    Truth known = truth.at(term, indices[0], mask.holds);
    Value taken = arith::ConstantOp::create(term, loc, term.getI32IntegerAttr(1));
    if (kind != ReduceKind::Sum) {
      Value at = arith::IndexCastOp::create(term, loc, i32, indices[0]);
      taken =
          kind == ReduceKind::Min ? at : arith::AddIOp::create(term, loc, at, taken).getResult();
    }
    return arith::SelectOp::create(term, loc, forAll ? known.every : known.some, taken, none);
  };
  Value first = arith::ConstantIndexOp::create(body, loc, 0);
  auto name = cast<StringAttr>(mask.reduce.getIndexNames()[0]).getValue();
  return ReduceOp::create(body, loc, kind, ArrayRef<StringRef>{name}, first, mask.extent, i32,
                          createTerm)
      .getResult(0);
}

/// The statement that finds the ranges: results are where the mask begins to hold, where it ends,
/// and the same for all rows of a group.
static ComputeOp createStatement(ChainMask &mask) {
  GroupTruth truth(mask, rowsOfGroup);
  auto createValues = [&](OpBuilder &body, ValueRange places) -> SmallVector<Value> {
    Location loc = mask.holds.getLoc();
    truth.begin(body, loc, places);
    Value extent = arith::IndexCastOp::create(body, loc, body.getI32Type(), mask.extent);
    Value zero = arith::ConstantOp::create(body, loc, body.getI32IntegerAttr(0));
    Value begin = findTerms(body, mask, truth, ReduceKind::Min, false, extent);
    Value end = findTerms(body, mask, truth, ReduceKind::Max, false, zero);
    Value all = findTerms(body, mask, truth, ReduceKind::Min, true, extent);
    Value behind = findTerms(body, mask, truth, ReduceKind::Max, true, zero);
    Value count = findTerms(body, mask, truth, ReduceKind::Sum, true, zero);
    // As many as there are places between the first and the last: all of them.
    Value length = arith::SubIOp::create(body, loc, behind, all);
    Value isRange = arith::CmpIOp::create(body, loc, arith::CmpIPredicate::eq, length, count);
    behind = arith::SelectOp::create(body, loc, isRange, behind, all);
    return {begin, end, all, behind};
  };
  return createOverGroups(mask, rowsOfGroup, std::nullopt, {"begin", "end", "all", "behind"},
                          createValues);
}

/// The same for bounds that are loaded at rows: ranges follow from the rows' extremes.
static ComputeOp createStatement(LoadedBounds &bounds) {
  GroupTruth truth(bounds.mask, rowsOfGroup);
  auto createValues = [&](OpBuilder &body, ValueRange places) -> SmallVector<Value> {
    Location loc = bounds.mask.holds.getLoc();
    truth.begin(body, loc, places);
    Value zero = arith::ConstantIndexOp::create(body, loc, 0), extent = bounds.mask.extent;
    // What lies outside the extent may not have as many bits.
    auto within = [&](Value bound) -> Value {
      bound = arith::MaxSIOp::create(body, loc, bound, zero);
      bound = arith::MinSIOp::create(body, loc, bound, extent);
      return arith::IndexCastOp::create(body, loc, body.getI32Type(), bound);
    };
    auto extremesOf = [&](Value bound, Value none) {
      GroupTruth::Interval same = {none, none};
      GroupTruth::Interval known = bound ? truth.bound(body, bound) : same;
      return std::pair(within(known.least), within(known.greatest));
    };
    auto [begin, all] = extremesOf(bounds.lower, zero);
    auto [behind, end] = extremesOf(bounds.upper, extent);
    return {begin, end, all, behind};
  };
  return createOverGroups(bounds.mask, rowsOfGroup, std::nullopt, {"begin", "end", "all", "behind"},
                          createValues);
}

/// Has a statement of its own find where the mask holds.
static void boundMask(ChainMask &mask, ComputeOp statement) {
  eraseDead(statement);
  OpBuilder builder(mask.reduce);
  Location loc = mask.holds.getLoc();
  SmallVector<Value> at = createGroupIndices(builder, mask, rowsOfGroup);
  SmallVector<Value> bounds;
  for (Value result : statement.getResults()) {
    Value bound = LoadOp::create(builder, loc, result, at, Value());
    bounds.push_back(arith::IndexCastOp::create(builder, loc, builder.getIndexType(), bound));
  }
  OpBuilder after(mask.holds.getContext());
  after.setInsertionPointAfterValue(mask.holds);
  Value known = createMask(
      after, loc, {mask.getTerm(), mask.holds, bounds[0], bounds[1], bounds[2], bounds[3]});
  for (Operation *user : llvm::make_early_inc_range(mask.holds.getUsers()))
    if (isa<arith::SelectOp>(user))
      user->replaceUsesOfWith(mask.holds, known);
  note(mask.reduce, boundMasksName, Verdict::Derived,
       "a statement of its own finds the range of the mask of the " + describe(mask.reduce) +
           (mask.row ? ", for each " + Twine(rowsOfGroup) + " rows" : Twine()) +
           "; elements outside are skipped");
}

namespace {

struct BoundMasks : tk::impl::BoundMasksBase<BoundMasks> {
  using BoundMasksBase::BoundMasksBase;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    if (!getOperation()->hasAttr(gpu::targetAttrName))
      return;
    computes.clear();
    bounded.clear();
    getOperation()->walk([&](KernelOp kernel) {
      llvm::append_range(computes, kernel.getBody().getOps<ComputeOp>());
    });
    patterns.run("loaded-bounds", [&] {
      for (ComputeOp compute : computes)
        liftLoadedBounds(compute);
    });
    patterns.run("block-lists", [&] {
      llvm::erase_if(computes, [&](ComputeOp compute) { return listBlocksOf(compute); });
    });
    patterns.run("row-groups", [&] {
      for (ComputeOp compute : computes)
        boundRowGroups(compute);
    });
  }

private:
  SmallVector<ReduceOp> reductionsOf(ComputeOp compute) {
    auto isLeft = [&](ReduceOp reduce) { return !bounded.contains(reduce); };
    return llvm::to_vector(llvm::make_filter_range(compute.getBlock()->getOps<ReduceOp>(), isLeft));
  }

  void liftLoadedBounds(ComputeOp compute) {
    auto kernel = compute->getParentOfType<KernelOp>();
    for (ReduceOp reduce : reductionsOf(compute))
      if (std::optional<LoadedBounds> bounds = liftBounds(kernel, compute, reduce, rowsOfGroup)) {
        boundMask(bounds->mask, createStatement(*bounds));
        bounded.insert(bounds->mask.reduce);
        ++numBounded;
      }
  }

  /// Returns true if another compute op is in the place of this one.
  bool listBlocksOf(ComputeOp compute) {
    auto kernel = compute->getParentOfType<KernelOp>();
    for (ReduceOp reduce : reductionsOf(compute)) {
      std::optional<ChainMask> mask = matchChainMask(kernel, compute, reduce);
      if (mask && listBlocks(*mask)) {
        ++numListed;
        return true;
      }
    }
    return false;
  }

  void boundRowGroups(ComputeOp compute) {
    auto kernel = compute->getParentOfType<KernelOp>();
    for (ReduceOp reduce : reductionsOf(compute)) {
      std::optional<ChainMask> mask = matchChainMask(kernel, compute, reduce);
      if (!mask)
        continue;
      if (GroupTruth(*mask, rowsOfGroup).isKnown(mask->holds) && canMove(*mask, mask->holds)) {
        boundMask(*mask, createStatement(*mask));
        ++numBounded;
        continue;
      }
      note(reduce, boundMasksName, Verdict::Declined,
           "the range of the mask of the " + describe(reduce) +
               " is not found: the mask does not compare integers of a row with integers of an "
               "element");
    }
  }

  SmallVector<ComputeOp> computes; ///< those that no other compute op replaced
  llvm::SmallPtrSet<Operation *, 4> bounded;
};

} // namespace
