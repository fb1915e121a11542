//===- TuneCommand.cpp - tkc tune: the fastest schedule that is found -----===//
//
// Schedules are looked for by predicted time (Candidates.cpp). They are timed in that order, each
// in alternation with the program as it is. The search ends where the model leaves the rest no
// chance, or the budget is used up.
//
//===----------------------------------------------------------------------===//
#include "compiler/VariantCache.h"
#include "compiler/tkc/Commands.h"
#include "compiler/tkc/Process.h"
#include "compiler/tkc/Progress.h"
#include "compiler/tkc/tune/Candidates.h"
#include "compiler/tkc/tune/Record.h"
#include "compiler/tkc/tune/Timing.h"
#include "frontend/Diagnostics.h"
#include "tk/module.h"

#include <CLI/CLI.hpp>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/xxhash.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>

namespace tk::tkc {
namespace {

using Clock = std::chrono::steady_clock;

struct TuneOptions {
  SourceOptions source;
  std::vector<std::string> inputs;
  std::string output = "-", record, verified;
  double budget = 60; ///< seconds
  size_t most = 200;
  int64_t checkedElements = 64;
  double tolerance = 2; ///< percent
  bool predicted = false, anySize = false, exhaustive = false;
};

/// Measured times are within this factor of predicted ones for most programs, see
/// docs/explanation/cost-model.md. What is predicted to be slower by more than it cannot win.
constexpr double modelFactor = 1.5;
/// Predicted times within this ratio are equal: the program stays as it is.
constexpr double worthOfPrediction = 0.95;
/// Likewise for measured times, whose medians repeat within a percent.
constexpr double worthOfMeasurement = 0.99;
constexpr int rounds = 3, roundsOfBest = 5;
/// What is left of the budget for the last rounds of the best schedule, in seconds.
constexpr double secondsOfBest = 5;

std::string format(const char *text, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, text, value);
  return buffer;
}

/// `for sm_90a when M == 64 and N == 32`.
std::string headOf(const TuneOptions &options, const std::string &target) {
  // A block is for an architecture; the emulator takes that of the one that it emulates.
  const llvm::StringRef emulated = target;
  const std::string arch = target == "emu"                ? "sm_90a"
                           : emulated.starts_with("emu-") ? emulated.drop_front(4).str()
                                                          : target;
  std::string head = "for " + arch, separator = " when ";
  if (options.anySize)
    return head;
  const std::map<std::string, int64_t> sizes = options.source.dimValues().value();
  for (const auto &[name, size] : sizes) {
    head += separator + name + " == " + std::to_string(size);
    separator = " and ";
  }
  return head;
}

/// What measurements belong to: another program, machine or version begins anew.
Expected<std::string> contextOf(const TuneOptions &options, const Session &session) {
  Expected<std::string> text = readFile(options.source.file);
  if (!text)
    return text.error();
  std::vector<std::string> words = {llvm::utohexstr(llvm::xxh3_64bits(*text), /*LowerCase=*/true),
                                    session.signature().name,
                                    session.target(),
                                    session.deviceName(),
                                    session.driverName(),
                                    "tk 0.1.0"};
  for (const auto *list : {&options.source.dims, &options.source.scalars, &options.inputs})
    for (const std::string &word : *list)
      words.push_back(word);
  return llvm::join(words, " ");
}

struct Outcome {
  Entries entries; ///< none: the program as it is
  double ratio = 1, microseconds = 0, ownMicroseconds = 0;
  size_t numTimed = 0;
  std::string end; ///< why the search ended
};

std::string textOf(const Entries &entries) {
  std::string text;
  for (const auto &[key, value] : entries)
    text += (text.empty() ? "" : ", ") + key + " = " + value;
  return text;
}

void printTried(const TuneOptions &options, const Candidate &candidate, const std::string &block,
                const Measurement &measurement) {
  if (options.source.json) {
    std::string quoted;
    quoteJson(block, quoted);
    std::printf("{\"schedule\":%s,\"predicted_us\":%.6g,\"us\":%.6g,\"ratio\":%.4g,\"right\":%s,"
                "\"spilled\":%lld}\n",
                quoted.c_str(), candidate.microseconds, measurement.milliseconds * 1e3,
                measurement.ratio, measurement.right ? "true" : "false",
                static_cast<long long>(measurement.spilled));
  } else {
    const std::string entries = textOf(candidate.entries);
    if (measurement.spilled > 0)
      std::fprintf(stderr, "  not run, %lld bytes of registers a thread are in memory: %s\n",
                   static_cast<long long>(measurement.spilled), entries.c_str());
    else
      std::fprintf(stderr, "  %.3f of the time, %.1f us (predicted %.1f): %s%s\n",
                   measurement.ratio, measurement.milliseconds * 1e3, candidate.microseconds,
                   entries.c_str(),
                   measurement.right ? "" : "; WRONG RESULTS, a bug of tk, left out");
  }
  std::fflush(stdout);
}

/// Times candidates while the budget lasts and the model leaves them a chance.
Expected<Outcome> timeCandidates(const TuneOptions &options, const std::string &kernel,
                                 const std::vector<Candidate> &candidates, ScheduleTimer &timer,
                                 TuneRecord &record, Clock::time_point begin) {
  const Candidate &own = candidates.front();
  const double mostFactor =
      options.exhaustive ? std::numeric_limits<double>::infinity() : modelFactor;
  std::vector<std::string> blocks;
  for (const Candidate &candidate : llvm::drop_begin(candidates))
    if (std::string block = blockOf(kernel, "", candidate.entries);
        !record.find(block) && candidate.microseconds <= mostFactor * own.microseconds)
      blocks.push_back(std::move(block));
  timer.compileAhead(std::move(blocks));
  Outcome best;
  best.end = "all candidates were timed";
  for (size_t i = 1; i < candidates.size(); ++i) {
    const Candidate &candidate = candidates[i];
    if (candidate.microseconds > mostFactor * best.ratio * own.microseconds) {
      best.end = "the model leaves the other " + std::to_string(candidates.size() - i) +
                 " candidates no chance";
      break;
    }
    const double left =
        options.budget - std::chrono::duration<double>(Clock::now() - begin).count();
    const std::string block = blockOf(kernel, "", candidate.entries);
    const Measurement *known = record.find(block);
    if (!known && left <= std::min(secondsOfBest, options.budget / 4)) {
      best.end = "the budget is used up with " + std::to_string(candidates.size() - i) +
                 " candidates left";
      break;
    }
    if (!known) {
      Progress progress("timing " + std::to_string(i) + " of " +
                            std::to_string(candidates.size() - 1) + " schedules, at most " +
                            format("%.0f s left", left),
                        options.source.json);
      Expected<Measurement> measured = timer.measure(block, rounds, best.ratio);
      if (!measured && measured.error().code() == ErrorCode::nvrtc_failed) {
        // The GPU's assembler refuses what has too few registers for the instructions.
        if (!options.source.json)
          std::fprintf(stderr, "  not run, the GPU's compiler refuses it: %s\n",
                       textOf(candidate.entries).c_str());
        continue;
      }
      if (!measured)
        return measured.error();
      if (Status written = record.add(block, *measured); !written)
        return written.error();
      known = record.find(block);
      ++best.numTimed;
    }
    printTried(options, candidate, block, *known);
    if (known->spilled == 0 && known->right && known->ratio < best.ratio) {
      best.ratio = known->ratio;
      best.entries = candidate.entries;
    }
  }
  if (!best.entries.empty()) { // again, with more rounds: the least of many ratios is too small
    Expected<Measurement> again = timer.measure(blockOf(kernel, "", best.entries), roundsOfBest);
    if (!again)
      return again.error();
    best.ratio = again->ratio;
    best.microseconds = again->milliseconds * 1e3;
  }
  best.ownMicroseconds = timer.ownMilliseconds() * 1e3;
  if (best.entries.empty() || best.ratio > worthOfMeasurement) {
    best.entries.clear();
    best.ratio = 1;
    best.microseconds = best.ownMicroseconds;
  }
  return best;
}

Outcome choosePredicted(const std::vector<Candidate> &candidates) {
  Outcome best;
  best.ownMicroseconds = best.microseconds = candidates.front().microseconds;
  best.end = "nothing was timed";
  if (candidates.size() > 1) {
    const double ratio = candidates[1].microseconds / candidates[0].microseconds;
    if (ratio <= worthOfPrediction) {
      best.ratio = ratio;
      best.entries = candidates[1].entries;
      best.microseconds = candidates[1].microseconds;
    }
  }
  return best;
}

int finish(const TuneOptions &options, const std::string &kernel, const std::string &target,
           const std::string &device, const Outcome &best, size_t numCandidates) {
  const char *how = options.predicted ? "predicted" : "measured";
  if (options.source.json) {
    std::string quoted;
    quoteJson(blockOf(kernel, headOf(options, target), best.entries), quoted);
    std::printf("{\"best\":%s,\"ratio\":%.4g,\"us\":%.6g,\"own_us\":%.6g,\"candidates\":%zu,"
                "\"timed\":%zu}\n",
                quoted.c_str(), best.ratio, best.microseconds, best.ownMicroseconds, numCandidates,
                best.numTimed);
  } else {
    std::fprintf(stderr, "%s on %s: %zu candidates; %s\n", kernel.c_str(), device.c_str(),
                 numCandidates, best.end.c_str());
  }
  if (best.entries.empty()) {
    if (!options.source.json)
      std::fprintf(stderr, "no schedule is faster than the program as it is (%.1f us, %s)\n",
                   best.ownMicroseconds, how);
    return Done;
  }
  const std::string build =
      llvm::utohexstr(llvm::xxh3_64bits(compilerBuild()), /*LowerCase=*/true).substr(0, 8);
  const std::string text = "// tkc tune, tk 0.1.0 (build " + build + "), " + device + ": " +
                           format("%.1f us", best.microseconds) + " for " +
                           format("%.1f us", best.ownMicroseconds) + " without it, " + how + ".\n" +
                           blockOf(kernel, headOf(options, target), best.entries);
  if (options.source.json && options.output == "-")
    return Done;
  Status written = writeFile(options.output, text);
  return written ? Done : report(written.error(), options.source.json);
}

/// Times the blocks of a file beside the program without them.
int verify(const TuneOptions &options, const std::string &block, ScheduleTimer &timer) {
  const bool json = options.source.json;
  Expected<Measurement> measured = timer.measure(block, roundsOfBest);
  if (!measured)
    return report(measured.error(), json);
  if (!measured->applies)
    return report(Error(ErrorCode::invalid_argument, "no schedule block of '" + options.verified +
                                                         "' is for this target and these sizes"),
                  json);
  if (json)
    std::printf("{\"ratio\":%.4g,\"us\":%.6g,\"own_us\":%.6g,\"right\":%s}\n", measured->ratio,
                measured->milliseconds * 1e3, timer.ownMilliseconds() * 1e3,
                measured->right ? "true" : "false");
  else
    std::printf(
        "%s takes %.3f of the time without it (median of %d pairs; the least times are %.1f "
        "and %.1f us)%s\n",
        options.verified.c_str(), measured->ratio, roundsOfBest, measured->milliseconds * 1e3,
        timer.ownMilliseconds() * 1e3, measured->right ? "" : "; its results are WRONG");
  if (!measured->right)
    return InternalError;
  return measured->ratio <= 1 + options.tolerance / 100 ? Done : WrongInput;
}

int tune(const TuneOptions &options) {
  const Clock::time_point begin = Clock::now();
  const bool json = options.source.json;
  std::error_code none;
  if (options.output != "-" &&
      std::filesystem::equivalent(options.output, options.source.file, none))
    return report(Error(ErrorCode::invalid_argument,
                        "-o would replace the program '" + options.source.file + "' by a block"),
                  json);
  if (Expected<std::map<std::string, int64_t>> sizes = options.source.dimValues(); !sizes)
    return report(sizes.error(), json);
  Expected<std::string> target =
      options.predicted ? targetOfCode(options.source) : resolve_target(options.source.target);
  if (target && *target == "cpu")
    target = Error(ErrorCode::invalid_argument,
                   "the CPU target makes its own choices; tkc tune times on a GPU, and --predicted "
                   "chooses by predicted time without one");
  if (!target)
    return report(target.error(), json);
  std::optional<ScheduleTimer> timer;
  TuneRecord record;
  std::string block;
  if (!options.verified.empty()) {
    Expected<std::string> text = readFile(options.verified);
    if (text && text->find("schedule") == std::string::npos)
      text = Error(ErrorCode::invalid_argument, "'" + options.verified + "' has no schedule block");
    if (!text)
      return report(text.error(), json);
    block = *text;
  }
  if (!options.predicted) {
    ArgumentTexts texts;
    texts.dims = options.source.dimValues().value();
    texts.inputs = options.inputs;
    texts.scalars = options.source.scalars;
    auto made = ScheduleTimer::create(options.source, texts, *target, options.checkedElements);
    if (!made)
      return report(made.error(), json);
    timer = std::move(*made);
    if (!options.verified.empty())
      return verify(options, block, *timer);
    Expected<std::string> context = contextOf(options, timer->own());
    if (!context)
      return report(context.error(), json);
    Expected<TuneRecord> opened = TuneRecord::open(options.record, *context);
    if (!opened)
      return report(opened.error(), json);
    record = std::move(*opened);
  }
  CandidateSearch search(options.source, *target);
  auto candidates = [&] {
    Progress progress("looking for schedules", json);
    return search.find(options.most);
  }();
  if (!candidates)
    return report(candidates.error(), json);
  const std::string &kernel = search.kernel();
  if (options.predicted)
    return finish(options, kernel, *target, search.device(), choosePredicted(*candidates),
                  candidates->size());
  Expected<Outcome> best = timeCandidates(options, kernel, *candidates, *timer, record, begin);
  if (!best)
    return report(best.error(), json);
  // The emulator is no device, and its times say nothing of one.
  const bool isEmulated = llvm::StringRef(*target).starts_with("emu");
  std::string machine = isEmulated ? *target : timer->own().deviceName();
  if (const std::string driver = timer->own().driverName(); !driver.empty())
    machine += ", " + driver;
  const int status = finish(options, kernel, *target, machine, *best, candidates->size());
  if (timer->isCompiling()) { // for seconds more, and nobody asks for it
    const Status written = flushOutput();
    std::_Exit(written ? status : report(written.error(), json));
  }
  return status;
}

} // namespace

void addTune(CLI::App &app, int &status) {
  CLI::App *command = app.add_subcommand(
      "tune", "Looks for a schedule that is faster than the compiler's own choice at given sizes, "
              "and writes it as a schedule block.");
  auto options = std::make_shared<TuneOptions>();
  options->source.addTo(*command);
  command->add_option("--arg", options->source.scalars, "A scalar argument")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--in", options->inputs,
                   "An input: PATH.npy, random[:SEED[:LOW:HIGH]] (default), zeros or iota")
      ->type_name("NAME=SOURCE")
      ->allow_extra_args(false);
  command->add_option("-o", options->output, "Where to write the block; default: standard output");
  command
      ->add_option("--budget", options->budget,
                   "Seconds that looking for schedules and timing them may take (default: 60)")
      ->check(notABound);
  command->add_option("--candidates", options->most, "How many schedules to time at most (200)")
      ->check(CLI::Range(1, 100000));
  command->add_option("--record", options->record,
                      "Keep the measurements here; a search that was stopped goes on from them");
  command->add_option("--check-elements", options->checkedElements,
                      "Elements of each result to compare with the reference (64); 0: all");
  command->add_flag("--any-size", options->anySize,
                    "Write a block that applies at all sizes, not only at those given");
  command->add_flag("--exhaustive", options->exhaustive,
                    "Time every candidate, also those that are predicted to be far slower");
  auto *predicted = command->add_flag("--predicted", options->predicted,
                                      "Choose by predicted time alone; needs no GPU");
  command
      ->add_option("--verify", options->verified,
                   "Time the blocks of this file beside the program without them; exit 1 if they "
                   "are slower")
      ->excludes(predicted);
  command
      ->add_option("--tolerance", options->tolerance,
                   "With --verify: by how many percent they may be slower (default: 2)")
      ->check(notABound);
  command->callback([options, &status] { status = tune(*options); });
}

} // namespace tk::tkc
