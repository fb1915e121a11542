//===- LoopSlice.cpp - what a loop computes early -------------------------===//
#include "passes/pipeline/LoopSlice.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tk;

bool LoopSlice::add(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner() != loop.getBody() || argument == loop.getInductionVar();
  Operation *op = value.getDefiningOp();
  if (!loop->isProperAncestor(op))
    return true;
  if (op->getBlock() != loop.getBody() || op->getNumRegions() > 0 || isa<gpu::LoadOp>(op) ||
      !isMemoryEffectFree(op))
    return false;
  if (ops.contains(op))
    return true;
  if (!llvm::all_of(op->getOperands(), [&](Value operand) { return add(operand); }))
    return false;
  ops.insert(op);
  return true;
}

IRMapping LoopSlice::cloneFor(OpBuilder &builder, Value inductionVar, Value iteration) const {
  IRMapping mapping;
  mapping.map(inductionVar, iteration);
  for (Operation *op : ops)
    builder.clone(*op, mapping);
  return mapping;
}

Value tk::nextSlot(OpBuilder &builder, Location loc, Value slot, int64_t stages) {
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value next = arith::AddIOp::create(builder, loc, slot, constant(1));
  Value isEnd =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, next, constant(stages));
  return arith::SelectOp::create(builder, loc, isEnd, constant(0), next);
}
