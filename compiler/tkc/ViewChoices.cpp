//===- ViewChoices.cpp - what else the compiler could have done -----------===//
//
// 1. Rewrites: the kernel is lowered again without each pass or pattern that reports something
//    derived. Its predicted time says what the rewrite brings.
// 2. Fusion: the kernel is lowered again with each tensor stored that was inlined, with each pair
// of
//    compute ops apart that became one, and the other way round (FusionTimes.cpp).
// 3. Plans: the kernel is lowered again with schedule blocks that differ from its plan in one
//    entry. Of equal plans one is kept, and none that is predicted to take as long as the plan, or
//    much longer. The planner refuses what does not fit.
//
// All compare with a time that is predicted in the same way, without the registers that compiled
// code has. A schedule has the rule by which the planner chose otherwise (passes/plan/PlanRules.h).
//
//===----------------------------------------------------------------------===//
#include "compiler/tkc/ViewChoices.h"

#include "compiler/tkc/FusionTimes.h"
#include "compiler/tkc/tune/Candidates.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <optional>
#include <set>

namespace json = llvm::json;

namespace tk::tkc {

/// Schedules that are listed.
static constexpr size_t mostSchedules = 12;
/// Times that are nearer to the plan's than this are the same.
static constexpr double equalTimes = 0.001;
/// Schedules that take longer than so many times the plan are not listed.
static constexpr double slowestSchedule = 1.5;

/// The pass that chooses plans. Its facts are the plan itself: without it there is another plan,
/// not one rewrite less.
static constexpr llvm::StringLiteral planner = "tk-choose-schedule";

static json::Array withoutRewrites(const SourceOptions &options, const std::string &target,
                                   const std::string &kernel, const KernelView &view) {
  std::set<std::string> named;
  for (const CompiledSource::Remark &remark : view.remarks)
    if (!remark.declined && isKnownPass(remark.pass) && remark.pass != planner)
      named.insert(remark.pass);
  const std::vector<std::string> passes(named.begin(), named.end());
  std::vector<std::optional<double>> times(passes.size());
  inParallel(passes.size(), [&](size_t i) {
    SourceOptions without = options;
    without.disabledPasses.push_back(passes[i]);
    if (auto made = predictCandidate(without, without, target, kernel, {}))
      times[i] = made->microseconds;
  });
  json::Array list;
  for (auto [pass, time] : llvm::zip(passes, times))
    list.push_back(json::Object{{"pass", pass}, {"us", time ? json::Value(*time) : nullptr}});
  return list;
}

static json::Array otherFusions(const SourceOptions &options, const std::string &target,
                                const std::string &kernel, const KernelView &view,
                                const Candidate &own) {
  auto timeOf = [](std::optional<double> time) { return time ? json::Value(*time) : nullptr; };
  json::Array list;
  for (const auto &[tensor, times] :
       fusionTimes(options, target, kernel, view.remarks, own.microseconds, own.plan))
    list.push_back(json::Object{{"tensor", tensor},
                                {times.separateKey(), timeOf(times.separate)},
                                {times.fusedKey(), timeOf(times.fused)}});
  return list;
}

static json::Array otherSchedules(const SourceOptions &options, const std::string &target,
                                  const std::string &kernel, const KernelView &view,
                                  const Candidate &own) {
  const std::vector<Entries> wanted = neighboursOf(own);
  std::vector<std::optional<Candidate>> found(wanted.size());
  inParallel(wanted.size(), [&](size_t i) {
    if (auto made = predictCandidate(options, options, target, kernel, wanted[i]))
      found[i] = std::move(*made);
  });
  std::set<std::string> plans = {own.plan};
  std::vector<const Candidate *> others;
  for (const std::optional<Candidate> &candidate : found)
    if (candidate && plans.insert(candidate->plan).second &&
        std::abs(candidate->microseconds / own.microseconds - 1) > equalTimes &&
        candidate->microseconds < slowestSchedule * own.microseconds)
      others.push_back(&*candidate);
  llvm::sort(others, [](const Candidate *a, const Candidate *b) {
    return std::tie(a->microseconds, a->entries) < std::tie(b->microseconds, b->entries);
  });
  others.resize(std::min(others.size(), mostSchedules));
  json::Array list;
  for (const Candidate *other : others) {
    std::string entries, rule;
    for (const auto &[key, value] : other->entries) {
      entries += (entries.empty() ? "" : ", ") + key + " = " + value;
      auto known = view.rules.find(llvm::StringRef(key).split(' ').first.str());
      rule = known == view.rules.end() ? "" : known->second;
    }
    list.push_back(json::Object{{"entries", entries},
                                {"us", other->microseconds},
                                {"uneven", other->uneven},
                                {"rule", rule}});
  }
  return list;
}

json::Value planWithBlock(const SourceOptions &options, const std::string &target,
                          const std::string &kernel, const KernelView &view) {
  if (view.scheduleBlock.empty())
    return nullptr;
  SourceOptions scheduled = options;
  scheduled.kernel = kernel;
  scheduled.printAfter.clear();
  scheduled.quiet = true;
  scheduled.scheduleText = view.scheduleBlock;
  Expected<Candidate> made = predictCandidate(scheduled, scheduled, target, kernel, {});
  if (!made)
    return nullptr;
  std::string own;
  for (const auto &[symbol, plan] : view.plans)
    own += symbol + ": " + plan + "\n";
  return made->plan == own ? json::Value("")
                           : json::Value(llvm::StringRef(made->plan).trim().str());
}

json::Value choicesOf(const SourceOptions &options, const std::string &target,
                      const std::string &kernel, const KernelView &view) {
  SourceOptions quiet = options;
  quiet.kernel = kernel;
  quiet.printAfter.clear();
  Expected<Candidate> own = predictCandidate(quiet, quiet, target, kernel, {});
  if (!own)
    return nullptr;
  // A program that says how it is scheduled has made the choice.
  const bool isChosen = !options.scheduleFile.empty();
  return json::Object{
      {"own_us", own->microseconds},
      {"own_uneven", own->uneven},
      {"without", withoutRewrites(quiet, target, kernel, view)},
      {"fusions", otherFusions(quiet, target, kernel, view, *own)},
      {"schedules", isChosen ? json::Array() : otherSchedules(quiet, target, kernel, view, *own)}};
}

} // namespace tk::tkc
