//===- ProducerKind.cpp - what a result takes to compute ------------------===//
#include "passes/analysis/ProducerKind.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"

using namespace mlir;

namespace tk {

static Value getYielded(OpResult producer) {
  return cast<ComputeOp>(producer.getOwner()).getYield().getValues()[producer.getResultNumber()];
}

SmallVector<Operation *> getProducerSlice(OpResult producer) {
  return getSlice(getYielded(producer), cast<ComputeOp>(producer.getOwner()).getBlock());
}

ProducerKind classify(OpResult producer) {
  ProducerKind kind = ProducerKind::Pointwise;
  for (Operation *op : getProducerSlice(producer)) {
    bool scans = op->walk([](ScanOp) { return WalkResult::interrupt(); }).wasInterrupted();
    if (scans)
      return ProducerKind::Scan;
    if (!isa<ReduceOp>(op))
      continue;
    if (isHeavy(op) || isContraction(cast<ReduceOp>(op)))
      kind = ProducerKind::Products;
    else if (kind == ProducerKind::Pointwise)
      kind = ProducerKind::Rows;
  }
  return kind;
}

bool replacesParameter(KernelOp kernel, ComputeOp compute) {
  OperandRange returned = kernel.getReturn().getResults();
  return llvm::any_of(returned.drop_front(kernel.getResultNames().size()),
                      [&](Value value) { return value.getDefiningOp() == compute; });
}

} // namespace tk
