// Calls that run general code while their own is compiled.
#include "runtime/Background.h"
#include "tests/unit/catch.h"
#include "tests/unit/runtime/FakeBackend.h"

#include "tk/tk.h"
#include "tk/tk_c.h"

#include <latch>
#include <mutex>
#include <set>

using namespace tk;

namespace {

bool is_general(const Facts &facts) {
  return std::ranges::all_of(facts.dims, [](const DimFact &fact) { return fact.divisor == 1; });
}

/// What compilations wait for, and what they were for. It outlives the module.
struct Gate {
  std::mutex mutex;
  std::vector<std::string> compiled;
  std::latch latch{1};
  std::atomic<bool> opened = false;

  void enter(const Facts &facts) {
    {
      std::lock_guard lock(mutex);
      compiled.push_back(facts.key());
    }
    if (!is_general(facts))
      latch.wait();
  }
  void open() {
    if (!opened.exchange(true))
      latch.count_down();
  }
};

/// A module whose variants for known sizes are compiled only once `open` is called.
struct Slow {
  explicit Slow(bool background = true) {
    CompileOptions options = test::for_target("cpu");
    options.background = background;
    module = compile("gemm", options);
    kernel = module.kernel("gemm");
    backend.last->before = [gate = gate](const Facts &facts) { gate->enter(facts); };
  }
  ~Slow() { open(); }
  void open() { gate->open(); }
  size_t compilations() {
    std::lock_guard lock(gate->mutex);
    return gate->compiled.size();
  }
  Status launch(int64_t m) {
    auto size = [](int64_t count) { return static_cast<size_t>(count); };
    std::vector<float> a(size(m * 2), 1), b(4, 1), c(size(m));
    std::vector<NamedValue> inputs = {{"a", TensorView(a.data(), DType::f32, {m, 2})},
                                      {"b", TensorView(b.data(), DType::f32, {2, 2})},
                                      {"scale", Scalar(1.0)}};
    std::vector<NamedValue> outputs = {{"c", TensorView(c.data(), DType::f32, {m, 1})}};
    Status done = kernel.try_launch({}, inputs, outputs);
    if (done && c.back() != 2)
      return Error(ErrorCode::internal, "a wrong result");
    return done;
  }

  std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  test::FakeBackend backend;
  Module module;
  Kernel kernel;
};

} // namespace

TEST_CASE("a general variant serves while another is compiled", "[background]") {
  Slow slow;
  CHECK(slow.launch(4)); // does not wait for its own variant
  CHECK(slow.launch(4));
  CHECK(slow.launch(8));
  CHECK(slow.kernel.signature().name == "gemm");
  slow.open();
  slow.module.wait();
  // The general one, and one a divisor of M.
  CHECK(slow.compilations() == 3);
  // What is compiled next would sum nothing: nothing more is compiled.
  slow.backend.last->adjust = [](LaunchPlan &plan) {
    plan.launches[0].args.back().value = Expr(0);
  };
  CHECK(slow.launch(4));
  CHECK(slow.launch(8));
  CHECK(slow.compilations() == 3);
}

TEST_CASE("calls find their own variant once it is there", "[background]") {
  Slow slow;
  CHECK(slow.launch(4));
  // The variant of its own sums nothing, and shows thereby that it runs.
  slow.backend.last->adjust = [](LaunchPlan &plan) {
    plan.launches[0].args.back().value = Expr(0);
  };
  CHECK(slow.launch(4));
  slow.open();
  slow.module.wait();
  Status own = slow.launch(4);
  REQUIRE(!own);
  CHECK(own.error().message() == "a wrong result");
}

TEST_CASE("many threads share one general variant and one of their own", "[background]") {
  Slow slow;
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        failures += !slow.launch(1 << round % 4);
        if (round == 25)
          slow.open();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  slow.module.wait();
  CHECK(failures == 0);
  std::lock_guard lock(slow.gate->mutex);
  const std::vector<std::string> &compiled = slow.gate->compiled;
  CHECK(std::set(compiled.begin(), compiled.end()).size() == compiled.size());
  CHECK(compiled.size() == 5); // the general one, and those of M = 1, 2, 4 and 8
}

TEST_CASE("deterministic kernels, bind and prepare wait for their own variant", "[background]") {
  Slow slow;
  slow.open();
  slow.backend.last->deterministic = true;
  CHECK(slow.launch(4));
  CHECK(slow.compilations() == 1);
  slow.backend.last->deterministic = false;
  CHECK(slow.kernel.prepare_sizes({{"M", 8}, {"N", 1}, {"K", 2}}) == 1);
  CHECK(slow.compilations() == 2);
  CHECK(slow.launch(8));
  slow.module.wait();
  CHECK(slow.compilations() == 2);
}

TEST_CASE("without the option nothing is compiled in the background", "[background]") {
  Slow slow(false);
  slow.open();
  CHECK(slow.launch(4));
  CHECK(slow.compilations() == 1);
  slow.module.compile_in_background();
  CHECK(slow.launch(8));
  slow.module.wait();
  CHECK(slow.compilations() == 3);
}

TEST_CASE("a variant that cannot be compiled leaves the general one", "[background]") {
  Slow slow;
  CHECK(slow.launch(4));
  slow.backend.last->fail_next = true;
  slow.open();
  slow.module.wait();
  CHECK(slow.launch(4));
  slow.module.wait();
  CHECK(slow.compilations() == 2); // it is tried once
}

TEST_CASE("a frozen module goes on with general variants", "[background]") {
  Slow slow;
  CHECK(slow.launch(4));
  slow.open();
  slow.module.wait();
  slow.module.freeze();
  CHECK(slow.launch(4));
  CHECK(slow.launch(16)); // by the general one
  slow.module.wait();
  CHECK(slow.compilations() == 2);
}

TEST_CASE("a module may go while it compiles in the background", "[background]") {
  auto slow = std::make_unique<Slow>();
  CHECK(slow->launch(4));
  CHECK(slow->launch(8));
  slow->kernel = {};
  slow->module = {};
  slow.reset();
}

TEST_CASE("a job may hold the last reference to its own queue", "[background]") {
  auto queue = std::make_shared<detail::Background>();
  std::latch done(1);
  detail::Background &jobs = *queue;
  jobs.add([held = std::move(queue), &done]() mutable {
    held.reset();
    done.count_down();
  });
  done.wait();
}

TEST_CASE("the C interface compiles in the background", "[background]") {
  test::FakeBackend backend;
  tk_module *module = nullptr;
  REQUIRE(tk_compile("gemm", 4, nullptr, "cpu", &module) == TK_OK);
  CHECK(tk_module_compile_in_background(module) == TK_OK);
  CHECK(tk_module_wait(module) == TK_OK);
  CHECK(tk_module_wait(nullptr) == TK_INVALID_ARGUMENT);
  CHECK(tk_module_compile_in_background(nullptr) == TK_INVALID_ARGUMENT);
  tk_module_free(module);
}
