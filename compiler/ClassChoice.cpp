//===- ClassChoice.cpp - calls that share the code of classes -------------===//
//
// 1. A call has the facts of its own sizes, and the facts of the classes that its sizes are in.
// 2. Both plans are made, and their times are predicted at the largest and at the least sizes with
//    the call's own key.
// 3. The call runs the code of the classes if that is predicted to take hardly longer. Otherwise
//    each dimension is tried alone, and joins those that were taken before.
//
// The choice rests on facts, and not on the calls before: it is the same in every run. The cache
// keeps it.
//
//===----------------------------------------------------------------------===//
#include "compiler/ClassChoice.h"

#include "compiler/InspectReport.h"
#include "compiler/PredictedCost.h"
#include "compiler/RelevantFacts.h"
#include "compiler/VariantCache.h"
#include "passes/machine/limits/Classes.h"
#include "runtime/Cache.h"
#include "runtime/Environment.h"

#include "llvm/ADT/bit.h"

#include <algorithm>

using namespace llvm;
using namespace tk::limits::class_choice;

namespace tk {
namespace {

/// The largest size with the key of `fact`.
int64_t largestOf(const DimFact &fact) {
  const int64_t divisor = fact.divisor, size = fact.upper - fact.upper % divisor;
  // Twice the divisor has another key, until keys tell no more apart.
  const bool isOther = divisor < largestDivisor && size % (2 * divisor) == 0 && size > divisor;
  return isOther ? size - divisor : size;
}

/// The least size with the key of `fact`; for bounds that are no powers of two the largest one.
int64_t leastOf(const DimFact &fact) {
  if (!has_single_bit(static_cast<uint64_t>(fact.upper)))
    return largestOf(fact);
  const int64_t divisor = fact.divisor, size = (fact.upper / 2 / divisor + 1) * divisor;
  const bool isOther = divisor < largestDivisor && size % (2 * divisor) == 0;
  return std::min(isOther ? size + divisor : size, largestOf(fact));
}

/// Sizes at which plans are compared: the largest ones with the key `own`, and the least ones where
/// `classes` differ. None if the key does not tell enough of them.
std::vector<SmallVector<int64_t>> sizesOf(const Facts &own, const Facts &classes) {
  SmallVector<int64_t> largest, least;
  for (const auto &[fact, shared] : zip(own.dims, classes.dims)) {
    if (fact.upper < 0 || fact.upper > largestPredicted)
      return {};
    const bool isKnown = fact.exact || fact.upper == 0;
    largest.push_back(fact.exact ? *fact.exact : isKnown ? 0 : largestOf(fact));
    least.push_back(isKnown || fact == shared ? largest.back() : leastOf(fact));
  }
  std::vector<SmallVector<int64_t>> sizes = {largest};
  if (least != largest)
    sizes.push_back(least);
  return sizes;
}

/// Does the plan of classes take hardly longer at each size?
bool isNear(ArrayRef<double> ofClasses, ArrayRef<double> own) {
  return all_of(zip(ofClasses, own), [](auto times) {
    const auto [shared, alone] = times;
    return shared <= std::max(mostOfOwnTime * alone, alone + ofQueuedLaunch);
  });
}

/// By how much it takes longer where it does so most.
double worstRatio(ArrayRef<double> ofClasses, ArrayRef<double> own) {
  double worst = 0;
  for (auto [shared, alone] : zip(ofClasses, own))
    worst = std::max(worst, shared / alone);
  return worst;
}

} // namespace

ClassChoice::ClassChoice(std::shared_ptr<CompiledSource> given, const CompileOptions &options)
    : source(std::move(given)), options(options), isChosen(options.few_keys) {
  if (auto checker = std::static_pointer_cast<CompiledSource>(source->gather_checks()))
    checks = std::make_shared<ClassChoice>(std::move(checker), options);
}

std::optional<SmallVector<double>>
ClassChoice::timesOf(size_t kernel, std::string_view target, const Facts &facts,
                     ArrayRef<SmallVector<int64_t>> sizes) const {
  const std::vector<std::optional<Scalar>> scalars(signatures()[kernel].num_scalars());
  SmallVector<double> times;
  for (const SmallVector<int64_t> &dims : sizes) {
    auto cost =
        source->predictCost(kernel, target, facts, dims, scalars, [](StringRef) { return 0U; });
    if (!cost || !*cost)
      return std::nullopt;
    times.push_back((*cost)->kernel.nanoseconds);
  }
  return times;
}

Facts ClassChoice::compare(size_t kernel, std::string_view target, const Facts &own,
                           const Facts &classes) const {
  const auto sizes = sizesOf(own, classes);
  const auto ownTimes = sizes.empty() ? std::nullopt : timesOf(kernel, target, own, sizes);
  if (!ownTimes)
    return own;
  auto costsLittle = [&](const Facts &facts) {
    const auto times = timesOf(kernel, target, facts, sizes);
    const double ratio = times ? worstRatio(*times, *ownTimes) : 0;
    detail::log_message("'" + signatures()[kernel].name + "' [" + own.key() + "]: the code of [" +
                        facts.key() + "] has " +
                        (times ? std::to_string(ratio) + " of the" : std::string("no")) +
                        " predicted time");
    return times && isNear(*times, *ownTimes);
  };
  if (costsLittle(classes))
    return classes;
  Facts taken = own;
  for (size_t d = 0; d < own.dims.size(); ++d) {
    Facts facts = taken;
    facts.dims[d] = classes.dims[d];
    if (facts != taken && facts != classes && costsLittle(facts))
      taken = facts;
  }
  return taken;
}

Facts ClassChoice::choose(size_t kernel, std::string_view target, const Facts &own,
                          const Facts &classes) const {
  const detail::Cache cache = detail::Cache::from_environment();
  detail::Digest key{};
  if (cache.enabled()) {
    detail::CacheKey parts;
    parts.add("entry", "classes").add("build", compilerBuild()).add("target", target);
    for (const std::string &pass : options.disabled_passes)
      parts.add("without", pass);
    Expected<std::string> text = source->stage_text(kernel, "tk", target, own);
    if (!text)
      return own;
    key = parts.add("kernel", *text).add("classes", classes.key()).digest();
    if (auto entry = cache.load(key)) {
      // One letter a dimension.
      const std::string &shares = (*entry)["shares"];
      Facts chosen = own;
      for (size_t d = 0; d < std::min(shares.size(), own.dims.size()); ++d)
        if (shares[d] == 'y')
          chosen.dims[d] = classes.dims[d];
      return chosen;
    }
  }
  Facts chosen = compare(kernel, target, own, classes);
  std::string shares;
  for (size_t d = 0; d < own.dims.size(); ++d)
    shares += chosen.dims[d] == classes.dims[d] ? 'y' : 'n';
  cache.store(key, {{"shares", shares}});
  return chosen;
}

Facts ClassChoice::relevant_facts(size_t kernel, std::string_view target,
                                  const Facts &given) const {
  const Facts classes = source->relevant_facts(kernel, target, given);
  if (isChosen || !isGpuText(target) || given.dims.empty())
    return classes;
  Facts own = given;
  for (DimFact &fact : own.dims)
    fact.own_key = true;
  own = source->relevant_facts(kernel, target, own);
  // A size without a class, or whose class has the facts of its own key.
  for (auto [fact, shared] : zip(own.dims, classes.dims)) {
    DimFact plain = fact;
    plain.own_key = false;
    if (plain == shared)
      fact = shared;
  }
  if (own == classes)
    return classes;
  const std::string key =
      std::to_string(kernel) + " " + std::string(target) + " " + own.key() + " " + classes.key();
  std::lock_guard lock(mutex);
  if (auto found = known.find(key); found != known.end())
    return found->second;
  return known.emplace(key, choose(kernel, target, own, classes)).first->second;
}

Expected<detail::ShardedKernel> ClassChoice::shard(size_t kernel, std::span<const MeshAxis> axes,
                                                   std::span<const int64_t> dims,
                                                   const std::string &network) {
  Expected<CompiledSource::Placement> placement = source->placeOn(kernel, axes, dims, network);
  if (!placement)
    return placement.error();
  return detail::ShardedKernel{std::make_shared<ClassChoice>(std::move(placement->locals), options),
                               std::move(placement->plan)};
}

Expected<std::string> ClassChoice::text_for(size_t kernel, std::string_view stage,
                                            std::string_view target,
                                            std::span<const std::optional<int64_t>> dims) {
  const Facts facts = relevant_facts(kernel, target, factsAt(signatures()[kernel], dims));
  if (stage == "explain")
    return source->explain(kernel, target, facts);
  if (stage == "inspect" || stage == "cost")
    return inspectKernel(*source, kernel, target, dims, facts, stage == "cost");
  return stage_text(kernel, stage, target, facts);
}

} // namespace tk
