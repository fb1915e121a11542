//===- BuildBundle.cpp - kernels compiled ahead of time -------------------===//
#include "compiler/bundle/BuildBundle.h"

#include "runtime/cpu/ObjectCode.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"

#include <set>

using namespace llvm;

namespace tk {
namespace {

/// What allocators of device memory guarantee at least, and vector accesses need at most.
constexpr uint32_t usualAlignment = 16;

/// What names of CPUs' levels begin with.
constexpr StringLiteral cpuPrefix = "cpu-";

Facts factsOf(const Signature &signature, const VariantRequest &request) {
  Facts facts;
  std::vector<std::optional<int64_t>> known;
  for (const std::string &dim : signature.dims) {
    auto size = request.sizes.find(dim);
    auto sizeClass = request.classes.find(dim);
    if (sizeClass != request.classes.end()) {
      known.push_back(sizeClass->second.last);
      facts.dims.push_back(sizeClass->second.fact());
      continue;
    }
    bool given = size != request.sizes.end();
    known.push_back(given ? std::optional(size->second) : std::nullopt);
    facts.dims.push_back(given ? fact_for(size->second) : DimFact{1, -1, {}});
  }
  if (!request.general) {
    std::vector<DimFact> dims = std::move(facts.dims);
    facts = usual_facts(signature, known);
    for (auto [d, dim] : enumerate(signature.dims))
      if (request.classes.count(dim))
        facts.dims[d] = dims[d];
  }
  facts.tensors.assign(signature.num_tensors(), TensorFact{usualAlignment, 1});
  return facts;
}

bool anyStrided(const Signature &signature) {
  for (unsigned t = 0; t < signature.num_tensors(); ++t)
    if (signature.tensor(t).strided)
      return true;
  return false;
}

/// What code assumes that takes any view of strided tensors, of any sizes.
Facts factsOfAnyView(const Signature &signature) {
  VariantRequest request;
  request.general = true;
  Facts facts = factsOf(signature, request);
  for (unsigned t = 0; t < signature.num_tensors(); ++t)
    if (signature.tensor(t).strided)
      facts.tensors[t].unit_axis = no_axis;
  return facts;
}

/// What the variants assume, in order: where there is other code for some values of scalars, each
/// for those first. The general ones are for any.
std::vector<Facts> assumptionsOf(const Signature &signature, const BundleRequest &request) {
  std::vector<Facts> list;
  for (const VariantRequest &wanted : request.variants) {
    Facts facts = factsOf(signature, wanted);
    Facts usual = facts;
    for (const Check &check : signature.cases)
      usual.cases.push_back(check.kind != Check::Kind::extent); // sizes are whatever they are
    if (!wanted.general && llvm::is_contained(usual.cases, true))
      list.push_back(usual);
    list.push_back(std::move(facts));
  }
  if (anyStrided(signature))
    list.push_back(factsOfAnyView(signature));
  return list;
}

/// A misspelt dimension would leave a variant that assumes nothing, without a word.
Status checkNames(const CompiledSource &source, const BundleRequest &request) {
  std::set<std::string> names;
  for (const VariantRequest &variant : request.variants) {
    for (const auto &size : variant.sizes)
      names.insert(size.first);
    for (const auto &sizeClass : variant.classes)
      names.insert(sizeClass.first);
  }
  for (const std::string &name : names)
    if (none_of(request.kernels, [&](size_t kernel) {
          return source.signatures()[kernel].find_dim(name).has_value();
        }))
      return Error(ErrorCode::invalid_argument,
                   "no kernel of the bundle has a dimension '" + name + "'");
  return {};
}

/// The whole of a text as a size; nullopt for any other text.
std::optional<int64_t> parseSize(StringRef text) {
  int64_t size = 0;
  if (text.empty() || text.getAsInteger(10, size) || size < 0)
    return std::nullopt;
  return size;
}

/// "4", "1..8192" or "64..8192:64".
std::optional<SizeRange> parseRange(StringRef text) {
  auto [ends, step] = text.split(':');
  const bool isRange = ends.contains("..");
  auto [first, last] = ends.split("..");
  std::optional<int64_t> from = parseSize(first), to = isRange ? parseSize(last) : from;
  std::optional<int64_t> by = text.contains(':') ? parseSize(step) : std::optional<int64_t>(1);
  if (!from || !to || !by || (!isRange && text.contains(':')))
    return std::nullopt;
  return SizeRange{*from, *to, *by};
}

} // namespace

Expected<std::vector<VariantRequest>> parseVariants(std::string_view text) {
  std::vector<VariantRequest> requests(1);
  std::set<std::string> names;
  for (StringRef part : split(StringRef(text), ',')) {
    auto [name, sizes] = part.trim().split('=');
    std::optional<SizeRange> range = parseRange(sizes);
    if (name.empty() || !range)
      return Error(ErrorCode::invalid_argument,
                   "expected --variant NAME=INT,… or NAME=FIRST..LAST[:STEP],… with sizes of at "
                   "least 0, got '" +
                       part.str() + "'");
    if (!names.insert(name.str()).second)
      return Error(ErrorCode::invalid_argument,
                   "dimension '" + name.str() + "' is given twice in '" + std::string(text) + "'");
    Expected<std::vector<SizeClass>> classes = size_classes(*range);
    if (!classes)
      return Error(classes.error().code(),
                   "dimension '" + name.str() + "': " + classes.error().message());
    std::vector<VariantRequest> combined;
    for (const VariantRequest &request : requests) {
      for (const SizeClass &sizeClass : *classes)
        combined.emplace_back(request).classes.emplace(name.str(), sizeClass);
      for (int64_t size = range->first; classes->empty() && size <= range->last;
           size += range->step)
        combined.emplace_back(request).sizes.emplace(name.str(), size);
    }
    requests = std::move(combined);
  }
  return requests;
}

Expected<std::optional<std::string>> cpuArch(std::string_view target) {
  if (target == "cpu") {
    const std::string_view level = cpu::processor_level();
    if (level.empty())
      return Error(ErrorCode::unsupported,
                   "a bundle has no code for this machine's CPU; name cpu-x86-64-v3 or "
                   "cpu-x86-64-v4");
    return std::optional(cpuPrefix.str() + std::string(level));
  }
  if (!StringRef(target).starts_with(cpuPrefix))
    return std::optional<std::string>();
  if (target != "cpu-x86-64-v3" && target != "cpu-x86-64-v4")
    return Error(ErrorCode::invalid_argument,
                 "expected cpu, cpu-x86-64-v3 or cpu-x86-64-v4, got '" + std::string(target) + "'");
  return std::optional(std::string(target));
}

/// The facts that code for a CPU assumes, one for each tensor.
static Facts factsOnCpu(CompiledSource &source, size_t kernel, const Facts &assumed) {
  Facts facts = source.relevant_facts(kernel, "cpu", assumed);
  facts.tensors.resize(source.signatures()[kernel].num_tensors());
  return facts;
}

/// One variant of a kernel.
static Expected<BundleVariant> makeVariant(CompiledSource &source, size_t kernel,
                                           const std::string &arch, Facts facts) {
  const bool isCpu = StringRef(arch).starts_with(cpuPrefix);
  Expected<detail::Executable> executable =
      isCpu ? source.forCpuLevel(kernel, std::string_view(arch).substr(cpuPrefix.size()), facts)
            : source.specialise(kernel, arch, facts);
  if (!executable)
    return executable.error();
  return BundleVariant{arch, std::move(facts), std::move(executable->plan),
                       std::move(executable->cubin)};
}

Expected<Bundle> buildBundle(CompiledSource &source, const BundleRequest &request) {
  for (const std::string &arch : request.archs)
    if (!StringRef(arch).starts_with("sm_") && !StringRef(arch).starts_with(cpuPrefix))
      return Error(ErrorCode::invalid_argument,
                   "a bundle holds code of GPUs such as sm_90a, and of CPUs such as cpu-x86-64-v3, "
                   "not of '" +
                       arch + "'");
  if (Status known = checkNames(source, request); !known)
    return known.error();
  // One variant for all sizes up to a bound, not one for each eighth of it.
  source.setServesShorter(true);
  scope_exit restore([&] { source.setServesShorter(false); });
  Bundle bundle;
  for (size_t kernel : request.kernels) {
    BundleKernel entry{source.signatures()[kernel], {}};
    for (const std::string &arch : request.archs)
      for (const Facts &assumed : assumptionsOf(entry.signature, request)) {
        const bool isCpu = StringRef(arch).starts_with(cpuPrefix);
        Facts facts = isCpu ? factsOnCpu(source, kernel, assumed)
                            : source.relevant_facts(kernel, arch, assumed);
        if (any_of(entry.variants, [&](const BundleVariant &variant) {
              return variant.arch == arch && variant.facts == facts;
            }))
          continue;
        Expected<BundleVariant> variant = makeVariant(source, kernel, arch, std::move(facts));
        if (!variant)
          return variant.error();
        entry.variants.push_back(std::move(*variant));
      }
    bundle.kernels.push_back(std::move(entry));
  }
  return bundle;
}

} // namespace tk
