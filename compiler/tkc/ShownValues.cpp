//===- ShownValues.cpp - values inside a run ------------------------------===//
#include "compiler/tkc/ShownValues.h"

#include "compiler/interp/Interpreter.h"
#include "frontend/Diagnostics.h"
#include "frontend/IRGen.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <cmath>
#include <cstdio>

namespace tk::tkc {
namespace {

/// The most elements that one --show prints.
constexpr int64_t mostShown = 1024;

Error wrongSelection(const std::string &text) {
  return Error(ErrorCode::invalid_argument,
               "expected --show NAME or NAME[INT or LOW..HIGH for each axis], got '" + text + "'");
}

bool readRange(llvm::StringRef text, std::pair<int64_t, int64_t> &range) {
  auto [low, high] = text.split("..");
  if (low.trim().getAsInteger(10, range.first))
    return false;
  if (!text.contains("..")) {
    range.second = range.first + 1;
    return true;
  }
  return !high.trim().getAsInteger(10, range.second) && range.second > range.first;
}

/// What an axis begins at, if that is a number; an expression of sizes counts as 0.
int64_t firstOf(const std::vector<std::string> &begins, size_t axis) {
  int64_t first = 0;
  if (axis < begins.size() && llvm::StringRef(begins[axis]).getAsInteger(10, first))
    return 0;
  return first;
}

/// The places that a selection has, which are whole axes where it gives none. They count from where
/// the axes begin.
Expected<std::vector<std::pair<int64_t, int64_t>>>
rangesOf(const Selection &selection, const Extents &shape, const std::vector<std::string> &begins) {
  std::vector<std::pair<int64_t, int64_t>> ranges = selection.ranges;
  for (auto [axis, range] : llvm::enumerate(ranges)) {
    range.first -= firstOf(begins, axis);
    range.second -= firstOf(begins, axis);
  }
  if (selection.isWhole)
    for (int64_t extent : shape)
      ranges.emplace_back(0, extent);
  if (ranges.size() != shape.size())
    return Error(ErrorCode::invalid_argument,
                 "expected " + std::to_string(shape.size()) + " indices for '" + selection.name +
                     "', got " + std::to_string(ranges.size()) + " in '" + selection.text + "'");
  int64_t count = 1;
  for (auto [axis, range] : llvm::enumerate(ranges)) {
    if (range.first < 0 || range.second > shape[axis]) {
      const int64_t first = firstOf(begins, axis);
      const int64_t wrong = range.first < 0 ? range.first : range.second - 1;
      return Error(ErrorCode::invalid_argument,
                   "index " + std::to_string(wrong + first) + " of axis " + std::to_string(axis) +
                       " in '" + selection.text + "' is out of range: '" + selection.name +
                       "' has " + std::to_string(first) + ".." +
                       std::to_string(first + shape[axis]) + " there");
    }
    count = std::min(count * std::min(range.second - range.first, mostShown + 1), mostShown + 1);
  }
  if (count > mostShown)
    return Error(ErrorCode::invalid_argument,
                 "'" + selection.text + "' selects more than " + std::to_string(mostShown) +
                     " elements; name fewer, as in " + selection.name + "[0..8]");
  return ranges;
}

/// The index behind `index` in row-major order; false behind the last.
bool advance(std::vector<int64_t> &index, const std::vector<std::pair<int64_t, int64_t>> &ranges) {
  for (size_t axis = index.size(); axis-- > 0;) {
    if (++index[axis] < ranges[axis].second)
      return true;
    index[axis] = ranges[axis].first;
  }
  return false;
}

} // namespace

Expected<Selection> parseSelection(const std::string &text) {
  Selection selection;
  selection.text = text;
  auto [name, rest] = llvm::StringRef(text).trim().split('[');
  selection.name = name.trim().str();
  selection.isWhole = !llvm::StringRef(text).contains('[');
  if (selection.name.empty() || (!selection.isWhole && !rest.consume_back("]")))
    return wrongSelection(text);
  if (selection.isWhole || rest.trim().empty())
    return selection;
  llvm::SmallVector<llvm::StringRef> parts;
  rest.split(parts, ',');
  for (llvm::StringRef part : parts)
    if (!readRange(part.trim(), selection.ranges.emplace_back()))
      return wrongSelection(text);
  return selection;
}

/// The number of a tensor among the values that a kernel returns: the declared results, then the
/// inout parameters in order.
static unsigned returnedNumber(const Signature &signature, unsigned tensor) {
  const auto results = static_cast<unsigned>(signature.results.size());
  const unsigned parameters = signature.num_tensors() - results;
  if (tensor >= parameters)
    return tensor - parameters;
  unsigned number = results;
  for (unsigned t = 0; t < tensor; ++t)
    number += signature.tensor(t).in_out ? 1 : 0;
  return number;
}

Expected<std::vector<ShownTensor>> readSelections(CompiledSource &source, size_t kernel,
                                                  const RunArguments &inputs,
                                                  const std::vector<Selection> &selections,
                                                  const std::vector<HostTensor> &outputs) {
  const Signature &signature = source.signatures()[kernel];
  const auto parameters = static_cast<unsigned>(signature.num_tensors() - signature.results.size());
  Expected<interp::Reference> reference =
      interp::Reference::create(source.kernelOp(kernel), interp::Mode::F64);
  if (!reference)
    return reference.error();
  std::vector<HostTensor> copies(inputs.tensors.begin(), inputs.tensors.begin() + parameters);
  std::vector<TensorView> views;
  for (HostTensor &tensor : copies)
    views.push_back(tensor.view());
  if (Status bound = reference->bind(inputs.dims, views, inputs.scalars); !bound)
    return bound.error();
  std::vector<ShownTensor> shown;
  for (const Selection &selection : selections) {
    const unsigned tensor = *signature.find_tensor(selection.name);
    const HostTensor &output = outputs[tensor];
    std::vector<std::string> begins = beginsOf(source.kernelOp(kernel), selection.name);
    auto ranges = rangesOf(selection, output.shape, begins);
    if (!ranges)
      return ranges.error();
    ShownTensor &values = shown.emplace_back(ShownTensor{selection, std::move(begins), {}});
    std::vector<int64_t> index;
    for (const auto &range : *ranges)
      index.push_back(range.first);
    if (llvm::any_of(*ranges, [](const auto &range) { return range.first == range.second; }))
      continue;
    const bool isFloat = reference->resultIsFloat(returnedNumber(signature, tensor));
    do {
      int64_t position = 0;
      for (auto [place, extent] : llvm::zip_equal(index, output.shape))
        position = position * extent + place;
      const interp::Cell cell = reference->element(returnedNumber(signature, tensor), position);
      const std::byte *element =
          output.bytes.data() + static_cast<size_t>(position) * size_of(output.dtype);
      values.values.push_back({index, isFloat ? cell.f : static_cast<double>(cell.i),
                               load_as_f64(output.dtype, element)});
    } while (advance(index, *ranges));
  }
  return shown;
}

std::vector<std::string> beginsOf(KernelOp kernel, const std::string &name) {
  std::vector<std::string> begins;
  kernel.walk([&](ComputeOp compute) {
    auto list = compute->getAttrOfType<mlir::ArrayAttr>(frontend::beginsAttrName);
    if (list && llvm::cast<mlir::StringAttr>(compute.getNames()[0]).getValue() == name) {
      begins.clear(); // the last of a name
      for (mlir::Attribute begin : list)
        begins.push_back(llvm::cast<mlir::StringAttr>(begin).getValue().str());
    }
  });
  return begins;
}

/// The indices of a place as the program has them: "[1, S + 3]".
static std::string programIndex(const std::vector<int64_t> &index,
                                const std::vector<std::string> &begins) {
  std::string text;
  for (auto [axis, place] : llvm::enumerate(index)) {
    int64_t number = 0;
    const bool isNumber =
        axis >= begins.size() || !llvm::StringRef(begins[axis]).getAsInteger(10, number);
    text += (text.empty() ? "" : ", ") + (isNumber ? std::to_string(place + number)
                                                   : begins[axis] + " + " + std::to_string(place));
  }
  return "[" + text + "]";
}

std::string indexText(const std::vector<int64_t> &index) {
  std::string text;
  for (int64_t place : index)
    text += (text.empty() ? "" : ", ") + std::to_string(place);
  return "[" + text + "]";
}

void printShown(const std::vector<ShownTensor> &shown, const std::string &target) {
  for (const ShownTensor &tensor : shown) {
    std::printf("%-20s %16s %16s %12s\n", tensor.selection.text.c_str(), "reference",
                target.c_str(), "difference");
    for (const ShownValue &value : tensor.values) {
      const bool isSame = value.target == value.reference ||
                          (std::isnan(value.target) && std::isnan(value.reference));
      std::printf("  %-18s %16.9g %16.9g %12.3g\n",
                  programIndex(value.index, tensor.begins).c_str(), value.reference, value.target,
                  isSame ? 0 : value.target - value.reference);
    }
  }
}

std::string numberJson(double value) {
  if (!std::isfinite(value)) // JSON has no such numbers
    return std::isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"";
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string shownJson(const std::vector<ShownTensor> &shown) {
  std::string text = "[";
  for (const ShownTensor &tensor : shown) {
    text += text.size() > 1 ? ",{\"name\":" : "{\"name\":";
    quoteJson(tensor.selection.name, text);
    text += ",\"values\":[";
    const char *separator = "";
    for (const ShownValue &value : tensor.values) {
      text += separator;
      std::vector<int64_t> index = value.index;
      for (size_t axis = 0; axis < index.size(); ++axis)
        index[axis] += firstOf(tensor.begins, axis);
      text += "{\"index\":" + indexText(index) + ",\"reference\":" + numberJson(value.reference) +
              ",\"target\":" + numberJson(value.target) + "}";
      separator = ",";
    }
    text += "]}";
  }
  return text + "]";
}

} // namespace tk::tkc
