//===- Trial.h - one program against the reference -------------*- C++ -*-===//
#ifndef TK_TESTS_FUZZ_TRIAL_H
#define TK_TESTS_FUZZ_TRIAL_H

#include "compiler/Pipeline.h"
#include "tests/fuzz/Program.h"

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tk::fuzz {

enum class Outcome : uint8_t {
  Right,
  Rejected, ///< refused with a diagnostic, or by a condition on its sizes
  Marginal, ///< outside a tolerance, by no more than roundings explain
  Wrong,    ///< a value, a pass that changes one, or an internal error
  Crashed,
  TimedOut,
};

struct Verdict {
  Outcome outcome = Outcome::Right;
  std::string kind; ///< what a shrunk program must keep: "cpu: wrong", "compile: internal", …
  std::string message;
  std::string operations = {}; ///< with TrialOptions::listOperations: of the IR that is emitted
  bool failed() const { return outcome >= Outcome::Wrong; }
};

struct TrialOptions {
  std::string target = "cpu";
  bool validatePasses = true;
  bool listOperations = false;
  std::vector<std::string> leftOut; ///< passes, besides what the program leaves out
  unsigned lastPass = PipelineOptions::allPasses;
  std::string faulty; ///< a pass behind which a fault is planted, see Fault.h
  int64_t checkElements = 2048;
  unsigned secondsLimit = 60;
  /// Nothing is waited for after that.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  size_t memoryLimit = size_t{6} << 30; ///< of addresses; 0: none
};

/// Compiles, runs three times over different leftovers and compares; in this process. What the
/// programs emit for the emulator is compiled together. `tell` gets the verdicts in the programs'
/// order; none if what is compiled together cannot be.
void runTrials(std::span<const Program> programs, const TrialOptions &options,
               const std::function<void(const Verdict &)> &tell);

/// The same in a child process: a crash, a loop and a flood of memory are outcomes. Programs that
/// do not pass in company are run again, each in a process of its own. At the deadline the verdicts
/// are those of the first programs, on which there are any.
std::vector<Verdict> runGuarded(std::span<const Program> programs, const TrialOptions &options);
Verdict runGuarded(const Program &program, const TrialOptions &options);

/// Names the first pass below the tensor level behind which the program fails on its target, and
/// writes what that pass got to `directory`; empty where there is none. The guarded form runs in a
/// child process.
std::string findWrongPass(const Program &program, const TrialOptions &options,
                          const std::string &directory);
std::string findWrongPassGuarded(const Program &program, const TrialOptions &options,
                                 const std::string &directory);

/// Only the frontend, on any text; for a crash or an internal error.
Verdict runFrontend(const std::string &text);
Verdict runFrontendGuarded(const std::string &text);

} // namespace tk::fuzz

#endif // TK_TESTS_FUZZ_TRIAL_H
