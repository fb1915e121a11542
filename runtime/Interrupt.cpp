#include "runtime/Interrupt.h"

#include <csignal>

#include <sys/syscall.h>
#include <unistd.h>

#include "tk/error.h"

namespace tk::detail {
namespace {

// Of the main thread alone, but for the flag, which a handler sets on any thread.
volatile std::sig_atomic_t requested = 0;
struct sigaction handler_before;
bool inside = false;

/// The scope of this thread that waits for long work.
thread_local InterruptScope *waiting = nullptr;

bool is_main_thread() noexcept {
  static thread_local const bool main = ::syscall(SYS_gettid) == ::getpid();
  return main;
}

void note_interrupt(int number, siginfo_t *info, void *context) {
  requested = 1;
  if (handler_before.sa_flags & SA_SIGINFO)
    handler_before.sa_sigaction(number, info, context);
  else
    handler_before.sa_handler(number);
}

bool has_handler(const struct sigaction &action) {
  return (action.sa_flags & SA_SIGINFO) ||
         (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

bool is_ours(const struct sigaction &action) {
  return (action.sa_flags & SA_SIGINFO) && action.sa_sigaction == note_interrupt;
}

} // namespace

InterruptScope::InterruptScope(From from) noexcept {
  m_waits = from == From::long_work && !waiting;
  if (m_waits)
    waiting = this;
  else if (from == From::now)
    begin();
}

void InterruptScope::begin_long_work() noexcept {
  if (waiting && !waiting->m_outermost)
    waiting->begin();
}

void InterruptScope::begin() noexcept {
  if (!is_main_thread() || inside)
    return;
  struct sigaction action;
  if (::sigaction(SIGINT, nullptr, &action) != 0 || !has_handler(action) || is_ours(action))
    return;
  handler_before = action;
  requested = 0;
  action.sa_flags |= SA_SIGINFO;
  action.sa_sigaction = note_interrupt;
  m_outermost = ::sigaction(SIGINT, &action, nullptr) == 0;
  inside = m_outermost;
}

InterruptScope::~InterruptScope() {
  if (m_waits)
    waiting = nullptr;
  if (!m_outermost)
    return;
  struct sigaction now;
  // A handler that was set meanwhile stays.
  if (::sigaction(SIGINT, nullptr, &now) == 0 && is_ours(now))
    ::sigaction(SIGINT, &handler_before, nullptr);
  inside = false;
}

bool interrupt_requested() noexcept { return requested != 0 && is_main_thread() && inside; }

InterruptWatch::InterruptWatch() noexcept : m_main(is_main_thread()) {}

bool InterruptWatch::requested() const noexcept {
  return m_main && detail::requested != 0 && inside;
}

void stop_if_interrupted() {
  if (interrupt_requested())
    throw Error(ErrorCode::interrupted, "interrupted");
}

} // namespace tk::detail
