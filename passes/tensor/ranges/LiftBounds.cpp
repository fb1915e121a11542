//===- LiftBounds.cpp - bounds that are loaded for each row ---------------===//
//
// Packed sequences have offsets, `first[i] <= j and j < last[i]`, which tk-restrict-ranges turns
// into bounds of the reduction. The bounds of a tile are then known only once the offsets of its
// rows are loaded, and every main-loop iteration needs masks. This part of tk-bound-masks reverses
// that:
//
// 1. It matches fused attention loops with a running maximum and a bound that is loaded at the row.
// 2. The loaded bound becomes a mask of the scores again. Other bounds stay.
// 3. The ranges of that mask follow from the least and the greatest bound of a group of rows. No
//    compute op needs to visit the elements (BoundMasks.cpp).
//
//   tk.reduce ["j"] from (max(0, %first[i])) to (min(%T, i + 1)) {.. %s(j) ..}
//     =>
//   tk.reduce ["j"] from (0) to (min(%T, i + 1)) {.. select(j >= %first[i], %s(j), -inf) ..}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/ranges/ChainMasks.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tk;

namespace {

/// A bound: the greatest, or the least, of what is loaded for each row and of what is not.
struct Bound {
  SmallVector<Value> loaded, others;
};

} // namespace

/// Is `value` computed from what is loaded at the row?
static bool isLoadedAtRow(Value value, ChainMask &mask) {
  Dependence onRow(ValueRange{mask.getRow()});
  return llvm::any_of(getSlice(value, mask.compute.getBlock()),
                      [&](Operation *op) { return isa<LoadOp>(op) && onRow.on(op->getResult(0)); });
}

/// Takes the nested extremes that `value` is apart.
template <typename Extreme> static void takeApart(Value value, ChainMask &mask, Bound &bound) {
  auto extreme = value.getDefiningOp<Extreme>();
  if (extreme && extreme->getBlock() == mask.compute.getBlock()) {
    takeApart<Extreme>(extreme.getLhs(), mask, bound);
    takeApart<Extreme>(extreme.getRhs(), mask, bound);
    return;
  }
  (isLoadedAtRow(value, mask) ? bound.loaded : bound.others).push_back(value);
}

template <typename Extreme>
static Value putTogether(OpBuilder &builder, Location loc, ArrayRef<Value> values) {
  Value result;
  for (Value value : values)
    result = result ? Extreme::create(builder, loc, result, value).getResult() : value;
  return result;
}

std::optional<LoadedBounds> tk::liftBounds(KernelOp kernel, ComputeOp compute, ReduceOp reduce,
                                           int64_t size) {
  if (!reduce.isOnline() || reduce.getNumIndices() != 1 || reduce->getParentOp() != compute)
    return std::nullopt;
  SmallVector<Value> scores = findScores(reduce);
  // Beside another mask ranges in which all terms are taken are not known.
  if (scores.empty() || areMasked(scores))
    return std::nullopt;
  LoadedBounds bounds = {{kernel, compute, reduce, {}, {}, {}, {}}, {}, {}};
  ChainMask &mask = bounds.mask;
  mask.extent = wholeExtent(reduce, 0, compute);
  Value from = reduce.getLower()[0], to = reduce.getUpper()[0];
  if (!mask.extent || !isKernelLevel(mask.extent, compute) || !findIndices(mask, {from, to}) ||
      !mask.row)
    return std::nullopt;
  Bound lower, upper;
  takeApart<arith::MaxSIOp>(from, mask, lower);
  takeApart<arith::MinSIOp>(to, mask, upper);
  SmallVector<Value> loaded(lower.loaded);
  llvm::append_range(loaded, upper.loaded);
  GroupTruth truth(mask, size);
  if (llvm::any_of(loaded, [&](Value bound) { return !truth.isBounded(bound); }))
    return std::nullopt;
  if (loaded.empty() || lower.others.empty() || upper.others.empty() || !canMove(mask, loaded))
    return std::nullopt;

  OpBuilder builder(reduce);
  Location loc = reduce.getLoc();
  bounds.lower = putTogether<arith::MaxSIOp>(builder, loc, lower.loaded);
  bounds.upper = putTogether<arith::MinSIOp>(builder, loc, upper.loaded);
  reduce.getLowerMutable()[0].set(putTogether<arith::MaxSIOp>(builder, loc, lower.others));
  reduce.getUpperMutable()[0].set(putTogether<arith::MinSIOp>(builder, loc, upper.others));
  OpBuilder body = OpBuilder::atBlockBegin(reduce.getBlock());
  auto compare = [&](arith::CmpIPredicate predicate, Value bound) {
    Value test = arith::CmpIOp::create(body, loc, predicate, mask.getTerm(), bound);
    mask.holds = mask.holds ? arith::AndIOp::create(body, loc, mask.holds, test).getResult() : test;
  };
  if (bounds.lower)
    compare(arith::CmpIPredicate::sge, bounds.lower);
  if (bounds.upper)
    compare(arith::CmpIPredicate::slt, bounds.upper);
  maskScores(reduce, scores, mask.holds);
  eraseDead(compute);
  return bounds;
}
