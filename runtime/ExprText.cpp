// Infix text of launch-time expressions, with the fewest parentheses that keep their meaning.
#include "tk/expr.h"

#include <bit>
#include <cstdio>

namespace tk {
namespace {

struct Operator {
  const char *text;
  int precedence; ///< 0: written as a function
};

Operator describe(ExprOp op) {
  switch (op) {
  case ExprOp::add:
    return {" + ", 5};
  case ExprOp::sub:
    return {" - ", 5};
  case ExprOp::mul:
    return {" * ", 6};
  case ExprOp::floor_div:
  case ExprOp::div:
    return {" / ", 6};
  case ExprOp::mod:
    return {" % ", 6};
  case ExprOp::eq:
    return {" == ", 4};
  case ExprOp::ne:
    return {" != ", 4};
  case ExprOp::lt:
    return {" < ", 4};
  case ExprOp::le:
    return {" <= ", 4};
  case ExprOp::logical_and:
    return {" and ", 3};
  case ExprOp::logical_or:
    return {" or ", 2};
  default:
    return {nullptr, 0};
  }
}

const char *function_name(ExprOp op) {
  constexpr struct {
    ExprOp op;
    const char *name;
  } names[] = {{ExprOp::ceil_div, "ceildiv"}, {ExprOp::min, "min"},
               {ExprOp::max, "max"},          {ExprOp::neg, "-"},
               {ExprOp::abs, "abs"},          {ExprOp::logical_not, "not "},
               {ExprOp::select, "select"},    {ExprOp::to_real, "f64"},
               {ExprOp::to_integer, "i64"},   {ExprOp::sqrt, "sqrt"},
               {ExprOp::rsqrt, "rsqrt"},      {ExprOp::exp, "exp"},
               {ExprOp::exp2, "exp2"},        {ExprOp::log, "log"},
               {ExprOp::log2, "log2"},        {ExprOp::log1p, "log1p"},
               {ExprOp::expm1, "expm1"},      {ExprOp::tanh, "tanh"},
               {ExprOp::sin, "sin"},          {ExprOp::cos, "cos"},
               {ExprOp::erf, "erf"},          {ExprOp::sigmoid, "sigmoid"},
               {ExprOp::floor, "floor"},      {ExprOp::ceil, "ceil"},
               {ExprOp::round, "round"},      {ExprOp::sign, "sign"},
               {ExprOp::pow, "pow"}};
  for (const auto &entry : names)
    if (entry.op == op)
      return entry.name;
  return "?";
}

struct Piece {
  std::string text;
  int precedence = 9;
};

std::string wrapped(const Piece &piece, int minimum) {
  return piece.precedence < minimum ? "(" + piece.text + ")" : piece.text;
}

std::string leaf(const ExprStep &step, std::span<const std::string> names) {
  if (step.op == ExprOp::integer)
    return std::to_string(step.value);
  if (step.op == ExprOp::real) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.9g", std::bit_cast<double>(step.value));
    return buffer;
  }
  if (step.value >= 0 && static_cast<size_t>(step.value) < names.size())
    return names[static_cast<size_t>(step.value)];
  return "v" + std::to_string(step.value);
}

} // namespace

std::string Expr::str(std::span<const std::string> names) const {
  std::vector<Piece> stack;
  for (const ExprStep &step : m_steps) {
    unsigned count = arity(step.op);
    if (stack.size() < count)
      return "<malformed>";
    if (count == 0) {
      stack.push_back({leaf(step, names)});
      continue;
    }
    Operator infix = describe(step.op);
    Piece result;
    size_t base = stack.size() - count;
    if (infix.text) {
      result = {wrapped(stack[base], infix.precedence) + infix.text +
                    wrapped(stack[base + 1], infix.precedence + 1),
                infix.precedence};
    } else if (step.op == ExprOp::neg || step.op == ExprOp::logical_not) {
      result = {function_name(step.op) + wrapped(stack[base], 7), 7};
    } else {
      result.text = std::string(function_name(step.op)) + "(";
      for (unsigned i = 0; i < count; ++i)
        result.text += (i ? ", " : "") + stack[base + i].text;
      result.text += ")";
    }
    stack.resize(base);
    stack.push_back(std::move(result));
  }
  return stack.size() == 1 ? stack.back().text : "<malformed>";
}

} // namespace tk
