// Bundles as modules: what a compiler would make on demand is looked up instead.
#include "runtime/Environment.h"
#include "runtime/Kernel.h"
#include "runtime/cpu/ObjectCode.h"
#include "tk/bundle.h"

#include <algorithm>
#include <functional>

namespace tk {
namespace detail {
namespace {

/// Of architectures that the device runs, the closest first: those with its own features, then the
/// latest.
bool is_closer(const BundleVariant &a, const BundleVariant &b) {
  return std::pair(a.arch.size(), std::string_view(a.arch)) >
         std::pair(b.arch.size(), std::string_view(b.arch));
}

constexpr std::string_view cpu_prefix = "cpu-";

bool is_for_cpu(const BundleVariant &variant) { return variant.arch.starts_with(cpu_prefix); }

bool runs_on_cpu(std::string_view arch) {
  return arch.starts_with(cpu_prefix) && cpu::runs_level(arch.substr(cpu_prefix.size()));
}

/// Whether code for an architecture runs where the module is to run.
using RunsHere = std::function<bool(std::string_view arch)>;

/// Of variants for one architecture, the bundle's order decides.
class BundleModule : public CompiledModule {
public:
  BundleModule(Bundle bundle, std::string name, const RunsHere &runs_here)
      : m_bundle(std::move(bundle)), m_name(std::move(name)) {
    for (BundleKernel &kernel : m_bundle.kernels) {
      m_signatures.push_back(kernel.signature);
      std::vector<BundleVariant> usable;
      for (BundleVariant &variant : kernel.variants)
        if (runs_here(variant.arch))
          usable.insert(std::upper_bound(usable.begin(), usable.end(), variant, is_closer),
                        std::move(variant));
      kernel.variants = std::move(usable);
    }
  }

  const std::vector<Signature> &signatures() const override { return m_signatures; }

  Facts relevant_facts(size_t kernel, std::string_view, const Facts &facts) const override {
    const BundleVariant *variant = find(kernel, facts);
    return variant ? variant->facts : facts;
  }

  bool compiles() const override { return false; }

  Expected<Executable> specialise(size_t kernel, std::string_view, const Facts &facts) override {
    const BundleVariant *variant = find(kernel, facts);
    if (!variant)
      return refusal(kernel, facts);
    if (is_for_cpu(*variant))
      return on_cpu(*variant);
    Executable executable;
    executable.kind = Executable::Kind::cuda;
    executable.target = variant->arch;
    executable.plan = variant->plan;
    executable.cubin = variant->cubin;
    return executable;
  }

  Expected<std::string> stage_text(size_t, std::string_view stage, std::string_view,
                                   const Facts &) override {
    return Error(ErrorCode::unsupported, "'" + m_name +
                                             "' is a bundle: it has machine code, not '" +
                                             std::string(stage) + "'");
  }

private:
  static Expected<Executable> on_cpu(const BundleVariant &variant) {
    Expected<std::shared_ptr<const cpu::ObjectCode>> code = cpu::ObjectCode::link(variant.cubin);
    if (!code)
      return code.error();
    Executable executable;
    executable.target = "cpu";
    executable.plan = variant.plan;
    executable.entries.assign(variant.plan.launches.size(), (*code)->entry());
    executable.code = std::const_pointer_cast<cpu::ObjectCode>(*code);
    return executable;
  }

  const BundleVariant *find(size_t kernel, const Facts &facts) const {
    for (const BundleVariant &variant : m_bundle.kernels[kernel].variants)
      if (covers(variant.facts, facts, m_signatures[kernel]))
        return &variant;
    return nullptr;
  }

  Error refusal(size_t kernel, const Facts &facts) const {
    const Signature &signature = m_signatures[kernel];
    std::string message = "'" + m_name + "' has no code of '" + signature.name + "' for " +
                          describe(facts, signature) + "; it has code for";
    const char *separator = " ";
    for (const BundleVariant &variant : m_bundle.kernels[kernel].variants) {
      message += separator + describe(variant.facts, signature);
      separator = "; or ";
    }
    return Error(ErrorCode::unsupported, message, {signature.span});
  }

  Bundle m_bundle;
  std::string m_name;
  std::vector<Signature> m_signatures;
};

/// Refuses a bundle of which a kernel cannot run here at all. `where` names what does not run it.
Status check_architectures(const Bundle &bundle, const std::string &name, const RunsHere &runs_here,
                           bool on_cpu, const std::string &where) {
  for (const BundleKernel &kernel : bundle.kernels) {
    std::string archs;
    bool fits = false;
    for (const BundleVariant &variant : kernel.variants) {
      fits |= runs_here(variant.arch);
      if (is_for_cpu(variant) == on_cpu && archs.find(variant.arch) == std::string::npos)
        archs += (archs.empty() ? "" : ", ") + variant.arch;
    }
    if (!fits)
      return Error(ErrorCode::unsupported,
                   "'" + name + "' has code of '" + kernel.signature.name + "' for " +
                       (archs.empty() ? (on_cpu ? "no CPU" : "no GPU") : archs) + "; " + where);
  }
  return {};
}

/// Whether a bundle is to run on the CPU: as TK_TARGET says, else where it has no code for GPUs, or
/// has some for CPUs and there is no GPU.
bool belongs_on_cpu(const Bundle &bundle) {
  bool for_cpus = false, for_gpus = false;
  for (const BundleKernel &kernel : bundle.kernels)
    for (const BundleVariant &variant : kernel.variants)
      (is_for_cpu(variant) ? for_cpus : for_gpus) = true;
  if (environment(EnvVar::target).value_or("") == "cpu")
    return true;
  return for_cpus && (!for_gpus || !cuda::DeviceContext::get(0));
}

std::shared_ptr<ModuleImpl> make_module(Bundle bundle, const std::string &name,
                                        const RunsHere &runs_here, std::string target) {
  auto impl = std::make_shared<ModuleImpl>();
  impl->target = std::move(target);
  impl->options.target = impl->target;
  impl->options.file_name = name;
  impl->compiled = std::make_shared<BundleModule>(std::move(bundle), name, runs_here);
  impl->add_kernels();
  return impl;
}

/// Wraps a bundle for device 0, or for the CPU.
std::shared_ptr<ModuleImpl> make_module(Bundle bundle, const std::string &name) {
  if (belongs_on_cpu(bundle)) {
    const std::string level(cpu::processor_level());
    check_architectures(bundle, name, runs_on_cpu, /*on_cpu=*/true,
                        "this CPU runs code for " +
                            (level.empty() ? "no level that bundles have" : "cpu-" + level))
        .value();
    return make_module(std::move(bundle), name, runs_on_cpu, "cpu");
  }
  const cuda::DeviceContext &device = *cuda::DeviceContext::get(0).value();
  auto runs_here = [&](std::string_view arch) { return runs_on(arch, device.major, device.minor); };
  check_architectures(bundle, name, runs_here, /*on_cpu=*/false,
                      "this GPU (" + device.name + ") is " + device.arch())
      .value();
  return make_module(std::move(bundle), name, runs_here, device.arch());
}

} // namespace
} // namespace detail

Expected<Module> try_load_bundle_bytes(std::string_view bytes, const std::string &name) {
  return detail::capture(
      [&] { return Module(detail::make_module(decode_bundle(bytes, name).value(), name)); });
}
Module load_bundle_bytes(std::string_view bytes, const std::string &name) {
  return try_load_bundle_bytes(bytes, name).value();
}

Expected<Module> try_load_bundle(const std::string &path) {
  return detail::capture(
      [&] { return Module(detail::make_module(read_bundle(path).value(), path)); });
}
Module load_bundle(const std::string &path) { return try_load_bundle(path).value(); }

} // namespace tk
