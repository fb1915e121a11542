//===- PackedFactors.cpp - operands computed from packed numbers ----------===//
#include "passes/analysis/PackedFactors.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tk;

/// The operations inside the compute op of `reduce` that `values` need.
static llvm::SetVector<Operation *> getNeeded(ValueRange values, ReduceOp reduce) {
  auto compute = reduce->getParentOfType<ComputeOp>();
  llvm::SetVector<Operation *> needed;
  SmallVector<Value> work(values);
  while (!work.empty())
    if (Operation *op = work.pop_back_val().getDefiningOp();
        op && compute->isProperAncestor(op) && needed.insert(op))
      llvm::append_range(work, op->getOperands());
  return needed;
}

bool tk::isUnpacked(Value factor, ReduceOp reduce) {
  return llvm::any_of(getNeeded(factor, reduce), [&](Operation *op) {
    // A value that is loaded decides where a table is read.
    if (auto load = dyn_cast<LoadOp>(op))
      return llvm::any_of(getNeeded(load.getIndices(), reduce), llvm::IsaPred<LoadOp>);
    return isa<FloorModOp>(op) && isa<BlockArgument>(op->getOperand(0)) &&
           getConstantIndex(op->getOperand(1)).has_value();
  });
}

Value tk::findPackedFactor(ReduceOp reduce) {
  if (reduce.isOnline() || reduce.getNumIndices() != 1 || reduce.getNumAccumulators() != 1 ||
      !isMatrixProduct(reduce))
    return {};
  auto product = reduce.getYield().getValues()[0].getDefiningOp<arith::MulFOp>();
  if (!product)
    return {};
  Value found;
  for (Value operand : product->getOperands()) {
    Value factor = withoutExtension(operand);
    if (!factor.getType().isF16() && !factor.getType().isBF16())
      return {};
    if (factor.getDefiningOp<LoadOp>() || !isUnpacked(factor, reduce))
      continue;
    if (found)
      return {};
    found = factor;
  }
  return found;
}

bool tk::isUnpackedInParts(KernelOp kernel, ReduceOp reduce, Value factor, int64_t unit) {
  const int64_t divisor = getSizeFact(kernel, reduce.getUpper()[0]).divisor;
  if (!isUnpacked(withoutExtension(factor), reduce) || divisor % unit != 0)
    return false;
  Value k = reduce.getIndex(0);
  return llvm::all_of(getSlice(factor, reduce.getBlock()), [&](Operation *op) {
    if (op->getNumRegions() != 0)
      return false;
    if (!llvm::is_contained(op->getOperands(), k) || isa<LoadOp>(op))
      return true;
    if (!isa<FloorDivOp, FloorModOp>(op) || op->getOperand(0) != k)
      return false;
    std::optional<int64_t> run = getConstantIndex(op->getOperand(1));
    return run && *run > 0 && unit % *run == 0;
  });
}
