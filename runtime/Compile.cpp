// Compiling source text through the registered backend, and modules.
#include "runtime/Environment.h"
#include "runtime/Kernel.h"

#include <atomic>
#include <cstdio>
#include <cstring>

namespace tk {
namespace detail {
namespace {

std::atomic<CompilerBackend *> registered{nullptr};

/// A file larger than the language allows is refused before it is read whole.
constexpr size_t max_source_bytes = size_t{1} << 20;

Expected<std::string> read_source(const std::string &path) {
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(
      std::fopen(path.c_str(), "rb"), [](std::FILE *f) { return std::fclose(f); });
  if (!file)
    return Error(ErrorCode::io, "cannot read '" + path + "': " + std::strerror(errno));
  std::string text(max_source_bytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()))
    return Error(ErrorCode::io, "cannot read '" + path + "': " + std::strerror(errno));
  if (text.size() > max_source_bytes)
    return Error(ErrorCode::compile_failed, "'" + path + "' is larger than 1 MiB");
  return text;
}

Expected<std::string> gpu_arch() {
  Expected<cuda::DeviceContext *> device = cuda::DeviceContext::get(0);
  if (!device)
    return std::move(device.error());
  return (*device)->arch();
}

} // namespace

void ModuleImpl::add_kernels() {
  for (size_t i = 0; i < compiled->signatures().size(); ++i)
    kernels.push_back(
        std::make_shared<KernelImpl>(compiled, i, target, options, frozen, background));
}

void set_compiler_backend(CompilerBackend *backend) { registered = backend; }
CompilerBackend *compiler_backend() { return registered; }

std::string_view architecture_of(std::string_view target) {
  constexpr std::string_view emulated = "emu-";
  if (target == "emu")
    return "sm_90a";
  return target.starts_with(emulated) ? target.substr(emulated.size()) : target;
}

} // namespace detail

Expected<std::string> resolve_target(std::string_view requested) {
  std::string target(requested);
  if (target.empty())
    target = detail::environment(detail::EnvVar::target).value_or("");
  if (target == "gpu")
    return detail::gpu_arch();
  if (target.empty()) {
    Expected<std::string> arch = detail::gpu_arch();
    return arch ? std::move(*arch) : std::string("cpu");
  }
  std::string_view arch = detail::architecture_of(target);
  bool sm = arch.size() >= 5 && arch.starts_with("sm_") && arch[3] >= '1' && arch[3] <= '9';
  if (target == "cpu" || sm)
    return target;
  return Error(ErrorCode::invalid_argument,
               "expected target cpu, gpu, emu, emu-sm_NN or sm_NN, got '" + target + "'");
}

Expected<Module> try_compile(std::string_view source, const CompileOptions &options) {
  return detail::capture([&]() -> Module {
    detail::CompilerBackend *backend = detail::compiler_backend();
    if (!backend)
      throw Error(ErrorCode::unsupported,
                  "this program is linked with tk's runtime alone: it cannot compile");
    auto impl = std::make_shared<detail::ModuleImpl>();
    impl->options = options;
    impl->target = resolve_target(options.target).value();
    impl->options.target = impl->target;
    impl->compiled = backend->compile(source, impl->options).value();
    if (options.background)
      impl->background->enable();
    impl->add_kernels();
    return Module(std::move(impl));
  });
}

Module compile(std::string_view source, const CompileOptions &options) {
  return try_compile(source, options).value();
}

Expected<Module> try_compile_file(const std::string &path, CompileOptions options) {
  Expected<std::string> text = detail::read_source(path);
  if (!text)
    return std::move(text.error());
  options.file_name = path;
  return try_compile(*text, options);
}

Module compile_file(const std::string &path, CompileOptions options) {
  return try_compile_file(path, std::move(options)).value();
}

std::vector<std::string> Module::kernel_names() const {
  std::vector<std::string> names;
  for (const Signature &signature : detail::held(m_impl).compiled->signatures())
    names.push_back(signature.name);
  return names;
}

Expected<Kernel> Module::try_kernel(std::string_view name) const {
  if (!m_impl)
    return detail::empty_handle();
  std::string known;
  for (const auto &impl : m_impl->kernels) {
    if (impl->signature().name == name) {
      Kernel kernel;
      kernel.m_impl = impl;
      return kernel;
    }
    known += (known.empty() ? "" : ", ") + impl->signature().name;
  }
  return Error(ErrorCode::invalid_argument, "no kernel '" + std::string(name) + "' in '" +
                                                m_impl->options.file_name + "'; it has " +
                                                (known.empty() ? "none" : known));
}

Kernel Module::kernel(std::string_view name) const { return try_kernel(name).value(); }
const std::string &Module::target() const { return detail::held(m_impl).target; }
void Module::freeze() const { *detail::held(m_impl).frozen = true; }
void Module::compile_in_background() const { detail::held(m_impl).background->enable(); }
void Module::use_few_keys() const { detail::held(m_impl).compiled->use_few_keys(); }
void Module::wait() const { detail::held(m_impl).background->wait(); }
bool Module::is_frozen() const { return detail::held(m_impl).frozen->load(); }
std::string Module::diagnostics() const { return detail::held(m_impl).compiled->diagnostics(); }

std::string Module::ir(std::string_view kernel_name, std::string_view stage) const {
  return kernel(kernel_name).stage(stage);
}

std::vector<Resources> Module::resources(std::string_view kernel_name, const Facts &facts) const {
  if (!detail::held(m_impl).on_gpu())
    throw Error(ErrorCode::unsupported,
                "resources are known for GPU targets, not for " + detail::held(m_impl).target);
  detail::KernelImpl &impl = detail::held(kernel(kernel_name).m_impl);
  std::shared_ptr<const detail::Variant> variant = impl.variant(impl.complete(facts));
  cuda::DeviceContext &device = *cuda::DeviceContext::get(0).value();
  auto module = cuda::GpuModule::load(device, variant->executable.cubin);
  // Shared memory hardly ever depends on sizes; where it does, the smallest sizes stand for it.
  std::vector<Scalar> ones(impl.signature().dims.size() + impl.signature().num_scalars(),
                           Scalar(1));
  std::vector<Resources> result;
  for (const Launch &launch : variant->executable.plan.launches)
    result.push_back(module->resources(launch.symbol,
                                       launch.shared_bytes.evaluate_integer(ones).value(),
                                       launch.block[0] * launch.block[1] * launch.block[2]));
  return result;
}

} // namespace tk
