//===- BlockLoops.cpp - the loops of reductions ---------------------------===//
//
//   1. Each index gets an axis. One tile may hold the whole range: then there is no loop, and an
//      axis that another index over the same range has is used again, so that equal loads meet.
//   2. What the accumulators are over follows from what terms and bounds depend on (a contraction's
//      k comes just before n in the order of axes, so that operands need no transposition).
//   3. The other indices become nested loops over tiles. Tiles that are not full are masked; where
//      the masks cost (bounds that differ within the tile, online reductions), full tiles get a
//      loop of their own, without masks, or the masks a branch (BlockMasks.cpp). Where ranges begin
//      at different places, as those of the queries that see a key, full tiles follow the others.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/Extrema.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/Machine.h"
#include "passes/machine/limits/Layouts.h"
#include "passes/plan/MergeIndices.h"
#include "passes/tiling/BlockProgram.h"
#include "passes/tiling/PartLocations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tk;

using namespace limits::block_loops;

/// One tile holds the whole range of an index, if its size is known to be at most `size`.
bool BlockProgram::bindWhole(Reduction &reduction, unsigned position, int64_t size) {
  tk::ReduceOp op = reduction.op;
  Value end = op.getUpper()[position];
  TileValue upper = get(end);
  SizeFact fact = getSizeFact(kernel, end);
  if (getConstantIndex(op.getLower()[position]) != 0 || !upper.axes.empty() || !fact.upper ||
      *fact.upper > size)
    return false;
  // Of one value or none there is a loop, so that products in it have tiles of rows and columns.
  // What is computed as one element has no tiles at all.
  auto isProduct = [&](tk::ReduceOp inner) {
    auto isTerm = [&](Value term) { return isContractionTerm(inner, term); };
    return (inner != op || op.getNumIndices() > 1) &&
                   llvm::any_of(inner.getYield().getValues(), isTerm)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  };
  if (size == 1 && fact.exact != size && (elementOf || op.walk(isProduct).wasInterrupted()))
    return false;
  llvm::SetVector<Value> free;
  collectFree(op, free);
  llvm::SetVector<unsigned> used(reduction.axes.begin(), reduction.axes.end());
  for (Value value : free)
    used.insert_range(axesOf(value));
  auto sameEnd = [&](Value other) {
    return other == end || (other && fact.exact && getConstantIndex(other) == fact.exact);
  };
  for (unsigned id = 0; id < axes.size(); ++id)
    if (axes[id].isWhole && axes[id].size == size && sameEnd(axes[id].rangeEnd) &&
        !used.contains(id)) {
      axisOf[op.getIndex(position)] = id;
      reduction.axes.push_back(id);
      return true;
    }
  StringRef name = cast<StringAttr>(op.getIndexNames()[position]).getValue();
  unsigned id = newAxis(name, size);
  Axis &axis = axes[id];
  axis.isWhole = true;
  axis.rangeEnd = end;
  axis.depth = upper.depth;
  if (fact.exact != size) {
    axis.limit = upper.value;
    axis.limitIsAll = fact.divisor % size == 0;
    axis.isScalar = false;
  }
  axisOf[op.getIndex(position)] = id;
  reduction.axes.push_back(id);
  return true;
}

void BlockProgram::bindIndices(Reduction &reduction) {
  tk::ReduceOp op = reduction.op;
  if (SmallVector<Value> merged = getMergedIndices(op.getIndex(op.getNumIndices() - 1));
      !merged.empty())
    return bindMerged(reduction, merged);
  for (unsigned position = 0; position < op.getNumIndices(); ++position) {
    int64_t size = reduceTiles.lookup(op)[position];
    if (hasStates.contains(op.getIndex(position))) {
      reduction.axes.push_back(axisOf.lookup(op.getIndex(position)));
      continue;
    }
    if (bindWhole(reduction, position, size))
      continue;
    StringRef name = cast<StringAttr>(op.getIndexNames()[position]).getValue();
    unsigned id = newAxis(name, size);
    TileValue lower = get(op.getLower()[position]), upper = get(op.getUpper()[position]);
    axes[id].rangeEnd = op.getUpper()[position];
    axes[id].isAligned =
        lower.axes.empty() && getSizeFact(kernel, op.getLower()[position]).divisor % size == 0;
    if (!lower.axes.empty())
      axes[id].lower = lower;
    if (!upper.axes.empty())
      axes[id].upper = upper;
    if (axes[id].lower || axes[id].upper)
      axes[id].isScalar = false;
    axisOf[op.getIndex(position)] = id;
    reduction.axes.push_back(id);
    reduction.isLoop = true;
  }
}

void BlockProgram::reduce(tk::ReduceOp op) {
  if (sortRow(op))
    return;
  if (tk::ReduceOp place = placeOfExtremum(op)) {
    get(place.getResult(0));
    return;
  }
  unsigned depth = freeDepth(op);
  SmallVector<TileValue> results = inScope(depth, [&] {
    Reduction reduction;
    reduction.op = op;
    bindIndices(reduction);
    planAccumulators(reduction);
    reduction.masksTerms = planMasks(reduction);
    planUnion(reduction);
    planRanges(reduction);
    planUnseen(reduction);
    // Sums of weights beside a product are reduced in each step: there are no registers for tiles.
    if (!reduction.maskedWeights.empty())
      for (Accumulator &acc : reduction.accumulators)
        acc.isAlone = false;
    int64_t numAlone =
        llvm::count_if(reduction.accumulators, [](const Accumulator &acc) { return acc.isAlone; });
    int64_t limit =
        maxElementsPerThread * 32 * schedule.getWarps() / std::max<int64_t>(numAlone, 1);
    for (Accumulator &acc : reduction.accumulators) {
      if (acc.isDot) {
        // Nothing has been built over k yet, so it may still move; a shared whole axis stays.
        if (!axes[acc.k].isWhole && llvm::find(order, acc.n) < llvm::find(order, acc.k)) {
          order.erase(llvm::find(order, acc.k));
          order.insert(llvm::find(order, acc.n), acc.k);
        }
        continue;
      }
      int64_t elements = 1;
      for (unsigned axis : acc.isHistogram ? Axes() : acc.axes)
        elements *= axes[axis].size;
      for (unsigned axis : reduction.axes) {
        if (!axes[axis].isWhole)
          while (axes[axis].size > 1 && elements * axes[axis].size > limit)
            axes[axis].size /= 2;
        elements *= axes[axis].size;
        bool masked = axes[axis].isWhole || axes[axis].lower || axes[axis].upper;
        axes[axis].isScalar |= axes[axis].size == 1 && !masked;
      }
    }
    for (Accumulator &acc : reduction.accumulators) {
      acc.carried = acc.axes;
      if (!acc.isDot && acc.isAlone)
        for (unsigned axis : reduction.axes)
          if (!axes[axis].isScalar)
            acc.carried = unite(acc.carried, {axis});
    }
    return finish(reduction, loops(reduction, 0, initialValues(reduction)));
  });
  auto &memo = scopes[depth].memo;
  for (auto [result, value] : llvm::zip(op.getResults(), results))
    memo[result] = value;
  // With the place of an extremum comes what stands there.
  if (results.size() > op.getNumResults())
    for (tk::ReduceOp other : op->getBlock()->getOps<tk::ReduceOp>())
      if (placeOfExtremum(other) == op)
        memo[other.getResult(0)] = results.back();
}

/// A size of the kernel that `bound` never exceeds, where it is the smaller of two.
static Value coveringExtentOf(KernelOp kernel, Value bound) {
  if (auto smaller = bound.getDefiningOp<arith::MinSIOp>()) {
    Value extent = coveringExtentOf(kernel, smaller.getLhs());
    return extent ? extent : coveringExtentOf(kernel, smaller.getRhs());
  }
  Operation *op = bound.getDefiningOp();
  bool isSize = op ? op->getParentOp() == kernel
                   : cast<BlockArgument>(bound).getOwner()->getParentOp() == kernel;
  return isSize ? bound : Value();
}

bool tk::isOfSizes(KernelOp kernel, Value value) {
  llvm::SetVector<Value> needed;
  needed.insert(value);
  for (size_t n = 0; n < needed.size(); ++n) {
    if (auto argument = dyn_cast<BlockArgument>(needed[n])) {
      if (argument.getOwner()->getParentOp() == kernel &&
          argument.getArgNumber() >= kernel.getNumDims())
        return false;
      continue;
    }
    Operation *op = needed[n].getDefiningOp();
    if (op->getNumRegions() > 0 || isa<LoadOp>(op))
      return false;
    needed.insert(op->operand_begin(), op->operand_end());
  }
  return true;
}

/// Is `value` known to be a multiple of `size`?
static bool isMultiple(Value value, int64_t size) {
  if (std::optional<int64_t> known = getConstantIndex(value))
    return *known % size == 0;
  Operation *op = value.getDefiningOp();
  // The end of a range is the last index and 1.
  if (auto end = dyn_cast_or_null<arith::AddIOp>(op))
    if (auto last = end.getLhs().getDefiningOp<arith::SubIOp>())
      if (std::optional<int64_t> less = getConstantIndex(last.getRhs());
          less && less == getConstantIndex(end.getRhs()))
        return isMultiple(last.getLhs(), size);
  if (isa_and_nonnull<arith::MulIOp>(op))
    return isMultiple(op->getOperand(0), size) || isMultiple(op->getOperand(1), size);
  return isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp>(op) &&
         isMultiple(op->getOperand(0), size) && isMultiple(op->getOperand(1), size);
}

SmallVector<Value> BlockProgram::loops(Reduction &reduction, unsigned position,
                                       SmallVector<Value> carried) {
  if (position == reduction.axes.size())
    return step(reduction, carried);
  unsigned id = reduction.axes[position];
  if (axes[id].isWhole)
    return loops(reduction, position + 1, carried);
  tk::ReduceOp op = reduction.op;
  unsigned depth = scopes.size() - 1;
  if (areTermsMerged(op)) {
    Value end = kernelValue(axes[id].rangeEnd);
    axes[id].limit = getSizeFact(kernel, axes[id].rangeEnd).divisor % axes[id].size ? end : Value();
    return loop(reduction, position, indexConstant(0, depth), end, carried);
  }
  int64_t size = axes[id].size;
  Value lowerBound = op.getLower()[position], upperBound = op.getUpper()[position];
  TileValue lower = get(lowerBound), upper = get(upperBound);
  Value from = scalarBound(lowerBound, lower, false), to = scalarBound(upperBound, upper, true);
  bool uniform = lower.axes.empty() && upper.axes.empty();
  axes[id].limit = axes[id].fullFrom = axes[id].fullTo = axes[id].coveringExtent = Value();
  axes[id].endsByValue = reduction.known || !isOfSizes(kernel, upperBound);
  if (!lower.axes.empty())
    reduction.ranges.reset();
  if (reduction.ranges)
    from = skipBetween(reduction, id, from, to);
  if (reduction.known)
    narrowToRanges(reduction, id, from, to);
  if (uniform && !reduction.known &&
      (size == 1 || (getSizeFact(kernel, upperBound).divisor % size == 0 &&
                     getSizeFact(kernel, lowerBound).divisor % size == 0)))
    return loop(reduction, position, from, to, carried);
  if (reduction.known) {
    // Steps begin anywhere, so that the last one may reach beyond what is loaded.
    axes[id].coveringExtent = coveringExtentOf(kernel, upperBound);
    axes[id].limit = to;
    return loop(reduction, position, from, to, carried);
  }
  if (reduction.masksTerms) {
    axes[id].fullTo = boundOfRows(reduction, upperBound, scalarBound(upperBound, upper, false),
                                  /*wantMax=*/false, size);
    if (!lower.axes.empty())
      axes[id].fullFrom = boundOfRows(reduction, lowerBound, scalarBound(lowerBound, lower, true),
                                      /*wantMax=*/true, size);
    if (!upper.axes.empty())
      axes[id].coveringExtent = coveringExtentOf(kernel, upperBound);
    axes[id].coversTiles = axes[id].coveringExtent && getConstantIndex(lowerBound) == 0 &&
                           getSizeFact(kernel, axes[id].coveringExtent).divisor % size == 0;
    axes[id].limit = to;
    Value end = boundOfRows(reduction, upperBound, to, /*wantMax=*/true, size, from);
    Value begin = boundOfRows(reduction, lowerBound, from, /*wantMax=*/false, size);
    return loop(reduction, position, begin, end, carried);
  }
  const bool isProducts =
      llvm::all_of(reduction.accumulators, [](const Accumulator &acc) { return acc.isDot; });
  // Products are masked by the loads of their operands, at no cost.
  bool masksCost = !upper.axes.empty() || (op.isOnline() && !isProducts);
  if (lower.axes.empty() && masksCost) {
    OpBuilder &b = at(depth);
    Value full = scalarBound(upperBound, upper, false);
    // The least of no rows at all is the largest number there is; only a tile that holds a whole
    // range may have none.
    if (llvm::any_of(upper.axes, [&](unsigned axis) { return axes[axis].isWhole; }))
      full = arith::MinSIOp::create(b, loc, full, to);
    Value zero = indexConstant(0, depth), step = indexConstant(size, depth);
    Value count = arith::SubIOp::create(b, loc, full, from);
    count = arith::MaxSIOp::create(b, loc, count, zero);
    count = arith::DivSIOp::create(b, loc, count, step);
    count = arith::MulIOp::create(b, loc, count, step);
    Value middle = arith::AddIOp::create(b, loc, from, count);
    std::optional<TileValue> bound = std::exchange(axes[id].upper, std::nullopt);
    carried = loop(reduction, position, from, middle, carried);
    axes[id].upper = bound;
    from = middle;
  }
  const bool isWhole =
      isMultiple(from, size) &&
      (getSizeFact(kernel, upperBound).divisor % size == 0 || isMultiple(to, size));
  axes[id].limit = isWhole && (upper.axes.empty() || isProducts) ? Value() : to;
  // Operands of products are masked behind their loads, which may bring elements that no term has.
  const bool hasInner = !op.getBlock()->getOps<tk::ReduceOp>().empty();
  if (isProducts && upper.axes.empty() != lower.axes.empty() &&
      (!hasInner || (isWhole && lower.axes.empty()))) {
    axes[id].coveringExtent = coveringExtentOf(kernel, upperBound);
    axes[id].coversTiles = axes[id].coveringExtent && getConstantIndex(lowerBound) == 0 &&
                           getSizeFact(kernel, axes[id].coveringExtent).divisor % size == 0;
  }
  if (!lower.axes.empty() && upper.axes.empty()) {
    // The tiles up to the greatest lower bound.
    OpBuilder &b = at(depth);
    Value step = indexConstant(size, depth);
    Value count = arith::SubIOp::create(b, loc, scalarBound(lowerBound, lower, true), from);
    count = arith::AddIOp::create(b, loc, count, indexConstant(size - 1, depth));
    count = arith::DivSIOp::create(b, loc, count, step);
    count = arith::MulIOp::create(b, loc, count, step);
    Value middle = arith::AddIOp::create(b, loc, from, count);
    Value end = arith::MinSIOp::create(b, loc, middle, to);
    carried = loop(reduction, position, from, end, carried);
    axes[id].lower.reset();
    axes[id].coveringExtent = Value();
    carried = loop(reduction, position, middle, to, carried);
    axes[id].lower = lower;
    return carried;
  }
  return loop(reduction, position, from, to, carried);
}

/// What the values that a reduction's loop carries are called in emitted text.
SmallVector<std::string> BlockProgram::namesOfCarried(const Reduction &reduction) {
  SmallVector<std::string> names;
  for (const Accumulator &acc : reduction.accumulators) {
    names.push_back(("running_" + stringifyReduceKind(acc.kind)).str());
    if (isArgReduction(acc.kind))
      names.push_back("running_index");
  }
  return names;
}

SmallVector<Value> BlockProgram::loop(Reduction &reduction, unsigned position, Value from, Value to,
                                      ValueRange carried) {
  unsigned depth = scopes.size() - 1, id = reduction.axes[position];
  Value step = indexConstant(axes[id].size, depth);
  const std::string counter = axes[id].isScalar ? axes[id].name : axes[id].name + "_begin";
  auto forOp = scf::ForOp::create(at(depth), named("for " + counter, reduction.op.getLoc()), from,
                                  to, step, carried);
  Operation *before = std::exchange(scopes[depth].before, forOp.getOperation());
  Scope &inner = scopes.emplace_back();
  inner.block = forOp.getBody();
  axes[id].depth = depth + 1;
  axes[id].start = forOp.getInductionVar();
  SmallVector<std::string> names = namesOfCarried(reduction);
  for (auto [argument, name] : llvm::zip(forOp.getRegionIterArgs(), names))
    argument.setLoc(named(name, loc));
  axes[id].counter = Value();
  if (reduction.ranges)
    startInRanges(reduction, id);
  auto target =
      kernel->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  if (areTermsMerged(reduction.op))
    takeApart(
        id, getMergedIndices(reduction.op.getIndex(reduction.op.getNumIndices() - 1)),
        /*isBounded=*/hasFeature(target, Feature::WarpgroupProducts) &&
            llvm::any_of(reduction.accumulators, [](const Accumulator &acc) { return acc.isDot; }));
  SmallVector<Value> yielded =
      loops(reduction, position + 1, llvm::to_vector_of<Value>(forOp.getRegionIterArgs()));
  scf::YieldOp::create(at(depth + 1), loc, yielded);
  scopes.pop_back();
  scopes[depth].before = before;
  return llvm::to_vector_of<Value>(forOp.getResults());
}
