//===- Timing.h - schedules of a kernel timed in alternation -----*- C++ -*-===//
#ifndef TK_COMPILER_TKC_TUNE_TIMING_H
#define TK_COMPILER_TKC_TUNE_TIMING_H

#include "compiler/tkc/Commands.h"
#include "compiler/tkc/Inputs.h"
#include "compiler/tkc/Session.h"
#include "compiler/tkc/tune/Record.h"

#include <memory>
#include <string>

namespace tk::tkc {

/// Times a program with a schedule block beside the program as it is.
class ScheduleTimer {
public:
  /// Compiles and binds the program as it is. `options` have the sizes, `texts` say how inputs are
  /// filled.
  static Expected<ScheduleTimer> create(SourceOptions options, const ArgumentTexts &texts,
                                        const std::string &target, int64_t checkedElements);

  /// Compares with the reference, then times `rounds` times, each time after the program as it is.
  /// A schedule that is far slower than `worst`, a ratio, is timed once.
  Expected<Measurement> measure(const std::string &block, int rounds, double worst);
  /// Milliseconds of the program as it is, the least so far.
  double ownMilliseconds() const { return least; }
  const Session &own() const { return *session; }

private:
  Expected<ChosenKernel> compile(const std::string &block);

  SourceOptions options;
  std::string target;
  int64_t checkedElements = 0;
  RunArguments inputs;
  std::unique_ptr<Session> session;
  double least = 0;
};

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_TUNE_TIMING_H
