//===- Reach.cpp - a producer's indices seen from the consumer ------------===//
//
// The consumer's indices that a reduction of the producer depends on at a read, and a budget of
// repetitions along the others.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/fuse/FuseProducersCost.h"

using namespace mlir;

namespace tk {

bool isParallel(BlockArgument index, ComputeOp consumer) {
  return index.getOwner() == consumer.getBlock();
}

Reach getReach(Operation *reduction, Read read) {
  auto compute = cast<ComputeOp>(read.producer.getOwner());
  SmallVector<unsigned> axes = compute.getIndicesOf(read.producer.getResultNumber());
  Reach reach;
  for (auto [axis, component] : llvm::zip_equal(axes, read.load.getIndices())) {
    Dependence depends(ValueRange{compute.getIndex(axis)});
    if (!llvm::any_of(getInputs(reduction), [&](Value input) { return depends.on(input); }))
      continue;
    ++reach.numComponents;
    SmallVector<BlockArgument> indices = getIterationIndices(component);
    reach.allPlain &= indices.empty() || component == indices.front();
    for (BlockArgument index : indices)
      (isParallel(index, read.consumer) ? reach.parallel : reach.reduced).insert(index);
  }
  for (BlockArgument index : read.consumer.getBlock()->getArguments())
    if (!reach.parallel.contains(index))
      reach.extra.push_back(index);
  return reach;
}

Value getExtent(BlockArgument index, ComputeOp consumer) {
  return consumer.getExtents()[index.getArgNumber()];
}

bool RepeatBudget::allows(BlockArgument index, ComputeOp consumer) {
  return allows(getExtent(index, consumer));
}

bool RepeatBudget::allows(Value end) {
  int64_t upper = getUpperBound(end);
  if (upper < 0 || upper > left)
    return false;
  left /= std::max<int64_t>(upper, 1);
  return true;
}

std::string quote(BlockArgument index, ComputeOp consumer) {
  return ("'" + cast<StringAttr>(consumer.getIndexNames()[index.getArgNumber()]).getValue() + "'")
      .str();
}

} // namespace tk
