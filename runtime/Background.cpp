// Compiling beside calls.
#include "runtime/Background.h"

#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

namespace tk::detail {

struct Background::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::list<std::function<void()>> jobs; ///< an empty list allocates nothing
  bool running = false, ended = false;
  std::thread thread;

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return ended || !jobs.empty(); });
      if (ended)
        return;
      std::function<void()> job = std::move(jobs.front());
      jobs.pop_front();
      running = true;
      lock.unlock();
      job();
      job = nullptr; // what it holds goes before anyone is told
      lock.lock();
      running = false;
      changed.notify_all();
    }
  }
};

Background::Background() : m_state(std::make_shared<State>()) {}

Background::~Background() {
  std::list<std::function<void()>> dropped;
  {
    std::lock_guard lock(m_state->mutex);
    m_state->ended = true;
    dropped.swap(m_state->jobs);
    m_state->changed.notify_all();
  }
  // A job that held the last kernel of a module ends on the thread itself.
  if (m_state->thread.get_id() == std::this_thread::get_id())
    m_state->thread.detach();
  else if (m_state->thread.joinable())
    m_state->thread.join();
}

void Background::add(std::function<void()> job) {
  std::lock_guard lock(m_state->mutex);
  if (!m_state->thread.joinable())
    m_state->thread = std::thread([state = m_state] { state->run(); });
  m_state->jobs.push_back(std::move(job));
  m_state->changed.notify_all();
}

void Background::wait() {
  std::unique_lock lock(m_state->mutex);
  m_state->changed.wait(lock, [&] { return !m_state->running && m_state->jobs.empty(); });
}

} // namespace tk::detail
