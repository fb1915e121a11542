//===- LaunchObserver.h - who watches the launches of a thread ---*- C++ -*-===//
#ifndef TK_RUNTIME_LAUNCHOBSERVER_H
#define TK_RUNTIME_LAUNCHOBSERVER_H

#include <string>

namespace tk::detail {

/// Is told of each launch of a plan that this thread makes, before it is put into its stream and
/// after. The emulator has no stream.
struct LaunchObserver {
  virtual ~LaunchObserver() = default;
  virtual void before(const std::string &symbol, void *stream) = 0;
  virtual void after(const std::string &symbol, void *stream) = 0;
};

/// The observer of this thread; null: none.
inline LaunchObserver *&launch_observer() noexcept {
  static thread_local LaunchObserver *observer = nullptr;
  return observer;
}

} // namespace tk::detail

#endif // TK_RUNTIME_LAUNCHOBSERVER_H
