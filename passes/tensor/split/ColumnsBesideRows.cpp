//===- ColumnsBesideRows.cpp - sums of columns beside rows -----------------===//
//
// The gradient of a norm reads its rows for the gradient by the rows, and again for the sums of
// columns that are the gradients by the weights. Where another compute op has the rows, its blocks
// can carry the sums (CarryColumns.cpp), which want to be partial results of parts of the rows.
// Many columns have enough blocks, so that they would stay whole.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/limits/Rows.h"
#include "passes/plan/CarriedTiles.h"
#include "passes/tensor/split/SplitReductions.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk;

using limits::carry_columns::leastGain, limits::carry_columns::partialBits;

/// The matrices that an operation reads.
static llvm::SetVector<Value> matricesOf(Operation *op) {
  llvm::SetVector<Value> found;
  op->walk([&](LoadOp load) {
    if (load.getIndices().size() == 2)
      found.insert(load.getTensor());
  });
  return found;
}

bool tk::isBesideRows(ReduceOp reduce, ComputeOp compute) {
  auto target =
      compute->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  auto kernel = compute->getParentOfType<KernelOp>();
  if (!target || !kernel || compute.getNumIndices() != 1 || reduce.getNumIndices() != 1)
    return false;
  const int64_t rows = getUpperBound(reduce.getUpper()[0]);
  const int64_t width = getUpperBound(compute.getExtents()[0]);
  if (rows < 1 || width < 1 ||
      !mayCarryColumns(target, width, getSizeFact(kernel, compute.getExtents()[0]).divisor))
    return false;
  const llvm::SetVector<Value> read = matricesOf(reduce);
  int64_t savedBits = 0;
  for (Value matrix : read)
    savedBits += cast<RankedTensorType>(matrix.getType()).getElementTypeBitWidth();
  if (double(rows * savedBits) < leastGain * double(partialBits * blocksThatCarry(target, width)))
    return false;
  return llvm::any_of(kernel.getBody().getOps<ComputeOp>(), [&](ComputeOp other) {
    if (other.getNumIndices() != 2 || !isSameExtent(other.getExtents()[0], reduce.getUpper()[0]) ||
        !isSameExtent(other.getExtents()[1], compute.getExtents()[0]))
      return false;
    const llvm::SetVector<Value> owned = matricesOf(other);
    return llvm::all_of(read, [&](Value matrix) { return owned.contains(matrix); });
  });
}
