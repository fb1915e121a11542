// Compiling ahead for sizes, and modules that compile no more.
#include "tests/unit/catch.h"
#include "tests/unit/runtime/FakeBackend.h"

#include "tk/tk.h"
#include "tk/tk_c.h"

#include <set>
#include <thread>

using namespace tk;
using test::for_target;

namespace {

struct Prepared {
  Prepared() : module(compile("gemm", for_target("cpu"))), kernel(module.kernel("gemm")) {}
  test::FakeBackend backend;
  Module module;
  Kernel kernel;

  int compilations() const { return backend.last->compilations; }
  Status launch(int64_t m, int64_t n, int64_t k) {
    float last = 0;
    Status done = launch(m, n, k, last);
    if (done)
      CHECK(last == static_cast<float>(k));
    return done;
  }
  /// `last` receives the last element of the product, which is `k`.
  Status launch(int64_t m, int64_t n, int64_t k, float &last) {
    auto size = [](int64_t count) { return static_cast<size_t>(count); };
    std::vector<float> a(size(m * k), 1), b(size(k * 2 * n), 1), c(size(m * n));
    std::vector<NamedValue> inputs = {{"a", TensorView(a.data(), DType::f32, {m, k})},
                                      {"b", TensorView(b.data(), DType::f32, {k, 2 * n})},
                                      {"scale", Scalar(1.0)}};
    std::vector<NamedValue> outputs = {{"c", TensorView(c.data(), DType::f32, {m, n})}};
    Status done = kernel.try_launch({}, inputs, outputs);
    last = c.back();
    return done;
  }
  std::string refusal(const SizeRequest &sizes, const PrepareOptions &options = {}) {
    Expected<size_t> found = kernel.try_prepare_sizes(sizes, options);
    REQUIRE(!found);
    CHECK(found.error().code() == ErrorCode::invalid_argument);
    return found.error().message();
  }
};

} // namespace

TEST_CASE("a range is cut into at most four classes", "[prepare]") {
  auto classes = [](SizeRange range) { return size_classes(range).value(); };
  CHECK(classes({1, 8192}) ==
        std::vector<SizeClass>{
            {1, 16, 1, 16}, {17, 128, 1, 128}, {129, 1024, 1, 1024}, {1025, 8192, 1, 8192}});
  CHECK(classes({1, 300}) == std::vector<SizeClass>{{1, 64, 1, 64}, {65, 300, 1, 512}});
  CHECK(classes({64, 8192, 64}) ==
        std::vector<SizeClass>{{64, 128, 64, 128}, {129, 1024, 64, 1024}, {1025, 8192, 64, 8192}});
  CHECK(classes({1000, 1100}) == std::vector<SizeClass>{{1000, 1100, 1, 2048}});
  CHECK(classes({0, 10}) == std::vector<SizeClass>{{1, 10, 1, 16}});
  CHECK(classes({5, 8}).empty());
  CHECK(classes({7, 7}).empty());
  CHECK_FALSE(SizeClass{64, 128, 64, 128}.holds(100));
  CHECK(size_classes({3, 2}).error().message() ==
        "expected sizes from 0 on in ascending order, got 3..2");
  CHECK(size_classes({1, 9, 0}).error().message() ==
        "the step of the sizes 1..9 must be at least 1, got 0");
  CHECK(!size_classes({-1, 9}));
  CHECK(!size_classes({1, INT64_MAX}));
  CHECK(!size_classes({1, 9, INT64_MAX}));
  // Every size of a range is in exactly one class, whatever the range.
  for (int64_t first : {0, 1, 3, 15, 16, 17, 64, 1000})
    for (int64_t step : {1, 2, 3, 8, 48})
      for (int64_t count : {5, 64, 999})
        for (int64_t at = 0, size = first; at < count; ++at, size += step) {
          int holders = 0;
          for (const SizeClass &of : classes({first, first + (count - 1) * step, step}))
            holders += of.holds(size) && size <= of.upper;
          REQUIRE(holders == (size == 0 ? 0 : 1));
        }
}

TEST_CASE_METHOD(Prepared, "prepared sizes compile nothing at a launch", "[prepare]") {
  std::vector<std::pair<size_t, size_t>> told;
  PrepareOptions options;
  options.threads = 2;
  options.progress = [&](size_t done, size_t total) { told.emplace_back(done, total); };
  // Odd K break the constraint K % 2 == 0.
  const size_t count =
      kernel.prepare_sizes({{"M", SizeRange{1, 300}}, {"N", {1, 2, 3}}, {"K", {2, 3, 4}}}, options);
  CHECK(count == 4);
  CHECK(compilations() == 4);
  CHECK(told == std::vector<std::pair<size_t, size_t>>{{0, 4}, {1, 4}, {2, 4}, {3, 4}, {4, 4}});
  CHECK_FALSE(module.is_frozen());
  module.freeze();
  CHECK(module.is_frozen());
  for (int64_t m : {1, 2, 4, 16, 63, 64, 65, 128, 256, 300})
    CHECK(launch(m, 2, 4));
  CHECK(compilations() == 4);
  Status cold = launch(5, 4, 4);
  REQUIRE(!cold);
  CHECK(cold.error().code() == ErrorCode::frozen);
  CHECK(name(cold.error().code()) == "frozen");
  CHECK(cold.error().message() == "the module is frozen, and 'gemm' has no code for M = 5, K = 4, "
                                  "N = 4: prepare them before the freeze");
  Expected<size_t> late = kernel.try_prepare_sizes({{"M", 1}, {"N", 1}, {"K", 2}});
  REQUIRE(!late);
  CHECK(late.error().code() == ErrorCode::frozen);
  CHECK(compilations() == 4);
}

TEST_CASE_METHOD(Prepared, "launches before do not keep their own variants", "[prepare]") {
  CHECK(launch(64, 1, 2));
  // The code of what is compiled next sums nothing, and shows thereby that it ran.
  backend.last->adjust = [](LaunchPlan &plan) { plan.launches[0].args.back().value = Expr(0); };
  CHECK(kernel.prepare_sizes({{"M", SizeRange{1, 300}}, {"N", 1}, {"K", 2}}) == 1);
  CHECK(compilations() == 2);
  for (int64_t m : {64, 256}) {
    float last = -1;
    CHECK(launch(m, 1, 2, last));
    CHECK(last == 0);
  }
  CHECK(compilations() == 2);
  backend.last->adjust = {};
  // A size that is not in the range has its own key.
  CHECK(launch(512, 1, 2));
  CHECK(compilations() == 3);
  // So has a size of the range that is given in a list.
  CHECK(kernel.prepare_sizes({{"M", {128, 512}}, {"N", 1}, {"K", 2}}) == 2);
  CHECK(compilations() == 4);
  CHECK(launch(128, 1, 2));
  CHECK(compilations() == 4);
}

TEST_CASE_METHOD(Prepared, "large ranges are not walked size by size", "[prepare]") {
  CHECK(kernel.prepare_sizes({{"M", SizeRange{1, int64_t{1} << 40}},
                              {"N", SizeRange{1, int64_t{1} << 20}},
                              {"K", SizeRange{2, 1 << 20, 2}}},
                             {.threads = 4, .progress = {}, .scalars = {}}) <= 64);
}

TEST_CASE_METHOD(Prepared, "large buffers between launches have a variant too", "[prepare]") {
  backend.last->adjust = [](LaunchPlan &plan) {
    plan.scratch.push_back({Expr(small_tensor_limit), false, "more"});
  };
  CHECK(kernel.prepare_sizes({{"M", 2}, {"N", 2}, {"K", 2}}) == 2);
  CHECK(compilations() == 2);
  module.freeze();
  CHECK_FALSE(backend.last->small_tensors);
}

TEST_CASE_METHOD(Prepared, "sizes that make no sense are refused", "[prepare]") {
  CHECK(refusal({{"M", 1}, {"N", 1}}) == "sizes for 'gemm': give the sizes of dimension 'K'");
  CHECK(refusal({{"Q", 1}}) == "sizes for 'gemm': there is no dimension 'Q'");
  CHECK(refusal({{"M", std::vector<int64_t>{}}, {"N", 1}, {"K", 2}}) ==
        "sizes for 'gemm': 'M': expected at least one size");
  CHECK(refusal({{"M", SizeRange{5, 2}}, {"N", 1}, {"K", 2}}) ==
        "sizes for 'gemm': 'M': expected sizes from 0 on in ascending order, got 5..2");
  CHECK(refusal({{"M", {1, -4}}, {"N", 1}, {"K", 2}}) ==
        "sizes for 'gemm': 'M': expected sizes from 0 on");
  PrepareOptions options;
  options.scalars["bias"] = 1;
  CHECK(refusal({{"M", 1}, {"N", 1}, {"K", 2}}, options) ==
        "sizes for 'gemm': there is no scalar 'bias'");
  // No combination satisfies the constraint.
  Expected<size_t> none = kernel.try_prepare_sizes({{"M", 1}, {"N", 1}, {"K", {1, 3}}});
  REQUIRE(!none);
  CHECK(none.error().code() == ErrorCode::constraint_failed);
  CHECK(compilations() == 0);
}

TEST_CASE_METHOD(Prepared, "an error ends the work", "[prepare]") {
  const SizeRequest sizes = {{"M", {1, 2, 4, 8, 16, 32}}, {"N", 1}, {"K", 2}};
  SECTION("of a compilation") {
    backend.last->fail_next = true;
    Expected<size_t> found =
        kernel.try_prepare_sizes(sizes, {.threads = 1, .progress = {}, .scalars = {}});
    REQUIRE(!found);
    CHECK(found.error().code() == ErrorCode::nvrtc_failed);
    CHECK(compilations() == 1);
  }
  SECTION("of the progress function") {
    PrepareOptions options;
    options.threads = 1;
    options.progress = [](size_t done, size_t) {
      if (done == 2)
        throw Error(ErrorCode::interrupted, "enough");
    };
    Expected<size_t> found = kernel.try_prepare_sizes(sizes, options);
    REQUIRE(!found);
    CHECK(found.error().message() == "enough");
    CHECK(compilations() < 6);
  }
  // What failed is compiled at the next attempt.
  CHECK(kernel.prepare_sizes(sizes) == 6);
  CHECK(compilations() >= 6);
}

TEST_CASE_METHOD(Prepared, "variants are compiled at the same time", "[prepare]") {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  backend.last->adjust = [&](LaunchPlan &) {
    std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  };
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size <= 1 << 12; size *= 2)
    sizes.push_back(size);
  CHECK(kernel.prepare_sizes({{"M", sizes}, {"N", 1}, {"K", 2}},
                             {.threads = 4, .progress = {}, .scalars = {}}) == sizes.size());
  CHECK(threads.size() > 1);
  CHECK(!threads.count(std::this_thread::get_id()));
}

TEST_CASE("the C interface prepares sizes and freezes", "[prepare]") {
  test::FakeBackend backend;
  tk_module *module = nullptr;
  tk_kernel *kernel = nullptr;
  REQUIRE(tk_compile("gemm", 4, nullptr, "cpu", &module) == TK_OK);
  REQUIRE(tk_module_kernel(module, nullptr, &kernel) == TK_OK);
  const int64_t list[] = {1, 2};
  tk_sizes sizes[4] = {};
  sizes[0] = {"M", TK_SIZES_RANGE, nullptr, 0, 1, 300, 1, 0};
  sizes[1] = {"N", TK_SIZES_LIST, list, 2, 0, 0, 0, 0};
  sizes[2] = {"K", TK_SIZES_LIST, list + 1, 1, 0, 0, 0, 0};
  sizes[3] = {"scale", TK_SIZES_SCALAR, nullptr, 0, 0, 0, 0, 0.5};
  size_t variants = 0, calls = 0;
  auto count = [](void *context, size_t, size_t) {
    ++*static_cast<size_t *>(context);
    return int32_t{0};
  };
  CHECK(tk_kernel_prepare_sizes(kernel, sizes, 4, 1, count, &calls, &variants) == TK_OK);
  CHECK(variants == 2);
  CHECK(calls == 3);
  auto stop = [](void *, size_t, size_t) { return int32_t{1}; };
  CHECK(tk_kernel_prepare_sizes(kernel, sizes, 3, 0, stop, nullptr, nullptr) == TK_INTERRUPTED);
  CHECK(std::string(tk_last_error()) == "the progress function ended the work");
  CHECK(tk_kernel_prepare_sizes(kernel, sizes, 1, 0, nullptr, nullptr, nullptr) ==
        TK_INVALID_ARGUMENT);
  sizes[1].kind = 9;
  CHECK(tk_kernel_prepare_sizes(kernel, sizes, 3, 0, nullptr, nullptr, nullptr) ==
        TK_INVALID_ARGUMENT);
  sizes[1] = {nullptr, TK_SIZES_LIST, list, 2, 0, 0, 0, 0};
  CHECK(tk_kernel_prepare_sizes(kernel, sizes, 3, 0, nullptr, nullptr, nullptr) ==
        TK_INVALID_ARGUMENT);
  CHECK(tk_kernel_prepare_sizes(nullptr, sizes, 1, 0, nullptr, nullptr, nullptr) ==
        TK_INVALID_ARGUMENT);
  sizes[1] = {"N", TK_SIZES_LIST, list, 2, 0, 0, 0, 0};
  CHECK(tk_module_freeze(module) == TK_OK);
  CHECK(tk_module_freeze(nullptr) == TK_INVALID_ARGUMENT);
  CHECK(tk_kernel_prepare_sizes(kernel, sizes, 3, 0, nullptr, nullptr, nullptr) == TK_FROZEN);
  tk_kernel_free(kernel);
  tk_module_free(module);
}
