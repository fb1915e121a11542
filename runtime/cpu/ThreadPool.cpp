#include "runtime/cpu/ThreadPool.h"

#include "runtime/Interrupt.h"

#include <algorithm>
#include <exception>

#include <sched.h>

namespace tk::cpu {
namespace {

/// Chunks a thread, so that an uneven loop balances.
constexpr int64_t chunks_per_thread = 4;
/// More iterations than that are cut further, so that a long loop can be interrupted.
constexpr int64_t max_chunk = int64_t{1} << 16;

thread_local bool inside_loop = false;

unsigned usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return static_cast<unsigned>(std::max(CPU_COUNT(&set), 1));
  return std::max(std::thread::hardware_concurrency(), 1u);
}

} // namespace

ThreadPool &ThreadPool::shared() {
  // Never destroyed: other static objects may launch kernels while the process ends.
  static ThreadPool &pool = *new ThreadPool(usable_processors());
  return pool;
}

ThreadPool::ThreadPool(unsigned num_threads) {
  try {
    m_workers.reserve(num_threads);
    for (unsigned i = 1; i < num_threads; ++i)
      m_workers.emplace_back([this] { work(); });
  } catch (const std::exception &) {
    // The system gives no more threads, or no memory for them: those that there are do the work.
    return;
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(m_mutex);
    m_stop = true;
  }
  m_wake.notify_all();
  for (std::thread &worker : m_workers)
    worker.join();
}

void ThreadPool::run_chunks(Job &job) {
  for (;;) {
    int64_t begin = job.next.fetch_add(job.chunk, std::memory_order_relaxed);
    if (begin >= job.count)
      return;
    job.body(job.context, begin, std::min(begin + job.chunk, job.count));
    // Only the thread that started the loop hears of an interrupt; it ends the loop for all.
    if (detail::interrupt_requested())
      job.next.store(job.count, std::memory_order_relaxed);
  }
}

void ThreadPool::work() {
  inside_loop = true; // a nested loop runs inline
  uint64_t seen = 0;
  std::unique_lock lock(m_mutex);
  for (;;) {
    m_wake.wait(lock, [&] { return m_stop || (m_job && m_generation != seen); });
    if (m_stop)
      return;
    seen = m_generation;
    Job &job = *m_job;
    ++m_active;
    lock.unlock();
    run_chunks(job);
    lock.lock();
    if (--m_active == 0)
      m_done.notify_one();
  }
}

void ThreadPool::parallel_for(int64_t count, int64_t grain, tk_cpu_body body, void *context) {
  if (count <= 0)
    return;
  grain = std::max<int64_t>(grain, 1);
  // Nested loops are told apart first: try_lock on a mutex that this thread holds is undefined.
  if (inside_loop || m_workers.empty() || count <= grain)
    return body(context, 0, count);
  std::unique_lock busy(m_busy, std::try_to_lock);
  if (!busy)
    return body(context, 0, count);
  detail::InterruptScope::begin_long_work();
  int64_t chunks = chunks_per_thread * num_threads();
  const int64_t share = count / chunks + (count % chunks != 0);
  Job job{body, context, count, std::max(grain, std::min(share, max_chunk))};
  {
    std::lock_guard lock(m_mutex);
    m_job = &job;
    ++m_generation;
  }
  m_wake.notify_all();
  inside_loop = true;
  run_chunks(job);
  inside_loop = false;
  std::unique_lock lock(m_mutex);
  m_job = nullptr; // workers that wake from here on find nothing
  m_done.wait(lock, [&] { return m_active == 0; });
}

} // namespace tk::cpu
