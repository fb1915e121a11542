//===- Timing.cpp - schedules of a kernel timed in alternation ------------===//
#include "compiler/tkc/tune/Timing.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

namespace tk::tkc {

/// A schedule whose first time is so much more than the best one's is not timed again.
static constexpr double hopeless = 1.2;
/// Seconds that one time takes: the first, which leaves most schedules out, and later ones.
static constexpr double secondsOfFirst = 0.02, secondsOfTime = 0.1;
/// Sessions that wait to be timed.
static constexpr size_t mostAhead = 16;

Expected<ChosenKernel> ScheduleTimer::compile(const std::string &block) const {
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
  timer.source = chosen->source;
  timer.computed =
      std::async(std::launch::async,
                 [source = chosen->source, kernel = chosen->kernel, inputs = timer.inputs,
                  checkedElements]() -> Expected<SharedReferences> {
                   Expected<References> made = References::create(*source, kernel, inputs);
                   if (!made)
                     return made.error();
                   made->evaluate(checkedElements);
                   return std::make_shared<References>(std::move(*made));
                 });
  return timer;
}

Expected<ScheduleTimer::Compiled> ScheduleTimer::bind(const std::string &block) const {
  Expected<ChosenKernel> chosen = compile(block);
  if (!chosen)
    return chosen.error();
  auto bound = Session::create(chosen->source, chosen->kernel, target, inputs, session.get());
  if (!bound)
    return bound.error();
  return Compiled{std::move(*chosen), std::move(*bound)};
}

void ScheduleTimer::compileAhead(std::vector<std::string> blocks) {
  next = std::move(blocks);
  std::reverse(next.begin(), next.end());
}

bool ScheduleTimer::isCompiling() const {
  return llvm::any_of(ahead, [](const Ahead &each) {
    return each.second.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  });
}

Expected<ScheduleTimer::Compiled> ScheduleTimer::takeOrBind(const std::string &block) {
  // A core is left for the launches that are timed.
  const size_t cores = std::max(2u, std::thread::hardware_concurrency()) - 1;
  const size_t most = std::min(cores, mostAhead);
  while (!next.empty() && ahead.size() < most) {
    std::string text = std::move(next.back());
    next.pop_back();
    auto work = std::async(std::launch::async, [this, text] { return bind(text); });
    ahead.emplace_back(std::move(text), std::move(work));
  }
  auto known = llvm::find_if(ahead, [&](const Ahead &each) { return each.first == block; });
  if (known == ahead.end())
    return bind(block);
  auto work = std::move(known->second);
  ahead.erase(known);
  return work.get();
}

Expected<Measurement> ScheduleTimer::measure(const std::string &block, int rounds,
                                             std::optional<double> best) {
  Expected<Compiled> candidate = takeOrBind(block);
  if (!candidate)
    return candidate.error();
  Measurement measurement;
  if (const int64_t bytes = candidate->session->spilledBytes();
      best && bytes > session->spilledBytes()) {
    measurement.spilled = bytes;
    return measurement;
  }
  const double most = best ? hopeless * *best : std::numeric_limits<double>::infinity();
  measurement.applies = candidate->chosen.source->scheduleApplies(candidate->chosen.kernel, target,
                                                                  candidate->session->facts());
  std::vector<double> ratios;
  for (int round = 0; round < rounds; ++round) {
    const double seconds = best && round == 0 ? secondsOfFirst : secondsOfTime;
    Expected<double> own = session->time(seconds);
    if (!own)
      return own.error();
    Expected<double> time = candidate->session->time(seconds);
    if (!time)
      return time.error();
    least = std::min(least, *own);
    ratios.push_back(*time / *own);
    measurement.milliseconds = round == 0 ? *time : std::min(measurement.milliseconds, *time);
    if (ratios.back() > most)
      break;
  }
  llvm::sort(ratios);
  measurement.ratio = ratios[ratios.size() / 2];
  if (best && measurement.ratio >= *best)
    return measurement; // it cannot be chosen: nothing is asked of its results
  if (!references) {
    Expected<SharedReferences> made = computed.get();
    if (!made)
      return made.error();
    references = *made;
  }
  Expected<CheckedRun> ran = runChecked(*candidate->session, *references, inputs, checkedElements);
  if (!ran)
    return ran.error();
  measurement.right = !ran->firstWrong();
  return measurement;
}

} // namespace tk::tkc
