//===- CompiledSource.cpp - a source file, compiled as far as asked -------===//
#include "compiler/CompiledSource.h"

#include "compiler/CudaBackend.h"
#include "compiler/Dump.h"
#include "compiler/PassDiagnostics.h"
#include "compiler/Registration.h"
#include "compiler/RelevantFacts.h"
#include "compiler/StageText.h"
#include "compiler/plan/KernelSignature.h"
#ifdef TK_HAS_CPU
#include "compiler/CpuBackend.h"
#endif
#include "dialects/tk/TkInvariance.h"
#include "dialects/tkgpu/TkGpuDialect.h"
#include "frontend/IRGen.h"
#include "passes/Patterns.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarCases.h"
#include "passes/plan/StatementShape.h"
#include "runtime/Environment.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

#include <filesystem>
#include <mutex>
#include <new>

using namespace mlir;

namespace tk {
namespace {

/// LLVM's containers ask for memory without exceptions, and end the process where there is none.
/// Makes that std::bad_alloc, as a failure of operator new is in the same functions. A context of
/// one thread holds no locks; what they do not release on the way is lost.
void throwWithoutMemory() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::install_bad_alloc_error_handler(
        [](void *, const char *, bool) { throw std::bad_alloc(); });
  });
}

/// Is a product of f32 or f64 that no warpgroup takes?
bool isWide(ReduceOp reduce) {
  return llvm::all_of(
      reduce.getYield().getValues()[0].getDefiningOp()->getOperands(), [&](Value factor) {
        return isWideProduct(withoutExtension(factor).getType(), getSumPrecision(reduce));
      });
}

/// What matrices a kernel multiplies.
Products productsOf(KernelOp kernel) {
  Products products = Products::none;
  kernel.walk([&](ReduceOp reduce) {
    if (!isMatrixProduct(reduce))
      return;
    bool isOther = products == Products::any || !isWide(reduce);
    products = isOther ? Products::any : Products::wide;
  });
  return products;
}

constexpr StringRef stages[] = {"ast",  "tk",   "fused", "linalg", "tiled", "gpu",
                                "cuda", "plan", "ptx",   "cubin",  "sass"};

} // namespace

CompiledSource::CompiledSource() = default;

ArrayRef<StringRef> CompiledSource::stageNames() { return stages; }

std::vector<std::string> CompiledSource::fileNames() const {
  std::vector<std::string> names;
  std::error_code ignored;
  for (FileId file = 0; file < sources.size(); ++file)
    if (const std::string &name = sources.file(file).name();
        std::filesystem::is_regular_file(name, ignored) && !llvm::is_contained(names, name))
      names.push_back(name);
  return names;
}

/// A pass may make tensors of a `let`, such as `p.max`: their names begin with its name.
Status CompiledSource::checkFusionName(const std::string &name) {
  std::vector<std::string> known;
  module->walk([&](ComputeOp compute) {
    for (Attribute of : compute.getNames())
      known.push_back(cast<StringAttr>(of).getValue().str());
  });
  const std::string base = StringRef(name).split('.').first.str();
  if (llvm::is_contained(known, base))
    return {};
  const std::string nearest = nearestOf(base, known);
  return Error(ErrorCode::invalid_argument,
               "there is no result or let '" + base + "'" +
                   (nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
}

/// Options that name what is not there would be without effect.
Status CompiledSource::checkOptions() {
  for (const std::string &pass : options.disabled_passes)
    if (!isKnownPass(pass))
      return Error(ErrorCode::invalid_argument, unknownPass(pass));
  for (const auto *names : {&driver.pipeline.inlined, &driver.pipeline.stored})
    for (const std::string &name : *names)
      if (Status known = checkFusionName(name); !known)
        return known;
  for (const auto *pairs : {&driver.pipeline.merged, &driver.pipeline.apart})
    for (const std::string &pair : *pairs) {
      auto [first, second] = StringRef(pair).split('+');
      if (first.empty() || second.empty())
        return Error(ErrorCode::invalid_argument,
                     "'--merge' and '--apart' take two names: NAME+NAME");
      for (StringRef name : {first, second})
        if (Status known = checkFusionName(name.str()); !known)
          return known;
    }
  std::map<std::string, int64_t> sizes = options.dims;
  sizes.insert(options.plan_dims.begin(), options.plan_dims.end());
  const std::string known = kernelNames.size() == 1 && !kernelSignatures.front().dims.empty()
                                ? "; it has " + llvm::join(kernelSignatures.front().dims, ", ")
                                : "";
  for (const auto &[dim, size] : sizes) {
    auto hasDim = [&, &dim = dim](const Signature &s) { return llvm::is_contained(s.dims, dim); };
    auto hasScalar = [&, &dim = dim](const Signature &s) { return s.find_scalar(dim).has_value(); };
    if (!llvm::any_of(kernelSignatures, hasDim))
      return Error(ErrorCode::invalid_argument,
                   (kernelNames.size() == 1 ? "kernel '" + kernelNames.front() + "' has no"
                                            : "no kernel of '" + options.file_name + "' has a") +
                       " dimension '" + dim + "'" +
                       (llvm::any_of(kernelSignatures, hasScalar) ? "; it is a scalar" : known));
    if (size < 0)
      return Error(ErrorCode::invalid_argument,
                   "dimension '" + dim + "' cannot be " + std::to_string(size));
  }
  return {};
}

Expected<std::shared_ptr<CompiledSource>> CompiledSource::create(std::string_view text,
                                                                 const CompileOptions &options,
                                                                 const DriverOptions &driver) {
  auto make = [&](frontend::Kernels kernels) -> Expected<std::shared_ptr<CompiledSource>> {
    std::shared_ptr<CompiledSource> source(new CompiledSource());
    source->options = options;
    source->exactSizes = !options.few_keys && !driver.sizeClasses;
    source->driver = driver;
    for (const std::string &pass : options.disabled_passes)
      source->driver.pipeline.disabled.insert(pass);
    if (Status parsed = source->parse(text, kernels); !parsed)
      return parsed.error();
    if (Status sound = source->checkOptions(); !sound)
      return sound.error();
    return source;
  };
  Expected<std::shared_ptr<CompiledSource>> source = make(frontend::Kernels::AsWritten);
  if (!source || !options.checked)
    return source;
  Expected<std::shared_ptr<CompiledSource>> checker = make(frontend::Kernels::GatherChecks);
  if (!checker)
    return checker;
  if (llvm::any_of((*checker)->signatures(), [](const Signature &s) { return !s.results.empty(); }))
    (*source)->checker = *checker;
  return source;
}

Status CompiledSource::parse(std::string_view text, frontend::Kernels kernels) {
  throwWithoutMemory();
  DialectRegistry registry;
  registerDialects(registry);
  context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();

  mainFile = sources.add(options.file_name, std::string(text));
  frontend::TranslateOptions translate;
  translate.kernels = kernels;
  if (options.schedule)
    translate.schedules = sources.add(options.schedule_name, *options.schedule);
  Diagnostics diags(sources);
  PassDiagnostics collect(context.get());
  module = frontend::compileToTk(*context, sources, mainFile, diags, translate);
  RenderOptions render{driver.colour, driver.json};
  if (diags.hasErrors())
    return compileError(diags, render);
  warnings = diags.text(render);
  if (!module || failed(verify(*module)))
    return Error(ErrorCode::internal, "the frontend made invalid IR: " + collect.text());
  return addKernels();
}

Status CompiledSource::addKernels() {
  PassDiagnostics collect(context.get());
  kernelNames.clear(), kernelSignatures.clear(), schedules.clear();
  reducedDims.clear(), windowDims.clear(), products.clear(), tiledDims.clear();
  for (KernelOp kernel : module->getOps<KernelOp>()) {
    addScalarCases(kernel);
    std::optional<Signature> signature = signatureOf(kernel);
    if (!signature)
      return Error(ErrorCode::internal, "no signature for a kernel: " + collect.text());
    kernelNames.push_back(signature->name);
    kernelSignatures.push_back(std::move(*signature));
    schedules.push_back(scheduleHeaders(kernel));
    reducedDims.push_back(findReducedDims(kernel));
    windowDims.push_back(findWindowDims(kernel));
    sizeRoles.push_back(findSizeRoles(kernel));
    tiledDims.push_back(findTiledDims(kernel));
    products.push_back(productsOf(kernel));
    deterministic.push_back(kernel.getDeterministic());
    sizeUses.push_back(kernel->hasAttr(batchInvariantAttrName) ? findSizeUses(kernel)
                                                               : std::vector<SizeUse>());
  }
  return {};
}

void CompiledSource::nameAsGiven(SourceSpan &span) const {
  if (const FileId file = sources.labelled(span.file); file != kNoFile)
    span.file = sources.file(file).name();
}

void CompiledSource::nameFilesAsGiven() {
  filesAsGiven = true;
  for (Signature &signature : kernelSignatures) {
    nameAsGiven(signature.span);
    for (Parameter &parameter : signature.params)
      nameAsGiven(parameter.span);
    for (Parameter &result : signature.results)
      nameAsGiven(result.span);
    for (auto *checks : {&signature.checks, &signature.schedules, &signature.cases})
      for (Check &check : *checks)
        nameAsGiven(check.span);
  }
  if (checker)
    checker->nameFilesAsGiven();
}

void CompiledSource::setLastPass(unsigned number) {
  std::lock_guard lock(mutex);
  driver.pipeline.last = number;
}

bool CompiledSource::conditionMatters(size_t kernel, std::string_view target,
                                      unsigned condition) const {
  return target != "cpu" && llvm::any_of(schedules[kernel], [&](const ScheduleHeader &header) {
           return header.condition == condition && isForTarget(header, target);
         });
}

KernelOp CompiledSource::kernelOp(size_t kernel) {
  return module->lookupSymbol<KernelOp>(kernelNames[kernel]);
}

Error CompiledSource::passError(const PassDiagnostics &diagnostics) const {
  if (!diagnostics.refused())
    return Error(ErrorCode::internal, "a pass failed: " + diagnostics.text());
  Diagnostics diags(sources);
  diagnostics.reportRefusals(diags);
  return compileError(diags, {driver.colour, driver.json});
}

Expected<std::string> CompiledSource::stage_text(size_t kernel, std::string_view stage,
                                                 std::string_view target, const Facts &given) {
  std::lock_guard lock(mutex);
  if (!llvm::is_contained(stages, StringRef(stage)))
    return Error(ErrorCode::invalid_argument, "there is no stage '" + std::string(stage) + "'");
  Facts facts = relevant_facts(kernel, target, given);
  Expected<std::string> text = makeStage(kernel, stage, target, facts);
  if (text)
    return text;
  return withReproducer(text.error(), kernel, target, facts, stage);
}

Expected<std::string> CompiledSource::linalgText(ModuleOp module, std::string_view target,
                                                 const Dump &dump) {
  if (isGpuText(target))
    return Error(ErrorCode::invalid_argument,
                 "target '" + std::string(target) + "' has no stage 'linalg'; the target cpu has");
#ifdef TK_HAS_CPU
  if (Status lowered = lower(module, Stage::Fused, dump); !lowered)
    return lowered.error();
  PassDiagnostics collect(context.get());
  if (!lowerToLinalg(module))
    return passError(collect);
  return printModule(module);
#else
  return Error(ErrorCode::unsupported, "this build of tk has no CPU target");
#endif
}

Expected<std::string> CompiledSource::makeStage(size_t kernel, std::string_view stage,
                                                std::string_view target, const Facts &facts) {
  Dump dump(kernelNames[kernel], target, facts);
  Expected<OwningOpRef<ModuleOp>> copy = isolate(kernel, target, facts);
  if (!copy)
    return copy.error();
  if (dump.enabled())
    dump.write("tk.mlir", printModule(**copy));
  if (stage == "tk")
    return printModule(**copy);
  if (stage == "linalg")
    return linalgText(**copy, target, dump);
  if (stage != "fused" && !isGpuText(target))
    return Error(ErrorCode::invalid_argument, "target '" + std::string(target) +
                                                  "' has no stage '" + std::string(stage) +
                                                  "'; name a GPU target such as sm_90a");
  if (stage == "fused" || stage == "tiled" || stage == "gpu") {
    Stage to = stage == "fused" ? Stage::Fused : stage == "tiled" ? Stage::Tiled : Stage::Gpu;
    if (Status lowered = lower(**copy, to, dump); !lowered)
      return lowered.error();
    return printModule(**copy);
  }
  bool isText = stage == "cuda" || stage == "plan";
  if (!isText && detail::is_emulated(target))
    return Error(ErrorCode::invalid_argument, "the emulator has no stage '" + std::string(stage) +
                                                  "'; name a GPU target such as sm_90a");
  Expected<detail::Executable> executable = emitted(**copy, kernel, target, facts, dump);
  if (executable && !isText)
    executable = assemble(std::move(*executable), kernel, target, dump);
  if (!executable)
    return executable.error();
  if (stage == "cuda")
    return executable->cuda;
  if (stage == "plan")
    return executable->plan.str(kernelSignatures[kernel]);
  if (stage == "ptx")
    return withHeads(executable->ptx, executable->cuda);
  if (stage == "cubin")
    return executable->cubin;
  return disassemble(executable->cubin);
}

Error CompiledSource::withReproducer(const Error &error, size_t kernel, std::string_view target,
                                     const Facts &facts, std::string_view stage) const {
  if (error.code() != ErrorCode::internal && error.code() != ErrorCode::nvrtc_failed)
    return error;
  std::set<std::string> disabled;
  for (llvm::StringRef pass : driver.pipeline.disabled.keys())
    disabled.insert(pass.str());
  bool areClasses = false;
  for (size_t d = 0; d < facts.dims.size(); ++d)
    areClasses |= sizeClass(kernel, d, target, facts.dims[d]).has_value();
  std::string path = writeReproducer(
      {std::string(sources.file(mainFile).text()), options.file_name, kernelNames[kernel],
       std::string(target), std::string(stage), facts, disabled, driver.pipeline.fusionFlags(),
       error.message(), kernelSignatures[kernel], options.schedule, areClasses});
  if (path.empty())
    return error;
  return Error(error.code(), error.message() + "\nto reproduce: " + path, error.spans());
}

} // namespace tk
