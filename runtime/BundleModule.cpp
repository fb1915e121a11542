// Bundles as modules: what a compiler would make on demand is looked up instead.
#include "runtime/Kernel.h"
#include "tk/bundle.h"

#include <algorithm>

namespace tk {
namespace detail {
namespace {

/// Of architectures that the device runs, the closest first: those with its own features, then the
/// latest.
bool is_closer(const BundleVariant &a, const BundleVariant &b) {
  return std::pair(a.arch.size(), std::string_view(a.arch)) >
         std::pair(b.arch.size(), std::string_view(b.arch));
}

/// Of variants for one architecture, the bundle's order decides.
class BundleModule : public CompiledModule {
public:
  BundleModule(Bundle bundle, std::string name, const cuda::DeviceContext &device)
      : m_bundle(std::move(bundle)), m_name(std::move(name)) {
    for (BundleKernel &kernel : m_bundle.kernels) {
      m_signatures.push_back(kernel.signature);
      std::vector<BundleVariant> usable;
      for (BundleVariant &variant : kernel.variants)
        if (runs_on(variant.arch, device.major, device.minor))
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

/// Refuses a bundle of which a kernel cannot run on the device at all.
Status check_architectures(const Bundle &bundle, const std::string &name,
                           const cuda::DeviceContext &device) {
  for (const BundleKernel &kernel : bundle.kernels) {
    std::string archs;
    bool fits = false;
    for (const BundleVariant &variant : kernel.variants) {
      fits |= runs_on(variant.arch, device.major, device.minor);
      if (archs.find(variant.arch) == std::string::npos)
        archs += (archs.empty() ? "" : ", ") + variant.arch;
    }
    if (!fits)
      return Error(ErrorCode::unsupported, "'" + name + "' has code of '" + kernel.signature.name +
                                               "' for " + (archs.empty() ? "no GPU" : archs) +
                                               "; this GPU (" + device.name + ") is " +
                                               device.arch());
  }
  return {};
}

} // namespace

/// Wraps a bundle for device 0.
std::shared_ptr<ModuleImpl> make_module(Bundle bundle, const std::string &name) {
  const cuda::DeviceContext &device = *cuda::DeviceContext::get(0).value();
  check_architectures(bundle, name, device).value();
  auto impl = std::make_shared<ModuleImpl>();
  impl->target = device.arch();
  impl->options.target = impl->target;
  impl->options.file_name = name;
  impl->compiled = std::make_shared<BundleModule>(std::move(bundle), name, device);
  impl->add_kernels();
  return impl;
}

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
