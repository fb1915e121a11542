//===- TargetDiff.cpp - targets beside one another ------------------------===//
#include "compiler/tkc/TargetDiff.h"

#include "compiler/interp/Tolerance.h"
#include "compiler/tkc/Check.h"
#include "compiler/tkc/Progress.h"
#include "compiler/tkc/Session.h"
#include "compiler/tkc/ShownValues.h"
#include "frontend/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tk::tkc {

static std::vector<int64_t> indexOf(int64_t position, const Extents &shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t axis = shape.size(); axis-- > 0; position /= shape[axis])
    index[axis] = position % shape[axis];
  return index;
}

static Expected<std::vector<HostTensor>> runOn(const std::shared_ptr<CompiledSource> &source,
                                               size_t kernel, const std::string &target,
                                               RunArguments &inputs, bool quiet) {
  Progress progress("running on " + target, quiet);
  Expected<std::unique_ptr<Session>> session = Session::create(source, kernel, target, inputs);
  if (!session)
    return session.error();
  return (*session)->run(inputs, 0xFF);
}

Expected<std::vector<ComparedResult>> diffTargets(const std::shared_ptr<CompiledSource> &source,
                                                  size_t kernel,
                                                  const std::vector<std::string> &targets,
                                                  RunArguments &inputs, bool quiet) {
  const Signature &signature = source->signatures()[kernel];
  const size_t parameters = signature.num_tensors() - signature.results.size();
  KernelOp op = source->kernelOp(kernel);
  std::vector<ComparedResult> compared;
  std::vector<HostTensor> first;
  for (const std::string &target : targets) {
    Expected<std::vector<HostTensor>> outputs = runOn(source, kernel, target, inputs, quiet);
    if (!outputs)
      return Error(outputs.error().code(), target + ": " + outputs.error().message(),
                   outputs.error().spans());
    if (first.empty()) {
      first = std::move(*outputs);
      continue;
    }
    for (unsigned t = 0; t < signature.num_tensors(); ++t) {
      const Parameter &param = signature.tensor(t);
      if (t < parameters && !param.in_out)
        continue;
      interp::Difference found = interp::differ(
          first[t].view(), (*outputs)[t].view(), interp::coarsestRounding(op, param.dtype),
          longestReduction(op, inputs), interp::multipliesInexactly(op));
      compared.push_back(
          {param.name, targets.front(), target, found.largest, !found.first,
           found.first ? indexOf(*found.first, first[t].shape) : std::vector<int64_t>(), found.a,
           found.b});
    }
  }
  return compared;
}

void printDiff(const std::string &kernel, const std::vector<ComparedResult> &compared) {
  std::printf("%s\n", kernel.c_str());
  for (const ComparedResult &result : compared) {
    std::printf("  %s: %s and %s ", result.name.c_str(), result.first.c_str(),
                result.second.c_str());
    if (result.agree)
      std::printf("agree (largest difference %.3g)\n", result.largest);
    else
      std::printf("DIFFER, first at %s%s: %.9g and %.9g\n", result.name.c_str(),
                  indexText(result.index).c_str(), result.valueOfFirst, result.valueOfSecond);
  }
}

std::string diffJson(const std::string &kernel, const std::vector<ComparedResult> &compared) {
  std::string text = "{\"kernel\":";
  quoteJson(kernel, text);
  text += ",\"compared\":[";
  const char *separator = "";
  for (const ComparedResult &result : compared) {
    text += separator;
    text += "{\"name\":";
    quoteJson(result.name, text);
    text += ",\"targets\":[\"" + result.first + "\",\"" + result.second +
            "\"],\"agree\":" + (result.agree ? "true" : "false") +
            ",\"largest\":" + numberJson(result.largest);
    if (!result.agree)
      text += ",\"first\":" + indexText(result.index) + ",\"values\":[" +
              numberJson(result.valueOfFirst) + "," + numberJson(result.valueOfSecond) + "]";
    text += "}";
    separator = ",";
  }
  return text + "]}";
}

} // namespace tk::tkc
