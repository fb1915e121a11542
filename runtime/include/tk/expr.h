// Expressions over dimensions and scalars that are evaluated at launch: extents, grids, scratch
// sizes, constraints, default values. Plain data, so that they travel in bundles.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tk/error.h"

namespace tk {

/// An integer or a float: what a dimension, a scalar argument or an expression evaluates to.
struct Scalar {
  bool is_float = false;
  union {
    int64_t i = 0;
    double f;
  };

  Scalar() = default;
  Scalar(int value) : i(value) {}
  Scalar(int64_t value) : i(value) {}
  Scalar(long long value) : i(value) {}
  Scalar(bool value) : i(value) {}
  Scalar(double value) : is_float(true), f(value) {}
  Scalar(float value) : is_float(true), f(value) {}

  double as_double() const { return is_float ? f : static_cast<double>(i); }
  bool operator==(const Scalar &other) const {
    return is_float == other.is_float && (is_float ? f == other.f : i == other.i);
  }
};

/// What one step of an expression does. Numbers are part of the bundle format: append only.
/// Arithmetic on two integers is exact and checked; with a float on either side it is done in f64.
enum class ExprOp : uint8_t {
  integer,  ///< push ExprStep::value
  real,     ///< push the f64 whose bits are ExprStep::value
  variable, ///< push variable ExprStep::value
  add,
  sub,
  mul,
  floor_div,
  ceil_div,
  mod, ///< integers only; the remainder has the divisor's sign
  div, ///< real division
  min,
  max,
  neg,
  abs,
  eq,
  ne,
  lt,
  le, ///< push integer 0 or 1
  logical_and,
  logical_or,
  logical_not,
  select, ///< condition, then, else
  to_real,
  to_integer, ///< to_integer truncates
  sqrt,
  rsqrt,
  exp,
  exp2,
  log,
  log2,
  log1p,
  expm1,
  tanh,
  sin,
  cos,
  erf,
  sigmoid,
  floor,
  ceil,
  round,
  sign,
  pow, ///< in f64
};
// clang-format would put each on a line of its own.

/// How many operands an operation takes.
unsigned arity(ExprOp op) noexcept;

struct ExprStep {
  ExprOp op = ExprOp::integer;
  int64_t value = 0;
  bool operator==(const ExprStep &) const = default;
};

/// A postfix program over variables. Variable n < D is dimension n of the kernel; variable D + s is
/// its s-th scalar parameter, counting scalars alone.
class Expr {
public:
  /// The constant 0.
  Expr() = default;
  Expr(int64_t value) : m_steps{{ExprOp::integer, value}} {}
  static Expr real(double value);
  static Expr variable(unsigned index);
  static Expr apply(ExprOp op, const Expr &a);
  static Expr apply(ExprOp op, const Expr &a, const Expr &b);
  static Expr apply(ExprOp op, const Expr &a, const Expr &b, const Expr &c);
  static Expr floor_div(const Expr &a, const Expr &b) { return apply(ExprOp::floor_div, a, b); }
  static Expr ceil_div(const Expr &a, const Expr &b) { return apply(ExprOp::ceil_div, a, b); }
  static Expr mod(const Expr &a, const Expr &b) { return apply(ExprOp::mod, a, b); }
  static Expr min(const Expr &a, const Expr &b) { return apply(ExprOp::min, a, b); }
  static Expr max(const Expr &a, const Expr &b) { return apply(ExprOp::max, a, b); }
  friend Expr operator+(const Expr &a, const Expr &b) { return apply(ExprOp::add, a, b); }
  friend Expr operator-(const Expr &a, const Expr &b) { return apply(ExprOp::sub, a, b); }
  friend Expr operator*(const Expr &a, const Expr &b) { return apply(ExprOp::mul, a, b); }

  /// Evaluates; fails with `overflow` on overflow or a variable that is not given. An integer
  /// quotient or remainder by 0 is 0.
  Expected<Scalar> evaluate(std::span<const Scalar> variables) const;
  /// Evaluates to an integer; a float result is an error.
  Expected<int64_t> evaluate_integer(std::span<const Scalar> variables) const;
  Expected<int64_t> evaluate_integer(std::span<const int64_t> variables) const;

  /// The variable's number where the expression is a single variable, else -1.
  int bare_variable() const;
  /// The variable and the factor where this is a literal times a variable, in either order.
  std::optional<std::pair<unsigned, int64_t>> literal_multiple() const;
  bool is_constant() const;
  /// The distinct variables used, in order of first use.
  std::vector<unsigned> variables() const;
  /// Whether the program leaves exactly one value and every step is known, with variables below
  /// `limit`.
  bool well_formed(unsigned limit) const;
  /// Infix text for people; variable n is written names[n], or "v<n>" where there is no such name.
  std::string str(std::span<const std::string> names = {}) const;

  const std::vector<ExprStep> &steps() const { return m_steps; }
  std::vector<ExprStep> &steps() { return m_steps; }
  bool operator==(const Expr &) const = default;

private:
  static Expr combine(ExprOp op, std::span<const Expr *const> operands);
  std::vector<ExprStep> m_steps{{ExprOp::integer, 0}};
};

using DimExpr = Expr;    ///< an Expr that evaluates to an integer
using ScalarExpr = Expr; ///< an Expr of either kind

} // namespace tk
