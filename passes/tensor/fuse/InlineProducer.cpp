//===- InlineProducer.cpp - a producer's expression at a read -------------===//
//
// Clones the expression at the load's indices. An operation that does not depend on a reduction's
// index moves out of that reduction. A padded load becomes a selection between the element and the
// padding value, and the loads of the clone become padded too.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/fuse/InlineProducer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tk;

/// Before the load, or before the outermost reduction around it that `op`'s inputs do not need.
void Inliner::setInsertionPoint(Operation *op) {
  builder.setInsertionPoint(load);
  if (!mayMoveOut)
    return;
  SmallVector<Value> inputs;
  for (Value input : getInputs(op))
    inputs.push_back(mapping.lookupOrDefault(input));
  Operation *at = load;
  while (!isa<ComputeOp>(at->getParentOp())) {
    Region *around = at->getParentRegion();
    if (llvm::any_of(inputs, [&](Value v) { return around->isAncestor(v.getParentRegion()); }))
      break;
    at = around->getParentOp();
  }
  builder.setInsertionPoint(at);
}

Value Inliner::clone(Value value) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != compute.getBlock())
    return value;
  for (Value input : getInputs(op))
    clone(input);
  setInsertionPoint(op);
  cloned.push_back(builder.clone(*op, mapping));
  return mapping.lookup(value);
}

Value Inliner::selectInBounds(Value element) {
  builder.setInsertionPoint(load);
  Location loc = load.getLoc();
  for (Operation *op : cloned)
    op->walk([&](LoadOp inner) {
      if (inner.getPad())
        return;
      OpBuilder before(inner);
      inner.getPadMutable().assign(
          createIdentity(before, loc, ReduceKind::Sum, inner.getResult().getType()));
    });
  SmallVector<unsigned> axes = compute.getIndicesOf(producer.getResultNumber());
  Value inside;
  auto require = [&](arith::CmpIPredicate predicate, Value a, Value b) {
    Value holds = arith::CmpIOp::create(builder, loc, predicate, a, b);
    inside = inside ? arith::AndIOp::create(builder, loc, inside, holds).getResult() : holds;
  };
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  for (auto [axis, index] : llvm::zip_equal(axes, load.getIndices())) {
    auto arg = dyn_cast<BlockArgument>(index);
    if (arg && arg.getOwner() == consumer.getBlock() &&
        isSameExtent(consumer.getExtents()[arg.getArgNumber()], compute.getExtents()[axis]))
      continue;
    require(arith::CmpIPredicate::sge, index, zero);
    require(arith::CmpIPredicate::slt, index, compute.getExtents()[axis]);
  }
  if (!inside)
    return element;
  return arith::SelectOp::create(builder, loc, inside, element, load.getPad());
}

/// Is `index` below `extent` whatever the sizes are? The proof for any other index that follows no
/// iteration may rest on a range not being empty.
static bool isWithin(Value index, Value extent) {
  std::optional<int64_t> place = getConstantIntValue(index), end = getConstantIntValue(extent);
  return place && end && 0 <= *place && *place < *end;
}

void Inliner::run() {
  SmallVector<unsigned> axes = compute.getIndicesOf(producer.getResultNumber());
  for (auto [axis, index] : llvm::zip_equal(axes, load.getIndices())) {
    mapping.map(compute.getIndex(axis), index);
    mayMoveOut &=
        !getIterationIndices(index).empty() || isWithin(index, compute.getExtents()[axis]);
  }
  mayMoveOut &= !load.getPad();
  Value element = clone(compute.getYield().getValues()[producer.getResultNumber()]);
  if (load.getPad())
    element = selectInBounds(element);
  load.getResult().replaceAllUsesWith(element);
  load.erase();
}
