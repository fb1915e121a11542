// A dimension that grows has few variants, and variants with equal text are compiled once.
#include "compiler/CompiledSource.h"
#include "runtime/SharedCode.h"
#include "tests/unit/api/TemporaryCache.h"
#include "tests/unit/catch.h"
#include "tk/tk.h"

#include <atomic>
#include <numeric>
#include <set>
#include <thread>

using namespace tk;

namespace {

constexpr const char *decode = R"(
kernel decode(q: bf16[B, H, D], k: bf16[B, H, T, D], v: bf16[B, H, T, D]) -> (o: bf16[B, H, D]) {
  let p[b, h, j] = softmax[j](sum[d](q[b, h, d] * k[b, h, j, d]) * rsqrt(D))
  o[b, h, d]     = sum[j](p[b, h, j] * v[b, h, j, d])
}
)";
constexpr const char *causal = R"(
kernel causal(q: bf16[B, H, S, D], k: bf16[B, G, S, D], v: bf16[B, G, S, D]) -> (o: bf16[B, H, S, D])
where H % G == 0
{
  let s[b, h, i, j] = sum[d](q[b, h, i, d] * k[b, h / (H / G), j, d]) * rsqrt(D)
  let p[b, h, i, j] = softmax[j](if j <= i then s[b, h, i, j] else -inf)
  o[b, h, i, e]     = sum[j](p[b, h, i, j] * v[b, h / (H / G), j, e])
}
)";
constexpr const char *linear = R"(
kernel linear(x: bf16[M, K], w: bf16[K, N]) -> (y: bf16[M, N]) {
  y[i, j] = sum[k](x[i, k] * w[k, j])
}
)";
constexpr const char *norm = R"(
kernel norm(x: f32[R, C]) -> (y: f32[R, C]) {
  y[r, c] = x[r, c] - mean[c](x[r, c])
}
)";

/// The keys that a kernel has while one dimension grows; `isListed`: by sizes that are prepared one
/// by one.
std::set<std::string> keysOf(const char *text, std::string_view target, const std::string &grows,
                             int64_t from, int64_t to, bool isListed = false,
                             bool isExact = false) {
  CompileOptions options;
  options.few_keys = !isExact;
  auto source = CompiledSource::create(text, options, DriverOptions()).value();
  const Signature &signature = source->signatures()[0];
  std::set<std::string> keys;
  for (int64_t size = from; size <= to; ++size) {
    std::vector<int64_t> dims;
    for (const std::string &dim : signature.dims)
      dims.push_back(dim == grows ? size : dim == "D" ? 128 : dim == "B" ? 2 : 4096);
    Facts known = facts_for(dims);
    for (DimFact &fact : known.dims)
      fact.own_key = isListed;
    const Facts facts = source->relevant_facts(0, target, known);
    REQUIRE(source->relevant_facts(0, target, facts) == facts);
    keys.insert(facts.key());
  }
  return keys;
}

/// Keys while a dimension grows from 300 to 8192, those of powers of two included.
constexpr size_t beyond = 5;

} // namespace

TEST_CASE("a dimension that grows has at most four keys", "[api]") {
  struct Case {
    const char *text;
    std::string grows;
  };
  for (const auto &[text, grows] :
       {Case{decode, "T"}, Case{causal, "S"}, Case{linear, "M"}, Case{norm, "R"}})
    for (std::string_view target : {"cpu", "emu", "emu-sm_80", "sm_90a", "sm_80", "sm_89"}) {
      CAPTURE(text, target);
      CHECK(keysOf(text, target, grows, 1, 300).size() <= 4);
      CHECK(keysOf(text, target, grows, 1, 8192).size() <= 4 + beyond);
    }
  // The width of a head and the columns of a weight are no steps of growth.
  CHECK(keysOf(decode, "sm_90a", "D", 1, 300).size() > 4);
  CHECK(keysOf(linear, "sm_90a", "N", 1, 300).size() > 4);
}

TEST_CASE("classes of sizes are cut where plans change", "[api]") {
  auto keys = [](const char *text, const std::string &dim, std::initializer_list<int64_t> sizes) {
    std::set<std::string> all;
    for (int64_t size : sizes)
      all.merge(keysOf(text, "sm_90a", dim, size, size));
    return all.size();
  };
  // Rows of a product: one, memory's side of the ridge, and from there on a class for each
  // doubling.
  CHECK(keys(linear, "M", {1}) == 1);
  CHECK(keys(linear, "M", {1, 2}) == 2);
  CHECK(keys(linear, "M", {2, 16, 17, 64, 65, 128}) == 1);
  CHECK(keys(linear, "M", {128, 129, 256, 257, 512, 513, 1024, 1025, 2048, 2049}) == 6);
  CHECK(keys(linear, "M", {2049, 3000, 4100, 8000, 16000}) == 1);
  // Terms of a reduction: whole tiles are apart.
  CHECK(keys(decode, "T", {1, 64}) == 1);
  CHECK(keys(decode, "T", {64, 65}) == 2);
  CHECK(keys(decode, "T", {65, 128, 256}) == 1);
  CHECK(keys(decode, "T", {300, 1000, 4095}) == 1);
  CHECK(keys(decode, "T", {384, 512, 640, 1024, 3968, 4096}) == 1);
  CHECK(keys(decode, "T", {300, 384}) == 2);
  CHECK(keys(decode, "T", {5000, 8191, 30000}) == 1);
  // A large power of two has its own key; sizes with its bound do not.
  CHECK(keys(decode, "T", {8064, 8192, 16000, 16384}) == 3);
  CHECK(keys(linear, "M", {4000, 4096, 8000, 8192}) == 3);
}

TEST_CASE("keys tell sizes of products as finely as tiles do", "[api]") {
  auto keys = [](const char *text, const std::string &dim, std::initializer_list<int64_t> sizes) {
    std::set<std::string> all;
    for (int64_t size : sizes)
      all.merge(keysOf(text, "sm_90a", dim, size, size, false, true));
    return all.size();
  };
  // All of these are odd multiples of 16.
  CHECK(keys(linear, "M", {1040, 2000}) == 2);
  CHECK(keys(linear, "N", {1040, 2000}) == 2);
  CHECK(keys(linear, "N", {1040, 1136}) == 1);
  CHECK(keys(linear, "N", {4112, 5104, 5136}) == 2);
  // What is summed over, and the queries and keys of attention, have powers of two.
  CHECK(keys(linear, "K", {1040, 2000}) == 1);
  CHECK(keys(causal, "S", {1040, 2000}) == 1);
}

TEST_CASE("sizes that are prepared one by one have keys of their own", "[api]") {
  for (std::string_view target : {"cpu", "sm_90a"}) {
    CAPTURE(target);
    const auto classes = keysOf(linear, target, "M", 1, 300);
    const auto listed = keysOf(linear, target, "M", 1, 300, true);
    CHECK(listed.size() == keysOf(linear, target, "M", 1, 300, false, true).size());
    CHECK(listed.size() > classes.size());
    // Code of a size and code of a class are two variants, even if both are planned alike.
    for (const std::string &key : listed)
      CHECK(!classes.contains(key));
  }
  // The columns of a weight have no classes, and one key.
  CHECK(keysOf(norm, "sm_90a", "C", 8, 100).size() ==
        keysOf(norm, "sm_90a", "C", 8, 100, true).size());
}

TEST_CASE("code is planned for other sizes than those of a launch", "[api]") {
  auto gridOf = [](std::map<std::string, int64_t> planned) {
    CompileOptions options;
    options.target = "emu";
    options.plan_dims = std::move(planned);
    Module module = compile(linear, options);
    std::vector<uint16_t> x(152 * 64), w(64 * 152), y(152 * 152);
    const std::vector<Value> values{TensorView(x.data(), DType::bf16, {152, 64}),
                                    TensorView(w.data(), DType::bf16, {64, 152}),
                                    TensorView(y.data(), DType::bf16, {152, 152})};
    BoundKernel bound = module.kernel("linear").bind(values);
    bound.launch({}, std::vector<void *>{x.data(), w.data(), y.data()});
    return bound.executable().cuda;
  };
  const std::string own = gridOf({}), large = gridOf({{"M", 8192}, {"N", 8192}, {"K", 8192}});
  CHECK(own != large);
  CHECK(gridOf({{"M", 152}, {"N", 152}, {"K", 64}}) == own);

  CompileOptions wrong;
  wrong.target = "emu";
  wrong.plan_dims = {{"Q", 8}};
  CHECK_THROWS_WITH(compile(linear, wrong), "kernel 'linear' has no dimension 'Q'; it has M, K, N");
  wrong.plan_dims = {{"M", -1}};
  CHECK_THROWS_WITH(compile(linear, wrong), "dimension 'M' cannot be -1");
}

#ifdef TK_HAS_CPU
TEST_CASE("a growing sequence compiles four variants on the CPU", "[api]") {
  TemporaryCache cache;
  CompileOptions options;
  options.target = "cpu";
  options.few_keys = true;
  Module module = compile("kernel mean_of(x: f32[B, T, D]) -> (y: f32[B, D]) {\n"
                          "  y[b, d] = mean[t](x[b, t, d])\n}\n",
                          options);
  Kernel kernel = module.kernel("mean_of");
  std::set<const void *> variants;
  std::vector<float> x(300 * 4), y(4);
  std::iota(x.begin(), x.end(), 0.0F);
  for (int64_t t = 1; t <= 300; ++t) {
    const std::vector<Value> values{TensorView(x.data(), DType::f32, {1, t, 4}),
                                    TensorView(y.data(), DType::f32, {1, 4})};
    BoundKernel bound = kernel.bind(values);
    variants.insert(&bound.executable());
    bound.launch({}, std::vector<void *>{x.data(), y.data()});
    CHECK(y[1] == 2.0F * static_cast<float>(t - 1) + 1.0F);
  }
  CHECK(variants.size() <= 4);
}
#endif

TEST_CASE("what is asked for at once is made once, and kept while it is held", "[api]") {
  detail::SharedCode<int> shared;
  const detail::Digest key = detail::sha256("text"), other = detail::sha256("other");
  std::atomic<int> made = 0;
  auto make = [&]() -> detail::SharedCode<int>::Made {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return std::make_shared<int>(++made);
  };
  std::vector<std::shared_ptr<int>> held(8);
  std::vector<std::thread> threads;
  for (std::shared_ptr<int> &code : held)
    threads.emplace_back([&] { code = shared.get(key, make).value(); });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(made == 1);
  CHECK(shared.get(other, make).value() != held[0]);
  CHECK(shared.get(key, make).value() == held[0]);
  held.clear();
  CHECK(shared.get(key, make).value() != nullptr);
  CHECK(made == 3);
  // A failure is told, and not kept.
  auto fail = [&]() -> detail::SharedCode<int>::Made {
    return Error(ErrorCode::nvrtc_failed, "planted");
  };
  CHECK(shared.get(other, fail).error().message() == "planted");
  CHECK(shared.get(other, make));
}
