//===- ComputationNumbers.cpp - number computations whose order counts ----===//
#include "passes/analysis/ValueCopies.h"

using namespace mlir;

namespace tk {

bool dependsOnOrder(ReduceKind kind, Type type) {
  return isa<FloatType>(type) && (kind == ReduceKind::Sum || kind == ReduceKind::Prod);
}

void numberComputations(KernelOp kernel, int64_t &next) {
  kernel->walk([&](Operation *op) {
    SmallVector<int64_t> numbers;
    if (auto reduce = dyn_cast<ReduceOp>(op))
      for (unsigned n = 0; n < reduce.getNumAccumulators(); ++n)
        numbers.push_back(dependsOnOrder(reduce.getKind(n), reduce.getResult(n).getType()) ? next++
                                                                                           : -1);
    else if (auto scan = dyn_cast<ScanOp>(op))
      numbers.push_back(dependsOnOrder(scan.getKind(), scan.getResult().getType()) ? next++ : -1);
    if (llvm::any_of(numbers, [](int64_t number) { return number >= 0; }))
      op->setAttr(computationsAttrName, DenseI64ArrayAttr::get(op->getContext(), numbers));
  });
}

void forgetComputations(KernelOp kernel) {
  kernel->walk([](Operation *op) { op->removeDiscardableAttr(computationsAttrName); });
}

ArrayRef<int64_t> getComputations(Operation *op) {
  auto numbers = op->getAttrOfType<DenseI64ArrayAttr>(computationsAttrName);
  return numbers ? numbers.asArrayRef() : ArrayRef<int64_t>();
}

Attribute joinComputations(ArrayRef<ReduceOp> reductions) {
  SmallVector<int64_t> numbers;
  for (ReduceOp reduce : reductions) {
    ArrayRef<int64_t> own = getComputations(reduce);
    if (own.empty())
      numbers.append(reduce.getNumAccumulators(), -1);
    else
      llvm::append_range(numbers, own);
  }
  if (llvm::all_of(numbers, [](int64_t number) { return number < 0; }))
    return {};
  return DenseI64ArrayAttr::get(reductions.front()->getContext(), numbers);
}

bool holdsComputation(Operation *root, const llvm::DenseSet<int64_t> &numbers) {
  auto isOne = [&](int64_t number) { return number >= 0 && numbers.contains(number); };
  return root
      ->walk([&](Operation *op) {
        return llvm::any_of(getComputations(op), isOne) ? WalkResult::interrupt()
                                                        : WalkResult::advance();
      })
      .wasInterrupted();
}

void addComputations(Operation *op, llvm::DenseSet<int64_t> &numbers) {
  for (int64_t number : getComputations(op))
    if (number >= 0)
      numbers.insert(number);
}

} // namespace tk
