//===- Evaluate.cpp - what a generated program means ----------------------===//
#include "tests/fuzz/Evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace tk::fuzz {

static constexpr double infinity = std::numeric_limits<double>::infinity();

Evaluator::Evaluator(const Program &program)
    : program(program), inputs(program.tensors.size()), memo(program.tensors.size()),
      frame(program.indices.size()) {}

int Evaluator::find(const std::string &name, bool isInput) const {
  for (size_t t = 0; t < program.tensors.size(); ++t)
    if (program.tensors[t].name == name && (program.tensors[t].role == Role::Input) == isInput)
      return static_cast<int>(t);
  return -1;
}

void Evaluator::setInput(const std::string &name, const TensorView &view) {
  int tensor = find(name, /*isInput=*/true);
  if (tensor < 0)
    return; // stands there for a dimension only
  int64_t count = element_count(view.shape).value();
  size_t size = size_of(view.dtype);
  for (int64_t n = 0; n < count; ++n)
    inputs[tensor].push_back(load_as_f64(view.dtype, static_cast<const char *>(view.data) +
                                                         n * static_cast<int64_t>(size)));
}

int64_t Evaluator::count(const std::string &name) const {
  return program.countOf(program.tensors[find(name, /*isInput=*/false)]);
}

double Evaluator::element(const std::string &name, int64_t position) {
  return elementOf(find(name, /*isInput=*/false), position);
}

static double wrapped(int64_t value) { return static_cast<int32_t>(value); }
static double wrapped(double value) { return wrapped(static_cast<int64_t>(value)); }

/// Of two 32-bit integers: f64 would round the low bits that wrapping keeps.
static double wrappedProduct(double a, double b) {
  return wrapped(static_cast<int64_t>(a) * static_cast<int64_t>(b));
}

/// What a stored integer of 8 or 16 bits keeps of an i32.
static double wrappedTo(DType dtype, double value) {
  switch (dtype) {
  case DType::i8:
    return static_cast<int8_t>(static_cast<int64_t>(value));
  case DType::u8:
    return static_cast<uint8_t>(static_cast<int64_t>(value));
  case DType::i16:
    return static_cast<int16_t>(static_cast<int64_t>(value));
  default:
    return value;
  }
}

const Statement *Evaluator::definitionOf(int tensor) const {
  for (const Statement &statement : program.statements)
    if (statement.tensor == tensor)
      return &statement;
  return nullptr;
}

static bool readsTensors(const Node &node) {
  return node.kind == Kind::Load ||
         std::any_of(node.kids.begin(), node.kids.end(),
                     [](const NodePtr &kid) { return readsTensors(*kid); });
}

bool Evaluator::isConstant(const Node &node) {
  if (auto known = constants.find(&node); known != constants.end())
    return known->second;
  auto allKids = [&](auto predicate) {
    return std::all_of(node.kids.begin(), node.kids.end(),
                       [&](const NodePtr &kid) { return predicate(*kid); });
  };
  bool is = false;
  switch (node.kind) {
  case Kind::Number:
  case Kind::Truth:
    is = true;
    break;
  case Kind::Call: // a rounding to a type of storage is not part of the exact value
    is = node.name != "f16" && node.name != "bf16" &&
         allKids([&](const Node &kid) { return isConstant(kid); });
    break;
  case Kind::Unary:
  case Kind::Binary:
  case Kind::If:
    is = allKids([&](const Node &kid) { return isConstant(kid); });
    break;
  case Kind::Load: { // what may be outside of its tensor is 0 there
    const Tensor &tensor = program.tensors[node.ref];
    const Statement *statement = definitionOf(node.ref);
    is = statement && (tensor.sort() != Sort::Float || tensor.dtype == DType::f32) &&
         !node.padded && allKids([](const Node &kid) { return !readsTensors(kid); }) &&
         isConstant(*statement->value);
    break;
  }
  default:
    break;
  }
  return constants[&node] = is;
}

double Evaluator::valueOf(const Node &node) {
  const double value = unrounded(node);
  return node.sort == Sort::Float && isConstant(node) ? static_cast<float>(value) : value;
}

double Evaluator::elementOf(int tensor, int64_t position) {
  if (program.tensors[tensor].role == Role::Input)
    return inputs[tensor][position];
  auto known = memo[tensor].find(position);
  if (known != memo[tensor].end())
    return known->second;
  const Statement *statement = definitionOf(tensor);
  std::vector<int64_t> outer = frame;
  int64_t rest = position;
  for (size_t axis = statement->indices.size(); axis-- > 0;) {
    int index = statement->indices[axis];
    int64_t extent = program.extentOf(program.indices[index].hi);
    frame[index] = rest % extent;
    rest /= extent;
  }
  double value = valueOf(*statement->value);
  // Saturation is part of what storing in 8 bits means; the rounding is not part of the exact
  // value.
  DType dtype = program.tensors[tensor].dtype;
  double most = dtype == DType::f8e4m3 ? 448 : dtype == DType::f8e5m2 ? 57344 : infinity;
  if (!std::isnan(value))
    value = std::min(std::max(value, -most), most);
  value = wrappedTo(dtype, value);
  frame = std::move(outer);
  memo[tensor][position] = value;
  return value;
}

double Evaluator::unrounded(const Node &node) {
  switch (node.kind) {
  case Kind::Number:
  case Kind::Truth:
    return node.number;
  case Kind::Index:
    return static_cast<double>(frame[node.ref]);
  case Kind::Dim:
    return static_cast<double>(program.symbols[node.ref].size);
  case Kind::Scalar:
    return static_cast<float>(program.scalars[node.ref]);
  case Kind::Load:
    return loadValue(node);
  case Kind::Call:
    return callValue(node);
  case Kind::Unary:
    if (node.sort == Sort::Bool)
      return valueOf(*node.kids[0]) == 0;
    return -valueOf(*node.kids[0]);
  case Kind::Binary:
    return binaryValue(node);
  case Kind::If:
    return valueOf(*node.kids[valueOf(*node.kids[0]) != 0 ? 1 : 2]);
  case Kind::Reduce:
    return reduceValue(node);
  case Kind::Keep:
    return keepValue(node);
  }
  return 0;
}

double Evaluator::loadValue(const Node &node) {
  const Tensor &tensor = program.tensors[node.ref];
  int64_t position = 0;
  bool inside = true;
  for (size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    int64_t at = static_cast<int64_t>(valueOf(*node.kids[axis]));
    int64_t extent = program.extentOf(tensor.shape[axis]);
    inside &= at >= 0 && at < extent;
    position = position * extent + at;
  }
  if (inside)
    return elementOf(node.ref, position);
  return node.padded ? valueOf(*node.kids.back()) : 0; // outside through a gather: 0
}

double Evaluator::binaryValue(const Node &node) {
  double a = valueOf(*node.kids[0]);
  const std::string &op = node.name;
  if (op == "and")
    return a != 0 && valueOf(*node.kids[1]) != 0;
  if (op == "or")
    return a != 0 || valueOf(*node.kids[1]) != 0;
  double b = valueOf(*node.kids[1]);
  if (node.sort == Sort::Bool)
    return op == "<"    ? a < b
           : op == "<=" ? a <= b
           : op == ">"  ? a > b
           : op == ">=" ? a >= b
           : op == "==" ? a == b
                        : a != b;
  if (op == "^")
    return std::pow(a, b);
  if (node.sort == Sort::Float)
    return op == "+" ? a + b : op == "-" ? a - b : op == "*" ? a * b : a / b;
  if (op == "*" && node.sort == Sort::Int)
    return wrappedProduct(a, b);
  double value = op == "+"   ? a + b
                 : op == "-" ? a - b
                 : op == "*" ? a * b
                 : op == "/" ? std::floor(a / b)
                             : a - b * std::floor(a / b);
  return node.sort == Sort::Int ? wrapped(value) : value;
}

/// Philox 4x32-10 (Salmon et al., 2011): word `n % 4` of block `n / 4` as a uniform number of 24
/// bits.
static double uniform(uint64_t seed, int64_t n) {
  const int64_t word = ((n % 4) + 4) % 4;
  const auto counter = static_cast<uint64_t>((n - word) / 4);
  uint32_t c[4] = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  uint32_t k[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    uint64_t first = uint64_t{0xD2511F53} * c[0], second = uint64_t{0xCD9E8D57} * c[2];
    uint32_t next[4] = {
        static_cast<uint32_t>(second >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(second),
        static_cast<uint32_t>(first >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(first)};
    std::copy(next, next + 4, c);
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  return (c[word] >> 8) * 0x1p-24;
}

double Evaluator::callValue(const Node &node) {
  std::vector<double> v;
  for (const NodePtr &kid : node.kids)
    v.push_back(valueOf(*kid));
  const std::string &f = node.name;
  double x = v[0];
  auto isOneOf = [&](std::initializer_list<const char *> names) {
    return std::find(names.begin(), names.end(), f) != names.end();
  };
  if (isOneOf({"f32", "bf16", "f16", "f64"})) // roundings are not part of the exact value
    return x;
  if (isOneOf({"i32", "i64"}))
    return std::isnan(x) ? 0 : std::trunc(x);
  if (isOneOf({"min", "max"}))
    return std::isnan(x) || std::isnan(v[1]) ? NAN
           : f == "min"                      ? std::min(x, v[1])
                                             : std::max(x, v[1]);
  if (f == "clamp")
    return std::isnan(x) ? x : std::min(std::max(x, v[1]), v[2]);
  if (f == "abs")
    return node.sort == Sort::Int ? wrapped(std::fabs(x)) : std::fabs(x);
  if (f == "sign")
    return std::isnan(x) ? x : (x > 0) - (x < 0);
  if (f == "relu")
    return std::isnan(x) ? x : std::max(x, 0.0);
  auto integer = [](double value) { return static_cast<int32_t>(value); };
  if (f == "bitand")
    return integer(x) & integer(v[1]);
  if (f == "bitor")
    return integer(x) | integer(v[1]);
  if (f == "bitxor")
    return integer(x) ^ integer(v[1]);
  if (f == "bitnot")
    return ~integer(x);
  if (f == "shl")
    return wrapped(x * std::exp2(v[1]));
  if (f == "shr")
    return integer(x) >> integer(v[1]);
  if (f == "isnan")
    return std::isnan(x);
  if (f == "isinf")
    return std::isinf(x);
  if (f == "rand")
    return uniform(static_cast<uint64_t>(static_cast<int64_t>(x)), static_cast<int64_t>(v[1]));
  if (f == "fma")
    return x * v[1] + v[2];
  if (f == "pow")
    return std::pow(x, v[1]);
  // What is made of several operations is rounded after each where it is constant.
  const bool isOfConstants = isConstant(node);
  auto r = [&](double value) { return isOfConstants ? static_cast<float>(value) : value; };
  auto sigmoid = [&] { return r(1 / r(1 + r(std::exp(-x)))); };
  if (f == "sigmoid")
    return sigmoid();
  if (f == "silu")
    return std::isinf(x) && x < 0 ? 0 : x * sigmoid();
  // Constants are of their type.
  if (f == "gelu")
    return r(x * 0.5) * r(r(std::erf(r(x * static_cast<float>(std::sqrt(0.5))))) + 1);
  if (f == "gelu_tanh") {
    const double cube = r(r(r(x * x) * x) * double{0.044715F});
    const double inner = r(r(x + cube) * static_cast<float>(std::sqrt(2 / std::numbers::pi)));
    return r(x * 0.5) * r(r(std::tanh(inner)) + 1);
  }
  if (f == "softplus")
    return std::max(x, 0.0) + r(std::log1p(r(std::exp(-std::fabs(x)))));
  static const std::map<std::string, double (*)(double)> functions = {
      {"exp", std::exp},        {"exp2", std::exp2},
      {"expm1", std::expm1},    {"log", std::log},
      {"log2", std::log2},      {"log1p", std::log1p},
      {"sqrt", std::sqrt},      {"tanh", std::tanh},
      {"erf", std::erf},        {"sin", std::sin},
      {"cos", std::cos},        {"floor", std::floor},
      {"ceil", std::ceil},      {"rsqrt", [](double of) { return 1 / std::sqrt(of); }},
      {"round", std::nearbyint}};
  return functions.at(f)(x);
}

static bool isZero(const Node &node) { return node.kind == Kind::Number && node.number == 0; }

static bool isCast(const Node &node) {
  return node.kind == Kind::Call && node.sort == Sort::Float &&
         (node.name == "f32" || node.name == "bf16" || node.name == "f16");
}

/// Is it computed from an exponential, through products?
bool Evaluator::isExponential(const Node &node) {
  if (node.kind == Kind::Load) {
    const Statement *statement = definitionOf(node.ref);
    return statement && isExponential(*statement->value);
  }
  if (node.kind == Kind::Call)
    return node.name == "exp" || node.name == "exp2" ||
           (isCast(node) && isExponential(*node.kids[0]));
  if (node.kind == Kind::If)
    return isZero(*node.kids[2]) && isExponential(*node.kids[1]);
  if (node.kind == Kind::Unary)
    return isExponential(*node.kids[0]);
  return node.kind == Kind::Binary &&
         ((node.name == "/" && isExponential(*node.kids[0])) ||
          (node.name == "*" && (isExponential(*node.kids[0]) || isExponential(*node.kids[1]))));
}

/// The same of the element of a tensor that a statement defines.
bool Evaluator::isPresentElement(const Node &load, As as) {
  const Statement *statement = definitionOf(load.ref);
  if (!statement || load.padded || program.tensors[load.ref].role == Role::Updated ||
      std::any_of(load.kids.begin(), load.kids.end(),
                  [](const NodePtr &kid) { return readsTensors(*kid); }))
    return true;
  std::vector<int64_t> outer = frame, places;
  for (const NodePtr &kid : load.kids)
    places.push_back(static_cast<int64_t>(valueOf(*kid)));
  for (size_t axis = 0; axis < places.size(); ++axis)
    frame[statement->indices[axis]] = places[axis];
  const bool present = isPresent(*statement->value, as);
  frame = std::move(outer);
  return present;
}

bool Evaluator::isPresent(const Node &node, As as) {
  auto kid = [&](size_t n) { return isPresent(*node.kids[n], as); };
  auto taken = [&] { return kid(valueOf(*node.kids[0]) != 0 ? 1 : 2); };
  if (node.kind == Kind::Load)
    return isPresentElement(node, as);
  if (isCast(node))
    return kid(0);
  if (as == As::Score) {
    if (node.kind == Kind::Number)
      return node.number != -infinity;
    if (node.kind == Kind::If)
      return taken();
    return node.kind != Kind::Binary ||
           (node.name == "+" ? kid(0) && kid(1) : node.name != "-" || kid(0));
  }
  switch (node.kind) {
  case Kind::Keep:
    return node.name != "softmax" || isPresent(*node.kids[0], As::Score);
  case Kind::Unary:
    return kid(0);
  case Kind::Call: // x times a function of x
    return (node.name != "silu" && !node.name.starts_with("gelu")) || kid(0);
  case Kind::If:
    if (isZero(*node.kids[2]))
      return kid(1) && (!isExponential(*node.kids[1]) || valueOf(*node.kids[0]) != 0);
    return isZero(*node.kids[1]) ? kid(2) : taken();
  case Kind::Binary:
    if (node.name == "*")
      return kid(0) && kid(1);
    if (node.name == "+" || node.name == "-")
      return kid(0) || kid(1);
    return (node.name != "/" && node.name != "^") || kid(0);
  default:
    return true;
  }
}

double Evaluator::reduceValue(const Node &node) {
  const bool isSum = node.sort == Sort::Float && (node.name == "sum" || node.name == "mean");
  std::vector<double> values;
  std::vector<int64_t> places; // of the first binder
  auto over = [&](auto &self, size_t depth) -> void {
    if (depth == node.binders.size()) {
      values.push_back(isSum && !isPresent(*node.kids[0], As::Weight) ? 0 : valueOf(*node.kids[0]));
      places.push_back(frame[node.binders[0]]);
      return;
    }
    const IndexVar &var = program.indices[node.binders[depth]];
    for (int64_t at = var.lo, end = program.extentOf(var.hi); at < end; ++at) {
      frame[node.binders[depth]] = at;
      self(self, depth + 1);
    }
  };
  over(over, 0);
  const std::string &f = node.name;
  bool integer = node.sort == Sort::Int;
  auto fold = [&](double start, auto step) {
    double value = start;
    for (double x : values)
      value = step(value, x);
    return value;
  };
  if (f == "any")
    return fold(0, [](double a, double x) { return a != 0 || x != 0; });
  if (f == "all")
    return fold(1, [](double a, double x) { return a != 0 && x != 0; });
  if (f == "sum" || f == "mean") {
    double sum = fold(0, [&](double a, double x) { return integer ? wrapped(a + x) : a + x; });
    return f == "sum" ? sum : sum / static_cast<double>(values.size());
  }
  if (f == "prod")
    return fold(1, [&](double a, double x) { return integer ? wrappedProduct(a, x) : a * x; });
  auto larger = [](double a, double x) {
    return std::isnan(a) || std::isnan(x) ? NAN : std::max(a, x);
  };
  auto smaller = [](double a, double x) {
    return std::isnan(a) || std::isnan(x) ? NAN : std::min(a, x);
  };
  if (f == "max")
    return fold(integer ? std::numeric_limits<int32_t>::min() : -infinity, larger);
  if (f == "min")
    return fold(integer ? std::numeric_limits<int32_t>::max() : infinity, smaller);
  if (f == "logsumexp") {
    double most = fold(-infinity, larger);
    if (std::isinf(most) || std::isnan(most))
      return most;
    return most + std::log(fold(0, [&](double a, double x) { return a + std::exp(x - most); }));
  }
  size_t best = 0; // argmax and argmin: the first; 0 over nothing
  for (size_t n = 1; n < values.size() && !std::isnan(values[best]); ++n)
    if (std::isnan(values[n]) ||
        (f == "argmax" ? values[n] > values[best] : values[n] < values[best]))
      best = n;
  return places.empty() ? 0 : static_cast<double>(places[best]);
}

double Evaluator::keepValue(const Node &node) {
  int index = node.binders[0];
  int64_t here = frame[index], extent = program.extentOf(program.indices[index].hi);
  const int64_t first = program.indices[index].lo;
  std::vector<double> values;
  bool scan = node.name.starts_with("cum");
  for (int64_t at = first, end = scan ? here + 1 : extent; at < end; ++at) {
    frame[index] = at;
    values.push_back(valueOf(*node.kids[0]));
  }
  frame[index] = here;
  double sum = 0, product = 1, most = -infinity;
  for (double x : values) {
    sum += x;
    product *= x;
    most = std::isnan(most) || std::isnan(x) ? NAN : std::max(most, x);
  }
  if (node.name == "cumsum")
    return sum;
  if (node.name == "cumprod")
    return product;
  if (node.name == "cummax")
    return most;
  double total = 0;
  for (double x : values)
    total += std::exp(x - most);
  if (node.name == "softmax")
    return most == -infinity ? 0 : std::exp(values[here - first] - most) / total;
  return values[here - first] - most - std::log(total);
}

} // namespace tk::fuzz
