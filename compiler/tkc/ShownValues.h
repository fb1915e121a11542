//===- ShownValues.h - values inside a run -----------------------*- C++ -*-===//
//
// `tkc run --show 'm[0, 0, 3, 0..8]'` prints elements of a let or a result as the reference and the
// target compute them. The let becomes a result of the kernel for that: a target stores it.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_TKC_SHOWNVALUES_H
#define TK_COMPILER_TKC_SHOWNVALUES_H

#include "compiler/CompiledSource.h"
#include "compiler/tkc/Inputs.h"

#include <string>
#include <utility>
#include <vector>

namespace tk::tkc {

/// What --show selects of a tensor.
struct Selection {
  std::string text, name;
  bool isWhole = true; ///< no indices were given
  /// By axis from the first place to the one behind the last.
  std::vector<std::pair<int64_t, int64_t>> ranges;
};

/// Reads NAME or NAME[INT|LOW..HIGH, …].
Expected<Selection> parseSelection(const std::string &text);

struct ShownValue {
  std::vector<int64_t> index;
  double reference = 0, target = 0;
};

struct ShownTensor {
  Selection selection;
  std::vector<std::string> begins; ///< see beginsOf
  std::vector<ShownValue> values;  ///< their places count from where the axes begin
};

/// What each axis of a let begins at, an integer or an expression of sizes; none where all begin
/// at 0.
std::vector<std::string> beginsOf(KernelOp kernel, const std::string &name);

/// The selected elements by the reference, and of `outputs`, which are in the order of
/// Signature::tensor. The tensors are results of the kernel.
Expected<std::vector<ShownTensor>> readSelections(CompiledSource &source, size_t kernel,
                                                  const RunArguments &inputs,
                                                  const std::vector<Selection> &selections,
                                                  const std::vector<HostTensor> &outputs);

/// A number as JSON, which has no infinities and NaN: those are strings.
std::string numberJson(double value);
std::string indexText(const std::vector<int64_t> &index);
void printShown(const std::vector<ShownTensor> &shown, const std::string &target);
std::string shownJson(const std::vector<ShownTensor> &shown);

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_SHOWNVALUES_H
