// Faults that the machine brings: memory that runs out at any allocation, a disk that is full or
// may not be written, a writer that is killed. Each is a typed error or costs time, and what
// follows works.
#include "tests/unit/catch.h"
#include "tests/unit/runtime/FakeBackend.h"

#include "runtime/Cache.h"
#include "runtime/Environment.h"
#include "tk/tk.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <new>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tk;
namespace fs = std::filesystem;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

namespace {

/// How many allocations still succeed; negative: all of them.
std::atomic<long> allocations_left{-1};
/// Whether all allocations after the first that fails do so too.
std::atomic<bool> fails_for_good{false};

bool allocation_fails() {
  long left = allocations_left.load();
  if (left < 0)
    return false;
  if (left > 0) {
    --allocations_left;
    return false;
  }
  if (!fails_for_good)
    allocations_left = -1;
  return true;
}

void *allocate(std::size_t size, std::size_t alignment) {
  if (allocation_fails())
    return nullptr;
  return std::aligned_alloc(alignment, (std::max<std::size_t>(size, 1) + alignment - 1) /
                                           alignment * alignment);
}

void *allocate_or_throw(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) {
  if (void *memory = allocate(size, alignment))
    return memory;
  throw std::bad_alloc();
}

} // namespace

void *operator new(std::size_t size) { return allocate_or_throw(size); }
void *operator new[](std::size_t size) { return allocate_or_throw(size); }
void *operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void *operator new(std::size_t size, const std::nothrow_t &) noexcept {
  return allocate(size, alignof(std::max_align_t));
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete[](void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void *memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void *memory, const std::nothrow_t &) noexcept { std::free(memory); }

namespace {

/// Runs `call` with each of its allocations failing in turn, once or from there on, until none did.
/// `call` says whether it succeeded and with which code it failed.
void fail_each_allocation(const std::function<Status()> &call) {
  for (bool lasting : {false, true})
    for (long n = 0;; ++n) {
      REQUIRE(n < 5000);
      fails_for_good = lasting;
      allocations_left = n;
      Status status = call();
      bool reached = lasting ? allocations_left == 0 : allocations_left < 0;
      allocations_left = -1;
      if (!reached) {
        REQUIRE(status);
        break;
      }
      INFO("allocation " << n << (lasting ? " and all after it" : ""));
      if (!status)
        CHECK(status.error().code() == ErrorCode::out_of_memory);
    }
}

struct Gemm {
  Gemm() : kernel(compile("gemm", test::for_target("cpu")).kernel("gemm")) {}
  Status run() { return kernel.try_launch({}, inputs, outputs); }
  test::FakeBackend backend;
  Kernel kernel;
  std::vector<float> a = {1, 2, 3, 4}, b = {1, 0, 9, 9, 0, 1, 9, 9}, c = {-1, -1, -1, -1};
  std::vector<NamedValue> inputs = {{"a", TensorView(a.data(), DType::f32, {2, 2})},
                                    {"b", TensorView(b.data(), DType::f32, {2, 4})},
                                    {"scale", 1.0}};
  std::vector<NamedValue> outputs = {{"c", TensorView(c.data(), DType::f32, {2, 2})}};
};

} // namespace

TEST_CASE("compiling reports that memory ran out", "[fault]") {
  test::FakeBackend backend;
  CompileOptions options = test::for_target("cpu");
  fail_each_allocation([&]() -> Status {
    Expected<Module> module = try_compile("gemm", options);
    return module ? Status() : Status(std::move(module.error()));
  });
}

TEST_CASE_METHOD(Gemm, "a launch reports that memory ran out, and the next one works", "[fault]") {
  // Each time a new kernel, so that compiling is among what fails.
  fail_each_allocation([&] {
    Status status = run();
    std::fill(c.begin(), c.end(), -1.0f);
    return status;
  });
  REQUIRE(run());
  CHECK(c == a);
}

TEST_CASE("the first launch of a kernel survives each failed allocation", "[fault]") {
  for (long n = 0; n < 400; ++n) {
    Gemm gemm;
    fails_for_good = false;
    allocations_left = n;
    Status status = gemm.run();
    bool reached = allocations_left < 0;
    allocations_left = -1;
    INFO("allocation " << n);
    if (!status)
      CHECK(status.error().code() == ErrorCode::out_of_memory);
    REQUIRE(gemm.run());
    REQUIRE(gemm.c == gemm.a);
    if (!reached)
      return;
  }
  FAIL("a launch takes more than 400 allocations");
}

TEST_CASE("wrong arguments are refused, or memory ran out", "[fault]") {
  Gemm gemm;
  gemm.inputs.pop_back();
  gemm.inputs.emplace_back("scail", 1.0);
  for (long n = 0; n < 100; ++n) {
    fails_for_good = true;
    allocations_left = n;
    Status status = gemm.run();
    allocations_left = -1;
    REQUIRE(!status);
    CHECK((status.error().code() == ErrorCode::out_of_memory ||
           status.error().code() == ErrorCode::invalid_argument));
  }
}

//===----------------------------------------------------------------------===//
// The cache's directory
//===----------------------------------------------------------------------===//

namespace {

struct TemporaryDirectory {
  TemporaryDirectory() {
    char name[] = "/tmp/tk-fault-XXXXXX";
    REQUIRE(::mkdtemp(name));
    path = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
  std::string path;
};

detail::Digest key(int64_t number) { return detail::CacheKey().add("n", number).digest(); }
const detail::CacheEntry sample = {{"cubin", std::string(30000, 'c')}, {"ptx", "text"}};

/// Runs `work` in a process of its own; what it returns is the process's exit status.
bool in_child(const std::function<bool()> &work) {
  pid_t child = ::fork();
  if (child == 0)
    ::_exit(work() ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

} // namespace

TEST_CASE("a disk that is full costs time only, and leaves nothing behind", "[fault]") {
  TemporaryDirectory directory;
  CHECK(in_child([&] {
    // A write beyond this size fails, as one on a full disk does.
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{10000, 10000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    detail::Cache cache(directory.path);
    return !cache.store(key(1), sample) && !cache.load(key(1));
  }));
  CHECK(directory.files() == 0);
}

TEST_CASE("a directory that may only be read still serves its entries", "[fault]") {
  TemporaryDirectory directory;
  detail::Cache cache(directory.path);
  REQUIRE(cache.store(key(1), sample));
  // Root may write everywhere: there the test is someone else.
  constexpr uid_t nobody = 65534;
  bool root = ::geteuid() == 0;
  if (root)
    for (const std::string &path :
         {directory.path, fs::directory_iterator(directory.path)->path().string()})
      REQUIRE(::chown(path.c_str(), nobody, nobody) == 0);
  REQUIRE(::chmod(directory.path.c_str(), 0555) == 0);
  CHECK(in_child([&] {
    if (root && ::setuid(nobody) != 0)
      return false;
    return cache.load(key(1)) == sample && !cache.store(key(2), sample) && !cache.load(key(2));
  }));
  CHECK(directory.files() == 1);
  REQUIRE(::chmod(directory.path.c_str(), 0755) == 0);
}

TEST_CASE("without a place for it there is no cache", "[fault]") {
  CHECK(in_child([] {
    for (const char *name : {"TK_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "TK_CACHE"})
      ::unsetenv(name);
    detail::Cache cache = detail::Cache::from_environment();
    return !cache.enabled() && !cache.store(key(1), sample) && !cache.load(key(1));
  }));
}

TEST_CASE("a writer that is killed leaves an entry or none", "[fault]") {
  TemporaryDirectory directory;
  detail::Cache cache(directory.path);
  for (int round = 0; round < 40; ++round) {
    pid_t child = ::fork();
    if (child == 0) {
      detail::Cache own(directory.path);
      for (;;)
        (void)own.store(key(7), sample);
    }
    ::usleep(static_cast<useconds_t>(200 + 137 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    auto entry = cache.load(key(7));
    CHECK((!entry || *entry == sample));
  }
  REQUIRE(cache.store(key(7), sample));
  CHECK(cache.load(key(7)) == sample);
}
