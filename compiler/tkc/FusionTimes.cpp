//===- FusionTimes.cpp - what other choices of fusion would take ----------===//
//
// 1. The notes of tk-fuse-producers name the tensors that it stored or inlined. A tensor that is
//    stored for one of its readers counts as stored. The notes of tk-merge-computes name pairs.
// 2. For each the kernel is lowered again with the other choice, as --inline, --store, --merge and
//    --apart ask for it.
// 3. A kernel with the same plan is no other choice: the pass cannot make it.
// 4. Choices that are not looked at within a few seconds have no times: a large kernel has dozens.
//
//===----------------------------------------------------------------------===//
#include "compiler/tkc/FusionTimes.h"

#include "compiler/tkc/tune/Candidates.h"

#include "llvm/ADT/STLExtras.h"

#include <chrono>
#include <cstdio>

namespace tk::tkc {

/// How long other choices are looked at.
static constexpr std::chrono::seconds timeToLook{8};

std::map<std::string, FusionTimes> fusionTimes(const SourceOptions &options,
                                               const std::string &target, const std::string &kernel,
                                               llvm::ArrayRef<CompiledSource::Remark> remarks,
                                               double ownTime, const std::string &ownPlan) {
  std::map<std::string, bool> isSeparate;
  for (const CompiledSource::Remark &remark : remarks)
    if (!remark.tensor.empty())
      isSeparate[remark.tensor] |= remark.declined;
  const std::vector<std::pair<std::string, bool>> tensors(isSeparate.begin(), isSeparate.end());
  auto isPair = [](llvm::StringRef name) { return name.contains('+'); };
  std::vector<std::optional<double>> others(tensors.size());
  std::vector<char> isLookedAt(tensors.size());
  const auto end = std::chrono::steady_clock::now() + timeToLook;
  inParallel(tensors.size(), [&](size_t i) {
    if (std::chrono::steady_clock::now() > end)
      return;
    isLookedAt[i] = true;
    SourceOptions other = options;
    const auto &[name, separate] = tensors[i];
    auto &wanted = isPair(name) ? (separate ? other.merged : other.apart)
                                : (separate ? other.inlined : other.stored);
    wanted.push_back(name);
    auto made = predictCandidate(other, other, target, kernel, {});
    if (made && made->plan != ownPlan)
      others[i] = made->microseconds;
  });
  std::map<std::string, FusionTimes> times;
  for (const auto &[tensor, other, isKnown] : llvm::zip(tensors, others, isLookedAt))
    if (isKnown)
      times[tensor.first] = tensor.second ? FusionTimes{isPair(tensor.first), ownTime, other}
                                          : FusionTimes{isPair(tensor.first), other, ownTime};
  return times;
}

std::string textOf(const FusionTimes &times) {
  auto one = [](const char *what, const std::optional<double> &time) {
    if (!time)
      return std::string(what) + ": not possible";
    char text[64];
    std::snprintf(text, sizeof text, "%.4g us", *time);
    return std::string(what) + ": " + text;
  };
  return one(times.isMerge ? "apart" : "stored", times.separate) + "; " +
         one(times.isMerge ? "merged" : "computed where it is read", times.fused);
}

} // namespace tk::tkc
