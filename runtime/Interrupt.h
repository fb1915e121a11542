// Ending long work when the user asks for it with SIGINT, in processes that handle that signal.
#pragma once

namespace tk::detail {

/// While it lives, a SIGINT is noted, and then given to the handler that the process has: one that
/// returns, such as Python's, finds that the work has ended. Without effect on other threads than
/// the main one, which are not the user's to interrupt, and where the process has no handler.
class InterruptScope {
public:
  InterruptScope() noexcept;
  ~InterruptScope();
  InterruptScope(const InterruptScope &) = delete;
  InterruptScope &operator=(const InterruptScope &) = delete;

private:
  bool m_outermost = false;
};

/// Whether a SIGINT came in the scope that this thread is in.
bool interrupt_requested() noexcept;

/// Throws `interrupted` if one came.
void stop_if_interrupted();

} // namespace tk::detail
