//===- Candidates.cpp - schedules that may be faster ----------------------===//
//
// The search begins with the compiler's own choice, and has two kinds of steps.
//
// 1. Tiles: of each launch that takes a tenth of the time or more, every index's tile is halved,
//    kept or doubled, in all combinations.
// 2. The other keys: each of the fastest schedules gets each value of each other key.
//
// A step begins with the fastest schedules so far. The search ends where a round of both steps
// finds nothing that is predicted to be faster. The planner refuses what does not fit. Schedules
// that lead to the same plan are one candidate, with the fewest entries.
//
//===----------------------------------------------------------------------===//
#include "compiler/tkc/tune/Candidates.h"

#include "compiler/tkc/Inputs.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <tuple>

namespace tk::tkc {
namespace {

/// Schedules that a step begins with.
constexpr size_t beginnings = 4;
/// Indices of a launch whose tiles are varied together: three to this power are the combinations.
constexpr size_t variedIndices = 4;
constexpr int64_t largestTile = 1024;
/// Of the 255 registers of a thread, those that are left beside addresses and operands.
constexpr int64_t mostAccumulators = 200;
/// A launch that takes less than this part of the time is left as it is.
constexpr double leastShare = 0.1;
/// Rounds of both steps, and schedules that are looked at in all of them, at least and for each one
/// that may be timed: each takes 10 to 60 ms.
constexpr int mostRounds = 4;
constexpr size_t leastLookedAt = 500;
constexpr double lookedAtForEach = 2.5;
/// What an equal predicted time adds to a candidate's place.
constexpr double ofEqualTime = 0.02;

struct Values {
  const char *key;
  std::vector<const char *> values;
};

/// The values of keys that are set for the whole kernel, without those that are an index's.
const std::vector<Values> &keysOfKernel() {
  static const std::vector<Values> keys = {
      {"stages", {"1", "2", "3", "4", "5", "6", "8"}},
      {"consumers", {"1", "2", "3", "4"}},
      {"teams", {"1", "2", "3"}},
      {"vector", {"4", "8", "16"}},
      {"raster", {"rows", "columns", "grouped(4)", "grouped(8)", "grouped(16)"}},
      {"persistent", {"true", "false"}}};
  return keys;
}

const std::vector<Values> &keysOfIndices() {
  static const std::vector<Values> keys = {{"coarsen", {"1", "2", "4", "8"}},
                                           {"split", {"1", "2", "4", "8", "16"}},
                                           {"cluster", {"1", "2", "4"}}};
  return keys;
}

/// All combinations of halved, kept and doubled tiles.
void addTiles(const Entries &from, const NamedTiles &tiles, std::vector<Entries> &wanted) {
  NamedTiles varied;
  for (const auto &tile : tiles)
    if (tile.second > 1 && varied.size() < variedIndices)
      varied.push_back(tile);
  size_t combinations = 1;
  for (size_t i = 0; i < varied.size(); ++i)
    combinations *= 3;
  for (size_t number = 0; number < combinations; ++number) {
    Entries entries = from;
    bool legal = true;
    size_t rest = number;
    for (const auto &[name, size] : varied) {
      const int64_t value = rest % 3 == 0 ? size : rest % 3 == 1 ? size * 2 : size / 2;
      legal &= value <= largestTile;
      entries["tile " + name] = std::to_string(value);
      rest /= 3;
    }
    if (legal)
      wanted.push_back(std::move(entries));
  }
}

void addOtherKeys(const Entries &from, const std::vector<NamedTiles> &tiles,
                  std::vector<Entries> &wanted) {
  auto add = [&](const std::string &key, const char *value) {
    Entries entries = from;
    entries[key] = value;
    wanted.push_back(std::move(entries));
  };
  for (const Values &key : keysOfKernel())
    for (const char *value : key.values)
      add(key.key, value);
  for (const NamedTiles &of : tiles)
    for (const auto &tile : of)
      for (const Values &key : tile.second > 1 ? keysOfIndices() : std::vector<Values>())
        for (const char *value : key.values)
          add(std::string(key.key) + " " + tile.first, value);
}

} // namespace

std::string blockOf(const std::string &kernel, const std::string &head, const Entries &entries) {
  if (entries.empty())
    return "";
  std::string text = "schedule " + kernel + (head.empty() ? "" : " " + head) + " {\n", last;
  for (const auto &[key, value] : entries) {
    auto [word, index] = llvm::StringRef(key).split(' ');
    if (index.empty()) {
      text += (last.empty() ? "  " : "\n  ") + key + " = " + value;
      last = key;
      continue;
    }
    text += word == last ? ", " : (last.empty() ? "  " : "\n  ") + word.str() + " ";
    text += index.str() + " = " + value;
    last = word.str();
  }
  return text + "\n}\n";
}

CandidateSearch::CandidateSearch(SourceOptions sizes, std::string target)
    : options(std::move(sizes)), target(std::move(target)) {
  options.quiet = true;
}

std::vector<Entries> neighboursOf(const Candidate &own) {
  std::vector<Entries> wanted;
  for (const NamedTiles &tiles : own.tiles)
    for (const auto &[name, size] : tiles)
      for (int64_t other : {size / 2, size * 2})
        if (size > 1 && other <= largestTile)
          wanted.push_back({{"tile " + name, std::to_string(other)}});
  addOtherKeys({}, own.tiles, wanted);
  return wanted;
}

void inParallel(size_t count, const std::function<void(size_t)> &make) {
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < count; i = next++)
      make(i);
  };
  std::vector<std::thread> threads;
  const size_t most = std::min<size_t>(std::max(1u, std::thread::hardware_concurrency()), count);
  for (size_t t = 1; t < most; ++t)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
}

Expected<Candidate> CandidateSearch::predict(const Entries &entries) const {
  // The plan is that of a launch, which has no sizes that are fixed at compile time.
  SourceOptions source = options;
  source.dims.clear();
  return predictCandidate(source, options, target, kernelName, entries);
}

Expected<Candidate> predictCandidate(const SourceOptions &compiled, const SourceOptions &options,
                                     const std::string &target, const std::string &kernel,
                                     const Entries &entries) {
  SourceOptions source = compiled;
  source.quiet = true;
  if (!entries.empty())
    source.scheduleText = blockOf(kernel, "", entries);
  Expected<ChosenKernel> chosen = source.compileKernel();
  if (!chosen)
    return chosen.error();
  const Signature &signature = chosen->source->signatures()[chosen->kernel];
  Expected<Facts> facts = options.factsFor(signature, false);
  if (!facts)
    return facts.error();
  auto given = options.givenVariables(signature);
  if (!given)
    return given.error();
  decideConditions(*chosen->source, chosen->kernel, target, *given, *facts);
  const size_t numDims = signature.dims.size();
  std::vector<int64_t> dims;
  for (const std::optional<Scalar> &dim : llvm::ArrayRef(*given).take_front(numDims))
    if (dim)
      dims.push_back(dim->i);
  const auto scalars = llvm::ArrayRef(*given).drop_front(numDims);
  if (dims.size() == numDims)
    if (auto variables = complete_variables(signature, dims, scalars))
      if (Status met = run_checks(signature, *variables); !met)
        return met.error();
  auto cost = chosen->source->predictCost(chosen->kernel, target, *facts, dims, scalars,
                                          [](llvm::StringRef) { return 0u; });
  if (!cost)
    return cost.error();
  if (!*cost)
    return Error(ErrorCode::invalid_argument,
                 "the time of kernel '" + signature.name + "' depends on all of its dimensions (" +
                     llvm::join(signature.dims, ", ") + "): give each with --dim" +
                     (signature.num_scalars() > 0 ? ", and its scalars with --arg" : ""));
  Candidate candidate;
  candidate.entries = entries;
  candidate.device = (*cost)->device;
  candidate.accumulators = (*cost)->accumulators;
  candidate.microseconds = (*cost)->kernel.nanoseconds * 1e-3;
  for (const auto &[symbol, plan] : (*cost)->plans)
    candidate.plan += symbol + ": " + plan + "\n";
  double longest = 0;
  for (const LaunchCost &launch : (*cost)->kernel.launches) {
    if (launch.prediction.total > longest)
      longest = launch.prediction.total, candidate.uneven = launch.prediction.uneven;
    candidate.times.push_back(launch.prediction.total * 1e-3);
    candidate.tiles.push_back((*cost)->tiles[launch.symbol]);
  }
  return candidate;
}

void CandidateSearch::add(std::vector<Entries> wanted) {
  llvm::erase_if(wanted, [&](const Entries &entries) {
    return seen.size() >= lookedAt || !seen.insert(entries).second;
  });
  std::vector<std::optional<Candidate>> found(wanted.size());
  inParallel(wanted.size(), [&](size_t i) {
    if (Expected<Candidate> candidate = predict(wanted[i]))
      found[i] = std::move(*candidate);
  });
  for (std::optional<Candidate> &candidate : found) {
    // What does not fit in registers takes long to compile, and is never fast.
    if (!candidate || candidate->accumulators > mostAccumulators)
      continue;
    auto [place, isNew] = byPlan.try_emplace(candidate->plan, *candidate);
    if (!isNew && candidate->entries.size() < place->second.entries.size())
      place->second = std::move(*candidate);
  }
}

std::vector<Candidate *> CandidateSearch::fastest(size_t count) {
  std::vector<Candidate *> all;
  for (auto &[plan, candidate] : byPlan)
    all.push_back(&candidate);
  llvm::sort(all, [](const Candidate *a, const Candidate *b) {
    return std::tie(a->microseconds, a->entries) < std::tie(b->microseconds, b->entries);
  });
  all.resize(std::min(count, all.size()));
  return all;
}

Expected<std::vector<Candidate>> CandidateSearch::find(size_t most) {
  lookedAt =
      std::max(leastLookedAt, static_cast<size_t>(lookedAtForEach * static_cast<double>(most)));
  SourceOptions source = options;
  source.dims.clear();
  Expected<ChosenKernel> chosen = source.compileKernel();
  if (!chosen)
    return chosen.error();
  kernelName = chosen->source->signatures()[chosen->kernel].name;
  Expected<Candidate> own = predict({});
  if (!own)
    return own.error();
  seen.insert(Entries());
  byPlan[own->plan] = *own;
  for (int round = 0; round < mostRounds; ++round) {
    const double before = fastest(1).front()->microseconds;
    std::vector<Entries> wanted;
    for (const Candidate *from : fastest(beginnings))
      for (size_t launch = 0; launch < from->times.size(); ++launch)
        if (from->times[launch] >= leastShare * from->microseconds)
          addTiles(from->entries, from->tiles[launch], wanted);
    add(std::move(wanted));
    wanted.clear();
    for (const Candidate *from : fastest(beginnings))
      addOtherKeys(from->entries, from->tiles, wanted);
    addOtherKeys({}, own->tiles, wanted);
    add(std::move(wanted));
    if (fastest(1).front()->microseconds >= before)
      break;
  }
  deviceName = own->device;
  std::vector<std::tuple<double, size_t, const Candidate *>> ranked;
  double last = 0;
  int numEqual = 0;
  for (const Candidate *candidate : fastest(byPlan.size())) {
    if (candidate->plan == own->plan)
      continue;
    numEqual = candidate->microseconds > last * 1.001 ? 0 : numEqual + 1;
    last = numEqual == 0 ? candidate->microseconds : last;
    ranked.emplace_back(candidate->microseconds * (1 + ofEqualTime * numEqual), ranked.size(),
                        candidate);
  }
  llvm::sort(ranked);
  std::vector<Candidate> found = {*own};
  for (const auto &[rank, number, candidate] : ranked)
    if (found.size() <= most)
      found.push_back(*candidate);
  return found;
}

} // namespace tk::tkc
