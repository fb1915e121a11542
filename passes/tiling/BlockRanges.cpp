//===- BlockRanges.cpp - masks of which ranges are known ------------------===//
//
// Masks that read tensors bound no index, but tk-bound-masks has found out for groups of rows
// outside which terms they are false, and inside which they are true (MaskRanges.h). Where the
// masks of an online reduction make all terms vanish (BlockMasks.cpp):
//
// 1. The loop runs from where the mask begins to hold for some row of the tile to where it ends.
//    That no term is taken elsewhere the mask itself sees to, so that these are no bounds of terms.
// 2. Where the mask is all that selects scores, it is one of the masks at a range's ends: in the
//    steps between those where it holds for all rows scores stay as they are. What the mask reads
//    is loaded outside the branch, under the products that give the scores.
//
// A tile's rows may be of several groups. What a bound loads at their numbers, `begin[i / 64]`, is
// then loaded for each of them.
//
//   for %j = 0 to %T {                        for %j = min %begin[g] to max %end[g] {
//     %in = %begin[g] <= %j ... and %m    =>    %s1 = if %j < max %all[g] or %j + 128 > min ..
//     %s1 = select %in, %s, -inf                        { select %m, %s, -inf } else { %s }
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/MaskRanges.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/limits/Layouts.h"
#include "passes/tiling/BlockProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace tk;

using namespace limits::block_ranges;

/// A tile's rows are those of `axis`, or of a part. Of what `load` reads at `axis / n` and at
/// indices that all of the tile share: the extreme over the rows.
Value BlockProgram::endOfLoaded(LoadOp load, bool wantMax, const RowPart *part) {
  const unsigned depth = scopes.size() - 1;
  SmallVector<Value> indices;
  std::optional<unsigned> grouped;
  Value first, last;
  int64_t numGroups = 1;
  if (load.getPad())
    return {};
  for (auto [position, index] : llvm::enumerate(load.getIndices())) {
    TileValue known = get(index);
    indices.push_back(known.value);
    if (known.axes.empty())
      continue;
    auto quotient = index.getDefiningOp<FloorDivOp>();
    auto axis = quotient ? axisOf.find(quotient.getLhs()) : axisOf.end();
    std::optional<int64_t> size = quotient ? getConstantIntValue(quotient.getRhs()) : std::nullopt;
    if (grouped || axis == axisOf.end() || isMerged(quotient.getLhs()) || !size || *size <= 0)
      return {};
    const Axis &info = axes[axis->second];
    const bool isPart = part && part->axis == axis->second;
    const int64_t rows = isPart ? part->rows : info.step, ahead = isPart ? part->first : 0;
    const bool isAligned =
        !info.endsWithRange && info.step % *size == 0 && ahead % *size == 0 &&
        isa<ComputeOp>(cast<BlockArgument>(quotient.getLhs()).getOwner()->getParentOp());
    numGroups = isAligned ? llvm::divideCeil(rows, *size) : (rows + *size - 2) / *size + 1;
    Value least = endOf(quotient.getLhs(), false, part),
          most = endOf(quotient.getLhs(), true, part);
    if (!least || !most || numGroups > mostGroups)
      return {};
    // Rows of a part may all lie outside the range.
    Value divisor = indexConstant(*size, depth), zero = indexConstant(0, depth);
    most = arith::MaxSIOp::create(at(depth), loc, most, zero);
    least = arith::MinSIOp::create(at(depth), loc, least, most);
    first = FloorDivOp::create(at(depth), loc, divisor.getType(), least, divisor);
    last = FloorDivOp::create(at(depth), loc, divisor.getType(), most, divisor);
    grouped = position;
  }
  if (!grouped)
    return {};
  SmallVector<Value> steps = strides(load.getTensor(), getExtents(kernel, load.getTensor()));
  Value buffer = kernelValue(load.getTensor()), result;
  SmallVector<Attribute> noAxes(indices.size(), builder.getDenseI64ArrayAttr({}));
  for (int64_t group = 0; group < numGroups; ++group) {
    Value number = first;
    if (group > 0) {
      number = arith::AddIOp::create(at(depth), loc, first, indexConstant(group, depth));
      number = arith::MinSIOp::create(at(depth), loc, number, last);
    }
    indices[*grouped] = number;
    Value loaded = gpu::LoadOp::create(at(depth), load.getLoc(), load.getType(), buffer, indices,
                                       steps, ValueRange(), Value(), builder.getArrayAttr(noAxes),
                                       builder.getArrayAttr({}));
    if (!result)
      result = loaded;
    else if (wantMax)
      result = arith::MaxSIOp::create(at(depth), loc, result, loaded);
    else
      result = arith::MinSIOp::create(at(depth), loc, result, loaded);
  }
  return result;
}

/// Finds the mask that all scores have, and what is known of it.
void BlockProgram::planRanges(Reduction &reduction) {
  tk::ReduceOp op = reduction.op;
  if (!reduction.masksTerms || op.getNumIndices() != 1)
    return;
  SmallVector<Value> scores = maskedScores(reduction);
  Value condition;
  for (Value score : scores) {
    auto masked = score.getDefiningOp<arith::SelectOp>();
    if (!masked || !isIdentity(masked.getFalseValue(), ReduceKind::Max) ||
        (condition && condition != masked.getCondition()))
      return;
    condition = masked.getCondition();
  }
  std::optional<MaskRanges> ranges = condition ? matchMask(condition) : std::nullopt;
  if (!ranges || ranges->index != op.getIndex(0))
    return;
  for (Value bound : {ranges->begin, ranges->end, ranges->allBegin, ranges->allEnd})
    if (op.getBody().isAncestor(bound.getParentRegion()))
      return;
  reduction.known = *ranges;
  reduction.masked = scores;
}

/// Narrows `from .. to`, which the loop over `axis` runs through, to where the mask holds for some
/// row, and tells for which terms it, and the bounds, hold for all. Where that is not known of a
/// tile, masks stay in the terms.
void BlockProgram::narrowToRanges(Reduction &reduction, unsigned axis, Value &from, Value &to) {
  const unsigned depth = scopes.size() - 1;
  auto extreme = [&](Value bound, bool wantMax) {
    TileValue known = get(bound);
    return known.axes.empty() ? known.value : endOf(bound, wantMax);
  };
  const MaskRanges &ranges = *reduction.known;
  Value begin = extreme(ranges.begin, false), end = extreme(ranges.end, true);
  Value allBegin = extreme(ranges.allBegin, true), allEnd = extreme(ranges.allEnd, false);
  if (!begin || !end || !allBegin || !allEnd) {
    reduction.known.reset();
    reduction.masked.clear();
    return;
  }
  auto greatest = [&](Value a, Value b) -> Value {
    return arith::MaxSIOp::create(at(depth), loc, a, b);
  };
  auto least = [&](Value a, Value b) -> Value {
    return arith::MinSIOp::create(at(depth), loc, a, b);
  };
  Value lower = reduction.op.getLower()[0], upper = reduction.op.getUpper()[0];
  axes[axis].fullFrom = greatest(allBegin, scalarBound(lower, get(lower), true));
  axes[axis].fullTo = least(allEnd, scalarBound(upper, get(upper), false));
  // Where steps begin at such multiples, threads load what the mask reads by vectors.
  Value multiple = indexConstant(alignment, depth);
  from = greatest(from, begin);
  from = FloorDivOp::create(at(depth), loc, multiple.getType(), from, multiple);
  from = arith::MulIOp::create(at(depth), loc, from, multiple);
  to = least(to, end);
}

/// Where the known mask holds, computed in scope `minDepth` or further in, but for its loads.
TileValue BlockProgram::knownMask(Reduction &reduction, unsigned minDepth) {
  Value holds = reduction.known->holds;
  for (Operation *op : getSlice(holds, reduction.op.getBlock()))
    if (isa<LoadOp>(op))
      get(op->getResult(0));
  llvm::SaveAndRestore inside(leastDepth, minDepth);
  return get(holds);
}
