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

Expected<References> References::create(CompiledSource &source, size_t kernel,
                                        const RunArguments &inputs) {
  KernelOp op = source.kernelOp(kernel);
  Expected<interp::Reference> exact = interp::Reference::create(op, interp::Mode::F64);
  if (!exact)
    return exact.error();
  Expected<interp::Reference> naive = interp::Reference::create(op, interp::Mode::Typed);
  if (!naive)
    return naive.error();
  References made(std::move(*exact), std::move(*naive));
  const Signature &signature = source.signatures()[kernel];
  const unsigned parameters = signature.num_tensors() - signature.results.size();
  made.op = op;
  made.signature = &signature;
  made.length = longestReduction(op, inputs);
  made.parameters.assign(inputs.tensors.begin(), inputs.tensors.begin() + parameters);
  std::vector<TensorView> views;
  for (HostTensor &tensor : made.parameters)
    views.push_back(tensor.view());
  for (interp::Reference *reference : {&made.exact, &made.naive})
    if (Status bound = reference->bind(inputs.dims, views, inputs.scalars); !bound)
      return bound.error();
  for (unsigned r = 0; r < signature.results.size(); ++r)
    made.returned.push_back(parameters + r);
  for (unsigned t = 0; t < parameters; ++t)
    if (signature.tensor(t).in_out)
      made.returned.push_back(t);
  return made;
}

void References::evaluate(int64_t elements) {
  for (unsigned r = 0; r < returned.size(); ++r)
    interp::evaluateAhead(r, exact, naive, elements);
}

void References::compare(int64_t elements, bool quiet, CheckedRun &run) {
  Progress progress("checking against the reference", quiet);
  interp::ComparisonOptions comparison;
  comparison.maxElements = elements;
  comparison.onProgress = [&](int64_t done, int64_t total) { progress.report(done, total); };
  comparison.inexactProducts = interp::multipliesInexactly(op);
  for (unsigned r = 0; r < returned.size(); ++r) {
    comparison.isExact = interp::isStoredExactly(op, r);
    const Parameter &param = signature->tensor(returned[r]);
    DType coarsest = interp::coarsestRounding(op, param.dtype);
    run.results.push_back({param.name,
                           interp::compare(run.outputs[returned[r]].view(), r, exact, naive,
                                           coarsest, length, comparison),
                           sourceSpanOf(op.getReturn().getResults()[r].getLoc())});
  }
}

Status compareResults(CompiledSource &source, size_t kernel, const RunArguments &inputs,
                      int64_t elements, bool quiet, CheckedRun &run) {
  Expected<References> references = References::create(source, kernel, inputs);
  if (!references)
    return references.error();
  references->compare(elements, quiet, run);
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

/// Runs several times over results filled with different bytes.
static Expected<CheckedRun> runRepeatedly(Session &session, const RunArguments &inputs,
                                          unsigned launches, bool quiet) {
  Expected<CheckedRun> run = runUnchecked(session, inputs, 1, quiet);
  if (!run)
    return run;
  for (unsigned launch = 1; launch < launches; ++launch) {
    Expected<std::vector<HostTensor>> next = launchOnce(session, inputs, launch, quiet);
    if (!next)
      return next.error();
    noteDifferences(*run, *next, session.signature());
  }
  return run;
}

Expected<CheckedRun> runChecked(Session &session, CompiledSource &source, size_t kernel,
                                const RunArguments &inputs, int64_t elements, unsigned launches,
                                bool quiet) {
  Expected<CheckedRun> run = runRepeatedly(session, inputs, launches, quiet);
  if (!run)
    return run;
  if (Status compared = compareResults(source, kernel, inputs, elements, quiet, *run); !compared)
    return compared.error();
  return run;
}

Expected<CheckedRun> runChecked(Session &session, References &references,
                                const RunArguments &inputs, int64_t elements) {
  Expected<CheckedRun> run = runRepeatedly(session, inputs, 2, true);
  if (run)
    references.compare(elements, true, *run);
  return run;
}

} // namespace tk::tkc
