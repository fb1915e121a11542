//===- EqualOperands.cpp - operands of several products --------------------===//
#include "passes/tensor/windows/EqualOperands.h"

#include "passes/analysis/EqualComputes.h"
#include "passes/tensor/normalize/PadConditions.h"

using namespace mlir;
using namespace tk;

/// Does `compute` give one tensor, without a reduction or a scan?
static bool isElementwise(ComputeOp compute) {
  return compute.getNumResults() == 1 &&
         llvm::none_of(*compute.getBlock(), [](Operation &op) { return op.getNumRegions() != 0; });
}

void tk::shareEqualOperands(KernelOp kernel) {
  SmallVector<ComputeOp> kept;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>())) {
    if (!isElementwise(compute))
      continue;
    ComputeOp same = findEqual(kept, compute);
    const bool isOne = same && same->getResultTypes() == compute->getResultTypes() &&
                       same.getIndicesOf(0) == compute.getIndicesOf(0);
    // A result of the kernel keeps its own statement, which may write where the caller says.
    if (!isOne || llvm::any_of(compute->getUsers(), llvm::IsaPred<ReturnOp>)) {
      kept.push_back(compute);
      continue;
    }
    if (Attribute isApart = compute->getAttr(storedApartAttrName))
      same->setAttr(storedApartAttrName, isApart);
    compute->replaceAllUsesWith(same->getResults());
    compute.erase();
  }
}
