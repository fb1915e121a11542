// A race that is planted, to see that ThreadSanitizer reports it: tk_planted_race PLACE ORDER.
//
// PLACE is where two threads touch one variable: `loop`, in a parallel loop of the runtime; `walk`,
// below a walk over IR, where passes run. tests/tsan.supp must not silence what happens there.
// ORDER is `unordered`, which is the race, or `ordered`, in which a mutex orders them and nothing
// is to be reported.
#include "runtime/cpu/ThreadPool.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"

#include <atomic>
#include <mutex>
#include <string_view>
#include <thread>

namespace {

bool ordered;
std::mutex mutex;
int touched;

/// Both threads are here before either goes on. Relaxed, so that it orders nothing else.
void meet() {
  static std::atomic<int> here{0};
  here.fetch_add(1, std::memory_order_relaxed);
  while (here.load(std::memory_order_relaxed) < 2)
    std::this_thread::yield();
}

void touch() {
  meet();
  std::unique_lock lock(mutex, std::defer_lock);
  if (ordered)
    lock.lock();
  ++touched;
}

void raceInLoop() {
  tk::cpu::ThreadPool pool(2);
  pool.parallel_for(2, 1, [](void *, int64_t, int64_t) { touch(); }, nullptr);
}

void walkModule() {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  module.walk([](mlir::ModuleOp) { touch(); });
  module.erase();
}

} // namespace

int main(int argc, char **argv) {
  std::string_view place = argc == 3 ? argv[1] : "";
  ordered = argc == 3 && std::string_view(argv[2]) == "ordered";
  if (place == "loop") {
    raceInLoop();
  } else if (place == "walk") {
    std::thread other(walkModule);
    walkModule();
    other.join();
  }
  return touched == 2 ? 0 : 1;
}
