//===- Candidates.h - schedules that may be faster ---------------*- C++ -*-===//
#ifndef TK_COMPILER_TKC_TUNE_CANDIDATES_H
#define TK_COMPILER_TKC_TUNE_CANDIDATES_H

#include "compiler/PredictedCost.h"
#include "compiler/tkc/Commands.h"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tk::tkc {

/// The entries of a schedule block: "stages" or "tile i", and the value.
using Entries = std::map<std::string, std::string>;

/// A schedule block; without entries, nothing. `head` is what follows the kernel's name, such as
/// "for sm_90a when M == 64".
std::string blockOf(const std::string &kernel, const std::string &head, const Entries &entries);

struct Candidate {
  Entries entries;           ///< none: the compiler's own choice
  double microseconds = 0;   ///< predicted
  std::string plan;          ///< of all launches; tells candidates apart
  std::string device;        ///< that the time is of
  std::vector<double> times; ///< predicted, of each launch
  double uneven = 1;         ///< of the launch that takes longest: see CostModel.h
  std::vector<NamedTiles> tiles;
  int64_t accumulators = 0; ///< a thread's
};

/// A kernel compiled with a schedule block of these entries, and its time at the sizes of `sizes`.
/// `compiled` are the options that it is compiled with: where these have sizes, they are fixed.
/// Fails where the program is wrong, or its time is not known.
Expected<Candidate> predictCandidate(const SourceOptions &compiled, const SourceOptions &sizes,
                                     const std::string &target, const std::string &kernel,
                                     const Entries &entries);

/// Schedules that differ from a kernel's own choice in one entry.
std::vector<Entries> neighboursOf(const Candidate &own);

/// Calls `make` with 0 to `count` - 1, in parallel.
void inParallel(size_t count, const std::function<void(size_t)> &make);

/// Looks for schedules of a kernel by predicted time alone.
class CandidateSearch {
public:
  /// `sizes` are the options with all dimensions; the schedule of a file is no part of them.
  CandidateSearch(SourceOptions sizes, std::string target);

  /// The compiler's own choice first, then those that have a plan of their own, by predicted time.
  /// Of schedules with equal times the first in the order of their entries stands where its time
  /// says; each further one stands as if it took 2 % more than the one before. Two searches agree.
  /// Fails where the program is wrong, or its time is not known.
  Expected<std::vector<Candidate>> find(size_t most);

  /// The name of the kernel, once find() has run.
  const std::string &kernel() const { return kernelName; }
  /// The GPU whose times are predicted, once find() has run.
  const std::string &device() const { return deviceName; }

private:
  Expected<Candidate> predict(const Entries &entries) const;
  /// Predicts in parallel; what fails is left out. Fails where all fail because of the program.
  void add(std::vector<Entries> wanted);
  std::vector<Candidate *> fastest(size_t count);

  SourceOptions options;
  std::string target, kernelName, deviceName;
  size_t lookedAt = 0; ///< schedules at most
  std::set<Entries> seen;
  std::map<std::string, Candidate> byPlan;
};

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_TUNE_CANDIDATES_H
