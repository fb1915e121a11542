//===- CudaBackend.cpp - from tkgpu to launchable GPU code ----------------===//
#include "compiler/CudaBackend.h"

#include "compiler/Stages.h"
#include "compiler/Stopwatch.h"
#include "compiler/arch/Architecture.h"
#include "compiler/codegen/cuda/Comments.h"
#include "compiler/codegen/cuda/EmitCuda.h"
#include "compiler/plan/LaunchPlanBuilder.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "runtime/Environment.h"
#include "runtime/Files.h"
#include "runtime/PlanText.h"
#include "runtime/SharedCode.h"
#include "runtime/TemporaryFolder.h"
#include "runtime/cuda/NvrtcIdentity.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

#include <filesystem>

using namespace mlir;

namespace tk {

Status attachCudaTarget(ModuleOp module, std::string_view target, std::string_view device) {
  Expected<Machine> machine = findMachine(detail::architecture_of(target), device);
  if (!machine)
    return machine.error();
  const Architecture &architecture = *machine->architecture;
  module->setAttr(gpu::targetAttrName,
                  gpu::TargetAttr::get(module.getContext(), architecture.arch,
                                       architecture.sharedOfBlock, machine->device.processors,
                                       architecture.has(Feature::WarpgroupProducts)));
  return {};
}

/// Bytes that the parameters of one launch may take (CUDA C++ Programming Guide, "Function
/// Parameters": from compute capability 7.0 on).
static constexpr uint64_t mostParameterBytes = 32764;

/// The size of an argument in the launch's parameters; all are aligned to it, but tensor maps,
/// which are aligned to 64 bytes.
static uint64_t sizeOf(const Arg &arg, const Signature &signature) {
  switch (arg.kind) {
  case ArgKind::tensor:
  case ArgKind::scratch:
    return 8;
  case ArgKind::scalar:
    return size_of(signature.scalar(arg.index).dtype);
  case ArgKind::tensor_map:
    return 128;
  case ArgKind::integer:
  case ArgKind::stride:
    return size_of(arg.dtype);
  }
  return 8;
}

Status checkParameterSpace(const LaunchPlan &plan, const Signature &signature) {
  for (const Launch &launch : plan.launches) {
    uint64_t bytes = 0;
    for (const Arg &arg : launch.args) {
      const uint64_t size = sizeOf(arg, signature);
      bytes = llvm::alignTo(bytes, std::min<uint64_t>(size, 64)) + size;
    }
    if (bytes > mostParameterBytes)
      return Error(ErrorCode::unsupported,
                   "a launch of kernel '" + signature.name + "' has " +
                       std::to_string(launch.args.size()) + " parameters of " +
                       std::to_string(bytes) + " bytes, and a GPU takes at most " +
                       std::to_string(mostParameterBytes) +
                       ": pass tensors of the same shape as one, with an axis more",
                   {launch.span});
  }
  return {};
}

/// The comment before a function: where it comes from, its plan, and its arguments where their
/// names do not say what they are.
static std::string headOf(const Launch &launch, const cuda::EmittedKernel &function,
                          ModuleOp module, const LaunchPlan &plan, const CudaText &text) {
  const Signature &signature = *text.signature;
  const std::vector<std::string> names = signature.variable_names();
  std::string head = "// " + function.symbol + ": kernel " + signature.name + " of " +
                     cuda::commentText(launch.span.file) + ":" + std::to_string(launch.span.line) +
                     "\n" + cuda::commentLines("assumes " + text.assumes);
  if (auto func = module.lookupSymbol<gpu::FuncOp>(function.name)) {
    if (std::string chosen = gpu::describePlan(func); !chosen.empty())
      head += cuda::commentLines("plan " + chosen);
    if (std::string stages = describeStages(func); !stages.empty())
      head += cuda::commentLines("pipeline " + stages);
  }
  std::string arguments;
  for (auto [arg, name] : llvm::zip(launch.args, function.arguments))
    if (std::string meaning = detail::describe(arg, plan, signature); meaning != name)
      arguments += (arguments.empty() ? "where " : ", ") + name + " = " + meaning;
  if (!arguments.empty())
    head += cuda::commentLines(arguments);
  return head + "// grid (" + launch.grid[0].str(names) + ", " + launch.grid[1].str(names) + ", " +
         launch.grid[2].str(names) + ") of " + std::to_string(function.threads) + " threads, " +
         std::to_string(function.sharedBytes) + " bytes of shared memory\n";
}

static void addHeads(cuda::EmittedModule &emitted, ModuleOp module, const LaunchPlan &plan,
                     const CudaText &text) {
  for (const cuda::EmittedKernel &function : llvm::reverse(emitted.kernels)) {
    auto launch =
        llvm::find_if(plan.launches, [&](const Launch &l) { return l.symbol == function.symbol; });
    if (launch != plan.launches.end())
      emitted.text.insert(function.begin, headOf(*launch, function, module, plan, text));
  }
}

Expected<detail::Executable> emitCudaExecutable(ModuleOp module, KernelOp kernel,
                                                const CudaText &text) {
  FailureOr<cuda::EmittedModule> emitted =
      cuda::emitCuda(module, {text.lineDirectives, text.sourceLine, text.statement});
  if (failed(emitted))
    return Error(ErrorCode::internal, "a kernel could not be printed as CUDA");
  std::optional<LaunchPlan> plan = buildLaunchPlan(kernel, [&](StringRef symbol) {
    const cuda::EmittedKernel *function = emitted->find(symbol);
    return function ? FunctionShape{function->symbol,    function->threads, function->sharedBytes,
                                    function->indexBits, function->cluster, function->waits}
                    : FunctionShape{};
  });
  if (!plan)
    return Error(ErrorCode::internal, "a launch uses a scalar that is not known at launch");
  if (text.signature)
    addHeads(*emitted, module, *plan, text);
  detail::Executable executable;
  executable.kind = detail::Executable::Kind::cuda;
  executable.plan = std::move(*plan);
  executable.cuda = std::move(emitted->text);
  return executable;
}

/// The key of machine code: all that NVRTC is given, and which NVRTC.
static detail::Digest codeKey(const std::string &text, const cuda::NvrtcOptions &options,
                              const cuda::NvrtcIdentity &nvrtc) {
  detail::CacheKey key;
  key.add("entry", "code");
  key.add("nvrtc", nvrtc.key());
  for (const std::string &flag : cuda::Nvrtc::flags(options))
    key.add("flag", flag);
  for (const auto &[name, header] : options.headers)
    key.add(name, header);
  key.add("text", text);
  return key.digest();
}

/// What NVRTC is given, for one library: that of this process.
static detail::Digest textKey(const std::string &text, const cuda::NvrtcOptions &options) {
  detail::CacheKey key;
  for (const std::string &flag : cuda::Nvrtc::flags(options))
    key.add("flag", flag);
  key.add("text", text);
  return key.digest();
}

/// Machine code from the cache or from NVRTC.
static Expected<cuda::NvrtcResult> machineCode(const std::string &text,
                                               const cuda::NvrtcOptions &options) {
  detail::Cache cache = detail::Cache::from_environment();
  if (cache.enabled()) {
    Expected<cuda::NvrtcIdentity> identity = cuda::nvrtc_identity(cache);
    if (!identity)
      return identity.error();
    std::optional<detail::CacheEntry> entry = cache.load(codeKey(text, options, *identity));
    if (entry && !(*entry)["cubin"].empty()) {
      detail::log_message("cache: machine code for " + options.arch + " found");
      return cuda::NvrtcResult{(*entry)["ptx"], (*entry)["cubin"], (*entry)["log"]};
    }
  }
  Expected<const cuda::Nvrtc *> nvrtc = cuda::Nvrtc::get();
  if (!nvrtc)
    return nvrtc.error();
  Stopwatch watch;
  Expected<cuda::NvrtcResult> result = (*nvrtc)->compile(text, options);
  detail::log_message("NVRTC " + (*nvrtc)->version() + " for " + options.arch + ": " + watch.str());
  if (result && cache.enabled()) {
    // The library that was loaded may be another than the one remembered.
    cuda::NvrtcIdentity identity = cuda::remember_identity(**nvrtc, cache);
    cache.store(codeKey(text, options, identity),
                {{"ptx", result->ptx}, {"cubin", result->cubin}, {"log", result->log}});
  }
  return result;
}

Expected<detail::Executable> compileWithNvrtc(detail::Executable executable,
                                              const std::string &target) {
  executable.target = target;
  if (executable.plan.launches.empty())
    return executable;
  cuda::NvrtcOptions options;
  options.arch = target;
  for (const cuda::DeviceHeader &header : cuda::deviceHeaders())
    options.headers.emplace_back(header.name.str(), header.text.str());
  using Code = const cuda::NvrtcResult;
  static detail::SharedCode<Code> shared;
  const std::string text = cuda::withoutComments(executable.cuda);
  auto result = shared.get(textKey(text, options), [&]() -> detail::SharedCode<Code>::Made {
    Expected<cuda::NvrtcResult> made = machineCode(text, options);
    if (!made)
      return made.error();
    return std::make_shared<Code>(std::move(*made));
  });
  // NVRTC 12.0 allows an eighth of what later ones do.
  if (!result && StringRef(result.error().message()).contains("parameter space overflowed"))
    return Error(ErrorCode::unsupported,
                 "this NVRTC takes fewer bytes of parameters than a launch of the kernel has; "
                 "install NVRTC 12.1 or later:\n" +
                     result.error().message());
  if (!result)
    return result.error();
  executable.ptx = (*result)->ptx;
  executable.cubin = (*result)->cubin;
  executable.log = (*result)->log;
  executable.code = std::const_pointer_cast<cuda::NvrtcResult>(*result);
  return executable;
}

std::string findDisassembler() {
  if (llvm::ErrorOr<std::string> tool = llvm::sys::findProgramByName("nvdisasm"))
    return *tool;
  std::vector<std::string> folders = {"/usr/local/cuda/bin"};
  for (const std::filesystem::path &package : cuda::python_packages())
    folders.push_back((package / "bin").string());
  for (const std::string &folder : folders)
    if (auto tool = llvm::sys::findProgramByName("nvdisasm", {folder}))
      return *tool;
  return "";
}

Expected<std::string> disassemble(const std::string &cubin, bool places) {
  const std::string tool = findDisassembler();
  if (tool.empty())
    return Error(ErrorCode::unsupported,
                 "the stage 'sass' needs nvdisasm, of the CUDA toolkit or of the Python package "
                 "nvidia-cuda-nvdisasm");
  detail::TemporaryFolder folder("tk-sass");
  if (!folder.ok())
    return Error(ErrorCode::write_failed, "nvdisasm needs a temporary folder: " + folder.error());
  const std::string input = folder.file("kernel.cubin"), output = folder.file("kernel.sass");
  if (Status written = detail::write_file(input, cubin); !written)
    return written.error();
  std::optional<StringRef> redirects[] = {std::nullopt, StringRef(output), std::nullopt};
  std::string message;
  SmallVector<StringRef> words{tool, "--print-code", input};
  if (places)
    words.push_back("--print-line-info-inline");
  if (llvm::sys::ExecuteAndWait(tool, words, std::nullopt, redirects, 60, 0, &message) != 0)
    return Error(ErrorCode::unsupported, "nvdisasm failed: " + message);
  auto text = llvm::MemoryBuffer::getFile(output);
  if (!text)
    return Error(ErrorCode::io, "cannot read what nvdisasm wrote");
  return (*text)->getBuffer().str();
}

} // namespace tk
