//===- Inputs.h - where a run's arguments come from --------------*- C++ -*-===//
#ifndef TK_COMPILER_TKC_INPUTS_H
#define TK_COMPILER_TKC_INPUTS_H

#include "compiler/tkc/RowGaps.h"
#include "tk/module.h"
#include "tk/npy.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tk::tkc {

/// The arguments of one run, in host memory.
struct RunArguments {
  std::vector<int64_t> dims;
  std::vector<Scalar> variables;   ///< dimensions, then scalars
  std::vector<HostTensor> tensors; ///< parameters, then results, as Signature::tensor numbers them
  std::vector<Scalar> scalars;
  std::vector<RowLayout> layouts; ///< of each tensor
};

/// What the command line says of them, each as NAME=VALUE.
struct ArgumentTexts {
  std::map<std::string, int64_t> dims;
  std::vector<std::string> inputs;  ///< --in
  std::vector<std::string> scalars; ///< --arg
  std::vector<std::string> gaps;    ///< --gap
  std::vector<std::string> axes;    ///< --axes
};

/// Reads files, solves dimensions, fills the rest with random data (integers need a range: an
/// explicit input, or `random:SEED:LOW:HIGH`), and checks the constraints.
Expected<RunArguments> gatherArguments(const Signature &signature, const ArgumentTexts &texts);

/// The scalars that NAME=VALUE texts give.
Expected<std::vector<std::optional<Scalar>>> readScalars(const Signature &signature,
                                                         const std::vector<std::string> &texts);

/// A name that no argument of that kind has, with those that there are.
std::string unknownArgument(const Signature &signature, std::string_view kind,
                            const std::string &name, const std::vector<std::string> &known);

/// Fills a tensor with standard normal numbers from a seed; the same on every machine.
void fillNormal(HostTensor &tensor, uint64_t seed);

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_INPUTS_H
