//===- StoreByTime.cpp - store results that cost too much where read ------===//
//
// The cost rule of tk-fuse-producers looks at a producer and its readers. It does not see which
// plan the fused kernel gets. This file compares whole plans, where that of the rule is far above
// the least time of the program.
//
// 1. Predict the time of the lowered kernel, for the sizes of its key.
// 2. If it is far above the least time, lower the kernel again with each result stored that is
//    computed where it is read.
// 3. Store the result that saves most, or the first that saves three quarters. Go on from there.
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
#include "passes/machine/LaunchCost.h"
#include "passes/machine/limits/StoreByTime.h"

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

static void setStored(ModuleOp module, ArrayRef<std::string> names) {
  SmallVector<StringRef> list(names.begin(), names.end());
  module->setAttr(storedByTimeAttrName, Builder(module.getContext()).getStrArrayAttr(list));
}

namespace {
/// A lowered kernel: its time in ns, and what it computes where it is read.
struct Trial {
  double time = 0;
  SmallVector<std::string> inlined;
};
} // namespace

SmallVector<std::string> CompiledSource::resultsToStore(ModuleOp tensors, ModuleOp lowered,
                                                        ModuleOp fused) {
  SmallVector<std::string> stored;
  auto kernel = *tensors.getOps<KernelOp>().begin();
  std::optional<SmallVector<int64_t>> sizes = plannedSizes(kernel);
  auto target = tensors->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  if (!sizes || !target)
    return stored;
  const size_t number = llvm::find(kernelNames, kernel.getSymName().str()) - kernelNames.begin();
  const std::string architecture =
      "sm_" + std::to_string(target.getArch()) + (target.getHopper() ? "a" : "");
  Expected<Machine> machine = findMachine(detail::architecture_of(architecture), driver.device);
  if (!machine)
    return stored;
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
    return Trial{cost->nanoseconds, inlinedResults(op)};
  };
  std::optional<Trial> now = measure(lowered, fused);
  if (!now || now->time <= kLeastTime)
    return stored;
  const double least = leastCost(kernelOp(number), signature, variables, *machine).nanoseconds;
  // Nobody looks at the passes of a comparison.
  llvm::SaveAndRestore pipeline(driver.pipeline);
  driver.pipeline.printAfter.clear();
  driver.pipeline.afterPass = nullptr;
  driver.pipeline.last = PipelineOptions::allPasses;
  unsigned perTrial = 0, operations = 0;
  lowered.walk([&](Operation *) { ++perTrial; });
  while (now && stored.size() < kMostResults && now->time > kLeastTime &&
         now->time > kTimesLeast * least) {
    std::optional<Trial> best;
    std::string name;
    for (const std::string &one : now->inlined) {
      operations += perTrial;
      if (llvm::is_contained(driver.pipeline.inlined, one) || operations > kMostOperations)
        continue;
      OwningOpRef<ModuleOp> copy = tensors.clone(), copyFused;
      SmallVector<std::string> names(stored);
      names.push_back(one);
      setStored(*copy, names);
      auto seen = [&](StringRef stage, ModuleOp module) {
        if (stage == "fused")
          copyFused = module.clone();
      };
      if (!lowerToFit(*copy, Stage::Gpu, Dump(), seen))
        continue;
      std::optional<Trial> made = measure(*copy, copyFused.get());
      if (made)
        detail::log_message("predicted: " + std::to_string(std::llround(made->time)) +
                            " ns with '" + one + "' stored, " +
                            std::to_string(std::llround(now->time)) + " ns without");
      if (made && (!best || made->time < best->time))
        best = made, name = one;
      if (best && best->time <= kEnoughOfTime * now->time)
        break;
    }
    if (!best || best->time > kMostOfTime * now->time)
      break;
    stored.push_back(name);
    now = best;
  }
  return stored;
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
  const SmallVector<std::string> stored = resultsToStore(*tensors, module, *fused);
  if (stored.empty())
    return lowered;
  restore(module, *tensors);
  setStored(module, stored);
  return lowerToFit(module, to, dump, seen);
}

} // namespace tk
