//===- Timing.cpp - schedules of a kernel timed in alternation ------------===//
#include "compiler/tkc/tune/Timing.h"

#include "compiler/tkc/Check.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <vector>

namespace tk::tkc {

/// A schedule whose first time is so much more than the best one's is not timed again.
static constexpr double hopeless = 1.2;

Expected<ChosenKernel> ScheduleTimer::compile(const std::string &block) {
  SourceOptions source = options;
  source.scheduleText = block;
  source.dims.clear(); // a launch has them
  source.quiet = true;
  return source.compileKernel();
}

Expected<ScheduleTimer> ScheduleTimer::create(SourceOptions options, const ArgumentTexts &texts,
                                              const std::string &target, int64_t checkedElements) {
  ScheduleTimer timer;
  timer.options = std::move(options);
  timer.target = target;
  timer.checkedElements = checkedElements;
  Expected<ChosenKernel> chosen = timer.compile("");
  if (!chosen)
    return chosen.error();
  Expected<RunArguments> inputs =
      gatherArguments(chosen->source->signatures()[chosen->kernel], texts);
  if (!inputs)
    return inputs.error();
  timer.inputs = std::move(*inputs);
  auto session = Session::create(chosen->source, chosen->kernel, target, timer.inputs);
  if (!session)
    return session.error();
  timer.session = std::move(*session);
  Expected<std::vector<HostTensor>> ran = timer.session->run(timer.inputs, 0xFF);
  if (!ran)
    return ran.error();
  Expected<double> time = timer.session->time();
  if (!time)
    return time.error();
  timer.least = *time;
  return timer;
}

Expected<Measurement> ScheduleTimer::measure(const std::string &block, int rounds, double worst) {
  Expected<ChosenKernel> chosen = compile(block);
  if (!chosen)
    return chosen.error();
  auto candidate = Session::create(chosen->source, chosen->kernel, target, inputs);
  if (!candidate)
    return candidate.error();
  Expected<CheckedRun> ran =
      runChecked(**candidate, *chosen->source, chosen->kernel, inputs, checkedElements);
  if (!ran)
    return ran.error();
  Measurement measurement;
  measurement.right = !ran->firstWrong();
  std::vector<double> ratios;
  for (int round = 0; round < rounds; ++round) {
    Expected<double> own = session->time();
    if (!own)
      return own.error();
    Expected<double> time = (*candidate)->time();
    if (!time)
      return time.error();
    least = std::min(least, *own);
    ratios.push_back(*time / *own);
    measurement.milliseconds = round == 0 ? *time : std::min(measurement.milliseconds, *time);
    if (!measurement.right || ratios.back() > hopeless * worst)
      break;
  }
  llvm::sort(ratios);
  measurement.ratio = ratios[ratios.size() / 2];
  return measurement;
}

} // namespace tk::tkc
