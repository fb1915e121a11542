//===- Progress.h - what a long run is doing ---------------------*- C++ -*-===//
#ifndef TK_COMPILER_TKC_PROGRESS_H
#define TK_COMPILER_TKC_PROGRESS_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace tk::tkc {

/// While it lives, a line on the terminal says what the process does and for how long: from two
/// seconds on, renewed each second, erased at the end. Where standard error is no terminal, or
/// `quiet`, nothing is shown.
class Progress {
public:
  explicit Progress(std::string what, bool quiet = false);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// How much is done, as a share of `total`; shown in percent.
  void report(int64_t done, int64_t total) {
    m_done.store(done, std::memory_order_relaxed);
    m_total.store(total, std::memory_order_relaxed);
  }

  /// Erases the line that is shown, if any. Async-signal-safe.
  static void clearLine() noexcept;

private:
  void show();

  std::string m_what;
  std::atomic<int64_t> m_done{0}, m_total{0};
  std::mutex m_mutex;
  std::condition_variable m_changed;
  bool m_ended = false;
  std::thread m_thread;
};

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_PROGRESS_H
