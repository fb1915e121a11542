//===- Check.h - a run against the reference interpreter ---------*- C++ -*-===//
#ifndef TK_COMPILER_TKC_CHECK_H
#define TK_COMPILER_TKC_CHECK_H

#include "compiler/CompiledSource.h"
#include "compiler/interp/Tolerance.h"
#include "compiler/tkc/Inputs.h"
#include "compiler/tkc/Session.h"

#include <string>
#include <vector>

namespace tk::tkc {

struct CheckedResult {
  std::string name;
  interp::Comparison comparison;
  SourceSpan span; ///< the statement that defines it
};

struct CheckedRun {
  std::vector<HostTensor> outputs; ///< every tensor, in the order of Signature::tensor
  std::vector<CheckedResult> results;
  /// Null where all are right.
  const CheckedResult *firstWrong() const;
};

/// The longest reduction that any result may depend on: the tolerance of a sum grows with it.
int64_t longestReduction(KernelOp kernel, const RunArguments &arguments);

/// The reference interpreter with inputs. It computes an element once, however many runs are
/// compared with it.
class References {
public:
  /// `inputs` are copied; `source` has to outlive this.
  static Expected<References> create(CompiledSource &source, size_t kernel,
                                     const RunArguments &inputs);
  /// Computes what compare() with as many elements needs.
  void evaluate(int64_t elements);
  /// Compares up to `elements` of each result of a run.
  void compare(int64_t elements, bool quiet, CheckedRun &run);

private:
  References(interp::Reference exact, interp::Reference naive)
      : exact(std::move(exact)), naive(std::move(naive)) {}

  KernelOp op;
  const Signature *signature = nullptr;
  std::vector<HostTensor> parameters;
  std::vector<unsigned> returned; ///< tensors: the declared results, then the inout parameters
  int64_t length = 1;             ///< of the longest reduction
  interp::Reference exact, naive;
};

/// Compares up to `elements` of each result of a run with the reference interpreter.
Status compareResults(CompiledSource &source, size_t kernel, const RunArguments &inputs,
                      int64_t elements, bool quiet, CheckedRun &run);
/// Notes which tensors of another run, over results filled with other bytes, differ: once each.
void noteDifferences(CheckedRun &run, const std::vector<HostTensor> &outputs,
                     const Signature &signature);
/// What a check found of each result, for people.
void printResults(const std::vector<CheckedResult> &results);

/// Runs `launches` times, and compares nothing. `quiet`: a long run shows no progress.
Expected<CheckedRun> runUnchecked(Session &session, const RunArguments &inputs, unsigned launches,
                                  bool quiet = true);

/// Runs `launches` times, two or more, over results filled with different bytes (an element that no
/// thread wrote differs), and compares up to `elements` of each result with the reference
/// interpreter.
Expected<CheckedRun> runChecked(Session &session, CompiledSource &source, size_t kernel,
                                const RunArguments &inputs, int64_t elements, unsigned launches = 2,
                                bool quiet = true);
/// The same, compared with references that several runs share.
Expected<CheckedRun> runChecked(Session &session, References &references,
                                const RunArguments &inputs, int64_t elements);

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_CHECK_H
