//===- EqualResults.cpp - stored results that are the same ----------------===//
//
// The derived kernel of a gradient has a copy of the scores for each loop that reads them, so that
// each loop can compute them. Copies that are stored all the same are one tensor:
//
//   %s = tk.compute ["i", "j"] {sum of q[i, d] * k[j, d]}
//   %t = tk.compute ["i", "j"] {sum of q[i, d] * k[j, d]}      the readers of %t read %s
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/EqualComputes.h"
#include "passes/tensor/fuse/FuseProducers.h"

#include "dialects/tkgpu/TkGpuDialect.h"

using namespace mlir;

namespace tk {

unsigned mergeEqualResults(KernelOp kernel) {
  SmallVector<ComputeOp> earlier;
  unsigned merged = 0;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().front().getOps<ComputeOp>())) {
    if (compute.getNumResults() != 1)
      continue;
    ComputeOp equal = findEqual(earlier, compute);
    const bool isOne = equal && equal->getResultTypes() == compute->getResultTypes() &&
                       equal.getIndicesOf(0) == compute.getIndicesOf(0);
    // A result of the kernel keeps its own statement, which may write where the caller says.
    if (!isOne || llvm::any_of(compute->getUsers(), llvm::IsaPred<ReturnOp>)) {
      earlier.push_back(compute);
      continue;
    }
    compute->replaceAllUsesWith(equal->getResults());
    compute->erase();
    ++merged;
  }
  return merged;
}

} // namespace tk
