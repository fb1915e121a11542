#include "tests/unit/catch.h"

#include "runtime/cpu/ThreadPool.h"

#include <memory>
#include <mutex>

using tk::cpu::ThreadPool;

namespace {

/// Counts how often each iteration ran.
struct Counts {
  explicit Counts(int64_t size)
      : runs(new std::atomic<int>[static_cast<size_t>(size)]()), size(size) {}
  std::unique_ptr<std::atomic<int>[]> runs;
  int64_t size;
  ThreadPool *nested = nullptr;

  static void body(void *context, int64_t begin, int64_t end) {
    auto &counts = *static_cast<Counts *>(context);
    for (int64_t i = begin; i < end; ++i)
      ++counts.runs[static_cast<size_t>(i)];
  }
  bool all_once() const {
    for (int64_t i = 0; i < size; ++i)
      if (runs[static_cast<size_t>(i)] != 1)
        return false;
    return true;
  }
};

} // namespace

TEST_CASE("every iteration runs once, whatever the count and grain", "[threads]") {
  ThreadPool pool(4);
  for (int64_t count : {0, 1, 2, 3, 15, 16, 17, 1000, 4097})
    for (int64_t grain : {-1, 1, 7, 5000}) {
      Counts counts(count);
      pool.parallel_for(count, grain, Counts::body, &counts);
      CHECK(counts.all_once());
    }
}

TEST_CASE("a pool of one runs in its caller", "[threads]") {
  ThreadPool pool(1);
  Counts counts(100);
  pool.parallel_for(100, 1, Counts::body, &counts);
  CHECK(counts.all_once());
}

TEST_CASE("loops inside loops and from several threads finish", "[threads]") {
  ThreadPool pool(4);
  auto outer = [](void *context, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Counts counts(50);
      static_cast<ThreadPool *>(context)->parallel_for(50, 1, Counts::body, &counts);
      if (!counts.all_once())
        std::abort();
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i)
        pool.parallel_for(20, 1, outer, &pool);
    });
  for (std::thread &thread : threads)
    thread.join();
  SUCCEED();
}
