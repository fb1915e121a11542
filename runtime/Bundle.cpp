// The file format of bundles, and which code of a bundle fits a GPU and a call.
#include "tk/bundle.h"

#include "runtime/Archive.h"
#include "runtime/Environment.h"
#include "runtime/Semantics.h"
#include "runtime/Sha256.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>

namespace tk {
namespace detail {
namespace {

constexpr std::string_view magic = "tkbundle";
constexpr uint32_t format_version = 9;
constexpr size_t header_bytes = magic.size() + sizeof format_version + sizeof semantics_version;
constexpr size_t checksum_bytes = std::tuple_size_v<Digest>;

/// Signatures and plans in the form that their own readers check.
struct StoredVariant {
  std::string arch;
  Facts facts;
  std::string plan, cubin;
};
struct StoredKernel {
  std::string signature;
  std::vector<StoredVariant> variants;
};

} // namespace

template <typename A> void visit(A &archive, DimFact &value) {
  fields(archive, value.divisor, value.upper);
}
template <typename A> void visit(A &archive, TensorFact &value) {
  fields(archive, value.alignment, value.stride_divisor, value.unit_axis, value.dense);
}
template <typename A> void visit(A &archive, Facts &value) {
  // Which schedule block was taken is in the code, and no assumption of it.
  fields(archive, value.dims, value.tensors, value.small_tensors, value.cases);
}
template <typename A> void visit(A &archive, StoredVariant &value) {
  fields(archive, value.arch, value.facts, value.plan, value.cubin);
}
template <typename A> void visit(A &archive, StoredKernel &value) {
  fields(archive, value.signature, value.variants);
}

namespace {

std::string checksum(std::string_view bytes) {
  Digest digest = sha256(bytes);
  return {reinterpret_cast<const char *>(digest.data()), digest.size()};
}

bool sensible(const Facts &facts, const Signature &signature) {
  auto power = [](uint32_t value) { return value != 0 && (value & (value - 1)) == 0; };
  return facts.dims.size() == signature.dims.size() &&
         facts.cases.size() <= signature.cases.size() &&
         facts.tensors.size() == signature.num_tensors() &&
         std::all_of(
             facts.dims.begin(), facts.dims.end(),
             [&](const DimFact &fact) { return power(fact.divisor) && fact.upper >= -1; }) &&
         std::all_of(facts.tensors.begin(), facts.tensors.end(), [&](const TensorFact &fact) {
           return power(fact.alignment) && power(fact.stride_divisor) && fact.unit_axis >= no_axis;
         });
}

/// Nullopt where a part of the kernel does not fit another.
std::optional<BundleKernel> restore(StoredKernel &stored) {
  std::optional<Signature> signature = decode_signature(stored.signature);
  if (!signature)
    return std::nullopt;
  BundleKernel kernel{std::move(*signature), {}};
  for (StoredVariant &variant : stored.variants) {
    std::optional<LaunchPlan> plan = decode_plan(variant.plan);
    if (!plan || !well_formed(*plan, kernel.signature) ||
        !sensible(variant.facts, kernel.signature))
      return std::nullopt;
    kernel.variants.push_back({std::move(variant.arch), std::move(variant.facts), std::move(*plan),
                               std::move(variant.cubin)});
  }
  return kernel;
}

Expected<std::string> read_bytes(const std::string &path) {
  auto failure = [&] {
    return Error(ErrorCode::io, "cannot read '" + path + "': " + std::strerror(errno));
  };
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(
      std::fopen(path.c_str(), "rb"), [](std::FILE *f) { return std::fclose(f); });
  if (!file)
    return failure();
  std::string bytes;
  char chunk[1 << 16];
  // A device has no end: what does not begin as a bundle is not read on.
  while (size_t got = std::fread(chunk, 1, sizeof chunk, file.get())) {
    bytes.append(chunk, got);
    if (!bytes.starts_with(magic))
      break;
    if (bytes.size() > memory_bytes() / 2)
      return Error(ErrorCode::out_of_memory, "'" + path + "' is more than the memory holds");
  }
  if (std::ferror(file.get()))
    return failure();
  return bytes;
}

void append(std::string &bytes, uint32_t number) {
  bytes.append(reinterpret_cast<const char *>(&number), sizeof number);
}

uint32_t number(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

} // namespace
} // namespace detail

std::string encode(const Bundle &bundle) {
  std::vector<detail::StoredKernel> stored;
  for (const BundleKernel &kernel : bundle.kernels) {
    stored.push_back({encode(kernel.signature), {}});
    for (const BundleVariant &variant : kernel.variants)
      stored.back().variants.push_back(
          {variant.arch, variant.facts, encode(variant.plan), variant.cubin});
  }
  std::string bytes(detail::magic);
  detail::append(bytes, detail::format_version);
  detail::append(bytes, detail::semantics_version);
  bytes += detail::write(stored);
  return bytes + detail::checksum(bytes);
}

Expected<Bundle> decode_bundle(std::string_view bytes, const std::string &name) {
  auto bad = [&](const std::string &what) {
    return Error(ErrorCode::bad_file, "'" + name + "' " + what);
  };
  if (!bytes.starts_with(detail::magic))
    return bad("is not a bundle");
  if (bytes.size() < detail::header_bytes + detail::checksum_bytes)
    return bad("is a truncated bundle");
  const uint32_t version = detail::number(bytes, detail::magic.size());
  if (version != detail::format_version)
    return bad("is a bundle of format " + std::to_string(version) + "; this runtime reads format " +
               std::to_string(detail::format_version));
  const uint32_t semantics = detail::number(bytes, detail::magic.size() + sizeof version);
  if (semantics != detail::semantics_version)
    return bad("was compiled for version " + std::to_string(semantics) +
               " of the language's semantics; this runtime has version " +
               std::to_string(detail::semantics_version) + ": build the bundle again");
  std::string_view body = bytes.substr(0, bytes.size() - detail::checksum_bytes);
  if (detail::checksum(body) != bytes.substr(body.size()))
    return bad("is a damaged bundle: its checksum differs");
  auto stored = detail::read<std::vector<detail::StoredKernel>>(body.substr(detail::header_bytes));
  if (!stored)
    return bad("is a damaged bundle");
  Bundle bundle;
  for (detail::StoredKernel &kernel : *stored) {
    std::optional<BundleKernel> restored = detail::restore(kernel);
    if (!restored)
      return bad("is a damaged bundle: a launch plan does not fit its kernel");
    bundle.kernels.push_back(std::move(*restored));
  }
  return bundle;
}

Expected<Bundle> read_bundle(const std::string &path) {
  Expected<std::string> bytes = detail::read_bytes(path);
  if (!bytes)
    return std::move(bytes.error());
  return decode_bundle(*bytes, path);
}

bool runs_on(std::string_view arch, int major, int minor) {
  if (!arch.starts_with("sm_")) // a CPU's
    return false;
  int number = 0;
  const char *end = arch.data() + arch.size();
  auto [suffix, error] = std::from_chars(arch.data() + 3, end, number);
  if (error != std::errc())
    return false;
  if (suffix == end)
    return number / 10 == major && number % 10 <= minor;
  return std::string_view(suffix, end) == "a" && number == 10 * major + minor;
}

bool covers(const Facts &assumed, const Facts &known, const Signature &signature) {
  if (assumed.small_tensors && !known.small_tensors)
    return false;
  for (size_t c = 0; c < assumed.cases.size(); ++c)
    if (assumed.cases[c] && (c >= known.cases.size() || !known.cases[c]))
      return false;
  for (size_t d = 0; d < assumed.dims.size(); ++d) {
    const DimFact &want = assumed.dims[d], &have = known.dims[d];
    if (have.divisor % want.divisor != 0 ||
        (want.upper >= 0 && (have.upper < 0 || have.upper > want.upper)))
      return false;
    // Code for one size takes it for granted: 0, which everything divides, is another.
    if (want.upper > 0 && static_cast<int64_t>(want.divisor) >= want.upper && have.upper == 0)
      return false;
  }
  for (unsigned t = 0; t < assumed.tensors.size() && t < known.tensors.size(); ++t) {
    const TensorFact &want = assumed.tensors[t], &have = known.tensors[t];
    if (have.alignment < want.alignment)
      return false;
    // Code for no unit axis reads all strides, and so serves any view.
    if (signature.tensor(t).strided &&
        (have.stride_divisor < want.stride_divisor ||
         (want.unit_axis != no_axis && have.unit_axis != want.unit_axis) ||
         (want.dense && !have.dense)))
      return false;
  }
  return true;
}

std::string describe(const Facts &facts, const Signature &signature) {
  std::string text;
  auto add = [&](const std::string &fact) { text += (text.empty() ? "" : ", ") + fact; };
  for (size_t d = 0; d < facts.dims.size(); ++d) {
    if (facts.dims[d].exact) {
      add(signature.dims[d] + " = " + std::to_string(*facts.dims[d].exact));
      continue;
    }
    if (facts.dims[d].divisor > 1)
      add(signature.dims[d] + " % " + std::to_string(facts.dims[d].divisor) + " == 0");
    if (facts.dims[d].upper >= 0)
      add(signature.dims[d] + " <= " + std::to_string(facts.dims[d].upper));
  }
  if (text.empty())
    text = "any sizes";
  if (facts.small_tensors)
    add("tensors of less than 2^30 elements");
  uint32_t alignment = 0;
  for (const TensorFact &fact : facts.tensors)
    alignment = alignment ? std::min(alignment, fact.alignment) : fact.alignment;
  if (alignment > 1)
    add("addresses aligned to " + std::to_string(alignment));
  for (unsigned t = 0; t < facts.tensors.size() && t < signature.num_tensors(); ++t)
    if (signature.tensor(t).strided && facts.tensors[t].unit_axis == no_axis)
      add("any strides of " + signature.tensor(t).name);
  for (size_t c = 0; c < facts.cases.size(); ++c)
    if (facts.cases[c])
      add(signature.cases[c].text);
  return text;
}

} // namespace tk
