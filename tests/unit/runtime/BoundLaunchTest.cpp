// A bound launch allocates nothing and takes no lock.
#include "tests/unit/FailingAllocation.h"
#include "tests/unit/runtime/FakeGpu.h"

#include <array>
#include <atomic>
#include <mutex>

#include <dlfcn.h>
#include <pthread.h>

using namespace tk;

namespace {

std::atomic<bool> counts = false;
std::atomic<long> locks = 0;

using Lock = int (*)(pthread_mutex_t *);

} // namespace

// The program's own stands before the C library's, as std::mutex finds it.
extern "C" int pthread_mutex_lock(pthread_mutex_t *mutex) noexcept {
  static const auto original = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  if (counts)
    ++locks;
  return original(mutex);
}

namespace {

struct Costs {
  long allocations, locks;
  bool operator==(const Costs &) const = default;
};

template <typename F> Costs costs_of(F &&call) {
  locks = 0;
  counts = true;
  long allocations = test::count_allocations(call);
  counts = false;
  return {allocations, locks};
}

constexpr Costs nothing{0, 0};

std::ostream &operator<<(std::ostream &out, const Costs &costs) {
  return out << costs.allocations << " allocations, " << costs.locks << " locks";
}

} // namespace

TEST_CASE("what the test counts is counted", "[bound]") {
  CHECK(costs_of([] {
          std::mutex mutex;
          std::lock_guard lock(mutex);
          ::operator delete(::operator new(sizeof(int))); // which no compiler may leave out
        }) == Costs{1, 1});
}

TEST_CASE_METHOD(test::GpuGemm, "a bound launch on a GPU costs no lock and no allocation",
                 "[bound]") {
  BoundKernel bound = kernel->bind_named(std::vector<NamedValue>{
      {"a", view(0, {2, 2})}, {"b", view(64, {2, 4})}, {"c", view(128, {2, 2})}});
  CHECK(bound.scratch_bytes() > 0);
  std::array<void *, 3> pointers = {storage, storage + 64, storage + 128};
  auto launch = [&] {
    for (int i = 0; i < 10; ++i)
      bound.launch(stream, pointers);
  };
  bound.launch(stream, pointers); // allocates its scratch memory
  CHECK(costs_of(launch) == nothing);
  // Another stream has scratch memory of its own, and the first keeps its.
  const Stream other{reinterpret_cast<void *>(uintptr_t{32})};
  CHECK_FALSE(costs_of([&] { bound.launch(other, pointers); }) == nothing);
  CHECK(costs_of([&] { bound.launch(other, pointers); }) == nothing);
  CHECK(costs_of(launch) == nothing);
}

TEST_CASE("a bound launch on the CPU costs no lock; scratch memory is an allocation", "[bound]") {
  test::FakeBackend backend;
  Module module = compile("gemm", test::for_target("cpu"));
  alignas(16) std::array<float, 4> a{1, 2, 3, 4}, c{};
  alignas(16) std::array<float, 8> b{1, 0, 9, 9, 0, 1, 9, 9};
  BoundKernel bound = module.kernel("gemm").bind_named(
      std::vector<NamedValue>{{"a", TensorView(a.data(), DType::f32, {2, 2})},
                              {"b", TensorView(b.data(), DType::f32, {2, 4})},
                              {"c", TensorView(c.data(), DType::f32, {2, 2})}});
  std::array<void *, 3> pointers = {a.data(), b.data(), c.data()};
  bound.launch({}, pointers);
  CHECK(costs_of([&] { bound.launch({}, pointers); }).locks == 0);
  CHECK(c[3] > 0);
}
