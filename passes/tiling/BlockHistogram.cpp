//===- BlockHistogram.cpp - sums by a key ---------------------------------===//
//
// The planner has given such a sum a tile of all bins, or of many, and one of many terms. Each tile
// of terms becomes a tkgpu.histogram. A term beyond the end of the range, or whose conditions are
// false, has a bin that is none.
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuHistogramOps.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/BinnedTerm.h"
#include "passes/tiling/BlockProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

bool BlockProgram::planHistogram(Reduction &reduction, unsigned k) {
  Accumulator &acc = reduction.accumulators[k];
  if (gpu::getPlan(compute).family != gpu::PlanFamily::Histogram || present.contains(reduction.op))
    return false;
  std::optional<BinnedTerm> term = matchBinnedTerm(compute, reduction.op, k);
  const unsigned bins = axisOf.lookup(compute.getIndex(compute.getNumIndices() - 1));
  if (!term || acc.axes.size() != 1 || acc.axes.front() != bins)
    return false;
  acc.isHistogram = true;
  acc.isAlone = false;
  return true;
}

/// The sums of the current tile's terms.
Value BlockProgram::histogram(Reduction &reduction, unsigned k) {
  const Accumulator &acc = reduction.accumulators[k];
  const BinnedTerm term = *matchBinnedTerm(compute, reduction.op, k);
  const unsigned depth = scopes.size() - 1;
  SmallVector<TileValue> masks;
  for (Value condition : term.conditions)
    masks.push_back(get(condition));
  if (std::optional<TileValue> mask = termMask(reduction))
    masks.push_back(*mask);
  Axes over;
  for (unsigned axis : reduction.axes)
    if (!axes[axis].isScalar)
      over = unite(over, {axis});
  const Type word = at(depth).getI32Type();
  TileValue bin = get(term.bin);
  // The tile's first bin is bin 0 of its sums.
  if (Value start = axes[acc.axes.front()].start) {
    Type type = getElementTypeOrSelf(bin.value.getType());
    if (start.getType() != type)
      start = arith::IndexCastOp::create(at(depth), loc, type, start);
    TileValue first = broadcast({start, {}, depth}, bin.axes, depth);
    bin = {arith::SubIOp::create(at(depth), loc, bin.value, first.value), bin.axes, depth};
  }
  if (!getElementTypeOrSelf(bin.value.getType()).isInteger(32))
    bin = {arith::IndexCastOp::create(at(depth), loc, tileType(bin.axes, word), bin.value),
           bin.axes, depth};
  if (!masks.empty())
    bin = select(andMasks(masks), bin, at(depth).getI32IntegerAttr(-1));
  TileValue weight;
  if (term.weight)
    weight = get(term.weight);
  else if (isa<FloatType>(acc.type))
    weight = {constant(at(depth).getFloatAttr(acc.type, 1.0), depth), {}, depth};
  else
    weight = {constant(at(depth).getIntegerAttr(acc.type, 1), depth), {}, depth};
  return gpu::HistogramOp::create(at(depth), loc, tileType(acc.axes, acc.type),
                                  broadcast(bin, over, depth).value,
                                  broadcast(weight, over, depth).value);
}
