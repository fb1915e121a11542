// Faults that the machine brings: memory that runs out at any allocation, a disk that is full or
// may not be written, a writer that is killed. Each is a typed error or costs time, and what
// follows works.
#include "tests/unit/FailingAllocation.h"
#include "tests/unit/catch.h"
#include "tests/unit/runtime/FakeBackend.h"

#include "runtime/Cache.h"
#include "runtime/Environment.h"
#include "runtime/cpu/ThreadPool.h"
#include "tk/tk.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tk;
using test::Failing;
using test::FailingAllocation;
namespace fs = std::filesystem;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

namespace {

/// Runs `call` with each of its allocations failing in turn, once or from there on, until none did.
/// `call` says whether it succeeded and with which code it failed.
void fail_each_allocation(const std::function<Status()> &call) {
  for (Failing failing : {Failing::once, Failing::from_there_on})
    for (long n = 0;; ++n) {
      REQUIRE(n < 5000);
      FailingAllocation fault(n, failing);
      Status status = call();
      if (!fault.stop()) {
        REQUIRE(status);
        break;
      }
      INFO("allocation " << n << (failing == Failing::once ? "" : " and all after it"));
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
    FailingAllocation fault(n, Failing::once);
    Status status = gemm.run();
    bool reached = fault.stop();
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
    FailingAllocation fault(n, Failing::from_there_on);
    Status status = gemm.run();
    fault.stop();
    REQUIRE(!status);
    CHECK((status.error().code() == ErrorCode::out_of_memory ||
           status.error().code() == ErrorCode::invalid_argument));
  }
}

TEST_CASE("a pool that gets no memory for its threads has fewer", "[fault]") {
  auto count = [](void *context, int64_t begin, int64_t end) {
    *static_cast<std::atomic<int64_t> *>(context) += end - begin;
  };
  unsigned fewest = 4;
  for (Failing failing : {Failing::once, Failing::from_there_on})
    for (long n = 0; n < 12; ++n) {
      FailingAllocation fault(n, failing);
      cpu::ThreadPool pool(4);
      fault.stop();
      std::atomic<int64_t> iterations{0};
      pool.parallel_for(1000, 1, count, &iterations);
      REQUIRE(iterations == 1000);
      fewest = std::min(fewest, pool.num_threads());
    }
  CHECK(fewest == 1);
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

TEST_CASE("memory that runs out in the cache costs time only, and leaves nothing behind",
          "[fault]") {
  for (Failing failing : {Failing::once, Failing::from_there_on}) {
    TemporaryDirectory directory;
    long failed = 0;
    bool reached = true;
    for (int64_t n = 0; reached; ++n) {
      REQUIRE(n < 1000);
      // A directory that does not exist yet, nor does the one that it is in.
      detail::Cache cache(directory.path + "/" + std::to_string(n) + "/cache");
      detail::Digest name = key(n);
      FailingAllocation storing(n, failing);
      bool stored = cache.store(name, sample);
      reached = storing.stop();
      failed += !stored;
      INFO("allocation " << n);
      REQUIRE((stored || reached));
      REQUIRE(cache.load(name).has_value() == stored);
      REQUIRE(cache.store(name, sample));
      for (const auto &file : fs::directory_iterator(cache.directory()))
        REQUIRE(file.path().extension() == ".tkc");
      FailingAllocation loading(n, failing);
      std::optional<detail::CacheEntry> entry = cache.load(name);
      bool failed_to_load = loading.stop();
      REQUIRE((entry ? *entry == sample : failed_to_load));
      REQUIRE(cache.load(name) == sample);
    }
    CHECK(failed > 10);
  }
}

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

namespace {

enum class Ended { killed, byItself, untraced };

/// Has a child do `work`, and kills it where it stops the n-th time before or behind a system call.
Ended kill_at_call(int n, const std::function<void()> &work) {
  pid_t child = ::fork();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0)
      ::_exit(1);
    ::raise(SIGSTOP);
    work();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (!WIFSTOPPED(status))
    return Ended::untraced;
  for (int stop = 0;; ++stop) {
    REQUIRE(::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr) == 0);
    REQUIRE(::waitpid(child, &status, 0) == child);
    if (!WIFSTOPPED(status)) {
      CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
      return Ended::byItself;
    }
    if (stop == n) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return Ended::killed;
    }
  }
}

} // namespace

TEST_CASE("a process that is killed at any call of the cache leaves an entry or none", "[fault]") {
  // The last store has to make room.
  const detail::CacheEntry large = {{"cubin", std::string(50000, 'x')}};
  for (int n = 0;; ++n) {
    TemporaryDirectory directory;
    const std::string place = directory.path + "/cache";
    Ended ended = kill_at_call(n, [&] {
      detail::Cache own(place, 100'000);
      (void)own.store(key(7), sample);
      (void)own.store(key(8), large);
      (void)own.store(key(9), large);
      (void)own.load(key(9));
    });
    if (ended == Ended::untraced) {
      WARN("not run: processes cannot be traced here");
      return;
    }
    INFO("stop " << n);
    detail::Cache cache(place, 100'000);
    for (int64_t number : {7, 8, 9})
      if (std::optional<detail::CacheEntry> entry = cache.load(key(number)))
        CHECK(*entry == (number == 7 ? sample : large));
    REQUIRE(cache.store(key(7), sample));
    CHECK(cache.load(key(7)) == sample);
    if (ended == Ended::byItself) {
      CHECK(n > 40);
      return;
    }
  }
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
