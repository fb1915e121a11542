//===- ComputedRows.cpp - operands that threads compute -------------------===//
#include "passes/plan/ComputedRows.h"

#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"

using namespace mlir;
using namespace tk;

int64_t tk::bitsOfComputedOperand(ComputeOp compute, Contraction &product, Value rows) {
  if (product.operand.getIntOrFloatBitWidth() != 16 || !goThroughRegisters(compute, rows))
    return 0;
  int64_t bits = 0;
  auto isAlongRows = [&](Value at) {
    return llvm::is_contained(getIterationIndices(at), cast<BlockArgument>(rows));
  };
  auto isAlongSum = [&](Value at) { return runsOneByOne(at, product.k); };
  for (Value term : product.op.getYield().getValues())
    for (Value factor : term.getDefiningOp()->getOperands())
      for (LoadOp load : getElementsOf(factor).value_or(SmallVector<LoadOp>()))
        if (llvm::any_of(load.getIndices(), isAlongRows) &&
            llvm::any_of(load.getIndices(), isAlongSum))
          bits = std::max<int64_t>(bits, load.getType().getIntOrFloatBitWidth());
  return bits;
}
