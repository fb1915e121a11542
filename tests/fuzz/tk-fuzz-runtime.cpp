//===- tk-fuzz-runtime.cpp - damaged cache entries, plans and calls --------===//
//
// tk-fuzz-runtime [--seed N] [--count N] [--time-limit SECONDS] [--kind cache,plan,call]
//
//   cache  bytes of cache entries, cut, overwritten and spliced: an entry comes back as it was
//          stored or not at all; with its checksum put right, what it holds may be anything
//   plan   launch plans read from damaged bytes: refused, or evaluated without harm
//   call   arguments of any type, shape, strides and size: refused with the error of an argument,
//   or
//          every element that the kernel may touch is in its storage
//
// Trial n of a run has the seed N + n. It needs no compiler, and is quick to build with sanitizers.
// Exit status 1 and a line a finding if anything was wrong.
//
//===----------------------------------------------------------------------===//
#include "tests/fuzz/Generating.h"
#include "tests/fuzz/MemoryLimit.h"
#include "tests/unit/runtime/FakeBackend.h"

#include "runtime/Bind.h"
#include "runtime/Cache.h"
#include "tk/tk.h"

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>
#include <map>

namespace tk::fuzz {
namespace {

/// What a trial found wrong, or nothing.
using Finding = std::optional<std::string>;

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

void damage(std::string &bytes, Random &random) {
  for (int edits = 1 + random.below(4); edits > 0 && !bytes.empty(); --edits) {
    size_t at = random.next() % bytes.size();
    switch (random.below(6)) {
    case 0:
      bytes.resize(at);
      break;
    case 1:
      bytes[at] = static_cast<char>(random.below(256));
      break;
    case 2:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
      break;
    case 3: // a count that is much too large
      for (size_t i = at; i < std::min(at + 8, bytes.size()); ++i)
        bytes[i] = static_cast<char>(0xFF);
      break;
    case 4:
      bytes.insert(at, bytes.substr(random.next() % bytes.size(), 1 + random.next() % 16));
      break;
    default:
      bytes.erase(at, 1 + random.next() % 16);
      break;
    }
  }
}

Scalar anyScalar(Random &random) {
  static constexpr int64_t integers[] = {0, 1, 2, 3, 64, 1000, INT64_MAX, INT64_MIN, -1};
  return random.percent(20) ? Scalar(random.below(100) * 0.25) : Scalar(random.of(integers));
}

/// Evaluates all that a launch would: what it throws must be an error of the values.
Finding evaluate(const LaunchPlan &plan, const Signature &signature, Random &random) {
  std::vector<Scalar> variables;
  for (size_t v = 0; v < signature.dims.size() + signature.num_scalars(); ++v)
    variables.push_back(anyScalar(random));
  try {
    (void)plan.str(signature);
    (void)detail::lay_out_scratch(plan, variables);
    for (const Launch &launch : plan.launches) {
      for (const DimExpr &extent : launch.grid)
        (void)extent.evaluate_integer(variables).value();
      for (const Arg &arg : launch.args)
        if (arg.kind == ArgKind::integer)
          (void)arg.value.evaluate(variables).value();
    }
  } catch (const Error &) { // typed, as it should be
  }
  return std::nullopt;
}

Finding tryCache(Random &random) {
  detail::Digest key = detail::CacheKey().add("n", int64_t{random.below(3)}).digest();
  detail::CacheEntry entry = {{"plan", encode(test::gemm_plan())},
                              {"cuda", std::string(static_cast<size_t>(random.below(200)), 'c')}};
  const std::string good = detail::encode_entry(key, entry);
  std::string bytes = good;
  damage(bytes, random);
  bool sealed = random.percent(50) && bytes.size() > 32;
  if (sealed) {
    detail::Digest sum = detail::sha256(std::string_view(bytes).substr(0, bytes.size() - 32));
    bytes.replace(bytes.size() - 32, 32, reinterpret_cast<const char *>(sum.data()), 32);
  }
  std::optional<detail::CacheEntry> read = detail::decode_entry(key, bytes);
  if (!read)
    return bytes == good ? Finding("an entry that was stored is refused") : std::nullopt;
  if (!sealed && bytes != good)
    return "a damaged entry is used";
  std::optional<LaunchPlan> plan = decode_plan((*read)["plan"]);
  Signature signature = test::gemm_signature();
  if (!plan || !well_formed(*plan, signature))
    return std::nullopt;
  return evaluate(*plan, signature, random);
}

Finding tryPlan(Random &random) {
  Signature signature = test::gemm_signature();
  std::string signatureBytes = encode(signature), planBytes = encode(test::gemm_plan());
  if (random.percent(30)) {
    damage(signatureBytes, random);
    std::optional<Signature> read = decode_signature(signatureBytes);
    if (!read)
      return std::nullopt;
    signature = *read;
    (void)signature.str();
  }
  damage(planBytes, random);
  std::optional<LaunchPlan> plan = decode_plan(planBytes);
  if (!plan || !well_formed(*plan, signature))
    return std::nullopt;
  return evaluate(*plan, signature, random);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

constexpr size_t storageBytes = size_t{1} << 16;

/// Touches the first and the last element that the sample kernel may.
int32_t touchCorners(const tk_cpu_args *args) {
  int64_t m = args->ints[0], n = args->ints[1], stride = args->ints[2], k = args->ints[3];
  auto *a = static_cast<volatile float *>(args->tensors[0]);
  auto *b = static_cast<volatile float *>(args->tensors[1]);
  auto *c = static_cast<volatile float *>(args->tensors[2]);
  auto *sums = static_cast<volatile float *>(args->tensors[3]);
  if (m > 0 && k > 0)
    (void)(a[0] + a[m * k - 1]);
  if (k > 0 && n > 0)
    (void)(b[0] + b[(k - 1) * stride + 2 * n - 1]);
  if (m > 0 && n > 0) {
    c[0] = 1;
    c[m * n - 1] = 1;
  }
  if (m > 0) {
    sums[0] = 1;
    sums[m - 1] = 1;
  }
  return 0;
}

class CornerModule : public test::FakeModule {
public:
  Expected<detail::Executable> specialise(size_t kernel, std::string_view target,
                                          const Facts &facts) override {
    Expected<detail::Executable> executable = FakeModule::specialise(kernel, target, facts);
    executable->entries = {touchCorners};
    return executable;
  }
};

class CornerBackend : public detail::CompilerBackend {
public:
  CornerBackend() { detail::set_compiler_backend(this); }
  ~CornerBackend() override { detail::set_compiler_backend(nullptr); }
  Expected<std::shared_ptr<detail::CompiledModule>> compile(std::string_view,
                                                            const CompileOptions &) override {
    return std::shared_ptr<detail::CompiledModule>(std::make_shared<CornerModule>());
  }
};

int64_t anyExtent(Random &random) {
  static constexpr int64_t odd[] = {0,         0,       1,         1,  2, 7, 33, int64_t{1} << 31,
                                    INT64_MAX, 1 << 20, INT64_MIN, -1, 3};
  return random.percent(60) ? 2 * random.below(20) : random.of(odd);
}

/// A view of part of `storage`: often the one wanted, else anything.
TensorView anyView(Random &random, char *storage, Extents wanted) {
  static constexpr DType types[] = {DType::f16, DType::i32, DType::f64, DType::boolean};
  TensorView view;
  view.data = storage + (random.percent(20) ? random.below(64) : 0);
  view.dtype = random.percent(4) ? random.of(types) : DType::f32;
  view.shape = std::move(wanted);
  if (random.percent(15) && view.shape.size())
    view.shape[random.below(static_cast<int>(view.shape.size()))] = anyExtent(random);
  if (random.percent(3))
    view.shape.push_back(anyExtent(random));
  int64_t step = 1;
  std::vector<int64_t> strides(view.shape.size());
  for (size_t axis = view.shape.size(); axis-- > 0;) {
    strides[axis] = random.percent(10) ? anyExtent(random) : step;
    if (__builtin_mul_overflow(step, view.shape[axis], &step) ||
        __builtin_add_overflow(step, random.percent(10) ? random.below(5) : 0, &step))
      step = 0;
  }
  view.strides = Extents(strides);
  view.device = random.percent(2) ? Device::cuda(random.below(3)) : Device::cpu();
  view.storage_bytes = static_cast<int64_t>(storageBytes - 64);
  if (random.percent(2))
    view.data = nullptr;
  return view;
}

bool isArgumentError(ErrorCode code) {
  switch (code) {
  case ErrorCode::invalid_argument:
  case ErrorCode::shape_mismatch:
  case ErrorCode::constraint_failed:
  case ErrorCode::overflow:
  case ErrorCode::unsupported:
  case ErrorCode::out_of_memory:
    return true;
  default:
    return false;
  }
}

Finding tryCall(Random &random) {
  static CornerBackend backend;
  static Kernel kernel = compile("gemm", test::for_target("cpu")).kernel("gemm");
  static std::vector<char> storage(3 * storageBytes);
  int64_t m = anyExtent(random), k = anyExtent(random), n = anyExtent(random), columns = 0;
  if (__builtin_mul_overflow(2, n, &columns))
    columns = n;
  char *base = storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64);
  std::vector<NamedValue> inputs, outputs;
  auto give = [&](std::vector<NamedValue> &list, const char *name, auto value) {
    static constexpr const char *names[] = {"a", "b", "c", "scale", "", "d"};
    if (!random.percent(2))
      list.emplace_back(random.percent(2) ? random.of(names) : name, std::move(value));
  };
  give(inputs, "a", anyView(random, base, {m, k}));
  give(inputs, "b", anyView(random, base + storageBytes, {k, columns}));
  if (random.percent(30))
    give(inputs, "scale", anyScalar(random));
  char *result = random.percent(4) ? base : base + 2 * storageBytes - 64;
  give(outputs, "c", anyView(random, result, {m, n}));
  Status status = kernel.try_launch({}, inputs, outputs);
  if (status || isArgumentError(status.error().code()))
    return std::nullopt;
  return std::string(name(status.error().code())) + ": " + status.error().message();
}

//===----------------------------------------------------------------------===//
// The run
//===----------------------------------------------------------------------===//

using Trial = Finding (*)(Random &);
const std::map<std::string, Trial> kinds = {
    {"cache", tryCache}, {"plan", tryPlan}, {"call", tryCall}};

int run(uint64_t seed, int64_t count, double limit, const std::vector<std::string> &chosen) {
  auto start = std::chrono::steady_clock::now();
  int64_t trials = 0, findings = 0;
  for (int64_t n = 0; n < count; ++n) {
    std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    if (spent.count() > limit)
      break;
    for (const std::string &kind : chosen) {
      Random random(seed + static_cast<uint64_t>(n));
      ++trials;
      if (Finding finding = kinds.at(kind)(random)) {
        ++findings;
        std::printf("%s, seed %llu: %s\n", kind.c_str(),
                    static_cast<unsigned long long>(seed + static_cast<uint64_t>(n)),
                    finding->c_str());
      }
    }
  }
  std::printf("%lld trials from seed %llu: %lld findings\n", static_cast<long long>(trials),
              static_cast<unsigned long long>(seed), static_cast<long long>(findings));
  return findings != 0;
}

} // namespace
} // namespace tk::fuzz

int main(int argc, char **argv) {
  CLI::App app{"tk-fuzz-runtime gives the runtime damaged cache entries, plans and calls."};
  uint64_t seed = 1;
  int64_t count = 1000;
  double limit = 1e9;
  std::vector<std::string> chosen = {"cache", "plan", "call"};
  app.add_option("--seed", seed, "The seed of the first trial");
  app.add_option("--count", count, "How many trials of each kind");
  app.add_option("--time-limit", limit, "Begin no trial after that many seconds");
  app.add_option("--kind", chosen, "cache, plan, call")
      ->delimiter(',')
      ->check(CLI::IsMember({"cache", "plan", "call"}));
  CLI11_PARSE(app, argc, argv);
  // Scratch memory as large as a call asks for must fail, not take the machine with it.
  tk::fuzz::limitMemory(size_t{4} << 30);
  return tk::fuzz::run(seed, count, limit, chosen);
}
