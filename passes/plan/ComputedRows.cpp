//===- ComputedRows.cpp - operands that threads compute -------------------===//
#include "passes/plan/ComputedRows.h"

#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"

using namespace mlir;
using namespace tk;

int64_t tk::bitsOfComputedOperand(ComputeOp compute, Contraction &product, Value rows) {
  if (!goThroughRegisters(compute, rows))
    return 0;
  int64_t bits = 0;
  auto isAlong = [](LoadOp load, Value index) {
    return llvm::any_of(load.getIndices(), [&](Value at) {
      return llvm::is_contained(getIterationIndices(at), cast<BlockArgument>(index));
    });
  };
  for (Value term : product.op.getYield().getValues())
    for (Value factor : term.getDefiningOp()->getOperands())
      for (LoadOp load : getElementsOf(factor).value_or(SmallVector<LoadOp>()))
        if (isAlong(load, rows) && isAlong(load, product.k))
          bits = std::max<int64_t>(bits, load.getType().getIntOrFloatBitWidth());
  return bits;
}
