//===- StoreByTime.cpp - choose what is stored by the predicted time ------===//
//
// The cost rule of tk-fuse-producers looks at a producer and its readers. It does not see which
// plan the fused kernel gets, and neither does a rule about the axes of a product. This file
// compares whole plans, where that of the rules is far above the least time of the program.
//
// 1. Predict the time of the lowered kernel, for the sizes of its key.
// 2. If it is above the least time, lower the kernel again with the axes of each product in order
//    (OrderAxes.cpp), and with each product computed where it is read that is stored for readers
//    which reduce its rows (ChosenResults.cpp), as for the weights of a softmax that is returned.
//    If it is far above it, do so with each result stored, too, that is computed where it is read;
//    before that with all those stored together which are rounded operands of products: a loop
//    over tiles of two computed operands gains little from one of them.
// 3. Keep the change that saves most, or the first that saves three quarters. Go on from there.
//    The number of comparisons is bounded by the operations of the kernel.
//
//===----------------------------------------------------------------------===//
#include "compiler/CompiledSource.h"

#include "compiler/BatchInvariance.h"
#include "compiler/Dump.h"
#include "compiler/LeastCost.h"
#include "compiler/UsualTables.h"
#include "compiler/arch/Architecture.h"
#include "dialects/tk/TkInvariance.h"
#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/analysis/FusionChoices.h"
#include "passes/analysis/ProducerKind.h"
#include "passes/machine/LaunchCost.h"
#include "passes/machine/limits/StoreByTime.h"
#include "passes/tensor/split/OrderAxes.h"

#include "runtime/Environment.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace tk::limits::store_by_time;

namespace tk {

/// The sizes that a kernel is planned for: the bounds of its dimensions. Nothing if one has none.
static std::optional<SmallVector<int64_t>> plannedSizes(KernelOp kernel) {
  SmallVector<int64_t> sizes;
  for (unsigned dim = 0; dim < kernel.getNumDims(); ++dim) {
    std::optional<int64_t> upper = kernel.getFact(dim).getUpper();
    if (!upper)
      return std::nullopt;
    sizes.push_back(*upper);
  }
  return sizes;
}

/// The results that tk-fuse-producers computed where they are read.
static SmallVector<std::string> inlinedResults(KernelOp kernel) {
  SmallVector<std::string> names;
  for (const Note &note : getNotes(kernel))
    if (note.verdict == Verdict::Derived && !note.stored.empty() && !note.stored.contains('+') &&
        !llvm::is_contained(names, note.stored))
      names.push_back(note.stored.str());
  return names;
}

/// The results whose products have axes in another order than a matrix product's.
static SmallVector<std::string> unorderedProducts(KernelOp kernel) {
  SmallVector<std::string> names;
  if (auto list = kernel->getAttrOfType<ArrayAttr>(unorderedAttrName))
    for (StringRef name : list.getAsValueRange<StringAttr>())
      names.push_back(name.str());
  return names;
}

/// The products that are stored, and read in the terms of a reduction.
static SmallVector<std::string> reducedProducts(KernelOp fused) {
  SmallVector<std::string> names;
  for (ComputeOp compute : fused.getBody().front().getOps<ComputeOp>())
    for (OpResult result : compute->getResults()) {
      const bool isReduced = llvm::any_of(result.getUsers(), [](Operation *user) {
        return isa<LoadOp>(user) && isa<ReduceOp>(user->getParentOp());
      });
      if (isReduced && classify(result) == ProducerKind::Products)
        names.push_back(
            cast<StringAttr>(compute.getNames()[result.getResultNumber()]).getValue().str());
    }
  return names;
}

static void setChanges(ModuleOp module, ArrayRef<PlanChange> changes) {
  for (StringRef attribute : {storedByTimeAttrName, inlinedByTimeAttrName, orderedByTimeAttrName}) {
    SmallVector<StringRef> names;
    for (const PlanChange &change : changes)
      if (change.attribute == attribute)
        names.push_back(change.name);
    if (!names.empty())
      module->setAttr(attribute, Builder(module.getContext()).getStrArrayAttr(names));
  }
}

namespace {
/// A lowered kernel: its time in ns, what it computes where it is read, which products have axes in
/// another order, and which ones it stores for readers that reduce them.
struct Trial {
  double time = 0;
  SmallVector<std::string> inlined, unordered, products;

  /// What may be changed if the least time of the program is `least`. Products are tried first:
  /// they are few.
  SmallVector<PlanChange> changes(double least) const;
};
} // namespace

SmallVector<PlanChange> Trial::changes(double least) const {
  SmallVector<PlanChange> changes;
  if (time > kTimesLeastOfProducts * least) {
    for (const std::string &name : unordered)
      changes.push_back({orderedByTimeAttrName, name});
    for (const std::string &name : products)
      changes.push_back({inlinedByTimeAttrName, name});
  }
  if (time > kTimesLeast * least)
    for (const std::string &name : inlined)
      changes.push_back({storedByTimeAttrName, name});
  return changes;
}

/// The results with elements of at most 16 bits that the terms of sums read.
static SmallVector<std::string> roundedOperands(KernelOp tensors) {
  SmallVector<std::string> names;
  for (ComputeOp compute : tensors.getBody().front().getOps<ComputeOp>())
    for (OpResult result : compute->getResults()) {
      auto element = dyn_cast<FloatType>(cast<TensorType>(result.getType()).getElementType());
      const bool isRead = llvm::any_of(result.getUsers(), [](Operation *user) {
        auto around = dyn_cast<ReduceOp>(user->getParentOp());
        return isa<LoadOp>(user) && around && around.getKind(0) == ReduceKind::Sum;
      });
      if (element && element.getWidth() <= 16 && isRead)
        names.push_back(
            cast<StringAttr>(compute.getNames()[result.getResultNumber()]).getValue().str());
    }
  return names;
}

/// What is tried: each change alone, but first all those that store rounded `operands`.
static SmallVector<SmallVector<PlanChange>> groupChanges(ArrayRef<PlanChange> changes,
                                                         ArrayRef<std::string> operands) {
  SmallVector<SmallVector<PlanChange>> groups;
  SmallVector<PlanChange> together;
  for (const PlanChange &change : changes)
    if (change.attribute == storedByTimeAttrName && llvm::is_contained(operands, change.name))
      together.push_back(change);
  if (together.size() > 1)
    groups.push_back(together);
  for (const PlanChange &change : changes)
    groups.push_back({change});
  return groups;
}

static void logTrial(ArrayRef<PlanChange> changes, double made, double before) {
  const StringRef attribute = changes.front().attribute;
  StringRef how = attribute == storedByTimeAttrName    ? "stored"
                  : attribute == inlinedByTimeAttrName ? "computed where it is read"
                                                       : "multiplied in order";
  std::string names;
  for (const PlanChange &change : changes)
    names += (names.empty() ? "'" : ", '") + change.name + "'";
  detail::log_message("predicted: " + std::to_string(std::llround(made)) + " ns with " + names +
                      " " + how.str() + ", " + std::to_string(std::llround(before)) +
                      " ns without");
}

SmallVector<PlanChange> CompiledSource::changesByTime(ModuleOp tensors, ModuleOp lowered,
                                                      ModuleOp fused) {
  SmallVector<PlanChange> chosen;
  auto kernel = *tensors.getOps<KernelOp>().begin();
  std::optional<SmallVector<int64_t>> sizes = plannedSizes(kernel);
  auto target = tensors->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  if (!sizes || !target)
    return chosen;
  const size_t number = llvm::find(kernelNames, kernel.getSymName().str()) - kernelNames.begin();
  const std::string architecture =
      "sm_" + std::to_string(target.getArch()) + (target.getHopper() ? "a" : "");
  Expected<Machine> machine = findMachine(detail::architecture_of(architecture), driver.device);
  if (!machine)
    return chosen;
  const Signature &signature = kernelSignatures[number];
  std::vector<Scalar> variables(sizes->begin(), sizes->end());
  if (Expected<std::vector<Scalar>> all = complete_variables(signature, *sizes, {}))
    variables = *all;
  const ArrayRef<Scalar> defaults = ArrayRef(variables).drop_front(sizes->size());
  SmallVector<std::optional<int64_t>> scalars;
  for (const Scalar &scalar : defaults)
    scalars.push_back(scalar.is_float ? std::nullopt : std::optional(scalar.i));
  auto measure = [&](ModuleOp of, ModuleOp before) -> std::optional<Trial> {
    auto op = of.lookupSymbol<KernelOp>(kernel.getSymName());
    const TensorTables tables = usualTables(kernelOp(number), before, *sizes, defaults);
    std::optional<KernelCost> cost =
        costOfKernel(op, {*sizes, scalars, &tables}, *machine, [](StringRef) { return 0U; });
    if (!cost)
      return std::nullopt;
    return Trial{cost->nanoseconds, inlinedResults(op), unorderedProducts(op),
                 reducedProducts(before.lookupSymbol<KernelOp>(kernel.getSymName()))};
  };
  std::optional<Trial> now = measure(lowered, fused);
  if (!now || now->time <= kLeastTime)
    return chosen;
  const double least = leastCost(kernelOp(number), signature, variables, *machine).nanoseconds;
  // Nobody looks at the passes of a comparison.
  llvm::SaveAndRestore pipeline(driver.pipeline);
  driver.pipeline.printAfter.clear();
  driver.pipeline.afterPass = nullptr;
  driver.pipeline.last = PipelineOptions::allPasses;
  SmallVector<std::string> asked(driver.pipeline.inlined.begin(), driver.pipeline.inlined.end());
  llvm::append_range(asked, driver.pipeline.stored);
  auto isOpen = [&](const PlanChange &change) {
    return !llvm::is_contained(asked, change.name) &&
           llvm::none_of(chosen,
                         [&](const PlanChange &before) { return before.name == change.name; });
  };
  const SmallVector<std::string> operands = roundedOperands(kernel);
  unsigned perTrial = 0, operations = 0, rounds = 0;
  lowered.walk([&](Operation *) { ++perTrial; });
  while (now && rounds++ < kMostResults && now->time > kLeastTime) {
    std::optional<Trial> best;
    SmallVector<PlanChange> group, possible = now->changes(least);
    llvm::erase_if(possible, [&](const PlanChange &one) { return !isOpen(one); });
    for (const SmallVector<PlanChange> &some : groupChanges(possible, operands)) {
      operations += perTrial;
      if (operations > kMostOperations)
        break;
      OwningOpRef<ModuleOp> copy = tensors.clone(), copyFused;
      SmallVector<PlanChange> changes(chosen);
      llvm::append_range(changes, some);
      setChanges(*copy, changes);
      auto seen = [&](StringRef stage, ModuleOp module) {
        if (stage == "fused")
          copyFused = module.clone();
      };
      if (!lowerToFit(*copy, Stage::Gpu, Dump(), seen))
        continue;
      std::optional<Trial> made = measure(*copy, copyFused.get());
      if (made)
        logTrial(some, made->time, now->time);
      if (made && (!best || made->time < best->time))
        best = made, group = some;
      const double enough = group.size() > 1 ? kMostOfTime : kEnoughOfTime;
      if (best && best->time <= enough * now->time)
        break;
    }
    // What is stored already made it worth while: less is enough to go on.
    if (!best || best->time > (chosen.empty() ? kMostOfTime : kMostOfTimeMore) * now->time)
      break;
    llvm::append_range(chosen, group);
    now = best;
  }
  return chosen;
}

Status CompiledSource::lower(ModuleOp module, Stage to, const Dump &dump, StageSeen seen) {
  if (to < Stage::Gpu)
    return runStages(module, Stage::Tk, to, dump, seen);
  OwningOpRef<ModuleOp> tensors = module.clone(), fused;
  auto seenToo = [&](StringRef stage, ModuleOp reached) {
    if (stage == "fused")
      fused = reached.clone();
    if (seen)
      seen(stage, reached);
  };
  // What is fused must not depend on sizes where results do not.
  Status lowered = lowerToFit(module, to, dump, seenToo);
  if (!lowered || module->hasAttr(batchInvariantAttrName))
    return lowered;
  const SmallVector<PlanChange> changes = changesByTime(*tensors, module, *fused);
  if (changes.empty())
    return lowered;
  restore(module, *tensors);
  setChanges(module, changes);
  return lowerToFit(module, to, dump, seen);
}

} // namespace tk
