// Compiling beside calls: one thread a module, which runs one job after another.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

namespace tk::detail {

class Background {
public:
  Background();
  /// Drops the jobs that have not begun, and waits for the one that has.
  ~Background();
  Background(const Background &) = delete;
  Background &operator=(const Background &) = delete;

  void enable() { m_enabled = true; }
  bool enabled() const { return m_enabled; }
  /// Runs a job later, on a thread that the first job starts. The job must not throw.
  void add(std::function<void()> job);
  /// Returns once there is no job. Not for jobs.
  void wait();

private:
  struct State;
  std::shared_ptr<State> m_state; ///< the thread's too, which may end after this object
  std::atomic<bool> m_enabled = false;
};

} // namespace tk::detail
