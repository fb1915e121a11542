// Calls that have passed every check: they allocate nothing, and are refused where an address is
// wrong.
#include "tests/unit/FailingAllocation.h"
#include "tests/unit/catch.h"
#include "tests/unit/runtime/FakeGpu.h"

#include "tk/tk_c.h"

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <thread>

using namespace tk;
using test::count_allocations;
using test::fake;
using test::for_target;

namespace {

/// The sample kernel by the C interface: a, b, scale, c.
struct Call {
  explicit Call(const char *target) {
    REQUIRE(tk_compile("gemm", 4, nullptr, target, &module) == TK_OK);
    REQUIRE(tk_module_kernel(module, "gemm", &kernel) == TK_OK);
    set(values[0], a.data(), shape_a.data());
    set(values[1], b.data(), shape_b.data());
    set(values[3], c.data(), shape_a.data());
    values[2].kind = TK_REAL;
    values[2].real = 2;
  }
  ~Call() {
    tk_kernel_free(kernel);
    tk_module_free(module);
  }
  static void set(tk_value &value, float *data, const int64_t *shape) {
    value = {TK_TENSOR, TK_F32, 2, -1, data, shape, nullptr, -1, 0, 0};
  }
  tk_status run() { return tk_kernel_launch(kernel, nullptr, values.data(), values.size()); }
  std::string refusal(tk_status expected) {
    REQUIRE(run() == expected);
    return tk_last_error();
  }

  test::FakeBackend backend;
  tk_module *module = nullptr;
  tk_kernel *kernel = nullptr;
  alignas(16) std::array<float, 4> a{1, 2, 3, 4}, c{};
  alignas(16) std::array<float, 8> b{1, 0, 9, 9, 0, 1, 9, 9};
  std::array<int64_t, 2> shape_a{2, 2}, shape_b{2, 4};
  std::array<tk_value, 4> values{};
};

/// Allocations of ten runs, which must succeed.
long allocations_of(const std::function<bool()> &run) {
  bool good = true;
  long count = count_allocations([&] {
    for (int i = 0; i < 10; ++i)
      good &= run();
  });
  REQUIRE(good);
  return count;
}

} // namespace

TEST_CASE("a call that is known allocates nothing", "[known]") {
  Call call("cpu");
  CHECK(allocations_of([&] { return call.run() == TK_OK; }) > 0);
  CHECK(allocations_of([&] { return call.run() == TK_OK; }) == 0);
  CHECK(call.c == std::array<float, 4>{2, 4, 6, 8});
  // Other addresses of the same alignment are the same call.
  alignas(16) std::array<float, 4> other{};
  call.values[3].data = other.data();
  CHECK(allocations_of([&] { return call.run() == TK_OK; }) == 0);
  CHECK(other == call.c);
}

TEST_CASE("a bound launch allocates nothing", "[known]") {
  Call call("cpu");
  tk_bound *bound = nullptr;
  REQUIRE(tk_kernel_bind(call.kernel, call.values.data(), call.values.size(), &bound) == TK_OK);
  std::array<void *, 3> pointers{call.a.data(), call.b.data(), call.c.data()};
  auto launch = [&] { return tk_bound_launch(bound, nullptr, pointers.data(), 3) == TK_OK; };
  REQUIRE(launch());
  CHECK(allocations_of(launch) == 0);
  CHECK(call.c == std::array<float, 4>{2, 4, 6, 8});
  tk_bound_free(bound);
}

TEST_CASE_METHOD(test::GpuGemm, "launches on a GPU allocate nothing", "[known]") {
  fake().num_arguments = 0;
  fake().launches.reserve(100);
  const std::vector<NamedValue> in = inputs(), out = outputs();
  auto run = [&] { return static_cast<bool>(kernel->try_launch(stream, in, out)); };
  REQUIRE(run());
  CHECK(allocations_of(run) == 0);
  BoundKernel bound =
      kernel->bind({std::get<TensorView>(in[0].value), std::get<TensorView>(in[1].value),
                    std::get<TensorView>(out[0].value)});
  std::array<void *, 3> pointers{storage, storage + 64, storage + 128};
  auto launch = [&] { return static_cast<bool>(bound.try_launch(stream, pointers)); };
  REQUIRE(launch());
  CHECK(allocations_of(launch) == 0);
  CHECK(fake().launches.size() == 22);
}

TEST_CASE_METHOD(test::GpuGemm, "a launch makes its context current once", "[known]") {
  REQUIRE(run());
  fake().contexts_pushed = 0;
  REQUIRE(run());
  CHECK(fake().contexts_pushed == 1);
  fake().pointer_result = 1;
  CHECK(failure() == ErrorCode::invalid_argument);
  fake().pointer_result = 0;
  fake().launch_result = 1;
  CHECK_FALSE(run());
  fake().launch_result = 0;
  REQUIRE(run());
  CHECK(fake().contexts_current == 0);
}

TEST_CASE_METHOD(test::GpuGemm, "a known call refuses host memory", "[known]") {
  REQUIRE(run());
  fake().pointer_result = 1;
  CHECK(failure() == ErrorCode::invalid_argument);
  CHECK(message.find("got a host pointer") != std::string::npos);
  fake().pointer_result = 0;
  CHECK(run());
}

TEST_CASE("a known call checks its addresses", "[known]") {
  Call call("cpu");
  REQUIRE(call.run() == TK_OK);
  call.values[0].data = nullptr;
  CHECK(call.refusal(TK_INVALID_ARGUMENT) == "argument 1 'a': expected an address, got null");
  call.values[0].data = reinterpret_cast<char *>(call.a.data()) + 1;
  CHECK(call.refusal(TK_INVALID_ARGUMENT) ==
        "argument 1 'a': expected an address aligned to 4 bytes");
  call.values[0].data = call.c.data();
  CHECK(call.refusal(TK_INVALID_ARGUMENT).find("overlaps") != std::string::npos);
  call.values[0].data = call.b.data(); // inputs may overlap
  CHECK(call.run() == TK_OK);
  call.values[0].data = call.a.data();
  CHECK(call.run() == TK_OK);
  CHECK(call.c == std::array<float, 4>{2, 4, 6, 8});
}

TEST_CASE("everything but addresses makes another call", "[known]") {
  Call call("cpu");
  REQUIRE(call.run() == TK_OK);
  const std::array<tk_value, 4> good = call.values;
  auto refused = [&](tk_status expected, auto &&change) {
    call.values = good;
    change(call.values);
    CHECK(call.run() == expected);
    call.values = good;
    CHECK(call.run() == TK_OK);
  };
  const std::array<int64_t, 2> three{3, 2}, strides{1, 2};
  refused(TK_SHAPE_MISMATCH, [&](auto &values) { values[0].shape = three.data(); });
  refused(TK_INVALID_ARGUMENT, [&](auto &values) { values[0].strides = strides.data(); });
  refused(TK_INVALID_ARGUMENT, [&](auto &values) { values[0].dtype = TK_I32; });
  refused(TK_INVALID_ARGUMENT, [&](auto &values) { values[0].dtype = 99; });
  refused(TK_INVALID_ARGUMENT, [&](auto &values) { values[0].rank = 1; });
  refused(TK_INVALID_ARGUMENT, [&](auto &values) { values[0].rank = -1; });
  refused(TK_INVALID_ARGUMENT, [&](auto &values) { values[0].rank = 9; });
  refused(TK_INVALID_ARGUMENT, [&](auto &values) { values[0].shape = nullptr; });
  refused(TK_INVALID_ARGUMENT, [&](auto &values) { values[0].device = 0; });
  refused(TK_INVALID_ARGUMENT, [&](auto &values) { values[0].storage_bytes = 12; });
  refused(TK_INVALID_ARGUMENT, [&](auto &values) { values[0].kind = TK_ABSENT; });
  refused(TK_INVALID_ARGUMENT, [&](auto &values) { values[0].kind = 77; });
  CHECK(tk_kernel_launch(call.kernel, nullptr, good.data(), 3) == TK_INVALID_ARGUMENT);
  call.values[2].real = 3;
  CHECK(call.run() == TK_OK);
  CHECK(call.c[0] == 3);
  call.values[2].kind = TK_ABSENT;
  CHECK(call.run() == TK_OK);
  CHECK(call.c[0] == Approx(1 / std::sqrt(2.0)));
  call.values[2] = {TK_INTEGER, 0, 0, 0, nullptr, nullptr, nullptr, 0, 3, 0};
  CHECK(call.run() == TK_OK);
  CHECK(call.c[0] == 3);
}

TEST_CASE("names may come in any order and twice is refused", "[known]") {
  test::FakeBackend backend;
  Kernel kernel = compile("gemm", for_target("cpu")).kernel("gemm");
  alignas(16) std::array<float, 4> a{1, 2, 3, 4}, c{};
  alignas(16) std::array<float, 8> b{1, 0, 9, 9, 0, 1, 9, 9};
  TensorView va(a.data(), DType::f32, {2, 2}), vb(b.data(), DType::f32, {2, 4}),
      vc(c.data(), DType::f32, {2, 2});
  for (int i = 0; i < 3; ++i) {
    REQUIRE(kernel.try_launch({}, std::vector<NamedValue>{{"a", va}, {"b", vb}, {"scale", 2.0}},
                              std::vector<NamedValue>{{"c", vc}}));
    REQUIRE(kernel.try_launch(
        {}, std::vector<NamedValue>{{"c", vc}, {"scale", 2.0}, {"b", vb}, {"a", va}}, {}));
    CHECK(c == std::array<float, 4>{2, 4, 6, 8});
    Status twice = kernel.try_launch({}, std::vector<NamedValue>{{"a", va}, {"b", vb}, {"a", va}},
                                     std::vector<NamedValue>{{"c", vc}});
    REQUIRE(!twice);
    CHECK(twice.error().message().find("given twice") != std::string::npos);
    Status unknown = kernel.try_launch({}, std::vector<NamedValue>{{"a", va}, {"x", vb}},
                                       std::vector<NamedValue>{{"c", vc}});
    REQUIRE(!unknown);
    CHECK(unknown.error().message().find("has no argument 'x'") != std::string::npos);
  }
}

TEST_CASE("many calls from several threads", "[known]") {
  Call call("cpu");
  std::array<std::thread, 4> threads;
  std::atomic<int> wrong{0};
  for (size_t t = 0; t < threads.size(); ++t)
    threads[t] = std::thread([&, t] {
      alignas(16) std::array<float, 4> c{};
      std::array<tk_value, 4> values = call.values;
      values[3].data = c.data();
      for (int i = 0; i < 3000; ++i) { // more scalars than calls are kept
        values[2].real = static_cast<double>(i % 1500) + static_cast<double>(t);
        wrong += tk_kernel_launch(call.kernel, nullptr, values.data(), values.size()) != TK_OK ||
                 c[0] != static_cast<float>(values[2].real);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(wrong == 0);
}
