//===- Check.cpp - a run against the reference interpreter ----------------===//
#include "compiler/tkc/Check.h"

#include "compiler/plan/KernelSignature.h"
#include "compiler/tkc/Progress.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cstdio>

namespace tk::tkc {

const CheckedResult *CheckedRun::firstWrong() const {
  auto wrong = llvm::find_if(results, [](const CheckedResult &r) { return !r.comparison.ok; });
  return wrong == results.end() ? nullptr : &*wrong;
}

int64_t longestReduction(KernelOp kernel, const RunArguments &arguments) {
  int64_t longest = 1;
  kernel.walk([&](ReduceOp) {
    for (int64_t dim : arguments.dims)
      longest = std::max(longest, dim);
  });
  return longest;
}

void printResults(const std::vector<CheckedResult> &results) {
  for (const CheckedResult &result : results) {
    const interp::Comparison &c = result.comparison;
    if (c.ok)
      std::printf("  %s: right (%lld elements against f64: largest error %.3g, a naive program's "
                  "%.3g, relative %.2g)\n",
                  result.name.c_str(), static_cast<long long>(c.compared), c.maxError, c.naiveError,
                  c.relativeError);
    else
      std::printf("  %s: WRONG (%s:%u): %s\n", result.name.c_str(), result.span.file.c_str(),
                  result.span.line, c.reason.c_str());
  }
}

Status compareResults(CompiledSource &source, size_t kernel, const RunArguments &inputs,
                      int64_t elements, bool quiet, CheckedRun &run) {
  Progress progress("checking against the reference", quiet);
  const Signature &signature = source.signatures()[kernel];
  KernelOp op = source.kernelOp(kernel);
  std::vector<TensorView> views;
  unsigned parameters = signature.num_tensors() - signature.results.size();
  std::vector<HostTensor> copies(inputs.tensors.begin(), inputs.tensors.begin() + parameters);
  for (HostTensor &tensor : copies)
    views.push_back(tensor.view());
  Expected<interp::Reference> exact = interp::Reference::create(op, interp::Mode::F64);
  if (!exact)
    return exact.error();
  Expected<interp::Reference> naive = interp::Reference::create(op, interp::Mode::Typed);
  if (!naive)
    return naive.error();
  for (interp::Reference *reference : {&*exact, &*naive})
    if (Status bound = reference->bind(inputs.dims, views, inputs.scalars); !bound)
      return bound;
  interp::ComparisonOptions comparison;
  comparison.maxElements = elements;
  comparison.onProgress = [&](int64_t done, int64_t total) { progress.report(done, total); };
  comparison.inexactProducts = interp::multipliesInexactly(op);
  int64_t length = longestReduction(op, inputs);
  // Returned values: the declared results, then the inout parameters in order.
  std::vector<unsigned> tensors;
  for (unsigned r = 0; r < signature.results.size(); ++r)
    tensors.push_back(parameters + r);
  for (unsigned t = 0; t < parameters; ++t)
    if (signature.tensor(t).in_out)
      tensors.push_back(t);
  for (unsigned r = 0; r < tensors.size(); ++r) {
    comparison.isExact = interp::isStoredExactly(op, r);
    const Parameter &param = signature.tensor(tensors[r]);
    DType coarsest = interp::coarsestRounding(op, param.dtype);
    run.results.push_back({param.name,
                           interp::compare(run.outputs[tensors[r]].view(), r, *exact, *naive,
                                           coarsest, length, comparison),
                           sourceSpanOf(op.getReturn().getResults()[r].getLoc())});
  }
  return {};
}

void noteDifferences(CheckedRun &run, const std::vector<HostTensor> &outputs,
                     const Signature &signature) {
  for (unsigned t = 0; t < run.outputs.size(); ++t) {
    const Parameter &param = signature.tensor(t);
    const bool isNoted =
        llvm::any_of(run.results, [&](const CheckedResult &r) { return r.name == param.name; });
    if (isNoted || run.outputs[t].bytes == outputs[t].bytes)
      continue;
    interp::Comparison unwritten;
    unwritten.ok = false;
    unwritten.reason = "two runs differ: an element is not written, or the result is not "
                       "repeatable";
    run.results.push_back({param.name, unwritten, param.span});
  }
}

/// What results are filled with before a launch of that number.
static uint8_t fillOf(unsigned launch) { return launch % 2 == 0 ? 0xFF : 0x7B; }

static Expected<std::vector<HostTensor>> launchOnce(Session &session, const RunArguments &inputs,
                                                    unsigned launch, bool quiet) {
  Progress progress("running on " + session.target() + (launch > 0 ? " again" : ""), quiet);
  return session.run(inputs, fillOf(launch));
}

Expected<CheckedRun> runUnchecked(Session &session, const RunArguments &inputs, unsigned launches,
                                  bool quiet) {
  CheckedRun run;
  for (unsigned launch = 0; launch < launches; ++launch) {
    Expected<std::vector<HostTensor>> outputs = launchOnce(session, inputs, launch, quiet);
    if (!outputs)
      return outputs.error();
    run.outputs = std::move(*outputs);
  }
  return run;
}

Expected<CheckedRun> runChecked(Session &session, CompiledSource &source, size_t kernel,
                                const RunArguments &inputs, int64_t elements, unsigned launches,
                                bool quiet) {
  Expected<CheckedRun> run = runUnchecked(session, inputs, 1, quiet);
  if (!run)
    return run;
  for (unsigned launch = 1; launch < launches; ++launch) {
    Expected<std::vector<HostTensor>> next = launchOnce(session, inputs, launch, quiet);
    if (!next)
      return next.error();
    noteDifferences(*run, *next, session.signature());
  }
  if (Status compared = compareResults(source, kernel, inputs, elements, quiet, *run); !compared)
    return compared.error();
  return run;
}

} // namespace tk::tkc
