#include "tests/unit/catch.h"

#include "tk/expr.h"

#include <cmath>
#include <limits>

using namespace tk;

namespace {

int64_t eval(const Expr &expr, std::vector<int64_t> variables) {
  return expr.evaluate_integer(std::span<const int64_t>(variables)).value();
}

ErrorCode failure(const Expr &expr, std::vector<int64_t> variables) {
  auto result = expr.evaluate_integer(std::span<const int64_t>(variables));
  REQUIRE(!result);
  return result.error().code();
}

const Expr M = Expr::variable(0), N = Expr::variable(1);
constexpr int64_t least = std::numeric_limits<int64_t>::min();
constexpr int64_t most = std::numeric_limits<int64_t>::max();

} // namespace

TEST_CASE("division floors, as the language says", "[expr]") {
  for (int64_t a = -9; a <= 9; ++a)
    for (int64_t b : {-4, -3, -1, 1, 2, 5}) {
      auto exact = static_cast<double>(a) / static_cast<double>(b);
      auto floor = static_cast<int64_t>(std::floor(exact));
      CHECK(eval(Expr::floor_div(M, N), {a, b}) == floor);
      CHECK(eval(Expr::ceil_div(M, N), {a, b}) == static_cast<int64_t>(std::ceil(exact)));
      CHECK(eval(Expr::mod(M, N), {a, b}) == a - floor * b);
    }
}

TEST_CASE("quotients and remainders by 0 are 0, as in kernels", "[expr]") {
  CHECK(eval(Expr::floor_div(M, N), {7, 0}) == 0);
  CHECK(eval(Expr::ceil_div(M, N), {7, 0}) == 0);
  CHECK(eval(Expr::mod(M, N), {7, 0}) == 0);
}

TEST_CASE("division at the ends of 64 bits overflows nowhere", "[expr]") {
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  CHECK(eval(Expr::mod(M, N), {least, 47}) == 47 - 9223372036854775807 % 47 - 1);
  CHECK(eval(Expr::ceil_div(M, N), {least, 47}) == -(9223372036854775807 / 47));
  CHECK(eval(Expr::floor_div(M, N), {least, 47}) == -(9223372036854775807 / 47) - 1);
  CHECK(eval(Expr::mod(M, N), {most, -2}) == -1);
  CHECK(eval(Expr::ceil_div(M, N), {most, 2}) == (most - 1) / 2 + 1);
}

TEST_CASE("what leaves 64 bits is an error", "[expr]") {
  CHECK(failure(M + N, {most, 1}) == ErrorCode::overflow);
  CHECK(failure(M - N, {least, 1}) == ErrorCode::overflow);
  CHECK(failure(M * N, {most / 2 + 1, 2}) == ErrorCode::overflow);
  CHECK(failure(Expr::floor_div(M, N), {least, -1}) == ErrorCode::overflow);
  CHECK(failure(Expr::apply(ExprOp::neg, M), {least}) == ErrorCode::overflow);
  CHECK(failure(Expr::apply(ExprOp::abs, M), {least}) == ErrorCode::overflow);
  CHECK(eval(Expr::mod(M, N), {least, -1}) == 0);
  CHECK(failure(M + N, {1}) == ErrorCode::internal);
}

TEST_CASE("constants fold, but an overflow is left for the launch", "[expr]") {
  CHECK(Expr(6) * Expr(7) == Expr(42));
  Expr overflowing = Expr(most) + Expr(1);
  CHECK(overflowing.steps().size() == 3);
  CHECK(failure(overflowing, {}) == ErrorCode::overflow);
}

TEST_CASE("conditions and selections", "[expr]") {
  Expr smaller = Expr::apply(ExprOp::select, Expr::apply(ExprOp::lt, M, N), M, N);
  CHECK(eval(smaller, {3, 4}) == 3);
  CHECK(eval(smaller, {5, 4}) == 4);
  Expr both = Expr::apply(ExprOp::logical_and, Expr::apply(ExprOp::le, M, N),
                          Expr::apply(ExprOp::eq, Expr::mod(M, Expr(2)), Expr(0)));
  CHECK(eval(both, {4, 4}) == 1);
  CHECK(eval(both, {3, 4}) == 0);
}

TEST_CASE("scalar expressions mix integers and floats", "[expr]") {
  std::vector<Scalar> variables = {Scalar(int64_t{64})};
  Scalar scale = Expr::apply(ExprOp::rsqrt, M).evaluate(variables).value();
  CHECK(scale.is_float);
  CHECK(scale.f == 0.125);
  CHECK(Expr::apply(ExprOp::div, M, Expr(128)).evaluate(variables).value().f == 0.5);
  CHECK((M * Expr::real(0.5)).evaluate(variables).value().f == 32.0);
  CHECK(!Expr::apply(ExprOp::to_integer, Expr::real(1e30)).evaluate(variables));
  CHECK(!Expr::real(1.5).evaluate_integer(variables));
}

TEST_CASE("malformed programs are refused, not run", "[expr]") {
  Expr expr;
  expr.steps() = {{ExprOp::add, 0}};
  CHECK(!expr.well_formed(4));
  CHECK(!expr.evaluate(std::span<const Scalar>()));
  expr.steps() = {{ExprOp::integer, 1}, {ExprOp::integer, 2}};
  CHECK(!expr.well_formed(4));
  CHECK(!expr.evaluate(std::span<const Scalar>()));
  expr.steps() = {{static_cast<ExprOp>(200), 1}};
  CHECK(!expr.well_formed(4));
  CHECK(!Expr::variable(4).well_formed(4));
  CHECK(Expr::variable(3).well_formed(4));
}

TEST_CASE("text has the parentheses that the meaning needs", "[expr]") {
  std::vector<std::string> names = {"M", "N"};
  CHECK(((M + N) * Expr(2)).str(names) == "(M + N) * 2");
  CHECK((M + N * Expr(2)).str(names) == "M + N * 2");
  CHECK((M - (N - Expr(1))).str(names) == "M - (N - 1)");
  CHECK(Expr::ceil_div(M, Expr(128)).str(names) == "ceildiv(M, 128)");
}
