//===- PredictedCost.cpp - what a kernel costs at given sizes -------------===//
#include "compiler/PredictedCost.h"

#include "compiler/CompiledSource.h"
#include "compiler/Dump.h"
#include "compiler/StageText.h"
#include "compiler/Stages.h"
#include "compiler/UsualTables.h"
#include "compiler/arch/Architecture.h"
#include "compiler/plan/WorkCount.h"
#include "dialects/tkgpu/TkGpuPlan.h"

#include "llvm/ADT/STLExtras.h"

#include <tuple>

using namespace mlir;

namespace tk {

/// A location that names several lines gives each of them the same share.
static std::vector<LineTime> linesOf(const LaunchCost &launch, const SourceManager &sources) {
  PlaceTable places(sources);
  std::vector<LineTime> lines; // by the places' numbers
  const Prediction &time = launch.prediction;
  const double shared = time.total - time.launch - time.begin;
  for (const auto &[where, share] : launch.shares) {
    const std::vector<unsigned> numbers = places.numbers(where);
    for (unsigned number : numbers) {
      for (const SourcePlace &place : places.places().drop_front(lines.size())) {
        const SourceFile &file = sources.file(place.file);
        lines.push_back(
            {file.name(), place.line, llvm::StringRef(file.line(place.line)).trim().str(), 0});
      }
      lines[number].nanoseconds += shared * share / static_cast<double>(numbers.size());
    }
  }
  llvm::sort(lines, [](const LineTime &a, const LineTime &b) {
    return std::tie(b.nanoseconds, a.file, a.line) < std::tie(a.nanoseconds, b.file, b.line);
  });
  return lines;
}

Expected<std::unique_ptr<PredictedCost>> CompiledSource::predictCost(
    size_t kernel, std::string_view target, const Facts &given, llvm::ArrayRef<int64_t> dims,
    llvm::ArrayRef<std::optional<Scalar>> scalarsGiven, BlocksAtOnce blocksAtOnce) {
  std::lock_guard lock(mutex);
  if (dims.size() != kernelSignatures[kernel].dims.size())
    return std::unique_ptr<PredictedCost>();
  Facts facts = relevant_facts(kernel, target, given);
  Expected<OwningOpRef<ModuleOp>> copy = isolate(kernel, target, facts);
  if (!copy)
    return copy.error();
  Dump dump(kernelNames[kernel], target, facts);
  std::vector<std::vector<std::string>> names; // by statement
  OwningOpRef<ModuleOp> fused;
  auto seen = [&](llvm::StringRef stage, ModuleOp module) {
    if (stage != "fused")
      return;
    names = tileNamesOf(module);
    fused = module.clone();
  };
  if (Status lowered = lower(**copy, Stage::Gpu, dump, seen); !lowered)
    return lowered.error();
  auto cost = costOf(**copy, fused.get(), kernel, target, dims, scalarsGiven, blocksAtOnce);
  auto functions = (*copy)->getOps<gpu::FuncOp>();
  if (cost && *cost)
    for (gpu::FuncOp function : functions)
      if (gpu::KernelPlan plan = gpu::getPlan(function);
          plan.family == gpu::PlanFamily::Gemm || plan.family == gpu::PlanFamily::FusedGemm)
        (*cost)->accumulators = std::max((*cost)->accumulators, plan.tiles.getPerThread());
  // A statement has a function of its own, unless launches were joined.
  if (cost && *cost && llvm::range_size(functions) == names.size())
    for (auto [function, of] : llvm::zip(functions, names))
      (*cost)->tiles[function.getSymName().str()] = namedTiles(gpu::getTiles(function), of);
  return cost;
}

Expected<std::unique_ptr<PredictedCost>>
CompiledSource::costOf(ModuleOp lowered, ModuleOp fused, size_t kernel, std::string_view target,
                       llvm::ArrayRef<int64_t> dims,
                       llvm::ArrayRef<std::optional<Scalar>> scalarsGiven,
                       BlocksAtOnce blocksAtOnce) {
  Expected<Machine> machine = findMachine(detail::architecture_of(target), driver.device);
  if (!machine)
    return machine.error();
  auto op = lowered.lookupSymbol<KernelOp>(kernelNames[kernel]);
  const Signature &signature = kernelSignatures[kernel];
  std::vector<Scalar> variables(dims.begin(), dims.end());
  std::vector<std::optional<int64_t>> scalars;
  auto addScalar = [&](const std::optional<Scalar> &scalar) {
    scalars.push_back(!scalar || scalar->is_float ? std::nullopt : std::optional(scalar->i));
  };
  // Without one that has neither a value nor a default, the given ones alone are known.
  if (Expected<std::vector<Scalar>> all = complete_variables(signature, dims, scalarsGiven)) {
    variables = *all;
    llvm::for_each(llvm::drop_begin(*all, dims.size()), addScalar);
  } else {
    llvm::for_each(scalarsGiven, addScalar);
  }
  const TensorTables tables =
      usualTables(kernelOp(kernel), fused, dims, llvm::ArrayRef(variables).drop_front(dims.size()));
  std::optional<KernelCost> cost =
      costOfKernel(op, {dims, scalars, &tables}, *machine, blocksAtOnce);
  if (!cost)
    return std::unique_ptr<PredictedCost>();
  WorkCount needed = countWork(kernelOp(kernel), signature, variables);
  auto predicted = std::make_unique<PredictedCost>(
      PredictedCost{std::move(*cost),
                    needed.flops,
                    needed.bytes,
                    leastCost(kernelOp(kernel), signature, variables, *machine),
                    machine->device.name.str(),
                    signature.str(),
                    {},
                    {},
                    {},
                    {}});
  for (const LaunchCost &launch : predicted->kernel.launches)
    predicted->lines[launch.symbol] = linesOf(launch, sources);
  for (auto function : lowered.getOps<gpu::FuncOp>()) {
    predicted->plans[function.getSymName().str()] = gpu::describePlan(function);
    predicted->pipelines[function.getSymName().str()] = describeStages(function);
  }
  return predicted;
}

} // namespace tk
