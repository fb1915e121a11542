//===- TargetDiff.h - targets beside one another -----------------*- C++ -*-===//
#ifndef TK_COMPILER_TKC_TARGETDIFF_H
#define TK_COMPILER_TKC_TARGETDIFF_H

#include "compiler/CompiledSource.h"
#include "compiler/tkc/Inputs.h"

#include <string>
#include <vector>

namespace tk::tkc {

/// A result on two targets.
struct ComparedResult {
  std::string name, first, second; ///< the result and the targets
  double largest = 0;              ///< difference
  bool agree = true;
  std::vector<int64_t> index; ///< the first that differs beyond the tolerance
  double valueOfFirst = 0, valueOfSecond = 0;
};

/// Runs a kernel on each of the targets with the same inputs, and compares the results on the
/// others with those on the first. Two targets agree where they differ by no more than twice what
/// one may differ from the exact value.
Expected<std::vector<ComparedResult>> diffTargets(const std::shared_ptr<CompiledSource> &source,
                                                  size_t kernel,
                                                  const std::vector<std::string> &targets,
                                                  RunArguments &inputs, bool quiet);

void printDiff(const std::string &kernel, const std::vector<ComparedResult> &compared);
std::string diffJson(const std::string &kernel, const std::vector<ComparedResult> &compared);

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_TARGETDIFF_H
