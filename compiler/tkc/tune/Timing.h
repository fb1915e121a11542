//===- Timing.h - schedules of a kernel timed in alternation -----*- C++ -*-===//
#ifndef TK_COMPILER_TKC_TUNE_TIMING_H
#define TK_COMPILER_TKC_TUNE_TIMING_H

#include "compiler/tkc/Check.h"
#include "compiler/tkc/Commands.h"
#include "compiler/tkc/Inputs.h"
#include "compiler/tkc/Session.h"
#include "compiler/tkc/tune/Record.h"

#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tk::tkc {

/// Times a program with a schedule block beside the program as it is.
class ScheduleTimer {
public:
  /// Compiles and binds the program as it is. `options` have the sizes, `texts` say how inputs are
  /// filled.
  static Expected<ScheduleTimer> create(SourceOptions options, const ArgumentTexts &texts,
                                        const std::string &target, int64_t checkedElements);

  /// Compiles for these blocks in the background, a few at a time in their order.
  void compileAhead(std::vector<std::string> blocks);
  /// Times `rounds` times, each time after the program as it is, and compares with the reference.
  /// With `best`, the best ratio so far, a schedule that is far slower is timed once, one that is
  /// not faster is not compared, and one that spills more registers than the program is not run.
  Expected<Measurement> measure(const std::string &block, int rounds,
                                std::optional<double> best = std::nullopt);
  /// Is a schedule still compiled that was never timed?
  bool isCompiling() const;
  /// Milliseconds of the program as it is, the least so far.
  double ownMilliseconds() const { return least; }
  const Session &own() const { return *session; }

private:
  /// A program with a block, compiled and bound.
  struct Compiled {
    ChosenKernel chosen;
    std::unique_ptr<Session> session;
  };
  using Ahead = std::pair<std::string, std::future<Expected<Compiled>>>;

  Expected<ChosenKernel> compile(const std::string &block) const;
  Expected<Compiled> bind(const std::string &block) const;
  Expected<Compiled> takeOrBind(const std::string &block);

  SourceOptions options;
  std::string target;
  int64_t checkedElements = 0;
  RunArguments inputs;
  std::unique_ptr<Session> session;
  double least = 0;
  std::vector<std::string> next; ///< blocks that are compiled later, the next one last
  std::deque<Ahead> ahead;
  using SharedReferences = std::shared_ptr<References>;
  std::shared_ptr<CompiledSource> source; ///< of the program as it is
  /// Computed beside the first compilations, and taken from there once they are needed.
  std::future<Expected<SharedReferences>> computed;
  SharedReferences references;
};

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_TUNE_TIMING_H
