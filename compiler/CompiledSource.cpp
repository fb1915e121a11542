//===- CompiledSource.cpp - a source file, compiled as far as asked -------===//
#include "compiler/CompiledSource.h"

#include "compiler/CudaBackend.h"
#include "compiler/Registration.h"
#include "compiler/plan/KernelSignature.h"
#ifdef TK_HAS_CPU
#include "compiler/CpuBackend.h"
#endif
#ifdef TK_HAS_EMU
#include "compiler/target/emu/CompileEmu.h"
#endif
#include "dialects/tkgpu/TkGpuDialect.h"
#include "frontend/IRGen.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tk {
namespace {

/// Collects what passes report, for the message of an internal error.
class CollectDiagnostics {
public:
  explicit CollectDiagnostics(MLIRContext *context)
      : handler(context, [this](mlir::Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
            return success();
          llvm::raw_string_ostream out(text);
          diagnostic.getLocation().print(out);
          out << ": " << diagnostic << "\n";
          return success();
        }) {}
  std::string text;

private:
  ScopedDiagnosticHandler handler;
};

std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  OpPrintingFlags flags;
  flags.elideLargeElementsAttrs();
  module.print(out, flags);
  return text;
}

bool isGpuText(std::string_view target) { return target == "emu" || target.starts_with("sm_"); }

constexpr StringRef stages[] = {"ast",  "tk",  "fused", "tiled", "gpu",
                                "cuda", "ptx", "cubin", "sass"};

} // namespace

CompiledSource::CompiledSource() = default;

ArrayRef<StringRef> CompiledSource::stageNames() { return stages; }

Expected<std::shared_ptr<CompiledSource>> CompiledSource::create(std::string_view text,
                                                                 const CompileOptions &options,
                                                                 const DriverOptions &driver) {
  std::shared_ptr<CompiledSource> source(new CompiledSource());
  source->options = options;
  source->driver = driver;
  for (const std::string &pass : options.disabled_passes)
    source->driver.pipeline.disabled.insert(pass);
  DialectRegistry registry;
  registerDialects(registry);
  source->context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  source->context->loadAllAvailableDialects();

  SourceManager sources;
  FileId file = sources.add(options.file_name, std::string(text));
  Diagnostics diags(sources);
  CollectDiagnostics collect(source->context.get());
  source->module = frontend::compileToTk(*source->context, sources, file, diags);
  RenderOptions render{driver.colour, driver.json};
  if (diags.hasErrors())
    return Error(ErrorCode::compile_failed, diags.text(render));
  source->warnings = diags.text(render);
  if (!source->module || failed(verify(*source->module)))
    return Error(ErrorCode::internal, "the frontend made invalid IR: " + collect.text);
  for (KernelOp kernel : source->module->getOps<KernelOp>()) {
    std::optional<Signature> signature = signatureOf(kernel);
    if (!signature)
      return Error(ErrorCode::internal, "no signature for a kernel: " + collect.text);
    source->kernelNames.push_back(signature->name);
    source->kernelSignatures.push_back(std::move(*signature));
  }
  return source;
}

KernelOp CompiledSource::kernelOp(size_t kernel) {
  return module->lookupSymbol<KernelOp>(kernelNames[kernel]);
}

Expected<OwningOpRef<ModuleOp>> CompiledSource::isolate(size_t kernel, std::string_view target,
                                                        const Facts &facts) {
  OwningOpRef<ModuleOp> copy = ModuleOp::create(module->getLoc());
  copy->getOperation()->setAttrs(module->getOperation()->getAttrDictionary());
  OpBuilder builder = OpBuilder::atBlockEnd(copy->getBody());
  KernelOp original = kernelOp(kernel);
  auto clone = cast<KernelOp>(builder.clone(*original));
  if (!facts.dims.empty())
    clone.setFactsAttr(factsAttr(context.get(), facts));
  if (isGpuText(target))
    if (Status attached = attachCudaTarget(*copy, target); !attached)
      return attached.error();
  return copy;
}

Status CompiledSource::lower(ModuleOp module, Stage to) {
  CollectDiagnostics collect(context.get());
  if (succeeded(runPipeline(module, Stage::Tk, to, driver.pipeline)))
    return {};
  return Error(ErrorCode::internal, "a pass failed: " + collect.text);
}

Expected<detail::Executable> CompiledSource::specialise(size_t kernel, std::string_view target,
                                                        const Facts &facts) {
  std::lock_guard lock(mutex);
  Expected<OwningOpRef<ModuleOp>> copy = isolate(kernel, target, facts);
  if (!copy)
    return copy.error();
  if (isGpuText(target)) {
    if (Status lowered = lower(**copy, Stage::Gpu); !lowered)
      return lowered.error();
    return compileCuda(**copy, kernel, target, /*textOnly=*/false);
  }
  if (Status lowered = lower(**copy, Stage::Fused); !lowered)
    return lowered.error();
  return compileCpu(**copy, kernel);
}

Expected<detail::Executable> CompiledSource::compileCuda(ModuleOp module, size_t kernel,
                                                         std::string_view target, bool textOnly) {
  CollectDiagnostics collect(context.get());
  auto op = module.lookupSymbol<KernelOp>(kernelNames[kernel]);
  Expected<detail::Executable> executable = emitCudaExecutable(module, op);
  if (!executable)
    return executable;
  executable->target = target;
  if (textOnly)
    return executable;
#ifdef TK_HAS_EMU
  if (target == "emu")
    return compileForEmu(std::move(*executable), kernelSignatures[kernel]);
#endif
  return compileWithNvrtc(std::move(*executable), std::string(target));
}

Expected<detail::Executable> CompiledSource::compileCpu(ModuleOp module, size_t kernel) {
#ifdef TK_HAS_CPU
  CollectDiagnostics collect(context.get());
  return compileCpuExecutable(module, kernelNames[kernel], kernelSignatures[kernel]);
#else
  (void)module, (void)kernel;
  return Error(ErrorCode::unsupported, "this build of tk has no CPU target");
#endif
}

Expected<std::string> CompiledSource::stage_text(size_t kernel, std::string_view stage,
                                                 std::string_view target, const Facts &facts) {
  std::lock_guard lock(mutex);
  if (!llvm::is_contained(stages, StringRef(stage)))
    return Error(ErrorCode::invalid_argument, "there is no stage '" + std::string(stage) + "'");
  Expected<OwningOpRef<ModuleOp>> copy = isolate(kernel, target, facts);
  if (!copy)
    return copy.error();
  if (stage == "tk")
    return print(**copy);
  Stage to = stage == "fused" ? Stage::Fused : stage == "tiled" ? Stage::Tiled : Stage::Gpu;
  if (to != Stage::Fused && !isGpuText(target))
    return Error(ErrorCode::invalid_argument, "target '" + std::string(target) +
                                                  "' has no stage '" + std::string(stage) +
                                                  "'; name a GPU target such as sm_90a");
  if (Status lowered = lower(**copy, to); !lowered)
    return lowered.error();
  if (stage == "fused" || stage == "tiled" || stage == "gpu")
    return print(**copy);
  bool textOnly = stage == "cuda";
  if (!textOnly && target == "emu")
    return Error(ErrorCode::invalid_argument, "the emulator has no stage '" + std::string(stage) +
                                                  "'; name a GPU target such as sm_90a");
  Expected<detail::Executable> executable = compileCuda(**copy, kernel, target, textOnly);
  if (!executable)
    return executable.error();
  if (stage == "cuda")
    return executable->cuda;
  if (stage == "ptx")
    return executable->ptx;
  if (stage == "cubin")
    return executable->cubin;
  return disassemble(executable->cubin);
}

} // namespace tk
