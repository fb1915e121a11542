// Building bundles, and the C++ that carries them.
#include "compiler/bundle/BuildBundle.h"
#include "compiler/bundle/BundleSource.h"
#include "runtime/cuda/Nvrtc.h"
#include "tests/unit/api/TemporaryCache.h"
#include "tests/unit/catch.h"

using namespace tk;

namespace {

constexpr const char *text = R"(
kernel scale(x: f32[N], factor: f32 = 2) -> (y: f32[N]) { y[i] = factor * x[i] }
kernel sums(new: bf16[M, N], shift: i32) -> (this: f32[M]) where M % 2 == 0 {
  this[i] = sum[j](new[i, j]) + shift
}
)";

std::shared_ptr<CompiledSource> compiled() { return CompiledSource::create(text, {}).value(); }

bool contains(const std::string &text, const std::string &part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("requests that make no sense are refused", "[bundle]") {
  auto source = compiled();
  auto failure = [&](const BundleRequest &request) {
    Expected<Bundle> bundle = buildBundle(*source, request);
    REQUIRE(!bundle);
    CHECK(bundle.error().code() == ErrorCode::invalid_argument);
    return bundle.error().message();
  };
  CHECK(contains(failure({{0}, {"cpu"}, {{{}, true}}}), "not of 'cpu'"));
  CHECK(contains(failure({{0}, {"sm_12"}, {{{}, true}}}), "no architecture 'sm_12'"));
  CHECK(contains(failure({{0}, {"sm_90a"}, {{{{"M", 8}}}}}), "dimension 'M'"));
}

TEST_CASE("texts of variants name sizes and ranges", "[bundle]") {
  auto one = parseVariants("N=4000, M=8").value();
  REQUIRE(one.size() == 1);
  CHECK(one[0].sizes == std::map<std::string, int64_t>{{"N", 4000}, {"M", 8}});
  CHECK(one[0].classes.empty());
  // Four classes of N, each with both sizes of M.
  auto many = parseVariants("N=1..8192,M=7..8").value();
  REQUIRE(many.size() == 8);
  CHECK(many[0].classes.at("N") == SizeClass{1, 16, 1, 16});
  CHECK(many[0].sizes.at("M") == 7);
  CHECK(many[7].classes.at("N") == SizeClass{1025, 8192, 1, 8192});
  CHECK(many[7].sizes.at("M") == 8);
  CHECK(parseVariants("N=64..8192:64").value()[0].classes.at("N").divisor == 64);
  for (const char *wrong :
       {"", "N", "N=", "=4", "N=x", "N=-1", "N=4:2", "N=1..", "N=..4", "N=1..4:", "N=1..4:0",
        "N=9..4", "N=1...4", "N=1..4..8", "N=4,N=8", "N=4,", "N=1..99999999999999999999"}) {
    INFO(wrong);
    Expected<std::vector<VariantRequest>> parsed = parseVariants(wrong);
    REQUIRE(!parsed);
    CHECK(parsed.error().code() == ErrorCode::invalid_argument);
  }
}

TEST_CASE("a bundle serves a range with few variants", "[bundle]") {
  if (!cuda::Nvrtc::get()) {
    WARN("not run: there is no NVRTC");
    return;
  }
  TemporaryCache cache;
  auto source = compiled();
  BundleRequest request{{1}, {"sm_90a"}, parseVariants("N=1..300,M=2").value()};
  Bundle bundle = buildBundle(*source, request).value();
  const std::vector<BundleVariant> &variants = bundle.kernels[0].variants;
  CHECK(variants.size() == 2);
  const Signature &signature = bundle.kernels[0].signature;
  for (int64_t n = 1; n <= 300; ++n) {
    Facts known = facts_for(std::vector<int64_t>{2, n});
    known.small_tensors = true;
    known.tensors.assign(2, TensorFact{16, 1});
    CHECK(covers(variants[n <= 64 ? 0 : 1].facts, known, signature));
  }
  CHECK(decode_bundle(encode(bundle)).value().kernels[0].variants.size() == 2);
}

TEST_CASE("a bundle has each kernel for each architecture and variant", "[bundle]") {
  if (!cuda::Nvrtc::get()) {
    WARN("not run: there is no NVRTC");
    return;
  }
  TemporaryCache cache;
  auto source = compiled();
  // For `scale`, which has no M, the last variant repeats the one before.
  Bundle bundle =
      buildBundle(*source,
                  {{0, 1}, {"sm_80", "sm_90a"}, {{{{"N", 4096}}}, {{}, true}, {{{"M", 2}}, true}}})
          .value();
  REQUIRE(bundle.kernels.size() == 2);
  CHECK(bundle.kernels[0].variants.size() == 4);
  CHECK(bundle.kernels[1].variants.size() == 6);
  const BundleVariant &variant = bundle.kernels[1].variants[0];
  CHECK(variant.arch == "sm_80");
  CHECK(variant.cubin.substr(1, 3) == "ELF");
  CHECK(describe(variant.facts, bundle.kernels[1].signature) ==
        "M % 4 == 0, N % 4096 == 0, N <= 4096, tensors of less than 2^30 elements, addresses "
        "aligned to 16");
  CHECK(bundle.kernels[1].signature.checks.size() == 1);
  // A call with these sizes is one that the runtime finds this code for.
  const Signature &signature = bundle.kernels[1].signature;
  Facts call = facts_for(std::vector<int64_t>{8, 4096});
  call.tensors.assign(2, {16, 1});
  call.small_tensors = true;
  CHECK(signature.dims == std::vector<std::string>{"M", "N"});
  CHECK(covers(variant.facts, call, signature));
  call.small_tensors = false;
  CHECK_FALSE(covers(variant.facts, call, signature));
  CHECK(covers(bundle.kernels[1].variants[1].facts, call, signature));
  CHECK(decode_bundle(encode(bundle)).value() == bundle);
}

TEST_CASE("code for some values of scalars comes before that for all", "[bundle]") {
  if (!cuda::Nvrtc::get()) {
    WARN("not run: there is no NVRTC");
    return;
  }
  TemporaryCache cache;
  auto source =
      CompiledSource::create("kernel scaled(x: f32[M, N], scale: f32) -> (y: f32[M, N]) {\n"
                             "  y[i, j] = softmax[j](x[i, j] * scale)\n}\n",
                             {})
          .value();
  Bundle bundle =
      buildBundle(*source, {{0}, {"sm_90a"}, {{{{"N", 64}}, false}, {{}, true}}}).value();
  const Signature &signature = bundle.kernels[0].signature;
  const std::vector<BundleVariant> &variants = bundle.kernels[0].variants;
  REQUIRE(variants.size() == 3);
  CHECK(contains(describe(variants[0].facts, signature), "scale > 0"));
  CHECK_FALSE(contains(describe(variants[1].facts, signature), "scale > 0"));
  CHECK_FALSE(contains(describe(variants[2].facts, signature), "scale > 0"));
  Facts call = facts_for(std::vector<int64_t>{4, 64});
  call.tensors.assign(2, {16, 1});
  call.small_tensors = true;
  CHECK_FALSE(covers(variants[0].facts, call, signature));
  call.cases = {false};
  CHECK_FALSE(covers(variants[0].facts, call, signature));
  CHECK(covers(variants[1].facts, call, signature));
  call.cases = {true};
  CHECK(covers(variants[0].facts, call, signature));
  CHECK(decode_bundle(encode(bundle)).value() == bundle);
  // What no signature has is no assumption.
  bundle.kernels[0].variants[0].facts.cases.assign(2, true);
  CHECK_FALSE(decode_bundle(encode(bundle), "x.tkb"));
}

TEST_CASE("a kernel becomes a typed function", "[bundle]") {
  BundleSource source = printBundleSource(
      compiled()->signatures(), {"a b.tk", cxxIdentifier("a b"), "a.h", "/tmp/a \"b\".tkb"});
  CHECK(contains(source.header, "namespace a_b {"));
  CHECK(contains(source.header,
                 "void scale(tk::Stream stream, const tk::TypedView<tk::DType::f32, 1> &x, const "
                 "tk::TypedView<tk::DType::f32, 1> &y, std::optional<float> factor = "
                 "std::nullopt);"));
  // Names that C++ has other uses for.
  CHECK(contains(source.header,
                 "void sums(tk::Stream stream, const tk::TypedView<tk::DType::bf16, 2> &new_, "
                 "int32_t shift, const tk::TypedView<tk::DType::f32, 1> &this_);"));
  CHECK(contains(source.source, "{\"this\", this_}"));
  CHECK(contains(source.source, "std::optional<float> factor) {"));
  CHECK(contains(source.source, ".incbin \\\"/tmp/a \\\\\\\"b\\\\\\\".tkb\\\""));
  CHECK(cxxIdentifier("2-fast") == "tk_2_fast");
  CHECK(cxxIdentifier("double") == "double_");
}

#ifdef TK_HAS_CPU
TEST_CASE("a bundle runs on the CPU without a compiler", "[bundle]") {
  Expected<std::optional<std::string>> arch = cpuArch("cpu");
  if (!arch) {
    WARN("not run: bundles have no code for this CPU");
    return;
  }
  using Values = std::vector<NamedValue>;
  Bundle bundle = buildBundle(*compiled(), {{0, 1}, {**arch}, {{{}, false}, {{}, true}}}).value();
  // The facts of code for CPUs are those of all sizes here.
  REQUIRE(bundle.kernels[0].variants.size() == 1);
  CHECK(bundle.kernels[0].variants[0].arch == **arch);
  CHECK(decode_bundle(encode(bundle)).value() == bundle);
  Module module = load_bundle_bytes(encode(bundle), "kernels.tkb");
  CHECK(module.target() == "cpu");
  constexpr int64_t n = 1000;
  std::vector<float> x(n), y(n);
  for (int64_t i = 0; i < n; ++i)
    x[static_cast<size_t>(i)] = static_cast<float>(i);
  const Values from = {{"x", TensorView(x.data(), DType::f32, {n})}, {"factor", 3.0}};
  const Values to = {{"y", TensorView(y.data(), DType::f32, {n})}};
  module.kernel("scale")({}, from, to);
  CHECK(y[999] == 2997);
  std::vector<uint16_t> ones(4 * 33, f32_to_bf16(1));
  std::vector<float> sums(4);
  auto runSums = [&](int64_t rows) {
    const Values in = {{"new", TensorView(ones.data(), DType::bf16, {rows, 33})}, {"shift", 5}};
    const Values out = {{"this", TensorView(sums.data(), DType::f32, {rows})}};
    return module.kernel("sums").try_launch({}, in, out);
  };
  REQUIRE(runSums(4));
  CHECK(sums == std::vector<float>(4, 38));
  // Constraints hold here, too.
  CHECK(runSums(3).error().code() == ErrorCode::constraint_failed);

  Bundle later = bundle;
  for (BundleKernel &kernel : later.kernels)
    kernel.variants[0].arch = "cpu-x86-64-v9";
  Expected<Module> refused = try_load_bundle_bytes(encode(later), "later.tkb");
  REQUIRE(!refused);
  CHECK(refused.error().code() == ErrorCode::unsupported);
  CHECK(contains(refused.error().message(), "for cpu-x86-64-v9; this CPU runs code for cpu-x86-"));
  Bundle cut = bundle;
  cut.kernels[0].variants[0].cubin.resize(100);
  Module damaged = load_bundle_bytes(encode(cut), "cut.tkb");
  Status status = damaged.kernel("scale").try_launch({}, from, to);
  REQUIRE(!status);
  CHECK(status.error().code() == ErrorCode::bad_file);
}

TEST_CASE("targets of bundles name levels of CPUs", "[bundle]") {
  CHECK(cpuArch("cpu-x86-64-v4").value() == "cpu-x86-64-v4");
  CHECK(cpuArch("sm_90a").value() == std::nullopt);
  for (const char *wrong : {"cpu-", "cpu-x86-64-v2", "cpu-znver5"}) {
    Expected<std::optional<std::string>> arch = cpuArch(wrong);
    REQUIRE(!arch);
    CHECK(arch.error().code() == ErrorCode::invalid_argument);
  }
}
#endif
