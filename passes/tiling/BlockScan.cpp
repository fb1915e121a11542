//===- BlockScan.cpp - prefix reductions ----------------------------------===//
//
// A scan at a bare index whose whole range is in one tile is a tkgpu.scan of that tile; along the
// index that the block steps through it carries on from tile to tile. A scan at the mirror image of
// an index is the backward scan of the tile, with terms in the order of memory, and the block steps
// through the index from its end on. Any other is the reduction that it equals by definition. Scans
// may stand in the terms of a reduction that a tile has whole, or of another scan along the same
// index: what is carried has an element for each term. Equal ones are carried once.
//
//===----------------------------------------------------------------------===//
#include "passes/tiling/BlockProgram.h"
#include "passes/tiling/PartLocations.h"

#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/ScanDecays.h"
#include "passes/analysis/ScanPosition.h"

#include "dialects/tkgpu/TkGpuExchange.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tk;

/// The axis along which a scan that tiles can carry runs: at its index, or at its mirror image.
std::optional<unsigned> BlockProgram::axisOfScan(tk::ScanOp op, bool isBackward) {
  std::optional<IndexOrMirror> position = getScanPosition(op, compute);
  if (!position || position->isMirrored != isBackward)
    return std::nullopt;
  auto axis = axisOf.find(position->index);
  if (axis == axisOf.end() || !isPlainScan(op, axis->second))
    return std::nullopt;
  return axis->second;
}

/// Gives the terms of a scan the indices of its axis. Those of a backward one are at the mirror
/// images: the mirror image of the term's number is the index itself.
void BlockProgram::bindTerms(tk::ScanOp op, unsigned id, bool isBackward) {
  BlockArgument number = op.getBlock()->getArgument(0);
  if (!isBackward) {
    axisOf[number] = id;
    return;
  }
  Value index = op.getPosition().getDefiningOp<arith::SubIOp>().getRhs();
  for (Operation *user : llvm::make_early_inc_range(number.getUsers()))
    if (auto mirror = dyn_cast<arith::SubIOp>(user);
        mirror && mirror.getRhs() == number && isLastOf(mirror.getLhs(), op.getUpper()))
      mirror.getResult().replaceAllUsesWith(index);
  number.replaceAllUsesWith(op.getPosition());
}

/// Gives the indices of the reductions around a scan axes that hold all of their terms, so that
/// what the scan carries has an element for each. False if there is a reduction without, or a scan
/// that is not carried.
bool BlockProgram::bindStates(tk::ScanOp op) {
  for (Operation *around = op->getParentOp(); around != compute; around = around->getParentOp()) {
    auto reduce = dyn_cast<tk::ReduceOp>(around);
    if (!reduce) {
      if (!carryOf.contains(around) && !equalScan.contains(around))
        return false;
      continue;
    }
    Reduction reduction;
    reduction.op = reduce;
    if (reduce->getBlock() != compute.getBlock())
      return false;
    for (unsigned position = 0; position < reduce.getNumIndices(); ++position) {
      Value index = reduce.getIndex(position);
      if (!hasStates.contains(index) &&
          !bindWhole(reduction, position, reduceTiles.lookup(reduce)[position]))
        return false;
      hasStates.insert(index);
    }
  }
  return true;
}

/// One of `others` that scans the same terms as `op`, whose indices have the same axes; null if
/// there is none.
tk::ScanOp BlockProgram::findEqualScan(tk::ScanOp op, ArrayRef<tk::ScanOp> others) {
  for (tk::ScanOp other : others) {
    if (other.getKind() != op.getKind() || other.getLower() != op.getLower() ||
        other.getUpper() != op.getUpper() ||
        other.getResult().getType() != op.getResult().getType())
      continue;
    ScalarEquality equality;
    for (auto [index, axis] : axisOf)
      for (auto [same, ofSame] : axisOf)
        if (index != same && axis == ofSame)
          equality.identify(index, same);
    if (equality.equal(other.getYield().getValues(), op.getYield().getValues()))
      return other;
  }
  return {};
}

/// Binds the terms of the scans that the block carries along axis `id`; the values that it begins
/// with.
SmallVector<Value> BlockProgram::beginScans(unsigned id, bool isBackward) {
  SmallVector<tk::ScanOp> carried;
  SmallVector<Value> initial;
  compute.getBody().walk<WalkOrder::PreOrder>([&](tk::ScanOp op) {
    if (axisOfScan(op, isBackward) != id || !bindStates(op))
      return;
    bindTerms(op, id, isBackward);
    if (tk::ScanOp equal = findEqualScan(op, carried)) {
      equalScan[op] = equal;
      return;
    }
    llvm::SetVector<unsigned> set;
    for (Value value : op.getYield().getValues())
      for (unsigned axis : axesOf(value))
        set.insert(axis);
    set.remove(id);
    Axes axesOfState = sorted(set);
    TileValue identity{constant(identityOf(op.getKind(), op.getResult().getType())), {}, 0};
    identity = broadcast(identity, axesOfState, 0);
    carryOf[op] = carries.size();
    carries.push_back({identity.value, axesOfState, 1});
    initial.push_back(identity.value);
    carried.push_back(op);
  });
  return initial;
}

/// Opens the loop over the index that the block steps through. Scans along it carry what they have
/// reduced so far.
void BlockProgram::openLoop() {
  if (!loopAxis)
    return;
  unsigned id = *loopAxis;
  bool isForward = false, isMirrored = false;
  compute.getBody().walk([&](tk::ScanOp op) {
    isForward |= axisOfScan(op, false) == id;
    isMirrored |= axisOfScan(op, true) == id;
  });
  const bool isBackward = isMirrored && !isForward;
  SmallVector<Value> initial = beginScans(id, isBackward);
  Value end = kernelValue(axes[id].rangeEnd);
  auto forOp = scf::ForOp::create(at(0), named("for " + axes[id].name + "_begin", loc),
                                  indexConstant(0), end, indexConstant(axes[id].size), initial);
  loopOp = forOp;
  scopes[0].before = forOp;
  Block *body = forOp.getBody();
  Scope &inner = scopes.emplace_back();
  inner.block = body;
  inner.before = body->empty() ? nullptr : &body->back();
  axes[id].depth = 1;
  axes[id].start = forOp.getInductionVar();
  if (isBackward) { // the last tile first
    Value size = indexConstant(axes[id].size), one = indexConstant(1);
    Value last = arith::SubIOp::create(at(0), loc, end, one);
    Value tiles = arith::DivUIOp::create(at(0), loc, last, size);
    Value from = arith::MulIOp::create(at(0), loc, tiles, size);
    axes[id].start = arith::SubIOp::create(at(1), loc, from, forOp.getInductionVar());
  }
  for (auto [carry, arg] : llvm::zip(carries, forOp.getRegionIterArgs()))
    carry.value = arg;
}

void BlockProgram::closeLoop() {
  if (!loopAxis)
    return;
  SmallVector<Value> values;
  for (const TileValue &carry : carries)
    values.push_back(carry.value);
  if (!values.empty())
    scf::YieldOp::create(at(1), loc, values);
  scopes.pop_back();
  scopes[0].before = nullptr;
}

/// Does the scan begin anew with each tile of the axis, as one in chunks does?
bool BlockProgram::isScanOfTile(tk::ScanOp op, unsigned id) {
  std::optional<IndexOrMirror> position = getScanPosition(op, compute);
  std::optional<int64_t> chunk = position && !position->isMirrored
                                     ? getScanChunk(op, position->index)
                                     : std::optional<int64_t>();
  return chunk && (axes[id].isWhole ? axes[id].size <= *chunk
                                    : axes[id].isAligned && axes[id].size == *chunk);
}

/// Does the scan run from 0 over the whole range of the axis, or from the beginning of a tile, with
/// terms that use its own index only?
bool BlockProgram::isPlainScan(tk::ScanOp op, unsigned id) {
  if ((getConstantIndex(op.getLower()) != 0 && !isScanOfTile(op, id)) ||
      op.getUpper() != axes[id].rangeEnd)
    return false;
  llvm::SetVector<Value> free;
  getUsedValuesDefinedAbove(op.getBody(), free);
  return llvm::none_of(free, [&](Value value) { return axesOf(value).contains(id); });
}

/// Does a reduction stand around `op`, so that a thread has all steps of a tile?
static bool isOfStates(tk::ScanOp op) { return op->getParentOfType<tk::ReduceOp>() != nullptr; }

/// `term` with what a scan has carried to a tile of axis `id` in its first element, or in its last
/// one if it goes backward.
TileValue BlockProgram::addToFirst(const TileValue &carried, TileValue term, unsigned id,
                                   bool isBackward, ReduceKind kind) {
  const unsigned depth = std::max(term.depth, carried.depth);
  return inScope(depth, [&] {
    const Axes all = unite(unite(term.axes, carried.axes), {id});
    Value own = broadcast(term, all, depth).value;
    Value before = broadcast(carried, all, depth).value;
    Value both = combine(kind, before, own);
    Value numbers = numbersAlong(axes[id], builder.getIndexType());
    const int64_t first = isBackward ? axes[id].size - 1 : 0;
    Value place = broadcast({indexConstant(first, depth), {}, depth}, {id}, depth).value;
    Value isFirst = arith::CmpIOp::create(at(depth), loc, arith::CmpIPredicate::eq, numbers, place);
    Value test = broadcast({isFirst, {id}, depth}, all, depth).value;
    return TileValue{arith::SelectOp::create(at(depth), loc, test, both, own), all, depth};
  });
}

TileValue BlockProgram::scan(tk::ScanOp op) {
  if (tk::ScanOp equal = equalScan.lookup(op))
    return get(equal.getResult());
  auto carry = carryOf.find(op);
  std::optional<IndexOrMirror> position = getScanPosition(op, compute);
  const bool isBackward = position && position->isMirrored;
  std::optional<unsigned> axis;
  if (carry != carryOf.end())
    axis = axisOf.lookup(position->index);
  else
    axis = axisOfScan(op, isBackward);
  const bool isWhole =
      axis && (axes[*axis].isWhole || isScanOfTile(op, *axis)) && !axes[*axis].isScalar;
  if (!isWhole && carry == carryOf.end())
    return scanAsReduction(op);
  const unsigned id = *axis;
  if (carry == carryOf.end())
    bindTerms(op, id, isBackward);
  if (hasDecays(op))
    return recur(op, id, isBackward, carry != carryOf.end() ? &carries[carry->second] : nullptr);
  TileValue term = get(op.getYield().getValues().front());
  // Elements beyond the end come after all others; backward, they come first, and are no terms.
  if (isBackward)
    if (std::optional<TileValue> mask = exactMask(id))
      term = select(*mask, term, identityOf(op.getKind(), op.getResult().getType()));
  TileValue result = term, total = term; // of a step of one index value
  const bool startsFromCarry = carry != carryOf.end() && isOfStates(op) && !axes[id].isScalar;
  if (startsFromCarry)
    term = addToFirst(carries[carry->second], term, id, isBackward, op.getKind());
  if (!axes[id].isScalar) {
    term = broadcast(term, unite(term.axes, {id}), term.depth);
    int64_t place = llvm::find(term.axes, id) - term.axes.begin();
    result = total = term;
    total.axes.erase(total.axes.begin() + place);
    auto scanned = gpu::ScanOp::create(at(term.depth), op.getLoc(), term.value.getType(),
                                       tileType(total.axes, op.getResult().getType()), term.value,
                                       op.getKind(), place);
    if (isBackward)
      scanned->setAttr(gpu::backwardAttrName, builder.getUnitAttr());
    result.value = scanned.getResult();
    total.value = scanned.getTotal();
  }
  if (carry == carryOf.end())
    return result;
  TileValue &running = carries[carry->second];
  unsigned depth = std::max(result.depth, running.depth);
  if (startsFromCarry) {
    running.value = inScope(depth, [&] { return broadcast(total, running.axes, depth).value; });
    return result;
  }
  return inScope(depth, [&] {
    Value before = broadcast(running, result.axes, depth).value;
    result.value = combine(op.getKind(), before, result.value);
    running.value =
        combine(op.getKind(), running.value, broadcast(total, running.axes, depth).value);
    return TileValue{result.value, result.axes, depth};
  });
}

TileValue BlockProgram::scanAsReduction(tk::ScanOp op) {
  // A loop that is written twice comes here twice; the first time takes the scan's body.
  tk::ReduceOp &known = reductionOf[op];
  if (known)
    return get(known.getResult(0));
  OpBuilder before(op);
  Location loc = op.getLoc();
  Value one = arith::ConstantIndexOp::create(before, loc, 1);
  Value next = arith::AddIOp::create(before, loc, op.getPosition(), one);
  Value upper = arith::MinSIOp::create(before, loc, op.getUpper(), next);
  auto kind = before.getArrayAttr({ReduceKindAttr::get(before.getContext(), op.getKind())});
  auto reduction = tk::ReduceOp::create(
      before, loc, TypeRange{op.getResult().getType()}, kind,
      before.getStrArrayAttr({op.getIndexName()}), ValueRange{op.getLower()}, ValueRange{upper},
      PrecisionAttr::get(before.getContext(), Precision::Default));
  if (hasDecays(op)) {
    // The compute op keeps the number of its reductions: further programs are built from it.
    IRMapping mapping;
    op.getBody().cloneInto(&reduction.getBody(), mapping);
    weightTerms(reduction, upper);
  } else {
    reduction.getBody().takeBody(op.getBody());
  }
  reduceTiles[reduction] = reduceTiles.lookup(op);
  known = reduction;
  return get(reduction.getResult(0));
}

/// The body of a statement may be built again, as for single elements of its results. Inner scans,
/// which came later, may be copies in the reduction of an outer one.
void BlockProgram::restoreScans() {
  for (auto &[scan, reduction] : llvm::reverse(reductionOf)) {
    Region &body = cast<tk::ScanOp>(scan).getBody();
    if (body.empty())
      body.takeBody(reduction.getBody());
    reduction.erase();
  }
  reductionOf.clear();
}
