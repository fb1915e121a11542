//===- BlockUnions.cpp - reductions over several ranges of an index -------===//
//
// A mask of which one part suffices, `j < n or j >= i - w`, bounds no range, but leaves out the
// terms between two: keys that all queries see, and a window. Where the masks of an online
// reduction's maxima make all terms vanish (BlockMasks.cpp):
//
// 1. Over a tile, terms from the greatest end (n) up to the least beginning (i - w) vanish for all
//    rows. The loop leaves out the steps that lie there: it counts to where the range ends, and its
//    first steps stand as many places earlier as are left out.
// 2. Where that is all that masks the maxima's terms, it is one of the masks at a range's ends:
//    from the greatest beginning on every row has every term.
//
//   for %j = 0 to %end {                      for %c = %left_out to %end {
//     %in = %j < %n or %j >= %begin      =>     %j = %c - (%c < %from ? %left_out : 0)
//     %s1 = select %in, %s, -inf                %s1 = if %c < %full or ... { select %in, %s, -inf }
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/Conditions.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/plan/MergeIndices.h"
#include "passes/tiling/BlockProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

/// Finds what the mask of all maxima's terms, and of weights under a reference, has in common: a
/// union of ranges of the reduction's index.
void BlockProgram::planUnion(Reduction &reduction) {
  tk::ReduceOp op = reduction.op;
  if (!reduction.masksTerms || op.getNumIndices() != 1 || areTermsMerged(op))
    return;
  Value index = op.getIndex(0);
  SmallVector<Value> scores = maskedScores(reduction);
  const bool haveMaxima = scores.size() > reduction.maskedWeights.size();
  llvm::SetVector<Value> common;
  bool areAlike = haveMaxima && reduction.maskedWeights.empty();
  for (Value score : scores) {
    auto masked = score.getDefiningOp<arith::SelectOp>();
    if (!masked || !isIdentity(masked.getFalseValue(), ReduceKind::Max))
      return;
    SmallVector<Value> parts;
    addParts<arith::AndIOp>(masked.getCondition(), parts);
    areAlike &= parts.size() == 1;
    if (score == scores.front())
      common.insert_range(parts);
    else
      common.remove_if([&](Value part) { return !llvm::is_contained(parts, part); });
  }
  for (Value holds : common) {
    if (!holds.getDefiningOp<arith::OrIOp>())
      continue;
    RangeUnion ranges;
    ranges.holds = holds;
    SmallVector<Value> parts;
    addParts<arith::OrIOp>(holds, parts);
    for (Value part : parts) {
      auto cmp = part.getDefiningOp<arith::CmpIOp>();
      if (!cmp || cmp.getLhs() != index || op.getBody().isAncestor(cmp.getRhs().getParentRegion()))
        break;
      if (cmp.getPredicate() == arith::CmpIPredicate::slt)
        ranges.ends.push_back(cmp.getRhs());
      else if (cmp.getPredicate() == arith::CmpIPredicate::sge)
        ranges.begins.push_back(cmp.getRhs());
    }
    if (ranges.ends.empty() || ranges.begins.empty() ||
        ranges.ends.size() + ranges.begins.size() != parts.size())
      continue;
    ranges.isWholeMask = areAlike;
    reduction.ranges = std::move(ranges);
    return;
  }
}

/// Where the loop over `axis`, which runs `from .. to`, begins to count so that it leaves out the
/// steps between the ranges.
Value BlockProgram::skipBetween(Reduction &reduction, unsigned axis, Value from, Value to) {
  RangeUnion &ranges = *reduction.ranges;
  const unsigned depth = scopes.size() - 1;
  auto extreme = [&](ArrayRef<Value> bounds, bool ofRows, bool ofBounds) {
    Value result;
    for (Value bound : bounds) {
      Value own = scalarBound(bound, get(bound), ofRows);
      if (!result)
        result = own;
      else if (ofBounds)
        result = arith::MaxSIOp::create(at(depth), loc, result, own);
      else
        result = arith::MinSIOp::create(at(depth), loc, result, own);
    }
    return result;
  };
  Value end = extreme(ranges.ends, true, true);
  Value begin = extreme(ranges.begins, false, false);
  if (ranges.isWholeMask) {
    Value full = extreme(ranges.begins, true, false);
    axes[axis].fullFrom =
        axes[axis].fullFrom
            ? arith::MaxSIOp::create(at(depth), loc, axes[axis].fullFrom, full).getResult()
            : full;
  }
  OpBuilder &b = at(depth);
  Value zero = indexConstant(0, depth), step = indexConstant(axes[axis].size, depth);
  auto countFrom = [&](Value first, Value last) -> Value {
    Value terms = arith::SubIOp::create(b, loc, last, first);
    return arith::MaxSIOp::create(b, loc, terms, zero);
  };
  Value last = indexConstant(axes[axis].size - 1, depth);
  Value kept = arith::AddIOp::create(b, loc, countFrom(from, end), last);
  kept = arith::MulIOp::create(b, loc, arith::DivSIOp::create(b, loc, kept, step), step);
  Value rest = arith::AddIOp::create(b, loc, from, kept);
  Value between = countFrom(rest, arith::MinSIOp::create(b, loc, begin, to));
  ranges.skipped =
      arith::MulIOp::create(b, loc, arith::DivSIOp::create(b, loc, between, step), step);
  ranges.from = arith::AddIOp::create(b, loc, rest, ranges.skipped);
  return arith::AddIOp::create(b, loc, from, ranges.skipped);
}

/// Has the tile of a step stand where its number says, or before the terms that are left out.
void BlockProgram::startInRanges(Reduction &reduction, unsigned axis) {
  const RangeUnion &ranges = *reduction.ranges;
  const unsigned depth = axes[axis].depth;
  Value counter = axes[axis].counter = axes[axis].start;
  Value isBefore =
      arith::CmpIOp::create(at(depth), loc, arith::CmpIPredicate::slt, counter, ranges.from);
  Value back =
      arith::SelectOp::create(at(depth), loc, isBefore, ranges.skipped, indexConstant(0, depth));
  axes[axis].start = arith::SubIOp::create(at(depth), loc, counter, back);
}

/// Where the current tile's terms are in one of the ranges, computed in scope `minDepth` or further
/// in.
TileValue BlockProgram::unionMask(Reduction &reduction, unsigned minDepth) {
  const RangeUnion &ranges = *reduction.ranges;
  TileValue position = index(reduction.axes.front());
  position.depth = std::max(position.depth, minDepth);
  std::optional<TileValue> result;
  auto add = [&](arith::CmpIPredicate predicate, ArrayRef<Value> bounds) {
    for (Value bound : bounds) {
      TileValue holds = compare(predicate, position, get(bound));
      if (!result) {
        result = holds;
        continue;
      }
      Axes all = unite(result->axes, holds.axes);
      unsigned depth = std::max(result->depth, holds.depth);
      Value a = broadcast(*result, all, depth).value, b = broadcast(holds, all, depth).value;
      result = {arith::OrIOp::create(at(depth), loc, a, b), all, depth};
    }
  };
  add(arith::CmpIPredicate::slt, ranges.ends);
  add(arith::CmpIPredicate::sge, ranges.begins);
  return *result;
}
