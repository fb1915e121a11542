// Ending long work when the user asks for it with SIGINT, in processes that handle that signal.
#pragma once

namespace tk::detail {

/// While it lives, a SIGINT is noted, and then given to the handler that the process has: one that
/// returns, such as Python's, finds that the work has ended. Without effect on other threads than
/// the main one, which are not the user's to interrupt, and where the process has no handler.
class InterruptScope {
public:
  /// Of work that may turn out to be short: system calls are left out until begin_long_work().
  enum class From { now, long_work };
  explicit InterruptScope(From from = From::now) noexcept;
  ~InterruptScope();
  /// This thread's scope begins to note signals, if it does not yet.
  static void begin_long_work() noexcept;
  InterruptScope(const InterruptScope &) = delete;
  InterruptScope &operator=(const InterruptScope &) = delete;

private:
  void begin() noexcept;
  bool m_outermost = false;
  bool m_waits = false; ///< for begin_long_work
};

/// Whether a SIGINT came in the scope that this thread is in.
bool interrupt_requested() noexcept;

/// Asks the same for the thread that made it, from any other thread that works for it.
class InterruptWatch {
public:
  InterruptWatch() noexcept;
  bool requested() const noexcept;

private:
  bool m_main;
};

/// Throws `interrupted` if one came.
void stop_if_interrupted();

} // namespace tk::detail
