//===- BlockScan.cpp - prefix reductions ----------------------------------===//
//
// A scan at a bare index whose whole range is in one tile is a tkgpu.scan of that tile; along the
// index that the block steps through it carries on from tile to tile. Any other is the reduction
// that it equals by definition.
//
//===----------------------------------------------------------------------===//
#include "passes/tiling/BlockProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tk;

/// Opens the loop over the index that the block steps through. Scans along it carry what they have
/// reduced so far.
void BlockProgram::openLoop() {
  if (!loopAxis)
    return;
  unsigned id = *loopAxis;
  SmallVector<Value> initial;
  for (tk::ScanOp op : compute.getBlock()->getOps<tk::ScanOp>()) {
    auto axis = axisOf.find(op.getPosition());
    if (axis == axisOf.end() || axis->second != id || !isPlainScan(op, id))
      continue;
    axisOf[op.getBlock()->getArgument(0)] = id;
    llvm::SetVector<unsigned> set = axesOf(op.getYield().getValues().front());
    set.remove(id);
    Axes carried = sorted(set);
    TileValue identity{constant(identityOf(op.getKind(), op.getResult().getType())), {}, 0};
    identity = broadcast(identity, carried, 0);
    carryOf[op] = carries.size();
    carries.push_back({identity.value, carried, 1});
    initial.push_back(identity.value);
  }
  Value end = kernelValue(axes[id].rangeEnd);
  auto forOp =
      scf::ForOp::create(at(0), loc, indexConstant(0), end, indexConstant(axes[id].size), initial);
  loopOp = forOp;
  scopes[0].before = forOp;
  Block *body = forOp.getBody();
  Scope &inner = scopes.emplace_back();
  inner.block = body;
  inner.before = body->empty() ? nullptr : &body->back();
  axes[id].depth = 1;
  axes[id].start = forOp.getInductionVar();
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

/// Does the scan run from 0 over the whole range of the axis, with terms that use its own index
/// only?
bool BlockProgram::isPlainScan(tk::ScanOp op, unsigned id) {
  if (getConstantIndex(op.getLower()) != 0 || op.getUpper() != axes[id].rangeEnd)
    return false;
  llvm::SetVector<Value> free;
  getUsedValuesDefinedAbove(op.getBody(), free);
  return llvm::none_of(free, [&](Value value) { return axesOf(value).contains(id); });
}

TileValue BlockProgram::scan(tk::ScanOp op) {
  auto axis = axisOf.find(op.getPosition());
  auto carry = carryOf.find(op);
  bool isWhole = axis != axisOf.end() && axes[axis->second].isWhole &&
                 !axes[axis->second].isScalar && isPlainScan(op, axis->second);
  if (!isWhole && carry == carryOf.end())
    return scanAsReduction(op);
  unsigned id = axis->second;
  // Elements beyond the end come after all others: they need no mask.
  axisOf[op.getBlock()->getArgument(0)] = id;
  TileValue term = get(op.getYield().getValues().front());
  TileValue result = term, total = term; // of a step of one index value
  if (!axes[id].isScalar) {
    term = broadcast(term, unite(term.axes, {id}), term.depth);
    int64_t position = llvm::find(term.axes, id) - term.axes.begin();
    result = total = term;
    total.axes.erase(total.axes.begin() + position);
    auto scanned = gpu::ScanOp::create(at(term.depth), op.getLoc(), term.value.getType(),
                                       tileType(total.axes, op.getResult().getType()), term.value,
                                       op.getKind(), position);
    result.value = scanned.getResult();
    total.value = scanned.getTotal();
  }
  if (carry == carryOf.end())
    return result;
  TileValue &running = carries[carry->second];
  unsigned depth = std::max(result.depth, running.depth);
  return inScope(depth, [&] {
    Value before = broadcast(running, result.axes, depth).value;
    result.value = combine(op.getKind(), before, result.value);
    running.value =
        combine(op.getKind(), running.value, broadcast(total, running.axes, depth).value);
    return TileValue{result.value, result.axes, depth};
  });
}

TileValue BlockProgram::scanAsReduction(tk::ScanOp op) {
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
  reduction.getBody().takeBody(op.getBody());
  reduceTiles[reduction] = reduceTiles.lookup(op);
  return get(reduction.getResult(0));
}
