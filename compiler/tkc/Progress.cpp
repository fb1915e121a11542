//===- Progress.cpp - what a long run is doing ----------------------------===//
#include "compiler/tkc/Progress.h"

#include <chrono>
#include <cstdio>
#include <string_view>
#include <system_error>

#include <unistd.h>

namespace tk::tkc {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds untilShown(2), untilRenewed(1);

/// Whether a line is on the terminal.
std::atomic<bool> isShown{false};

void put(std::string_view text) {
  // A terminal that is gone is no reason to stop.
  [[maybe_unused]] ssize_t ignored = write(STDERR_FILENO, text.data(), text.size());
}

} // namespace

Progress::Progress(std::string what, bool quiet) : m_what(std::move(what)) {
  if (quiet || !isatty(STDERR_FILENO))
    return;
  try {
    m_thread = std::thread([this] { show(); });
  } catch (const std::system_error &) {
    return; // no more threads: the run goes on without the line
  }
}

Progress::~Progress() {
  if (!m_thread.joinable())
    return;
  {
    std::lock_guard lock(m_mutex);
    m_ended = true;
  }
  m_changed.notify_all();
  m_thread.join();
  clearLine();
}

void Progress::clearLine() noexcept {
  if (isShown.exchange(false))
    put("\r\x1b[K");
}

void Progress::show() {
  const Clock::time_point start = Clock::now();
  std::unique_lock lock(m_mutex);
  for (Clock::time_point next = start + untilShown;; next += untilRenewed) {
    if (m_changed.wait_until(lock, next, [this] { return m_ended; }))
      return;
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - start).count();
    std::string text = "\r\x1b[K" + m_what + ", " + std::to_string(seconds) + " s";
    const int64_t done = m_done, total = m_total;
    if (total > 0)
      text += ", " + std::to_string(done * 100 / total) + " %";
    isShown = true;
    put(text);
  }
}

} // namespace tk::tkc
