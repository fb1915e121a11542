//===- FusionTimes.cpp - what it would take to store, or not --------------===//
//
// 1. The notes of tk-fuse-producers name the tensors that it stored or inlined. A tensor that is
//    stored for one of its readers counts as stored.
// 2. For each the kernel is lowered again with the other choice, as --inline and --store ask for
// it.
// 3. A kernel with the same plan is no other choice: the pass cannot make it.
//
//===----------------------------------------------------------------------===//
#include "compiler/tkc/FusionTimes.h"

#include "compiler/tkc/tune/Candidates.h"

#include "llvm/ADT/STLExtras.h"

#include <cstdio>

namespace tk::tkc {

std::map<std::string, FusionTimes> fusionTimes(const SourceOptions &options,
                                               const std::string &target, const std::string &kernel,
                                               llvm::ArrayRef<CompiledSource::Remark> remarks,
                                               double ownTime, const std::string &ownPlan) {
  std::map<std::string, bool> isStored;
  for (const CompiledSource::Remark &remark : remarks)
    if (!remark.tensor.empty())
      isStored[remark.tensor] |= remark.declined;
  const std::vector<std::pair<std::string, bool>> tensors(isStored.begin(), isStored.end());
  std::vector<std::optional<double>> others(tensors.size());
  inParallel(tensors.size(), [&](size_t i) {
    SourceOptions other = options;
    (tensors[i].second ? other.inlined : other.stored).push_back(tensors[i].first);
    auto made = predictCandidate(other, other, target, kernel, {});
    if (made && made->plan != ownPlan)
      others[i] = made->microseconds;
  });
  std::map<std::string, FusionTimes> times;
  for (const auto &[tensor, other] : llvm::zip(tensors, others))
    times[tensor.first] = tensor.second ? FusionTimes{ownTime, other} : FusionTimes{other, ownTime};
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
  return one("stored", times.stored) + "; " + one("computed where it is read", times.inlined);
}

} // namespace tk::tkc
