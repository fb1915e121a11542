//===- Promises.cpp - results that hold exactly ---------------------------===//
#include "tests/fuzz/Promises.h"

namespace tk::fuzz {

const Promise *promiseOf(const Program &program, const std::string &result) {
  for (const Promise &promise : program.promises)
    if (program.tensors[promise.tensor].name == result)
      return &promise;
  return nullptr;
}

static bool isKept(const Promise &promise, double value) {
  switch (promise.kind) {
  case Promised::Zero:
    return value == 0;
  case Promised::One:
    return value == 1;
  case Promised::AtMostOne:
    return value >= 0 && value <= 1;
  case Promised::AtLeast:
    return value >= promise.count;
  case Promised::SomeInRow:
    return value == 0 || value == 1;
  }
  return false;
}

std::string findBroken(const Promise &promise, const HostTensor &tensor) {
  const size_t size = size_of(tensor.dtype), count = tensor.bytes.size() / size;
  const size_t rank = tensor.shape.size();
  const size_t row = rank ? static_cast<size_t>(tensor.shape[rank - 1]) : 1;
  int ones = 0;
  for (size_t at = 0; at < count; ++at) {
    const double value = load_as_f64(tensor.dtype, tensor.bytes.data() + at * size);
    if (!isKept(promise, value))
      return "element " + std::to_string(at) + " is " + std::to_string(value);
    ones = at % row == 0 ? value == 1 : ones + (value == 1);
    if (promise.kind == Promised::SomeInRow && at % row + 1 == row && ones < promise.count)
      return "row " + std::to_string(at / row) + " has " + std::to_string(ones) + " ones, not " +
             std::to_string(promise.count);
  }
  return "";
}

} // namespace tk::fuzz
