//===- EqualOperands.cpp - operands of several products --------------------===//
#include "passes/tensor/windows/EqualOperands.h"

#include "passes/analysis/ScalarExpr.h"
#include "passes/tensor/normalize/PadConditions.h"

using namespace mlir;
using namespace tk;

/// Does `compute` give one tensor, without a reduction or a scan?
static bool isElementwise(ComputeOp compute) {
  return compute.getNumResults() == 1 &&
         llvm::none_of(*compute.getBlock(), [](Operation &op) { return op.getNumRegions() != 0; });
}

static bool areEqual(ComputeOp a, ComputeOp b) {
  if (a.getResultTypes() != b.getResultTypes() || a.getNumIndices() != b.getNumIndices() ||
      a.getIndicesOf(0) != b.getIndicesOf(0))
    return false;
  ScalarEquality equality;
  if (!equality.equal(a.getExtents(), b.getExtents()))
    return false;
  for (auto [x, y] : llvm::zip_equal(a.getBlock()->getArguments(), b.getBlock()->getArguments()))
    equality.identify(x, y);
  return equality.equal(a.getYield().getValues(), b.getYield().getValues());
}

void tk::shareEqualOperands(KernelOp kernel) {
  SmallVector<ComputeOp> kept;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>())) {
    if (!isElementwise(compute))
      continue;
    auto *same = llvm::find_if(kept, [&](ComputeOp other) { return areEqual(other, compute); });
    if (same == kept.end()) {
      kept.push_back(compute);
      continue;
    }
    if (Attribute isApart = compute->getAttr(storedApartAttrName))
      (*same)->setAttr(storedApartAttrName, isApart);
    compute->replaceAllUsesWith(same->getOperation()->getResults());
    compute.erase();
  }
}
