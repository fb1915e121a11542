// Construction and evaluation of launch-time expressions. Integers are checked for overflow at
// every step: sizes come from callers, and a wrapped one would pass as a small allocation.
#include "tk/expr.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tk {

unsigned arity(ExprOp op) noexcept {
  switch (op) {
  case ExprOp::integer:
  case ExprOp::real:
  case ExprOp::variable:
    return 0;
  case ExprOp::add:
  case ExprOp::sub:
  case ExprOp::mul:
  case ExprOp::floor_div:
  case ExprOp::ceil_div:
  case ExprOp::mod:
  case ExprOp::div:
  case ExprOp::min:
  case ExprOp::max:
  case ExprOp::eq:
  case ExprOp::ne:
  case ExprOp::lt:
  case ExprOp::le:
  case ExprOp::logical_and:
  case ExprOp::logical_or:
  case ExprOp::pow:
    return 2;
  case ExprOp::select:
    return 3;
  default:
    return 1;
  }
}

namespace {

constexpr ExprOp last_op = ExprOp::pow;
constexpr size_t max_steps = 65536;

Error overflow() { return Error(ErrorCode::overflow, "integer expression overflows 64 bits"); }

Expected<Scalar> divide(ExprOp op, int64_t a, int64_t b) {
  if (b == 0) // as everywhere
    return Scalar(int64_t{0});
  if (b == -1) {
    if (op == ExprOp::mod)
      return Scalar(int64_t{0});
    if (a == std::numeric_limits<int64_t>::min())
      return overflow();
    return Scalar(-a);
  }
  const int64_t quotient = a / b, rest = a % b; // towards zero
  const bool rounded_up = rest != 0 && (a < 0) != (b < 0);
  switch (op) {
  case ExprOp::mod:
    return Scalar(rounded_up ? rest + b : rest);
  case ExprOp::ceil_div:
    return Scalar(rest != 0 && !rounded_up ? quotient + 1 : quotient);
  default: // floor_div
    return Scalar(rounded_up ? quotient - 1 : quotient);
  }
}

Expected<Scalar> apply_integers(ExprOp op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
  case ExprOp::add:
    return __builtin_add_overflow(a, b, &result) ? Expected<Scalar>(overflow()) : Scalar(result);
  case ExprOp::sub:
    return __builtin_sub_overflow(a, b, &result) ? Expected<Scalar>(overflow()) : Scalar(result);
  case ExprOp::mul:
    return __builtin_mul_overflow(a, b, &result) ? Expected<Scalar>(overflow()) : Scalar(result);
  case ExprOp::min:
    return Scalar(std::min(a, b));
  case ExprOp::max:
    return Scalar(std::max(a, b));
  case ExprOp::eq:
    return Scalar(a == b);
  case ExprOp::ne:
    return Scalar(a != b);
  case ExprOp::lt:
    return Scalar(a < b);
  case ExprOp::le:
    return Scalar(a <= b);
  default:
    return divide(op, a, b);
  }
}

Expected<Scalar> apply_reals(ExprOp op, double a, double b) {
  switch (op) {
  case ExprOp::add:
    return Scalar(a + b);
  case ExprOp::sub:
    return Scalar(a - b);
  case ExprOp::mul:
    return Scalar(a * b);
  case ExprOp::min:
    return Scalar(std::isnan(a) || a < b ? a : b);
  case ExprOp::max:
    return Scalar(std::isnan(a) || a > b ? a : b);
  case ExprOp::eq:
    return Scalar(a == b);
  case ExprOp::ne:
    return Scalar(a != b);
  case ExprOp::lt:
    return Scalar(a < b);
  case ExprOp::le:
    return Scalar(a <= b);
  default:
    return Error(ErrorCode::internal, "integer division of floats in a launch expression");
  }
}

Expected<Scalar> apply_binary(ExprOp op, Scalar a, Scalar b) {
  auto truth = [](Scalar s) { return s.is_float ? s.f != 0 : s.i != 0; };
  switch (op) {
  case ExprOp::logical_and:
    return Scalar(truth(a) && truth(b));
  case ExprOp::logical_or:
    return Scalar(truth(a) || truth(b));
  case ExprOp::div:
    return Scalar(a.as_double() / b.as_double());
  case ExprOp::pow:
    return Scalar(std::pow(a.as_double(), b.as_double()));
  default:
    if (a.is_float || b.is_float)
      return apply_reals(op, a.as_double(), b.as_double());
    return apply_integers(op, a.i, b.i);
  }
}

Expected<Scalar> to_integer(Scalar a) {
  if (!a.is_float)
    return a;
  if (!(std::fabs(a.f) < 0x1p63))
    return overflow();
  return Scalar(static_cast<int64_t>(a.f));
}

double apply_function(ExprOp op, double x) {
  switch (op) {
  case ExprOp::sqrt:
    return std::sqrt(x);
  case ExprOp::rsqrt:
    return 1.0 / std::sqrt(x);
  case ExprOp::exp:
    return std::exp(x);
  case ExprOp::exp2:
    return std::exp2(x);
  case ExprOp::log:
    return std::log(x);
  case ExprOp::log2:
    return std::log2(x);
  case ExprOp::log1p:
    return std::log1p(x);
  case ExprOp::expm1:
    return std::expm1(x);
  case ExprOp::tanh:
    return std::tanh(x);
  case ExprOp::sin:
    return std::sin(x);
  case ExprOp::cos:
    return std::cos(x);
  case ExprOp::erf:
    return std::erf(x);
  case ExprOp::sigmoid:
    return 1.0 / (1.0 + std::exp(-x));
  case ExprOp::floor:
    return std::floor(x);
  case ExprOp::ceil:
    return std::ceil(x);
  case ExprOp::round:
    return std::nearbyint(x);
  default: // sign
    return x > 0 ? 1.0 : x < 0 ? -1.0 : x;
  }
}

Expected<Scalar> apply_unary(ExprOp op, Scalar a) {
  switch (op) {
  case ExprOp::neg:
  case ExprOp::abs:
    if (a.is_float)
      return Scalar(op == ExprOp::neg ? -a.f : std::fabs(a.f));
    if (a.i == std::numeric_limits<int64_t>::min())
      return overflow();
    return Scalar(op == ExprOp::neg || a.i < 0 ? -a.i : a.i);
  case ExprOp::logical_not:
    return Scalar(a.is_float ? a.f == 0 : a.i == 0);
  case ExprOp::to_real:
    return Scalar(a.as_double());
  case ExprOp::to_integer:
    return to_integer(a);
  default:
    return Scalar(apply_function(op, a.as_double()));
  }
}

Expected<Scalar> apply_op(ExprOp op, std::span<const Scalar> operands) {
  switch (operands.size()) {
  case 1:
    return apply_unary(op, operands[0]);
  case 2:
    return apply_binary(op, operands[0], operands[1]);
  default: // select
    if (operands[0].is_float ? operands[0].f != 0 : operands[0].i != 0)
      return operands[1];
    return operands[2];
  }
}

} // namespace

Expr Expr::real(double value) {
  Expr expr;
  expr.m_steps = {{ExprOp::real, std::bit_cast<int64_t>(value)}};
  return expr;
}

Expr Expr::variable(unsigned index) {
  Expr expr;
  expr.m_steps = {{ExprOp::variable, static_cast<int64_t>(index)}};
  return expr;
}

Expr Expr::combine(ExprOp op, std::span<const Expr *const> operands) {
  Expr expr;
  expr.m_steps.clear();
  bool constant = true;
  for (const Expr *operand : operands) {
    constant &= operand->is_constant();
    expr.m_steps.insert(expr.m_steps.end(), operand->m_steps.begin(), operand->m_steps.end());
  }
  expr.m_steps.push_back({op, 0});
  if (!constant)
    return expr;
  // Folding keeps plans short; what overflows is left to fail at launch, with its message.
  Expected<Scalar> value = expr.evaluate(std::span<const Scalar>());
  if (!value)
    return expr;
  return value->is_float ? real(value->f) : Expr(value->i);
}

Expr Expr::apply(ExprOp op, const Expr &a) {
  const Expr *operands[] = {&a};
  return combine(op, operands);
}
Expr Expr::apply(ExprOp op, const Expr &a, const Expr &b) {
  const Expr *operands[] = {&a, &b};
  return combine(op, operands);
}
Expr Expr::apply(ExprOp op, const Expr &a, const Expr &b, const Expr &c) {
  const Expr *operands[] = {&a, &b, &c};
  return combine(op, operands);
}

Expected<Scalar> Expr::evaluate(std::span<const Scalar> variables) const {
  // Nearly every expression is a constant or a variable.
  if (m_steps.size() == 1 && m_steps[0].op == ExprOp::integer)
    return Scalar(m_steps[0].value);
  std::vector<Scalar> stack;
  stack.reserve(m_steps.size());
  for (const ExprStep &step : m_steps) {
    unsigned count = arity(step.op);
    if (stack.size() < count)
      return Error(ErrorCode::internal, "malformed launch expression");
    if (step.op == ExprOp::integer) {
      stack.emplace_back(step.value);
    } else if (step.op == ExprOp::real) {
      stack.emplace_back(std::bit_cast<double>(step.value));
    } else if (step.op == ExprOp::variable) {
      if (step.value < 0 || static_cast<uint64_t>(step.value) >= variables.size())
        return Error(ErrorCode::internal, "launch expression uses an unknown variable");
      stack.push_back(variables[static_cast<size_t>(step.value)]);
    } else {
      auto operands = std::span<const Scalar>(stack).last(count);
      Expected<Scalar> result = apply_op(step.op, operands);
      if (!result)
        return result;
      stack.resize(stack.size() - count);
      stack.push_back(*result);
    }
  }
  if (stack.size() != 1)
    return Error(ErrorCode::internal, "malformed launch expression");
  return stack.back();
}

Expected<int64_t> Expr::evaluate_integer(std::span<const Scalar> variables) const {
  Expected<Scalar> value = evaluate(variables);
  if (!value)
    return std::move(value.error());
  if (value->is_float)
    return Error(ErrorCode::internal, "expected an integer launch expression, got a float");
  return value->i;
}

Expected<int64_t> Expr::evaluate_integer(std::span<const int64_t> variables) const {
  std::vector<Scalar> scalars(variables.begin(), variables.end());
  return evaluate_integer(std::span<const Scalar>(scalars));
}

int Expr::bare_variable() const {
  return m_steps.size() == 1 && m_steps[0].op == ExprOp::variable
             ? static_cast<int>(m_steps[0].value)
             : -1;
}

std::optional<std::pair<unsigned, int64_t>> Expr::literal_multiple() const {
  if (m_steps.size() != 3 || m_steps[2].op != ExprOp::mul)
    return std::nullopt;
  for (unsigned i : {0U, 1U})
    if (m_steps[i].op == ExprOp::variable && m_steps[1 - i].op == ExprOp::integer)
      return std::pair(static_cast<unsigned>(m_steps[i].value), m_steps[1 - i].value);
  return std::nullopt;
}

bool Expr::is_constant() const {
  return std::none_of(m_steps.begin(), m_steps.end(),
                      [](const ExprStep &step) { return step.op == ExprOp::variable; });
}

std::vector<unsigned> Expr::variables() const {
  std::vector<unsigned> result;
  for (const ExprStep &step : m_steps) {
    auto index = static_cast<unsigned>(step.value);
    if (step.op == ExprOp::variable &&
        std::find(result.begin(), result.end(), index) == result.end())
      result.push_back(index);
  }
  return result;
}

bool Expr::well_formed(unsigned limit) const {
  if (m_steps.empty() || m_steps.size() > max_steps)
    return false;
  size_t depth = 0;
  for (const ExprStep &step : m_steps) {
    if (step.op > last_op || depth < arity(step.op))
      return false;
    if (step.op == ExprOp::variable &&
        (step.value < 0 || step.value >= static_cast<int64_t>(limit)))
      return false;
    depth = depth - arity(step.op) + 1;
  }
  return depth == 1;
}

} // namespace tk
