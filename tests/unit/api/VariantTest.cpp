// Variants: which sizes share one, what the cache returns, how addresses matter.
#include "compiler/CompiledSource.h"
#include "tests/unit/api/TemporaryCache.h"
#include "tests/unit/catch.h"
#include "tk/tk.h"

#include <fstream>
#include <sstream>

using namespace tk;

namespace {

constexpr const char *scale = R"(
kernel twice(x: f32[N, M]) -> (y: f32[N, M]) {
  y[i, j] = x[i, j] + x[i, j]
}
)";

std::shared_ptr<CompiledSource> compiled(const DriverOptions &driver = {}) {
  return CompiledSource::create(scale, {}, driver).value();
}

std::string relevant(std::string_view target, const Facts &facts) {
  return compiled()->relevant_facts(0, target, facts).key();
}

std::string cudaText(const Facts &facts, const DriverOptions &driver = {}) {
  return compiled(driver)->stage_text(0, "cuda", "sm_90a", facts).value();
}

Facts aligned(uint32_t x, uint32_t y) {
  Facts facts = facts_for(std::vector<int64_t>{1024, 1024});
  facts.tensors = {{x, 1}, {y, 1}};
  return facts;
}

} // namespace

TEST_CASE("sizes that the compiler treats alike share a variant", "[api]") {
  auto facts = [](int64_t n, int64_t m) { return facts_for(std::vector<int64_t>{n, m}); };
  CHECK(relevant("cpu", facts(5000, 9000)) == relevant("cpu", facts(6000, 100000)));
  CHECK(relevant("cpu", facts(3, 3)) != relevant("cpu", facts(5000, 3)));
  CHECK(relevant("sm_90a", facts(3001, 4095)) == relevant("sm_90a", facts(4001, 2051)));
  CHECK(relevant("sm_90a", facts(3001, 4096)) != relevant("sm_90a", facts(3001, 4095)));
  CHECK(relevant("sm_90a", facts(16385, 1)) == relevant("sm_90a", facts(30001, 1)));
  CHECK(relevant("sm_90a", aligned(16, 128)) == relevant("sm_90a", aligned(32, 64)));
  CHECK(relevant("sm_90a", aligned(4, 128)) != relevant("sm_90a", aligned(16, 128)));
  // Facts once reduced stay as they are.
  Facts once = compiled()->relevant_facts(0, "sm_90a", aligned(8, 16));
  CHECK(compiled()->relevant_facts(0, "sm_90a", once) == once);
}

TEST_CASE("launches with scalars that passes would like share a variant", "[api]") {
  TemporaryCache cache;
  auto source = CompiledSource::create("kernel capped(x: f32[M, N], cap: f32) -> (y: f32[M, N]) {\n"
                                       "  y[i, j] = softmax[j](cap * tanh(x[i, j] / cap))\n}\n",
                                       {})
                    .value();
  const Signature &signature = source->signatures()[0];
  REQUIRE(signature.cases.size() == 1);
  CHECK(signature.cases[0].text == "0 < cap <= 50");
  CHECK(decode_signature(encode(signature)) == signature);
  auto key = [&](std::string_view target, double cap) {
    Facts facts = facts_for(std::vector<int64_t>{64, 64});
    const std::vector<Scalar> variables{Scalar(int64_t{64}), Scalar(int64_t{64}), Scalar(cap)};
    facts.cases = scalar_cases(signature, variables);
    return source->relevant_facts(0, target, facts).key();
  };
  CHECK(key("sm_90a", 30) == key("sm_90a", 50));
  CHECK(key("sm_90a", 30) != key("sm_90a", 50.5));
  CHECK(key("sm_90a", 50.5) == key("sm_90a", -3));
  CHECK(key("emu", 30) != key("emu", 0));
  CHECK(key("cpu", 30) == key("cpu", 60));
}

TEST_CASE("lengths that are reduced over are told apart more finely", "[api]") {
  auto source = CompiledSource::create("kernel total(x: f32[R, C]) -> (s: f32[R]) {\n"
                                       "  s[r] = sum[c](x[r, c])\n}\n",
                                       {})
                    .value();
  auto relevant = [&](int64_t rows, int64_t columns) {
    Facts facts = facts_for(std::vector<int64_t>{rows, columns});
    return source->relevant_facts(0, "sm_90a", facts);
  };
  CHECK(relevant(65536, 64) == relevant(131072, 64));
  CHECK(relevant(16384, 64) != relevant(32768, 64));
  CHECK(relevant(64, 16384) != relevant(64, 32768));
  CHECK(relevant(1024, 1024).dims[0].divisor == 128);
  CHECK(relevant(1024, 1024).dims[1].divisor == 1024);
  CHECK(relevant(64, 5000).dims[1].upper == 5120);
  CHECK(relevant(5000, 64).dims[0].upper == 8192);
  auto product =
      CompiledSource::create("kernel product(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N]) {\n"
                             "  c[i, j] = sum[k](a[i, k] * b[k, j])\n}\n",
                             {})
          .value();
  Facts facts = facts_for(std::vector<int64_t>{64, 5000, 64});
  CHECK(product->relevant_facts(0, "sm_90a", facts).dims[1].upper == 8192);
}

TEST_CASE("small windows have code of their own, but not in bundles", "[api]") {
  TemporaryCache cache;
  auto source = CompiledSource::create(
                    "kernel conv(x: f32[N, C, T], w: f32[O, C, R]) -> (y: f32[N, O, T - R + 1]) "
                    "where R >= 1 {\n  y[n, o, t] = sum[i, r](x[n, i, t + r] * w[o, i, r])\n}\n",
                    {})
                    .value();
  auto facts = [](int64_t channels, int64_t taps) {
    return facts_for(std::vector<int64_t>{2, channels, 100, 5, taps});
  };
  auto key = [&](std::string_view target, int64_t channels, int64_t taps) {
    return source->relevant_facts(0, target, facts(channels, taps)).key();
  };
  CHECK(key("sm_90a", 12, 5) != key("sm_90a", 12, 7));
  CHECK(key("sm_90a", 12, 17) == key("sm_90a", 12, 19));
  CHECK(key("sm_90a", 9, 5) != key("sm_90a", 11, 5));
  CHECK(key("sm_90a", 33, 5) == key("sm_90a", 35, 5));
  CHECK(key("cpu", 12, 5) == key("cpu", 12, 7));
  Facts once = source->relevant_facts(0, "sm_90a", facts(12, 5));
  CHECK(once.dims[4].exact == 5);
  CHECK(source->relevant_facts(0, "sm_90a", once) == once);
  source->setServesShorter(true);
  CHECK(key("sm_90a", 12, 5) == key("sm_90a", 12, 7));
}

TEST_CASE("rows and columns of products are told apart as finely as their tiles", "[api]") {
  auto boundOfRows = [](const std::string &type, int64_t rows) {
    auto source = CompiledSource::create("kernel product(a: " + type + "[M, K], b: " + type +
                                             "[K, N]) -> (c: " + type +
                                             "[M, N]) {\n"
                                             "  c[i, j] = sum[k](a[i, k] * b[k, j])\n}\n",
                                         {})
                      .value();
    Facts facts = facts_for(std::vector<int64_t>{rows, 64, 64});
    return source->relevant_facts(0, "sm_90a", facts).dims[0].upper;
  };
  CHECK(boundOfRows("f32", 700) == 768);
  CHECK(boundOfRows("f64", 700) == 768);
  CHECK(boundOfRows("bf16", 700) == 768);
  CHECK(boundOfRows("f32", 1100) == 1152);
  CHECK(boundOfRows("f32", 4100) == 5120);
}

TEST_CASE("masks hold before the least length of a variant's rows, but not in bundles", "[api]") {
  auto source = CompiledSource::create("kernel total(x: bf16[R, C]) -> (s: f32[R]) {\n"
                                       "  s[r] = sum[c](x[r, c])\n}\n",
                                       {})
                    .value();
  auto text = [&] {
    return source->stage_text(0, "gpu", "sm_90a", facts_for(std::vector<int64_t>{64, 4093}))
        .value();
  };
  CHECK(text().find("tkgpu.least_sizes = array<i64: 0, 3585>") != std::string::npos);
  CHECK(text().find("tkgpu.settled") != std::string::npos);
  source->setServesShorter(true);
  CHECK(text().find("tkgpu.settled") == std::string::npos);
}

TEST_CASE("the cache returns what was compiled, and options keep entries apart", "[api]") {
  TemporaryCache cache;
  std::string first = cudaText(aligned(16, 16));
  CHECK(cache.entries() == 1);
  CHECK(cudaText(aligned(16, 16)) == first);
  CHECK(cache.entries() == 1);
  DriverOptions driver;
  driver.pipeline.disabled.insert("coalescing");
  CHECK(cudaText(aligned(16, 16), driver) != first);
  CHECK(cache.entries() == 2);
  // A run that is watched compiles, and gets the same.
  int passes = 0;
  driver.pipeline.disabled.clear();
  driver.pipeline.afterPass = [&](const PassRun &, mlir::ModuleOp) {
    ++passes;
    return mlir::success();
  };
  CHECK(cudaText(aligned(16, 16), driver) == first);
  CHECK(passes > 0);
  passes = 0;
  ::setenv("TK_CACHE", "off", 1);
  CHECK(cudaText(aligned(16, 16)) == first);
  ::unsetenv("TK_CACHE");
}

TEST_CASE("damaged entries are compiled anew", "[api]") {
  TemporaryCache cache;
  std::string first = cudaText(aligned(16, 16));
  for (const auto &file : std::filesystem::directory_iterator(cache.directory)) {
    std::fstream bytes(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(100);
    bytes.put('#');
  }
  CHECK(cudaText(aligned(16, 16)) == first);
  CHECK(cache.entries() == 1);
}

TEST_CASE("less aligned addresses get narrower accesses", "[api]") {
  TemporaryCache cache;
  std::string wide = cudaText(aligned(16, 16)), narrow = cudaText(aligned(4, 16));
  CHECK(wide != narrow);
}

TEST_CASE("strides that are divisible get wider accesses", "[api]") {
  TemporaryCache cache;
  constexpr const char *text = "kernel k(strided x: bf16[N, M]) -> (y: bf16[N, M]) {\n"
                               "  y[i, j] = x[i, j]\n}\n";
  auto source = CompiledSource::create(text, {}).value();
  auto cuda = [&](uint32_t divisor) {
    Facts facts = facts_for(std::vector<int64_t>{64, 128});
    facts.tensors = {{16, divisor}, {16, 1}};
    return source->stage_text(0, "cuda", "sm_90a", facts).value();
  };
  CHECK(cuda(8).find("tk::load<8>") != std::string::npos);
  CHECK(cuda(4).find("tk::load<4>") != std::string::npos);
  CHECK(cuda(1).find("tk::load<8>") == std::string::npos);
}

TEST_CASE("TK_DUMP gets every stage", "[api]") {
  TemporaryCache cache;
  std::string directory = cache.directory + "/dump";
  ::setenv("TK_DUMP", directory.c_str(), 1);
  cudaText(aligned(16, 16));
  ::unsetenv("TK_DUMP");
  std::set<std::string> suffixes;
  for (const auto &file : std::filesystem::directory_iterator(directory)) {
    std::string name = file.path().filename().string();
    CHECK(name.starts_with("twice.sm_90a."));
    suffixes.insert(name.substr(name.find('.', 13) + 1));
  }
  CHECK(suffixes ==
        std::set<std::string>{"cu", "fused.mlir", "gpu.mlir", "plan.txt", "tiled.mlir", "tk.mlir"});
}

TEST_CASE("an internal error names a program that shows it", "[api]") {
  TemporaryCache cache;
  DriverOptions driver;
  driver.pipeline.afterPass = [](const PassRun &, mlir::ModuleOp) { return mlir::failure(); };
  // A size of each dimension that has the same facts.
  Facts facts = facts_for(std::vector<int64_t>{96, 3001});
  ::setenv("TK_DUMP", cache.directory.c_str(), 1);
  Expected<std::string> text = compiled(driver)->stage_text(0, "gpu", "sm_90a", facts);
  ::unsetenv("TK_DUMP");
  REQUIRE_FALSE(bool(text));
  CHECK(text.error().code() == ErrorCode::internal);
  size_t at = text.error().message().find("to reproduce: ");
  REQUIRE(at != std::string::npos);
  std::ifstream file(text.error().message().substr(at + 14));
  std::stringstream contents;
  contents << file.rdbuf();
  CHECK(contents.str().find(scale) != std::string::npos);
  CHECK(contents.str().find("--target sm_90a --emit gpu -o - --dim N=96 --dim M=4095") !=
        std::string::npos);
  // It is a program like any other.
  CHECK(CompiledSource::create(contents.str(), {}).has_value());
}

TEST_CASE("offsets have 32 bits where tensors are known to be small", "[api]") {
  TemporaryCache cache;
  Facts facts{{{1, -1, {}}, {1, -1, {}}}, {}, false};
  CHECK(cudaText(facts).find("const long long M") != std::string::npos);
  facts.small_tensors = true;
  CHECK(cudaText(facts).find("const int M") != std::string::npos);
  CHECK(relevant("sm_90a", facts) == "1;1|small");
  CHECK(relevant("cpu", facts).find("small") == std::string::npos);
}

#ifdef TK_HAS_EMU
TEST_CASE("sizes are handed over as the kernel takes them", "[api]") {
  TemporaryCache cache;
  for (bool small : {false, true}) {
    Facts facts{{{1, -1, {}}, {1, -1, {}}}, {}, small};
    const LaunchPlan plan = compiled()->specialise(0, "emu", facts).value().plan;
    REQUIRE(plan.launches.size() == 1);
    unsigned integers = 0;
    for (const Arg &arg : plan.launches[0].args)
      if (arg.kind == ArgKind::integer) {
        ++integers;
        CHECK(arg.dtype == (small ? DType::i32 : DType::i64));
      }
    CHECK(integers > 0);
  }
}
#endif

TEST_CASE("one kernel is called with one stride after another", "[api]") {
  TemporaryCache cache;
  CompileOptions options;
  options.target = "cpu";
  Kernel kernel = compile("kernel copy(strided x: f32[N, M]) -> (y: f32[N, M]) {\n"
                          "  y[i, j] = x[i, j]\n}\n",
                          options)
                      .kernel("copy");
  constexpr int64_t rows = 5, columns = 7;
  // Nothing divides any of them: all calls share one variant.
  for (int64_t stride : {9, 11, 7, 9}) {
    INFO("rows " << stride << " elements apart");
    std::vector<float> x(static_cast<size_t>(rows * stride)), y(rows * columns);
    for (size_t n = 0; n < x.size(); ++n)
      x[n] = static_cast<float>(n);
    TensorView view(x.data(), DType::f32, {rows, columns}, {stride, 1}, Device::cpu());
    kernel({}, {{"x", view}}, {{"y", TensorView(y.data(), DType::f32, {rows, columns})}});
    size_t wrong = 0;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        wrong += y[static_cast<size_t>(i * columns + j)] != static_cast<float>(i * stride + j);
    CHECK(wrong == 0);
  }
}

TEST_CASE("a strided tensor is updated in place, and nothing between its rows", "[api]") {
  TemporaryCache cache;
#ifdef TK_HAS_EMU
  const std::vector<std::string> targets{"cpu", "emu"};
#else
  const std::vector<std::string> targets{"cpu"};
#endif
  constexpr const char *text = "kernel add(strided inout w: f32[N, M], d: f32[M]) -> () {\n"
                               "  w[i, j] = w[i, j] + w[N - 1 - i, j] + d[j]\n}\n";
  for (const std::string &target : targets)
    for (int64_t gap : {0, 1, 4, 12}) {
      INFO(target << " with " << gap << " elements between rows");
      CompileOptions options;
      options.target = target;
      Kernel kernel = compile(text, options).kernel("add");
      constexpr int64_t rows = 9, columns = 20;
      const int64_t stride = columns + gap;
      std::vector<float> w(static_cast<size_t>(rows * stride), -7), d(columns, 0.5F);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          w[static_cast<size_t>(i * stride + j)] = static_cast<float>(i * columns + j);
      TensorView view(w.data(), DType::f32, {rows, columns}, {stride, 1}, Device::cpu());
      kernel({}, {{"w", view}, {"d", TensorView(d.data(), DType::f32, {columns})}}, {});
      size_t wrong = 0;
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < stride; ++j) {
          auto sum = static_cast<float>((rows - 1) * columns + 2 * j) + 0.5F;
          wrong += w[static_cast<size_t>(i * stride + j)] != (j < columns ? sum : -7);
        }
      CHECK(wrong == 0);
    }
}

#ifdef TK_HAS_EMU
TEST_CASE("views at odd offsets compute the same on the emulator", "[api]") {
  TemporaryCache cache;
  CompileOptions options;
  options.target = "emu";
  Kernel kernel = compile(scale, options).kernel("twice");
  std::vector<float> x(64 * 64 + 4), y(64 * 64 + 4);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i % 97);
  auto offset = [](std::vector<float> &data, size_t n) {
    size_t skip = (16 - reinterpret_cast<uintptr_t>(data.data()) % 16) % 16 / 4;
    return TensorView(data.data() + skip + n, DType::f32, {62, 64});
  };
  TensorView from = offset(x, 1), to = offset(y, 0);
  kernel({}, {{"x", from}}, {{"y", to}});
  const auto *in = static_cast<const float *>(from.data);
  const auto *out = static_cast<const float *>(to.data);
  size_t wrong = 0;
  for (size_t i = 0; i < 62 * 64; ++i)
    wrong += out[i] != 2 * in[i];
  CHECK(wrong == 0);
  // What was bound for aligned addresses refuses others.
  BoundKernel bound = kernel.bind({offset(x, 0), to});
  std::vector<void *> odd{from.data, to.data};
  Status launched = bound.try_launch({}, odd);
  REQUIRE_FALSE(bool(launched));
  CHECK(launched.error().message().find("aligned to 16") != std::string::npos);
}
#endif
