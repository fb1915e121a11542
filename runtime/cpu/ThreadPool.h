// The CPU target's threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "tk/cpu_abi.h"

namespace tk::cpu {

/// A persistent pool that runs one loop at a time. The caller works too; a loop that is started
/// while another one runs, from a worker or from another thread, runs in its caller alone.
class ThreadPool {
public:
  /// The process's pool, with a thread for each processor that the process may use.
  static ThreadPool &shared();
  explicit ThreadPool(unsigned num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  unsigned num_threads() const { return static_cast<unsigned>(m_workers.size()) + 1; }
  void parallel_for(int64_t count, int64_t grain, tk_cpu_body body, void *context);

private:
  struct Job {
    tk_cpu_body body;
    void *context;
    int64_t count;
    int64_t chunk;
    std::atomic<int64_t> next{0};
  };
  void work();
  static void run_chunks(Job &job);

  std::vector<std::thread> m_workers;
  std::mutex m_busy; ///< held while a loop runs
  std::mutex m_mutex;
  std::condition_variable m_wake, m_done;
  Job *m_job = nullptr;
  uint64_t m_generation = 0;
  unsigned m_active = 0;
  bool m_stop = false;
};

} // namespace tk::cpu
