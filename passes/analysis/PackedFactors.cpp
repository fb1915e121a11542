//===- PackedFactors.cpp - operands computed from packed numbers ----------===//
#include "passes/analysis/PackedFactors.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

/// True if a value that is loaded decides where `load` reads.
static bool isLookup(LoadOp load, Block *body) {
  return llvm::any_of(getSlice(load.getIndices(), body), llvm::IsaPred<LoadOp>);
}

bool tk::isUnpacked(Value factor, ReduceOp reduce) {
  Block *body = reduce.getBlock();
  return llvm::any_of(getSlice(factor, body), [&](Operation *op) {
    if (auto load = dyn_cast<LoadOp>(op))
      return isLookup(load, body);
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
