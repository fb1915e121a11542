//===- OnlyTerms.cpp - reductions of one term at most ---------------------===//
//
// Part of tk-simplify. A mask that admits one element of a row, as the label's in the gradient of a
// loss, leaves a range of one term at most:
//
//   tk.reduce [sum] ["c"] from (max(%t, 0)) to (min(%C, %t + 1)) {load %x[%r, %c]}
//     →  select (max(%t, 0) < min(%C, %t + 1)), (load %x[%r, %t] pad 0), 0
//
// The block then reads that element of each row, and does not go through the terms that some of its
// rows have.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/normalize/Simplify.h"

#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tk;

/// The operands of a maximum or minimum, and of those inside it; else the value itself.
template <class Op> static void collectOperands(Value value, SmallVectorImpl<Value> &operands) {
  if (auto op = value.getDefiningOp<Op>()) {
    collectOperands<Op>(op.getLhs(), operands);
    collectOperands<Op>(op.getRhs(), operands);
  } else {
    operands.push_back(value);
  }
}

/// The one value that the index of `reduce` may have; null if it may have several.
static Value getOnlyIndex(ReduceOp reduce) {
  SmallVector<Value> least, ends;
  collectOperands<arith::MaxSIOp>(reduce.getLower()[0], least);
  collectOperands<arith::MinSIOp>(reduce.getUpper()[0], ends);
  for (Value end : ends)
    if (auto next = end.getDefiningOp<arith::AddIOp>();
        next && isConstantIntValue(next.getRhs(), 1))
      if (llvm::is_contained(least, next.getLhs()))
        return next.getLhs();
  return {};
}

bool tk::takeOnlyTerm(ReduceOp reduce) {
  const ReduceKind kind = reduce.getKind(0);
  const bool isKnown = llvm::is_contained(
      {ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Max, ReduceKind::Min}, kind);
  if (reduce.isOnline() || !isKnown || reduce.getNumIndices() != 1 || isContraction(reduce) ||
      llvm::any_of(*reduce.getBlock(), [](Operation &op) { return op.getNumRegions() > 0; }))
    return false;
  Value only = getOnlyIndex(reduce);
  // What sizes say is a range like others.
  if (!only || getIterationIndices(only).empty())
    return false;
  OpBuilder builder(reduce);
  Location loc = reduce.getLoc();
  IRMapping mapping;
  mapping.map(reduce.getIndex(0), only);
  for (Operation &op : reduce.getBlock()->without_terminator()) {
    auto load = dyn_cast<LoadOp>(builder.clone(op, mapping));
    if (!load || load.getPad())
      continue;
    // Where there is no term, its place is outside.
    OpBuilder before(load);
    load.getPadMutable().assign(
        createIdentity(before, loc, ReduceKind::Sum, load.getResult().getType()));
  }
  Value term = mapping.lookupOrDefault(reduce.getYield().getValues()[0]);
  Value exists = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                       reduce.getLower()[0], reduce.getUpper()[0]);
  Value identity = createIdentity(builder, loc, kind, term.getType());
  Value result = arith::SelectOp::create(builder, loc, exists, term, identity);
  reduce.getResult(0).replaceAllUsesWith(result);
  reduce.erase();
  return true;
}
