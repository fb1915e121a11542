//===- Differences.cpp - a derived gradient beside differences ------------===//
#include "tests/fuzz/Differences.h"

#include "compiler/interp/Interpreter.h"
#include "tests/fuzz/Generating.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

namespace tk::fuzz {
namespace {

/// What a kernel takes: tensors, whose floats are f64, and scalars.
struct Point {
  std::vector<HostTensor> tensors;
  std::vector<Scalar> scalars;
};

double *floats(HostTensor &tensor) { return reinterpret_cast<double *>(tensor.bytes.data()); }
const double *floats(const HostTensor &tensor) {
  return reinterpret_cast<const double *>(tensor.bytes.data());
}

size_t countOf(const HostTensor &tensor) { return tensor.bytes.size() / size_of(tensor.dtype); }

class Comparison {
public:
  Comparison(CompiledSource &source, const tkc::RunArguments &arguments, uint64_t seed)
      : source(source), arguments(arguments), random(seed) {}

  Differences run();

private:
  static constexpr size_t primal = 0, derived = 1;

  /// One thing to move: all elements of a tensor at once, one of them, or a scalar.
  struct Direction {
    std::string by;
    int tensor = -1, scalar = -1;
    std::vector<std::pair<size_t, double>> moves; ///< elements and how far
    double slope = 0, size = 0; ///< by the gradient, and the sum of its terms' magnitudes
    bool saturates = false;     ///< the gradient's type does not hold it
  };

  double uniform() { return static_cast<double>(random.next() >> 11) * 0x1p-52 - 1; }
  bool bind(interp::Reference &kernel, const Point &at, bool withResults);
  bool prepare();
  std::optional<std::vector<HostTensor>> valuesOf(size_t kernel);
  std::optional<double> differenceOf(const Direction &direction, double up, double down);
  std::vector<Direction> directions(const std::vector<HostTensor> &gradients);
  bool isWrong(const Direction &direction, Differences &result);

  CompiledSource &source;
  const tkc::RunArguments &arguments;
  Random random;
  std::optional<interp::Reference> function, gradient;
  Point start;                        ///< of the first kernel
  std::vector<HostTensor> results;    ///< of the first kernel there
  std::vector<HostTensor> cotangents; ///< by result; empty for integers
  double size = 0;                    ///< of the sum's terms
};

/// Conversions to 8-bit floats saturate, also where all else is computed in f64: a gradient says
/// what there would be without that.
bool saturates(double value, DType declared) {
  if (declared != DType::f8e4m3 && declared != DType::f8e5m2)
    return false;
  return std::fabs(value) >= (declared == DType::f8e4m3 ? 448 : 57344);
}

HostTensor inF64(const HostTensor &tensor) {
  return is_float(tensor.dtype) ? tensor.converted(DType::f64) : tensor;
}

bool Comparison::bind(interp::Reference &kernel, const Point &at, bool withResults) {
  std::vector<HostTensor> tensors = at.tensors;
  if (withResults) {
    tensors.insert(tensors.end(), results.begin(), results.end());
    for (const HostTensor &cotangent : cotangents)
      if (cotangent.dtype == DType::f64)
        tensors.push_back(cotangent);
  }
  std::vector<TensorView> views;
  for (HostTensor &tensor : tensors)
    views.push_back(tensor.view());
  return static_cast<bool>(kernel.bind(arguments.dims, views, at.scalars));
}

/// All elements of what a kernel returns; nothing where one is no number.
std::optional<std::vector<HostTensor>> Comparison::valuesOf(size_t kernel) {
  interp::Reference &reference = kernel == primal ? *function : *gradient;
  std::vector<HostTensor> values;
  for (unsigned r = 0; r < reference.numResults(); ++r) {
    const bool isFloat = reference.resultIsFloat(r);
    const DType dtype = isFloat ? DType::f64 : source.signatures()[kernel].results[r].dtype;
    HostTensor value = HostTensor::zeros(dtype, std::span(reference.resultShape(r)));
    for (size_t at = 0; at < countOf(value); ++at) {
      const interp::Cell cell = reference.element(r, static_cast<int64_t>(at));
      if (isFloat && !std::isfinite(cell.f))
        return std::nullopt;
      store_from_f64(dtype, value.bytes.data() + at * size_of(dtype),
                     isFloat                   ? cell.f
                     : dtype == DType::boolean ? static_cast<double>(cell.i != 0)
                                               : static_cast<double>(cell.i));
    }
    values.push_back(std::move(value));
  }
  return values;
}

/// The sum at `up` steps along the direction, less that at `down`.
std::optional<double> Comparison::differenceOf(const Direction &direction, double up, double down) {
  std::vector<HostTensor> values[2];
  for (bool isUp : {false, true}) {
    Point at = start;
    for (auto [element, way] : direction.moves)
      floats(at.tensors[direction.tensor])[element] += way * (isUp ? up : down);
    if (direction.scalar >= 0)
      at.scalars[direction.scalar].f += isUp ? up : down;
    if (!bind(*function, at, false))
      return std::nullopt;
    auto found = valuesOf(primal);
    if (!found)
      return std::nullopt;
    values[isUp] = std::move(*found);
  }
  double sum = 0;
  for (size_t r = 0; r < cotangents.size(); ++r)
    for (size_t at = 0; at < countOf(cotangents[r]); ++at)
      sum += floats(cotangents[r])[at] * (floats(values[1][r])[at] - floats(values[0][r])[at]);
  return sum;
}

/// Moves the inputs, evaluates the kernel there and draws cotangents. Integers stay as they are.
bool Comparison::prepare() {
  const Signature &signature = source.signatures()[primal];
  for (size_t mode : {primal, derived}) {
    auto made = interp::Reference::create(source.kernelOp(mode), interp::Mode::F64);
    if (!made)
      return false;
    (mode == primal ? function : gradient).emplace(std::move(*made));
  }
  const size_t inputs = signature.num_tensors() - signature.results.size();
  for (size_t t = 0; t < inputs; ++t) {
    start.tensors.push_back(inF64(arguments.tensors[t]));
    if (is_float(arguments.tensors[t].dtype))
      for (size_t at = 0; at < countOf(start.tensors[t]); ++at)
        floats(start.tensors[t])[at] += 0.01 * uniform();
  }
  start.scalars = arguments.scalars;
  for (Scalar &scalar : start.scalars) // an f32 that steps do not round
    if (scalar.is_float)
      scalar.f = std::round((scalar.f + 0.01 * uniform()) * 0x1p12) * 0x1p-12;
  if (!bind(*function, start, false))
    return false;
  auto values = valuesOf(primal);
  if (!values)
    return false;
  results = std::move(*values);
  for (size_t r = 0; r < results.size(); ++r) {
    const HostTensor &value = results[r];
    HostTensor cotangent;
    if (value.dtype == DType::f64) {
      cotangent = HostTensor::zeros(DType::f64, value.shape);
      for (size_t at = 0; at < countOf(value); ++at) {
        if (saturates(floats(value)[at], signature.results[r].dtype))
          return false;
        floats(cotangent)[at] = uniform();
        size += std::fabs(floats(value)[at]);
      }
    }
    cotangents.push_back(std::move(cotangent));
  }
  return true;
}

std::vector<Comparison::Direction>
Comparison::directions(const std::vector<HostTensor> &gradients) {
  const Signature &signature = source.signatures()[primal];
  std::vector<Direction> list;
  for (size_t g = 0; g < gradients.size(); ++g) {
    const Parameter &result = source.signatures()[derived].results[g];
    const std::string by = result.name.substr(2);
    const size_t count = countOf(gradients[g]);
    if (auto tensor = signature.find_tensor(by)) {
      Direction all;
      all.by = by;
      all.tensor = static_cast<int>(*tensor);
      for (size_t at = 0; at < count; ++at)
        all.moves.emplace_back(at, uniform());
      list.push_back(all);
      for (int n = 0; n < 3 && count > 1; ++n) {
        const auto at = static_cast<size_t>(random.below(static_cast<int>(count)));
        Direction one = all;
        one.by += " at " + std::to_string(at);
        one.moves = {{at, 1}};
        list.push_back(one);
      }
      for (size_t d = list.size(); d-- > 0 && list[d].tensor == static_cast<int>(*tensor);)
        for (auto [at, way] : list[d].moves) {
          list[d].slope += way * floats(gradients[g])[at];
          list[d].size += std::fabs(way * floats(gradients[g])[at]);
          list[d].saturates |= saturates(floats(gradients[g])[at], result.dtype);
        }
      continue;
    }
    Direction one;
    one.by = by;
    one.scalar = static_cast<int>(*signature.find_scalar(by));
    one.slope = floats(gradients[g])[0];
    one.size = std::fabs(one.slope);
    list.push_back(one);
  }
  return list;
}

bool Comparison::isWrong(const Direction &direction, Differences &result) {
  if (direction.saturates)
    return ++result.skipped, false;
  const double step = direction.scalar >= 0 ? 0x1p-14 : 0x1p-20;
  std::vector<double> slopes;
  for (double way : {step, step / 2, step / 4}) {
    auto difference = differenceOf(direction, way, -way);
    if (!difference)
      return ++result.skipped, false;
    slopes.push_back(*difference / (2 * way));
  }
  auto ahead = differenceOf(direction, step, 0), behind = differenceOf(direction, 0, -step);
  if (!ahead || !behind)
    return ++result.skipped, false;
  const double expected = slopes.back();
  const double tolerance = 1e-4 * std::fabs(expected) + 1e-6 * direction.size + 1e-14 * size / step;
  const auto [least, most] = std::minmax_element(slopes.begin(), slopes.end());
  if (*most - *least > tolerance / 2 ||
      std::fabs(*ahead - *behind) / step > 100 * tolerance + 1e-3 * std::fabs(expected))
    return ++result.skipped, false;
  ++result.compared;
  if (std::fabs(direction.slope - expected) <= tolerance)
    return false;
  char text[100];
  std::snprintf(text, sizeof text, ": %.9g where differences have %.9g", direction.slope, expected);
  result.wrong = "by " + direction.by + text;
  return true;
}

Differences Comparison::run() {
  Differences result;
  if (!prepare() || !bind(*gradient, start, true))
    return result;
  auto gradients = valuesOf(derived);
  if (!gradients) {
    result.wrong = "an element is no number where the kernel's results are";
    return result;
  }
  for (const Direction &direction : directions(*gradients))
    if (isWrong(direction, result))
      break;
  return result;
}

} // namespace

Differences compareWithDifferences(CompiledSource &source, const tkc::RunArguments &arguments) {
  Differences first = Comparison(source, arguments, 1).run();
  if (first.wrong.empty())
    return first;
  // A kink that lies nearer than a step once does not do so elsewhere.
  Differences second = Comparison(source, arguments, 2).run();
  if (second.wrong.empty())
    second.skipped += first.skipped + 1;
  return second;
}

} // namespace tk::fuzz
