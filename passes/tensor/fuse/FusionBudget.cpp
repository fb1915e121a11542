//===- FusionBudget.cpp - limits of recomputation by fusion ---------------===//
//
// A producer that a compute op reads at n places is computed n times for each element. A sequence
// of such producers grows by a factor of n with each link. Two limits stop that growth:
//
// 1. Work: the operations that a compute op repeats for an element cost less than a store and a
//    load of that element.
// 2. Code: the operations that all readers together repeat are few enough that each later pass sees
//    a program of a size proportional to the source's.
//
//   %t = tk.compute ["i"] {.. 400 operations ..}
//   %y = tk.compute ["i"] {.. %t[%i - 1] .. %t[%i] .. %t[%i + 1] ..}     %t is stored
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/fuse/FusionBudget.h"

#include "passes/analysis/Notes.h"
#include "passes/machine/Costs.h"
#include "passes/tensor/fuse/FuseProducersCost.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace tk {

/// The operations of the producer's expression, those in its reductions' terms included.
static size_t countOperations(OpResult producer) {
  size_t count = 0;
  for (Operation *op : getProducerSlice(producer))
    op->walk([&](Operation *) { ++count; });
  return count;
}

std::optional<std::string> whyOverBudget(ArrayRef<Read> reads) {
  if (reads.size() < 2)
    return std::nullopt;
  llvm::MapVector<Operation *, size_t> places;
  for (Read read : reads)
    ++places[read.consumer];
  const size_t operations = countOperations(reads.front().producer);
  for (auto [consumer, count] : places)
    if ((count - 1) * operations > cost::mostRepeatedOperations)
      return describe(cast<ComputeOp>(consumer)) + " would compute its " +
             std::to_string(operations) + " operations at " + std::to_string(count) +
             " places for each element";
  if ((reads.size() - 1) * operations > cost::mostRepeatedCode)
    return "its " + std::to_string(operations) + " operations would be repeated at " +
           std::to_string(reads.size()) + " places";
  return std::nullopt;
}

SmallVector<ComputeOp> getReadersWithEqualLoads(ArrayRef<Read> reads) {
  llvm::DenseSet<Value> loaded;
  reads.front().producer.getOwner()->walk([&](LoadOp load) { loaded.insert(load.getTensor()); });
  llvm::MapVector<Operation *, size_t> places;
  for (Read read : reads)
    ++places[read.consumer];
  SmallVector<ComputeOp> found;
  for (auto [reader, count] : places) {
    const bool sharesLoad = reader
                                ->walk([&](LoadOp load) {
                                  return loaded.contains(load.getTensor()) ? WalkResult::interrupt()
                                                                           : WalkResult::advance();
                                })
                                .wasInterrupted();
    if (count > 1 || sharesLoad)
      found.push_back(cast<ComputeOp>(reader));
  }
  return found;
}

void mergeEqualExpressions(ComputeOp compute) {
  IRRewriter rewriter(compute.getContext());
  DominanceInfo dominance(compute);
  eliminateCommonSubExpressions(rewriter, dominance, compute);
}

} // namespace tk
