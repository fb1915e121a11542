//===- Stopwatch.h - how long a step of a compilation took -------*- C++ -*-===//
#ifndef TK_COMPILER_STOPWATCH_H
#define TK_COMPILER_STOPWATCH_H

#include <chrono>
#include <cstdio>
#include <string>

namespace tk {

class Stopwatch {
public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  }
  /// "12.3 ms", for TK_LOG.
  std::string str() const {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f ms", milliseconds());
    return text;
  }

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
};

} // namespace tk

#endif // TK_COMPILER_STOPWATCH_H
