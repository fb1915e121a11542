//===- Inputs.cpp - where a run's arguments come from ---------------------===//
#include "compiler/tkc/Inputs.h"

#include "runtime/Environment.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numbers>

namespace tk::tkc {
namespace {

/// SplitMix64: a well-mixed word from a counter (Steele, Lea and Flood, 2014).
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

/// Of what stands between rows: enough for any alignment.
constexpr int64_t maxGap = 1 << 20;

double unit(uint64_t word) { return (static_cast<double>(word >> 11) + 0.5) * 0x1p-53; }

int64_t countOf(const HostTensor &tensor) {
  return static_cast<int64_t>(tensor.bytes.size() / size_of(tensor.dtype));
}

void fillIntegers(HostTensor &tensor, uint64_t seed, int64_t low, int64_t high) {
  uint64_t range = static_cast<uint64_t>(high - low);
  for (int64_t i = 0, n = countOf(tensor); i < n; ++i) {
    int64_t value = low + static_cast<int64_t>(mix(mix(seed) + i) % std::max<uint64_t>(range, 1));
    store_from_f64(tensor.dtype, tensor.bytes.data() + i * size_of(tensor.dtype),
                   static_cast<double>(value));
  }
}

void fillIota(HostTensor &tensor) {
  for (int64_t i = 0, n = countOf(tensor); i < n; ++i)
    store_from_f64(tensor.dtype, tensor.bytes.data() + i * size_of(tensor.dtype),
                   static_cast<double>(i));
}

std::vector<std::string> tensorsOf(const Signature &signature) {
  std::vector<std::string> names;
  for (unsigned t = 0; t < signature.num_tensors(); ++t)
    names.push_back(signature.tensor(t).name);
  return names;
}

std::vector<std::string> scalarsOf(const Signature &signature) {
  std::vector<std::string> names;
  for (unsigned s = 0; s < signature.num_scalars(); ++s)
    names.push_back(signature.scalar(s).name);
  return names;
}

std::pair<std::string, std::string> splitAtEquals(const std::string &text) {
  size_t equals = text.find('=');
  if (equals == std::string::npos)
    return {text, ""};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::vector<std::string> splitAtColons(const std::string &text) {
  std::vector<std::string> parts(1);
  for (char c : text)
    if (c == ':')
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

std::optional<int64_t> parseInteger(const std::string &text) {
  int64_t value = 0;
  const char *end = text.data() + text.size();
  if (text.empty() ||
      std::from_chars(text.data(), end, value) != std::from_chars_result{end, std::errc()})
    return std::nullopt;
  return value;
}

bool isGenerator(const std::string &text) {
  return text == "zeros" || text == "iota" || text == "random" || text.starts_with("random:") ||
         text.starts_with("special:");
}

/// Moves one number in eight to a tie of a type of 16 or 8 bits, or next to one by less than f32
/// tells apart: what is rounded twice then differs from what is rounded once.
void moveToTies(HostTensor &tensor, uint64_t seed) {
  static constexpr int significands[] = {8, 11, 4, 3}; // of bf16, f16, f8e4m3 and f8e5m2
  for (int64_t i = 0, n = countOf(tensor); i < n; ++i) {
    const uint64_t word = mix(mix(seed) ^ static_cast<uint64_t>(i));
    std::byte *element = tensor.bytes.data() + i * size_of(tensor.dtype);
    const double value = load_as_f64(tensor.dtype, element);
    if (word % 8 != 0 || !std::isfinite(value) || value == 0)
      continue;
    const int bits = significands[word / 8 % 4];
    const double side = static_cast<double>(static_cast<int>(word / 32 % 3) - 1);
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);
    const double tie = std::trunc(std::ldexp(fraction, bits)) + std::copysign(0.5, fraction);
    store_from_f64(tensor.dtype, element, std::ldexp(tie * (1 + side * 0x1p-40), exponent - bits));
  }
}

/// Normal numbers, one in sixteen of which is NaN.
void fillSpecial(HostTensor &tensor, uint64_t seed) {
  fillNormal(tensor, seed);
  size_t size = size_of(tensor.dtype);
  for (size_t at = 0; at + size <= tensor.bytes.size(); at += size)
    if (mix(seed ^ at) % 16 == 0)
      store_from_f64(tensor.dtype, tensor.bytes.data() + at,
                     std::numeric_limits<double>::quiet_NaN());
}

/// One `random[:SEED[:LOW:HIGH]]`, `special:SEED`, `zeros` or `iota`.
Status generate(HostTensor &tensor, const std::string &name, const std::string &text) {
  if (text == "zeros")
    return {};
  if (text == "iota") {
    fillIota(tensor);
    return {};
  }
  std::vector<std::string> parts = splitAtColons(text);
  std::optional<int64_t> seed = parts.size() > 1 ? parseInteger(parts[1]) : 0;
  bool hasRange = parts.size() == 4, isSpecial = parts[0] == "special";
  std::optional<int64_t> low = hasRange ? parseInteger(parts[2]) : 0;
  std::optional<int64_t> high = hasRange ? parseInteger(parts[3]) : 1;
  if (!seed || !low || !high || parts.size() == 3 || parts.size() > 4 || *low >= *high ||
      (isSpecial && (hasRange || !is_float(tensor.dtype))))
    return Error(ErrorCode::invalid_argument, "expected --in " + name +
                                                  "=random[:SEED[:LOW:HIGH]], or special:SEED for "
                                                  "floats, got '" +
                                                  text + "'");
  // The name is part of the seed, so that two inputs differ.
  uint64_t state = mix(static_cast<uint64_t>(*seed));
  for (char c : name)
    state = mix(state ^ static_cast<unsigned char>(c));
  if (isSpecial) {
    fillSpecial(tensor, state);
  } else if (is_float(tensor.dtype) && !hasRange) {
    fillNormal(tensor, state);
    if (tensor.dtype == DType::f64)
      moveToTies(tensor, state);
  } else if (hasRange || tensor.dtype == DType::boolean) {
    fillIntegers(tensor, state, *low, tensor.dtype == DType::boolean && !hasRange ? 2 : *high);
  } else {
    return Error(ErrorCode::invalid_argument, "integer input '" + name + "' needs a range: --in " +
                                                  name +
                                                  "=random:0:LOW:HIGH, iota, zeros or a file");
  }
  return {};
}

class Gatherer {
public:
  Gatherer(const Signature &signature, const ArgumentTexts &texts)
      : signature(signature), texts(texts) {}

  Expected<RunArguments> run() {
    for (Status (Gatherer::*step)() :
         {&Gatherer::readInputs, &Gatherer::readGaps, &Gatherer::readAxes, &Gatherer::solve,
          &Gatherer::readScalars, &Gatherer::checkMemory, &Gatherer::makeTensors})
      if (Status done = (this->*step)(); !done)
        return done.error();
    return std::move(arguments);
  }

private:
  Status readInputs() {
    inputs.resize(signature.num_tensors());
    generators.assign(signature.num_tensors(), "random:0");
    for (const std::string &text : texts.inputs) {
      auto [name, value] = splitAtEquals(text);
      std::optional<unsigned> tensor = signature.find_tensor(name);
      if (!tensor)
        return Error(ErrorCode::invalid_argument,
                     unknownArgument(signature, "tensor", name, tensorsOf(signature)));
      if (isGenerator(value)) {
        generators[*tensor] = value;
        continue;
      }
      Expected<HostTensor> read = read_npy(value);
      if (!read && !llvm::StringRef(value).ends_with(".npy") &&
          read.error().code() == ErrorCode::io)
        return Error(ErrorCode::invalid_argument,
                     "input '" + name + "' has no source '" + value +
                         "': expected PATH.npy, random, random:SEED:LOW:HIGH, special:SEED, zeros "
                         "or iota");
      if (!read)
        return read.error();
      const Parameter &param = signature.tensor(*tensor);
      if (is_float(read->dtype) && is_integer(param.dtype))
        return Error(ErrorCode::invalid_argument, "argument '" + name + "': expected " +
                                                      param.str() + ", got " + read->view().str());
      inputs[*tensor] = read->converted(param.dtype);
    }
    return {};
  }

  Status readGaps() {
    arguments.layouts.resize(signature.num_tensors());
    for (const std::string &text : texts.gaps) {
      auto [name, value] = splitAtEquals(text);
      std::optional<unsigned> tensor = signature.find_tensor(name);
      std::optional<int64_t> gap = parseInteger(value);
      if (!tensor || !gap || *gap < 0 || *gap > maxGap)
        return Error(ErrorCode::invalid_argument,
                     "expected --gap TENSOR=COUNT with a tensor of '" + signature.name +
                         "' and 0 to " + std::to_string(maxGap) + " elements, got '" + text + "'");
      arguments.layouts[*tensor].gap = *gap;
    }
    return {};
  }

  /// NAME=1,0 or NAME=1,0:3: the axes as memory has them, and the stride of the innermost one.
  Status readAxes() {
    for (const std::string &text : texts.axes) {
      auto [name, value] = splitAtEquals(text);
      auto [axes, step] = llvm::StringRef(value).split(':');
      std::optional<unsigned> tensor = signature.find_tensor(name);
      RowLayout layout;
      bool isRight = tensor && (step.empty() || (!step.getAsInteger(10, layout.step) &&
                                                 layout.step > 0 && layout.step <= maxGap));
      llvm::SmallVector<llvm::StringRef> parts;
      axes.split(parts, ',');
      for (llvm::StringRef part : parts) {
        unsigned axis = 0;
        isRight &= !part.getAsInteger(10, axis) && !llvm::is_contained(layout.order, axis) &&
                   axis < parts.size();
        layout.order.push_back(axis);
      }
      if (!isRight || parts.size() != signature.tensor(*tensor).shape.size())
        return Error(ErrorCode::invalid_argument,
                     "expected --axes TENSOR=AXIS,AXIS,…[:STRIDE] with a tensor of '" +
                         signature.name + "' and each of its axes once, got '" + text + "'");
      arguments.layouts[*tensor].order = layout.order;
      arguments.layouts[*tensor].step = layout.step;
    }
    return {};
  }

  Status solve() {
    std::vector<std::optional<Extents>> shapes(signature.num_tensors());
    for (size_t t = 0; t < shapes.size(); ++t)
      if (inputs[t])
        shapes[t] = inputs[t]->shape;
    std::vector<std::optional<int64_t>> preset(signature.dims.size());
    for (auto &[name, value] : texts.dims) {
      std::optional<unsigned> dim = signature.find_dim(name);
      if (!dim)
        return Error(ErrorCode::invalid_argument,
                     signature.find_scalar(name)
                         ? "'" + name + "' is a scalar of kernel '" + signature.name +
                               "': give --arg " + name + "=" + std::to_string(value)
                         : unknownArgument(signature, "dimension", name, signature.dims));
      preset[*dim] = value;
    }
    auto solved = solve_dims(signature, shapes, preset);
    if (!solved)
      return solved.error();
    for (size_t d = 0; d < solved->size(); ++d) {
      if (!(*solved)[d])
        return Error(ErrorCode::invalid_argument, "the size of dimension '" + signature.dims[d] +
                                                      "' is not known: give --dim " +
                                                      signature.dims[d] + "=INT or an input");
      arguments.dims.push_back(*(*solved)[d]);
    }
    return {};
  }

  Status readScalars() {
    Expected<std::vector<std::optional<Scalar>>> given = tkc::readScalars(signature, texts.scalars);
    if (!given)
      return given.error();
    auto variables = complete_variables(signature, arguments.dims, *given);
    if (!variables)
      return variables.error();
    std::vector<std::optional<Extents>> shapes(signature.num_tensors());
    for (size_t t = 0; t < shapes.size(); ++t)
      if (inputs[t])
        shapes[t] = inputs[t]->shape;
    if (Status status = check_scalar_extents(signature, shapes, *variables); !status)
      return status;
    arguments.variables = *variables;
    arguments.scalars.assign(variables->begin() + static_cast<long>(signature.dims.size()),
                             variables->end());
    return run_checks(signature, arguments.variables);
  }

  /// A run holds each tensor several times: as it was given, in its session, and as results.
  Status checkMemory() {
    constexpr uint64_t copies = 3;
    uint64_t total = 0;
    for (unsigned t = 0; t < signature.num_tensors(); ++t) {
      const Parameter &param = signature.tensor(t);
      Expected<Extents> shape = shape_of(param, arguments.variables);
      if (!shape)
        return shape.error();
      Expected<int64_t> bytes = byte_count(param.dtype, *shape);
      if (!bytes)
        return bytes.error();
      if (__builtin_add_overflow(total, static_cast<uint64_t>(*bytes), &total) ||
          total > detail::memory_bytes() / copies)
        return Error(ErrorCode::out_of_memory,
                     "the tensors up to '" + param.name + "' have " + std::to_string(total) +
                         " bytes; a run holds them three times, and the memory has " +
                         std::to_string(detail::memory_bytes()) + " bytes");
    }
    return {};
  }

  Status makeTensors() {
    unsigned parameters = signature.num_tensors() - signature.results.size();
    for (unsigned t = 0; t < signature.num_tensors(); ++t) {
      const Parameter &param = signature.tensor(t);
      Expected<Extents> shape = shape_of(param, arguments.variables);
      if (!shape)
        return shape.error();
      if (inputs[t]) {
        arguments.tensors.push_back(std::move(*inputs[t]));
        continue;
      }
      if (Expected<int64_t> bytes = byte_count(param.dtype, *shape); !bytes)
        return bytes.error();
      arguments.tensors.push_back(HostTensor::zeros(param.dtype, *shape));
      if (t < parameters)
        if (Status filled = generate(arguments.tensors.back(), param.name, generators[t]); !filled)
          return filled;
    }
    return {};
  }

  const Signature &signature;
  const ArgumentTexts &texts;
  RunArguments arguments;
  std::vector<std::optional<HostTensor>> inputs;
  std::vector<std::string> generators;
};

} // namespace

std::string unknownArgument(const Signature &signature, std::string_view kind,
                            const std::string &name, const std::vector<std::string> &known) {
  return "kernel '" + signature.name + "' has no " + std::string(kind) + " '" + name +
         "'; it has " + (known.empty() ? "none" : llvm::join(known, ", "));
}

void fillNormal(HostTensor &tensor, uint64_t seed) {
  // Box and Muller: two normals from two uniforms.
  for (int64_t i = 0, n = countOf(tensor); i < n; i += 2) {
    double radius = std::sqrt(-2.0 * std::log(unit(mix(seed + static_cast<uint64_t>(i)))));
    double angle = 2.0 * std::numbers::pi * unit(mix(seed + static_cast<uint64_t>(i) + 1));
    size_t size = size_of(tensor.dtype);
    store_from_f64(tensor.dtype, tensor.bytes.data() + i * size, radius * std::cos(angle));
    if (i + 1 < n)
      store_from_f64(tensor.dtype, tensor.bytes.data() + (i + 1) * size, radius * std::sin(angle));
  }
}

Expected<std::vector<std::optional<Scalar>>> readScalars(const Signature &signature,
                                                         const std::vector<std::string> &texts) {
  std::vector<std::optional<Scalar>> given(signature.num_scalars());
  for (const std::string &text : texts) {
    auto [name, value] = splitAtEquals(text);
    std::optional<unsigned> scalar = signature.find_scalar(name);
    if (!scalar)
      return Error(ErrorCode::invalid_argument,
                   unknownArgument(signature, "scalar", name, scalarsOf(signature)));
    if (std::optional<int64_t> integer = parseInteger(value)) {
      given[*scalar] = Scalar(*integer);
      continue;
    }
    char *end = nullptr;
    double number = std::strtod(value.c_str(), &end);
    if (value.empty() || *end)
      return Error(ErrorCode::invalid_argument,
                   "expected --arg " + name + "=NUMBER, got '" + value + "'");
    given[*scalar] = Scalar(number);
  }
  return given;
}

Expected<RunArguments> gatherArguments(const Signature &signature, const ArgumentTexts &texts) {
  return Gatherer(signature, texts).run();
}

} // namespace tk::tkc
