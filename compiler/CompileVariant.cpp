//===- CompileVariant.cpp - machine code of a kernel for given facts ------===//
#include "compiler/CompiledSource.h"

#include "compiler/CudaBackend.h"
#include "compiler/Dump.h"
#include "compiler/PassDiagnostics.h"
#include "compiler/RelevantFacts.h"
#include "compiler/StageText.h"
#include "compiler/Stopwatch.h"
#include "compiler/VariantCache.h"
#include "compiler/plan/KernelSignature.h"
#ifdef TK_HAS_CPU
#include "compiler/CpuBackend.h"
#endif
#ifdef TK_HAS_EMU
#include "compiler/codegen/emu/CompileEmu.h"
#endif
#include "runtime/Environment.h"

using namespace mlir;

namespace tk {

bool CompiledSource::mayUseCache(const Dump &dump) const {
  // Who watches the passes wants them to run.
  return !dump.enabled() && driver.pipeline.printAfter.empty() && !driver.pipeline.afterPass &&
         driver.pipeline.last == PipelineOptions::allPasses;
}

detail::Digest CompiledSource::keyOf(ModuleOp module, std::string_view target) const {
  std::set<std::string> disabled;
  for (llvm::StringRef pass : driver.pipeline.disabled.keys())
    disabled.insert(pass.str());
  for (const std::string &flag : driver.pipeline.fusionFlags())
    disabled.insert(flag);
  PlaceTable places(sources);
  module.walk([&](Operation *op) { places.numbers(op->getLoc()); });
  std::string lines;
  for (const SourcePlace &place : places.places())
    lines += std::string(sources.file(place.file).line(place.line)) + "\n";
  return variantKey(module, target, lines, driver.lineDirectives, disabled, options);
}

Expected<detail::Executable> CompiledSource::emitted(ModuleOp module, size_t kernel,
                                                     std::string_view target, const Facts &facts,
                                                     const Dump &dump) {
  detail::Cache cache = mayUseCache(dump) ? detail::Cache::from_environment() : detail::Cache("");
  detail::Digest key{};
  if (cache.enabled()) {
    key = keyOf(module, target);
    if (auto found = loadEmitted(cache, key, kernelSignatures[kernel])) {
      detail::log_message("cache: CUDA text of '" + kernelNames[kernel] + "' found");
      found->target = target;
      return std::move(*found);
    }
  }
  if (Status lowered = lower(module, Stage::Gpu, dump); !lowered)
    return lowered.error();
  PassDiagnostics collect(context.get());
  Stopwatch watch;
  Expected<detail::Executable> executable = emitText(module, kernel, facts);
  if (!executable)
    return Error(ErrorCode::internal, executable.error().message() + "\n" + collect.text());
  if (Status fits = checkParameterSpace(executable->plan, kernelSignatures[kernel]); !fits)
    return fits.error();
  executable->target = target;
  detail::log_message("emission: " + watch.str());
  if (dump.enabled()) {
    dump.write("cu", executable->cuda);
    dump.write("plan.txt", executable->plan.str(kernelSignatures[kernel]));
  }
  storeEmitted(cache, key, *executable);
  return executable;
}

Expected<detail::Executable> CompiledSource::assemble(detail::Executable emitted, size_t kernel,
                                                      std::string_view target,
                                                      const Dump &dump) const {
#ifdef TK_HAS_EMU
  if (detail::is_emulated(target))
    return compileForEmu(std::move(emitted), kernelSignatures[kernel],
                         {.timing = std::nullopt, .batch = driver.emulatedTexts});
#endif
  Expected<detail::Executable> executable =
      compileWithNvrtc(std::move(emitted), std::string(target));
  if (executable && dump.enabled()) {
    dump.write("ptx", executable->ptx);
    dump.write("cubin", executable->cubin);
    dump.write("log", executable->log);
  }
  return executable;
}

Expected<detail::Executable> CompiledSource::compileCpu(ModuleOp module, size_t kernel,
                                                        const Dump &dump) {
#ifdef TK_HAS_CPU
  detail::Cache cache = mayUseCache(dump) ? detail::Cache::from_environment() : detail::Cache("");
  detail::Digest key{};
  const std::string &name = kernelNames[kernel];
  if (cache.enabled()) {
    key = keyOf(module, "cpu " + cpuDescription());
    if (std::optional<detail::CacheEntry> entry = cache.load(key))
      if (auto found = loadCpuExecutable((*entry)["object"], name, kernelSignatures[kernel])) {
        detail::log_message("cache: object code of '" + name + "' found");
        return std::move(*found);
      }
  }
  if (Status lowered = lower(module, Stage::Fused, dump); !lowered)
    return lowered.error();
  PassDiagnostics collect(context.get());
  Stopwatch watch;
  std::string object;
  Expected<detail::Executable> executable =
      compileCpuExecutable(module, name, kernelSignatures[kernel], driver.pipeline, &object);
  detail::log_message("code for the CPU: " + watch.str());
  if (executable)
    cache.store(key, {{"object", object}});
  return executable;
#else
  (void)module, (void)kernel, (void)dump;
  return Error(ErrorCode::unsupported, "this build of tk has no CPU target");
#endif
}

Expected<detail::Executable> CompiledSource::forCpuLevel(size_t kernel, std::string_view level,
                                                         const Facts &given) {
#ifdef TK_HAS_CPU
  std::lock_guard lock(mutex);
  const Facts facts = relevant_facts(kernel, "cpu", given);
  Expected<OwningOpRef<ModuleOp>> copy = isolate(kernel, "cpu", facts);
  if (!copy)
    return copy.error();
  if (Status lowered = lower(**copy, Stage::Fused, Dump()); !lowered)
    return lowered.error();
  PassDiagnostics collect(context.get());
  Expected<std::string> object =
      compileCpuObject(**copy, kernelNames[kernel], driver.pipeline, level);
  if (!object)
    return withReproducer(object.error(), kernel, "cpu", facts, "code");
  detail::Executable executable;
  executable.target = "cpu";
  executable.plan = cpuPlan(kernelSignatures[kernel]);
  executable.cubin = std::move(*object);
  return executable;
#else
  (void)kernel, (void)level, (void)given;
  return Error(ErrorCode::unsupported, "this build of tk has no CPU target");
#endif
}

Expected<detail::Executable> CompiledSource::specialise(size_t kernel, std::string_view target,
                                                        const Facts &given) {
  std::unique_lock lock(mutex);
  Facts facts = relevant_facts(kernel, target, given);
  Dump dump(kernelNames[kernel], target, facts);
  Expected<OwningOpRef<ModuleOp>> copy = isolate(kernel, target, facts);
  if (!copy)
    return copy.error();
  if (dump.enabled())
    dump.write("tk.mlir", printModule(**copy));
  const bool isGpu = isGpuText(target);
  Expected<detail::Executable> executable =
      isGpu ? emitted(**copy, kernel, target, facts, dump) : compileCpu(**copy, kernel, dump);
  if (executable && isGpu) {
    // Machine code needs nothing of the context: other threads may run passes meanwhile.
    *copy = {};
    lock.unlock();
    executable = assemble(std::move(*executable), kernel, target, dump);
    lock.lock();
  }
  if (executable && filesAsGiven)
    for (Launch &launch : executable->plan.launches)
      nameAsGiven(launch.span);
  if (executable)
    return executable;
  return withReproducer(executable.error(), kernel, target, facts, "code");
}

} // namespace tk
