//===- FormScans.cpp - sums up to an index are scans ----------------------===//
//
// A reduction over a range that ends at an index of its statement, with terms that do not depend on
// that index, is computed again for each value of the index. A scan computes all of them in one
// pass.
//
// 1. Take plain sums, products, maxima and minima of a statement's index `i`, which no term depends
//    on: over `0 .. i`, `0 .. i + 1`, and, on a GPU, `i .. n` and `i + 1 .. n`, where `n` is the
//    extent of `i`.
// 2. The range with `i` is the scan at `i`, or the one from the end, at `n - 1 - i`.
// 3. The range without `i` is that of the terms before each element, of which the first one is the
//    identity. Likewise a scan at `i - 1`.
// 4. A statement whose blocks step through the scanned index goes in one direction: scans of the
//    other one are left as they are.
//
//   %y = tk.compute ["r", "i"] {tk.reduce [sum] ["j"] from (0) to (%i + 1) {x[r, j]}}
//   %z = tk.compute ["r", "i"] {tk.reduce [sum] ["j"] from (%i) to (%C) {x[r, j]}}
//     =>
//   %y = tk.compute ["r", "i"] {tk.scan sum "j" from 0 to %C at %i {x[r, j]}}
//   %z = tk.compute ["r", "i"] {tk.scan sum "j" from 0 to %C at %C - 1 - %i {x[r, %C - 1 - j]}}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/normalize/Simplify.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/ScanDecays.h"
#include "passes/analysis/ScanPosition.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tk;

namespace {
/// A range that an index of the statement bounds.
struct IndexRange {
  BlockArgument index;
  bool isIncluded = false, isBackward = false;
};
} // namespace

/// `value` as an index of `compute`, or as the one behind it.
static std::optional<IndexRange> matchBound(Value value, ComputeOp compute) {
  auto asIndex = [&](Value v) {
    auto index = dyn_cast<BlockArgument>(v);
    return index && index.getOwner() == compute.getBlock() ? index : BlockArgument();
  };
  if (BlockArgument index = asIndex(value))
    return IndexRange{index, false};
  auto add = value.getDefiningOp<arith::AddIOp>();
  for (unsigned side : {0, 1})
    if (BlockArgument index = add ? asIndex(add->getOperand(side)) : BlockArgument())
      if (isConstantIntValue(add->getOperand(1 - side), 1))
        return IndexRange{index, true};
  return std::nullopt;
}

static Value extentOf(BlockArgument index, ComputeOp compute) {
  return compute.getExtents()[index.getArgNumber()];
}

/// The same of an end, which may be limited to the index's own extent.
static std::optional<IndexRange> matchEnd(Value value, ComputeOp compute) {
  auto least = value.getDefiningOp<arith::MinSIOp>();
  if (!least)
    return matchBound(value, compute);
  for (unsigned side : {0, 1})
    if (std::optional<IndexRange> range = matchBound(least->getOperand(side), compute))
      if (isSameExtent(least->getOperand(1 - side), extentOf(range->index, compute)))
        return range;
  return std::nullopt;
}

static std::optional<IndexRange> matchRange(ReduceOp reduce, ComputeOp compute) {
  Value lower = reduce.getLower()[0], upper = reduce.getUpper()[0];
  if (isConstantIntValue(lower, 0))
    return matchEnd(upper, compute);
  // An index is not negative.
  if (auto most = lower.getDefiningOp<arith::MaxSIOp>();
      most && isConstantIntValue(most.getRhs(), 0))
    lower = most.getLhs();
  std::optional<IndexRange> range = matchBound(lower, compute);
  auto module = compute->getParentOfType<ModuleOp>();
  if (!range || !module->hasAttr(gpu::targetAttrName) ||
      !isSameExtent(upper, extentOf(range->index, compute)))
    return std::nullopt;
  return IndexRange{range->index, !range->isIncluded, true};
}

/// Does a statement multiply matrices? Its blocks have tiles, not rows.
static bool multipliesMatrices(ComputeOp compute) {
  return compute
      .walk([](ReduceOp reduce) {
        return isContraction(reduce) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Does the statement scan along `index` in the other direction?
static bool scansOtherwise(ComputeOp compute, const IndexRange &range) {
  return llvm::any_of(compute.getBlock()->getOps<ScanOp>(), [&](ScanOp scan) {
    std::optional<IndexOrMirror> position = getScanPosition(scan, compute);
    return position && position->index == range.index && position->isMirrored != range.isBackward;
  });
}

/// The term at `place`, or the one before it, of which the first is the identity of `kind`.
static Value createTerm(OpBuilder &builder, Location loc, Value place, bool isIncluded,
                        ReduceKind kind, Type type, llvm::function_ref<Value(Value)> termAt) {
  if (isIncluded)
    return termAt(place);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value before = arith::SubIOp::create(builder, loc, place, one);
  Value earlier = termAt(arith::MaxSIOp::create(builder, loc, before, zero));
  Value isLater = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, place, zero);
  Value identity = createIdentity(builder, loc, kind, type);
  return arith::SelectOp::create(builder, loc, isLater, earlier, identity);
}

bool tk::formScan(ReduceOp reduce) {
  auto compute = dyn_cast<ComputeOp>(reduce->getParentOp());
  if (!compute || reduce.isOnline() || reduce.getNumIndices() != 1 ||
      reduce.getPrecision() != Precision::Default)
    return false;
  const ReduceKind kind = reduce.getKind(0);
  if (!llvm::is_contained({ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Max, ReduceKind::Min},
                          kind))
    return false;
  std::optional<IndexRange> range = matchRange(reduce, compute);
  Value term = reduce.getYield().getValues()[0];
  if (!range || Dependence(ValueRange{range->index}).on(term) ||
      llvm::any_of(*reduce.getBlock(), [](Operation &op) { return op.getNumRegions() > 0; }) ||
      multipliesMatrices(compute) || scansOtherwise(compute, *range))
    return false;
  OpBuilder builder(reduce);
  Location loc = reduce.getLoc();
  Value extent = extentOf(range->index, compute), position = range->index, last;
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  if (range->isBackward) {
    Value one = arith::ConstantIndexOp::create(builder, loc, 1);
    last = builder.createOrFold<arith::SubIOp>(loc, extent, one);
    position = arith::SubIOp::create(builder, loc, last, range->index);
  }
  auto scan = ScanOp::create(
      builder, loc, kind, cast<StringAttr>(reduce.getIndexNames()[0]).getValue(), zero, extent,
      position, reduce.getResult(0).getType(),
      [&](OpBuilder &inner, Location, ValueRange indices) -> Value {
        return createTerm(inner, loc, indices.front(), range->isIncluded, kind, term.getType(),
                          [&](Value place) {
                            if (range->isBackward)
                              place = arith::SubIOp::create(inner, loc, last, place);
                            IRMapping mapping;
                            mapping.map(reduce.getIndex(0), place);
                            return cloneSlice(inner, term, reduce.getBlock(), mapping);
                          });
      });
  reduce.getResult(0).replaceAllUsesWith(scan.getResult());
  reduce.erase();
  return true;
}

bool tk::shiftScan(ScanOp scan) {
  auto compute = dyn_cast<ComputeOp>(scan->getParentOp());
  auto before = scan.getPosition().getDefiningOp<arith::AddIOp>();
  auto less = scan.getPosition().getDefiningOp<arith::SubIOp>();
  const bool isBefore = (before && isConstantIntValue(before.getRhs(), -1)) ||
                        (less && isConstantIntValue(less.getRhs(), 1));
  if (!compute || !isBefore || hasDecays(scan) || !isConstantIntValue(scan.getLower(), 0))
    return false;
  Value place = scan.getPosition().getDefiningOp()->getOperand(0);
  std::optional<IndexOrMirror> position = matchIndexOrMirror(place, scan.getUpper(), compute);
  if (!position || !isSameExtent(scan.getUpper(), extentOf(position->index, compute)) ||
      llvm::any_of(*scan.getBlock(), [](Operation &op) { return op.getNumRegions() > 0; }))
    return false;
  OpBuilder builder(scan);
  Location loc = scan.getLoc();
  Value term = scan.getYield().getValues()[0];
  auto shifted = ScanOp::create(
      builder, loc, scan.getKind(), scan.getIndexName(), scan.getLower(), scan.getUpper(), place,
      scan.getResult().getType(), [&](OpBuilder &inner, Location, ValueRange indices) -> Value {
        return createTerm(inner, loc, indices.front(), /*isIncluded=*/false, scan.getKind(),
                          term.getType(), [&](Value at) {
                            IRMapping mapping;
                            mapping.map(scan.getBlock()->getArgument(0), at);
                            return cloneSlice(inner, term, scan.getBlock(), mapping);
                          });
      });
  scan.replaceAllUsesWith(shifted.getResult());
  scan.erase();
  return true;
}
