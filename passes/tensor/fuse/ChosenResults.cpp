//===- ChosenResults.cpp - results that the cost rule is not asked about --===//
//
// Attributes of the module name results that are stored, and results that are computed where they
// are read (FusionChoices.h).
//
// A product that is computed where it is read may have readers that reduce its rows, and readers of
// single elements beside what was reduced: the weights of a softmax beside its maximum and sum. The
// latter have tiles of the product, which hold no row. What was reduced of the rows is stored then,
// and each launch computes its elements of the product.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/fuse/ChosenResults.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/analysis/FusionChoices.h"
#include "passes/analysis/ValueCopies.h"
#include "passes/plan/ScheduleLimits.h"
#include "passes/tensor/fuse/FuseProducersCost.h"
#include "passes/tensor/normalize/PadConditions.h"

using namespace mlir;

namespace tk {

/// Does an attribute of the module name a result's compute op?
static bool isNamed(OpResult producer, StringRef attribute) {
  auto compute = cast<ComputeOp>(producer.getOwner());
  auto names = compute->getParentOfType<ModuleOp>()->getAttrOfType<ArrayAttr>(attribute);
  return names && llvm::is_contained(names, compute.getNames()[0]);
}

bool isChosenToStore(OpResult producer) {
  return isNamed(producer, storedAttrName) || isNamed(producer, storedByTimeAttrName) ||
         producer.getOwner()->hasAttr(storedApartAttrName);
}

std::optional<std::string> whyChosenToStore(OpResult producer) {
  if (isNamed(producer, storedAttrName))
    return "an option asks for it";
  if (producer.getOwner()->hasAttr(storedApartAttrName))
    return "the plan of its reader takes it to be stored";
  if (isNamed(producer, storedByTimeAttrName))
    return "the kernel is predicted to take less time so";
  return std::nullopt;
}

bool isTooLargeInside(OpResult producer, ProducerKind kind) {
  return kind != ProducerKind::Pointwise && !isNamed(producer, inlinedAttrName) &&
         producer.getOwner()->getParentOfType<ModuleOp>()->hasAttr(gpu::storesReductionsAttrName);
}

bool isInlinedByTime(OpResult producer) { return isNamed(producer, inlinedByTimeAttrName); }

bool shallInline(OpResult producer, ProducerKind kind) {
  return kind != ProducerKind::Scan &&
         (isNamed(producer, inlinedAttrName) || isInlinedByTime(producer));
}

/// Is `tensor` a product that shall be computed where it is read?
static bool isInlinedProduct(Value tensor) {
  auto result = dyn_cast<OpResult>(tensor);
  return result && isa<ComputeOp>(result.getOwner()) &&
         classify(result) == ProducerKind::Products && !isChosenToStore(result) &&
         shallInline(result, ProducerKind::Products);
}

/// Does `reduce` have a product in its terms that shall be computed where it is read?
static bool reducesInlined(ReduceOp reduce, const llvm::DenseSet<int64_t> &once) {
  return reduce
      ->walk([&](LoadOp load) {
        const bool isInlined = isInlinedProduct(load.getTensor()) &&
                               !holdsComputation(load.getTensor().getDefiningOp(), once);
        return isInlined ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool isStatisticOfInlined(Read read, const llvm::DenseSet<int64_t> &once) {
  return llvm::any_of(getProducerSlice(read.producer), [&](Operation *op) {
    auto reduce = dyn_cast<ReduceOp>(op);
    return reduce && !getReach(reduce, read).extra.empty() && !isUnderSoftmax(read) &&
           !isCarriedByReader(reduce, read) && reducesInlined(reduce, once);
  });
}

void addInlinedComputations(KernelOp kernel, llvm::DenseSet<int64_t> &numbers) {
  for (ComputeOp compute : kernel.getBody().front().getOps<ComputeOp>())
    if (llvm::any_of(compute->getResults(), [](OpResult of) { return isInlinedProduct(of); }))
      compute.walk([&](ReduceOp reduce) { addComputations(reduce, numbers); });
}

} // namespace tk
