// Memory that runs out while a program is compiled: the typed error or what is made with memory,
// and afterwards the process compiles as before.
//
// Most allocations are LLVM's, whose archives are built without exceptions: they clean up nothing
// while std::bad_alloc passes through them. So each failure has a process of its own. Not all
// places can be tried, but those tried are spread over the whole compilation.
#include "tests/unit/FailingAllocation.h"
#include "tests/unit/catch.h"
#include "tk/tk.h"

#include <csignal>
#include <functional>
#include <thread>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tk;
using test::Failing;
using test::FailingAllocation;

namespace {

constexpr const char *program = R"(
kernel attention(q: bf16[S, D], k: bf16[T, D], v: bf16[T, D]) -> (o: bf16[S, D]) {
  let s[i, j] = sum[d](q[i, d] * k[j, d]) * rsqrt(D)
  let m[i, j] = if j <= i then s[i, j] else -inf
  let p[i, j] = softmax[j](m[i, j])
  o[i, d] = sum[j](p[i, j] * v[j, d])
}
)";

enum Answer { same, out_of_memory, other };

/// What `call` gives, or that memory ran out.
Answer answer(const std::function<std::string()> &call, const std::string &expected) {
  try {
    return call() == expected ? same : other;
  } catch (const Error &error) {
    return error.code() == ErrorCode::out_of_memory ? out_of_memory : other;
  } catch (const std::bad_alloc &) {
    return out_of_memory;
  }
}

struct Process {
  int status = 0;
  std::string messages; ///< what it wrote on standard error

  bool answered(Answer answer) const { return WIFEXITED(status) && WEXITSTATUS(status) == answer; }
};

/// A process in which allocation `n` of `call` fails.
Process failing_process(const std::function<std::string()> &call, const std::string &expected,
                        long n, Failing failing) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    // Catch's handlers would report that the test itself failed.
    ::signal(SIGABRT, SIG_DFL);
    ::signal(SIGSEGV, SIG_DFL);
    // A call that never ends is stopped after some seconds of computing, however slow the machine.
    rlimit none{0, 0}, seconds{60, 60};
    ::setrlimit(RLIMIT_CORE, &none);
    ::setrlimit(RLIMIT_CPU, &seconds);
    Answer first;
    {
      FailingAllocation fault(n, failing);
      first = answer(call, expected);
    }
    // By another thread: MLIR keeps a table for each thread, in which an entry may be half made.
    Answer second = other;
    std::thread([&] { second = answer(call, expected); }).join();
    ::_exit(second == same ? first : other);
  }
  ::close(ends[1]);
  Process process;
  char buffer[1024];
  for (ssize_t bytes; (bytes = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    process.messages.append(buffer, static_cast<size_t>(bytes));
  ::close(ends[0]);
  ::waitpid(child, &process.status, 0);
  return process;
}

/// `call` with some `places` of its allocations failing, evenly spread.
void fail_allocations(const std::function<std::string()> &call, long places) {
  std::string expected = call();
  long all = test::count_allocations(call);
  REQUIRE(all > places);
  for (Failing failing : {Failing::once, Failing::from_there_on}) {
    long errors = 0;
    for (long place = 0; place < places; ++place) {
      long n = all * place / places;
      Process process = failing_process(call, expected, n, failing);
      INFO("allocation " << n << " of " << all
                         << (failing == Failing::once ? ": " : " and all after it: ") << "status "
                         << process.status << " " << process.messages);
      CHECK((process.answered(same) || process.answered(out_of_memory)));
      errors += process.answered(out_of_memory);
    }
    CHECK(errors > places / 2);
  }
}

Module compiled(std::string_view target) {
  CompileOptions options;
  options.target = target;
  return compile(program, options);
}

} // namespace

TEST_CASE("memory runs out while a program is read and checked", "[fault]") {
  fail_allocations([] { return compiled("cpu").kernel_names().at(0); }, 100);
}

TEST_CASE("memory runs out while a kernel is made for a GPU", "[fault]") {
  ::setenv("TK_CACHE", "off", 1);
  // Place 4 is behind functions of no instruction, whose entries hide it from exceptions where the
  // linker is not told an order (cmake/functions.order).
  fail_allocations([] { return compiled("sm_90a").ir("attention", "cuda"); }, 100);
}
