//===- IndexSides.cpp - sides of comparisons as indices -------------------===//
//
// Reads a side, and each summand of it, as an index. A 64-bit parameter is clamped to one more than
// all that it is compared with, so that the comparison of indices has the same result.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/ranges/IndexSides.h"

#include "passes/analysis/ScalarCases.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

bool tk::canComputeEarlier(Value value) {
  return llvm::all_of(getSlice(value, value.getParentBlock()), [](Operation *op) {
    auto load = dyn_cast<LoadOp>(op);
    return op->getNumRegions() == 0 &&
           (!load || load.getPad() || llvm::all_of(load.getIndices(), [](Value index) {
             return !getIterationIndices(index).empty();
           }));
  });
}

/// What `value`, a sum of indices, sizes and numbers beside `wide`, is at most: `sizes` and
/// `constant` together, positive or negative. False if nothing is known.
static bool addMagnitudes(Value value, Value wide, SmallVectorImpl<Value> &sizes,
                          int64_t &constant) {
  APInt number;
  if (value == wide)
    return true;
  if (matchPattern(value, m_ConstantInt(&number))) {
    constant += std::abs(number.getSExtValue());
    return number.isSignedIntN(31);
  }
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *owner = argument.getOwner()->getParentOp();
    const unsigned n = argument.getArgNumber();
    Value size;
    if (auto kernel = dyn_cast<KernelOp>(owner); kernel && n < kernel.getNumDims())
      size = argument;
    if (auto compute = dyn_cast<ComputeOp>(owner))
      size = compute.getExtents()[n];
    if (auto reduce = dyn_cast<ReduceOp>(owner); reduce && n < reduce.getNumIndices())
      if (matchPattern(reduce.getLower()[n], m_Zero()))
        size = reduce.getUpper()[n];
    if (size)
      sizes.push_back(size);
    return static_cast<bool>(size);
  }
  Operation *op = value.getDefiningOp();
  return isa<arith::AddIOp, arith::SubIOp, arith::IndexCastOp>(op) &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return addMagnitudes(operand, wide, sizes, constant); });
}

Value IndexSides::clampToIndices(Value value, arith::CmpIOp cmp) {
  SmallVector<Value> sizes;
  int64_t constant = 1;
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || !isa<KernelOp>(argument.getOwner()->getParentOp()) ||
      !addMagnitudes(cmp.getLhs(), value, sizes, constant) ||
      !addMagnitudes(cmp.getRhs(), value, sizes, constant))
    return {};
  Location loc = reduce.getLoc();
  Value most = arith::ConstantIndexOp::create(builder, loc, constant);
  for (Value size : sizes)
    most = arith::AddIOp::create(builder, loc, most, size);
  most = arith::IndexCastOp::create(builder, loc, value.getType(), most);
  Value least = arith::SubIOp::create(
      builder, loc, arith::ConstantOp::create(builder, loc, builder.getZeroAttr(value.getType())),
      most);
  Value clamped = arith::MaxSIOp::create(
      builder, loc, least, arith::MinSIOp::create(builder, loc, most, value).getResult());
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), clamped);
}

Value IndexSides::asIndex(Value value, arith::CmpIOp cmp) {
  if (value.getType().isIndex())
    return value;
  if (auto cast = value.getDefiningOp<arith::IndexCastOp>();
      cast && cast.getIn().getType().isIndex() && value.getType().isInteger(64))
    return cast.getIn();
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)) && constant.isSignedIntN(32))
    return arith::ConstantIndexOp::create(builder, reduce.getLoc(), constant.getSExtValue());
  if (Operation *sum = value.getDefiningOp();
      isa_and_nonnull<arith::AddIOp, arith::SubIOp>(sum) && value.getType().isInteger(64)) {
    Value a = asIndex(sum->getOperand(0), cmp), b = asIndex(sum->getOperand(1), cmp);
    if (!a || !b)
      return {};
    OpBuilder inside(cmp);
    return isa<arith::AddIOp>(sum) ? arith::AddIOp::create(inside, sum->getLoc(), a, b).getResult()
                                   : arith::SubIOp::create(inside, sum->getLoc(), a, b);
  }
  if (value.getType().isInteger(64) && isa<BlockArgument>(value)) {
    const AssumedInteger known = assumedIntegerOf(value);
    if (known.least && known.most && llvm::isInt<32>(*known.least) && llvm::isInt<32>(*known.most))
      return arith::IndexCastOp::create(builder, reduce.getLoc(), builder.getIndexType(), value);
    return clampToIndices(value, cmp);
  }
  if (auto wider = value.getDefiningOp<arith::ExtSIOp>())
    value = wider.getIn();
  if (value.getType().getIntOrFloatBitWidth() > 32 || varying.on(value) ||
      !canComputeEarlier(value))
    return {};
  IRMapping mapping;
  Value outside = cloneSlice(builder, value, reduce.getBlock(), mapping);
  return arith::IndexCastOp::create(builder, reduce.getLoc(), builder.getIndexType(), outside);
}
